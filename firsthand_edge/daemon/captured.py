"""`captured`: the daemon that owns a rig's devices, its recorder, its takes and the gate.

States: starting -> warming -> ready -> recording -> judging -> warming ... ; `unfit` says what has to be mended first.
It never ends a take by itself because of a bad frame, and never steers a clock.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firsthand_edge.daemon.agenda import Agenda
from firsthand_edge.daemon.contract import accept, different_collection
from firsthand_edge.daemon.control import ControlServer
from firsthand_edge.daemon.judging import judge_and_file, recover_torn, summary_of
from firsthand_edge.daemon.notify import notify
from firsthand_edge.daemon.owner import when_stdin_ends
from firsthand_edge.daemon.rig import LoadedRig, load_rig
from firsthand_edge.daemon.takes import Rig
from firsthand_edge.durable import replace
from firsthand_edge.errors import ChainBroken, DeviceError, DiskError, FirsthandError, UsageError
from firsthand_edge.log import configure, get_logger
from firsthand_edge.spec.capture import Outcome
from firsthand_edge.spool.spool import open_spool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.spec.capture import Capture

__all__ = ["Captured", "Phase", "main"]

TICK_S = 0.05
CHECK_S = 0.1
LAST_WORDS = "last-words.json"
NOW_NAME = "now.json"


class Phase(StrEnum):
    """What the daemon is doing."""

    STARTING = "starting"
    WARMING = "warming"
    """Preview pulses run until every clock map is settled."""
    READY = "ready"
    RECORDING = "recording"
    JUDGING = "judging"
    UNFIT = "unfit"
    """A take cannot be started; `why` says what has to be mended."""


class Captured:
    """The daemon's state machine. One thread; every step is short or has a limit."""

    def __init__(self, rig: LoadedRig, state_dir: Path) -> None:
        """Opens the spool and sees whether the spec is in force.

        Raises:
            SpecUnsigned: the spec is not signed by everyone who has to, or was altered since.
            ConfigInvalid, DiskError: spool, keys or the plan's progress cannot be used.
        """
        self._log = get_logger()
        self._loaded = rig
        self._phase = Phase.STARTING
        self._why = ""
        self._spool = open_spool(state_dir, create=True)
        self._run_dir = state_dir / "run"
        self._contract = accept(rig, state_dir)
        self._agenda = Agenda(rig.plan, rig.spec, self._spool, state_dir)
        self._rig = Rig(rig, self._contract, run_dir=self._run_dir, log_dir=state_dir / "log")
        self._capture: Capture | None = None
        self._other_collection: str | None = None
        self._warming_since = 0.0
        self._check_at = 0.0
        self._number = 0
        self._stopping = False

    # ---- life

    def start(self) -> None:
        """Recovers what a crash left, puts the spec into force, opens every device, and starts the preview."""
        self._recover()
        self._adopt_spec()
        self._rig.open()
        self._warm()

    def _recover(self) -> None:
        for sentence in recover_torn(self._spool):
            self._log.warning("restart", found=sentence)

    def _adopt_spec(self) -> None:
        """From here on the chain says under which spec takes are recorded."""
        before = self._spool.adopt_spec(self._contract.row())
        if before is not None:
            self._other_collection = different_collection(before.body, self._contract)
            self._log.warning("spec", different=self._other_collection)

    def serve(self) -> None:
        """Answers the control socket and watches the children until told to stop."""
        server = ControlServer(
            self._run_dir,
            {
                "status": self.status,
                "start_take": self.start_take,
                "stop_take": self.stop_take,
                "episode": self.episode,
                "restart_plan": self.restart_plan,
                "shutdown": self.stop,
            },
        )
        notify("READY=1")
        try:
            while not self._stopping:
                server.poll(timeout_s=TICK_S)
                self._tick()
                notify("WATCHDOG=1")
        finally:
            notify("STOPPING=1")
            server.close()

    def stop(self) -> None:
        """Ends `serve` after the present step."""
        self._stopping = True

    def close(self) -> None:
        """Ends a running take properly, then stops children in the reverse order of their start."""
        if self._phase is Phase.RECORDING:
            with contextlib.suppress(FirsthandError):
                self.stop_take()
        self._rig.close()

    # ---- the loop

    def _tick(self) -> None:
        try:
            for event in self._rig.watch():
                self._log.warning("device", **event)
            if time.monotonic() >= self._check_at:
                self._check_at = time.monotonic() + CHECK_S
                self._go_on()
        except DeviceError as exc:
            self._log.error("the recorder is gone or silent", error=str(exc))
            self._give_up()

    def _go_on(self) -> None:
        """The next step towards being ready for a take."""
        if self._phase is Phase.UNFIT:
            self._warm()
        elif self._phase is Phase.WARMING:
            self._settle()

    def _settle(self) -> None:
        unsettled = self._rig.unsettled()
        if not unsettled:
            self._phase, self._why = Phase.READY, ""
            self._log.info("ready")
        elif time.monotonic() - self._warming_since > float(self._loaded.file.rig.settle_limit_s):
            self._why = (
                f"the clocks of {', '.join(sorted(unsettled))} do not settle; see whether these devices deliver, and "
                "whether min_delay_bound_us and a tick of their counter are less than 500 us together"
            )

    def _warm(self) -> None:
        """Starts the preview; a device that cannot be armed, or a full disk, makes the rig unfit until it can."""
        self._capture = None
        self._phase, self._warming_since, self._why = Phase.WARMING, time.monotonic(), ""
        try:
            self._rig.preview()
        except FirsthandError as exc:
            self._phase, self._why = Phase.UNFIT, str(exc)
            self._log.error("unfit", why=self._why)

    # ---- control

    def status(self) -> dict[str, Any]:
        """What the daemon is doing, what is captured and what comes next, its children, and under which spec.

        `over`: every recording that is replayed has ended. `different_collection`: what is to be said when takes of
        this rig were recorded under another spec before this start; None otherwise.
        """
        return {
            "pid": os.getpid(),
            "phase": self._phase.value,
            "why": self._why,
            "number": self._number,
            "episode": self._rig.episode_id,
            "over": self._rig.over,
            "pids": self._rig.pids,
            "capture": None if self._capture is None else self._capture.model_dump(mode="json"),
            **self._agenda.to_json(),
            "spec": self._contract.row(),
            "different_collection": self._other_collection,
        }

    def start_take(self, number: int | None = None, capture: object = None) -> str:
        """Arms every device and starts the pulses; returns the episode's id.

        Args:
            number: Of the take; one more than the last without it.
            capture: What is captured, by field; without it, what the plan's next take says.

        Raises:
            UsageError: while a take runs, or when nothing says what is captured.
            CaptureInvalid: with every mistake, when what is to be captured does not fit the spec.
            DeviceError: when clocks are not settled or a device does not arm.
            DiskError: when the disk has no room or refuses.
        """
        if self._phase is Phase.RECORDING:
            raise UsageError(f"take {self._number} is running; stop it before the next")
        if self._phase is not Phase.READY:
            raise DeviceError(self._why or f"the rig is {self._phase.value} and not ready; wait until it is")
        if not (capture is None or isinstance(capture, dict)):
            raise UsageError(f"what is captured is told field by field, and not as {str(capture)[:60]!r}")
        chosen = self._agenda.choose(capture)
        self._number = self._number + 1 if number is None else number
        episode = self._spool.begin(self._loaded.file.rig.id)
        self._publish(episode.id, chosen.capture)
        try:
            self._rig.start_take(episode, number=self._number, capture=chosen.capture, name=chosen.name)
            self._agenda.begun(chosen)
        except FirsthandError:
            # Whatever was written is an episode all the same: recovered, judged, kept with its reason.
            self._give_up()
            raise
        self._phase, self._capture = Phase.RECORDING, chosen.capture
        self._log.info("recording", episode=episode.id, number=self._number, **chosen.capture.model_dump(mode="json"))
        return str(episode.id)

    def _publish(self, episode: str, capture: Capture) -> None:
        """Says beside the live page what is captured and what it is held against; nobody's take depends on it."""
        now = {
            "number": self._number,
            "episode": episode,
            "capture": capture.model_dump(mode="json"),
            "ceiling_ns": self._loaded.spec.sync.ceiling_ns,
            "sparse": sorted(self._loaded.sparse),
        }
        with contextlib.suppress(OSError):
            replace(self._run_dir / NOW_NAME, json.dumps(now).encode())

    def stop_take(self, outcome: str | None = None) -> dict[str, Any]:
        """Stops the take, seals and judges it; returns its summary (`episode`, `state`, `capture`, `report`).

        Args:
            outcome: How the attempt ended, by the spec's definitions; without it, as was said at the start.

        Raises:
            UsageError: when no take runs, or `outcome` is none of the four; a running take runs on.
            ChainBroken: when the take is sealed and good, and the chain is broken: it waits to be accepted.
            DiskError: when the disk refused; the episode is recovered as far as it is durable.
        """
        if self._phase is not Phase.RECORDING:
            raise UsageError("no take is running; start one first")
        ended = None if outcome is None else _outcome(outcome)
        self._phase = Phase.JUDGING
        try:
            episode, manifest = self._rig.stop_take(ended)
            summary = judge_and_file(self._spool, self._spool.seal(episode, manifest))
        except ChainBroken as exc:
            self._log.error("the take is sealed and not accepted", error=str(exc))
            self._warm()
            raise ChainBroken(f"the take is recorded and sealed as {episode.id}, and waits: {exc}") from exc
        except FirsthandError as exc:
            self._log.error("the take could not be sealed", error=str(exc))
            self._give_up()
            raise
        self._log.info("judged", episode=episode.id, verdict=summary["report"]["verdict"])
        self._warm()
        return summary

    def _give_up(self) -> None:
        """Ends a take that cannot go on. What is durable of it is recovered, judged and kept with its reason."""
        self._rig.abandon_take()
        with contextlib.suppress(DiskError):  # a disk that still refuses: recovered at the next start
            self._recover()
        self._warm()

    def restart_plan(self) -> None:
        """Follows the plan from its first take again.

        Raises:
            UsageError: while a take runs.
            DiskError: when the disk refuses.
        """
        if self._phase is Phase.RECORDING:
            raise UsageError(f"take {self._number} is running; stop it before the plan is begun anew")
        self._agenda.restart()

    def episode(self, episode: str) -> dict[str, Any]:
        """The summary of a judged episode."""
        return summary_of(self._spool, episode)


def _outcome(word: str) -> Outcome:
    try:
        return Outcome(word)
    except ValueError as exc:
        known = ", ".join(outcome.value for outcome in Outcome)
        raise UsageError(f"an attempt ends as one of {known}, and not as {word!r}; the take runs on") from exc


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: `python -m firsthand_edge.daemon.captured --rig FILE --state DIR [--plan FILE]`."""
    parser = argparse.ArgumentParser(prog="captured", description=__doc__)
    parser.add_argument("--rig", type=Path, required=True, help="rig file")
    parser.add_argument("--state", type=Path, required=True, help="directory of spool, keys, sockets and logs")
    parser.add_argument("--plan", type=Path, help="plan file, instead of the one that the rig file names")
    parser.add_argument("--owned", action="store_true", help="end when stdin ends, as when whoever started it is gone")
    options = parser.parse_args(arguments)
    configure(process="captured")
    run_dir: Path = options.state / "run"
    try:
        for directory in (run_dir, options.state / "log"):
            directory.mkdir(parents=True, exist_ok=True)
        with _alone(run_dir):
            return _run(load_rig(options.rig, plan=options.plan), options.state, owned=options.owned)
    except OSError as exc:
        place = exc.filename or options.state
        return _last_words(run_dir, DiskError(f"{place}: {exc.strerror}; mend the disk or choose another --state"))
    except FirsthandError as exc:
        return _last_words(run_dir, exc)


def _run(rig: LoadedRig, state_dir: Path, *, owned: bool) -> int:
    captured = Captured(rig, state_dir)
    if owned:
        when_stdin_ends(captured.stop)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: captured.stop())
    try:
        captured.start()
        captured.serve()
    finally:
        captured.close()
    return 0


@contextlib.contextmanager
def _alone(run_dir: Path) -> Any:
    """Holds the lock that makes this the only daemon of a state directory."""
    with (run_dir / "captured.lock").open("a+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another daemon runs on {run_dir.parent}; stop it first") from None
        yield


def _last_words(run_dir: Path, error: FirsthandError) -> int:
    """Says why the daemon ends, for people on stderr and for whoever started it in a file."""
    sys.stderr.write(f"captured: {error}\n")
    with contextlib.suppress(OSError):
        (run_dir / LAST_WORDS).write_text(json.dumps({"sentence": str(error), "exit_status": error.exit_status}))
    return error.exit_status


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
