"""A rig that this command starts, drives and stops: the daemon, the uploader, the control socket, the live page."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from firsthand_edge.cli.interrupts import Interrupts
from firsthand_edge.cli.live import REFRESH_S, LiveView
from firsthand_edge.daemon.control import ControlClient
from firsthand_edge.daemon.rig import LoadedRig, load_rig
from firsthand_edge.errors import CannotJudge, DeviceError, DeviceSilent, DiskError, FirsthandError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["RunningRig"]

START_LIMIT_S = 60.0
UPLOAD_LIMIT_S = 60.0
STOP_LIMIT_S = 10.0
LAST_WORDS = "last-words.json"
STATUSES = range(2, 8)
"""Statuses that a process of the rig chose for an error. Any other, as that of a crash, says nothing of a verdict."""


class ProcessEndedBadly(FirsthandError):
    """A process of the rig ended where it should not have; carries its own sentence and exit status."""

    def __init__(self, sentence: str, exit_status: int) -> None:
        super().__init__(sentence)
        self.exit_status = exit_status  # type: ignore[misc]  # the daemon's own


def _status_of(returncode: int) -> int:
    return returncode if returncode in STATUSES else CannotJudge.exit_status


class RunningRig:
    """Owns `captured` and `uploadd` as child processes; use as a context."""

    def __init__(self, rig_path: Path, state: Path, *, plan: Path | None = None) -> None:
        """Reads rig file, spec and plan, so that their mistakes are told before anything is started.

        Args:
            rig_path: The rig file.
            state: The state directory.
            plan: A plan file instead of the one that the rig file names.
        """
        self.rig: LoadedRig = load_rig(rig_path, plan=plan)
        self.state = state
        self._arguments = ["--rig", str(rig_path), "--state", str(state)]
        self._arguments += [] if plan is None else ["--plan", str(plan)]
        self._daemon: subprocess.Popen[bytes] | None = None
        self._uploader: subprocess.Popen[bytes] | None = None
        self._control: ControlClient | None = None
        self._interrupts = Interrupts()

    @property
    def run_dir(self) -> Path:
        """Sockets and pages of the running processes."""
        return self.state / "run"

    def __enter__(self) -> Self:
        try:
            (self.state / "log").mkdir(parents=True, exist_ok=True)
            self.run_dir.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise DiskError(f"{self.state} cannot be used ({exc.strerror}); name a folder with --state") from exc
        self._interrupts.__enter__()
        try:
            self.start_daemon()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            self._interrupts.__exit__(kind, exc, trace)

    def _spawn(self, module: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments, "--owned"],
                stdin=subprocess.PIPE,  # however we end, its end of the pipe says so
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def start_daemon(self) -> None:
        """Starts `captured` and waits until it answers and is ready for a take."""
        (self.run_dir / LAST_WORDS).unlink(missing_ok=True)
        self._daemon = self._spawn("firsthand_edge.daemon.captured", "captured", *self._arguments)
        if self._control is None:
            self._control = ControlClient(self.run_dir)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Waits until every clock is settled and a take can start."""
        deadline = time.monotonic() + START_LIMIT_S
        why = "it does not answer"
        while True:
            self.check_daemon()
            with contextlib.suppress(DeviceSilent):
                status = self.call("status", timeout_s=1.0)
                if status["pid"] != self.daemon_pid:
                    why = f"another daemon (pid {status['pid']}) answers"
                elif status["phase"] == "ready":
                    return
                else:
                    why = status["why"] or f"it is {status['phase']}"
            if time.monotonic() > deadline:
                raise DeviceSilent(
                    f"the daemon is not ready after {START_LIMIT_S:g} s: {why}; see {self.log('captured')}"
                )
            time.sleep(0.05)

    def log(self, name: str) -> Path:
        """The log of one of the processes."""
        return self.state / "log" / f"{name}.log"

    def episodes_in(self, state: str) -> set[str]:
        """Ids of the episodes in a state of the spool: the state is the folder."""
        folder = self.state / "spool" / state
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def view(self) -> LiveView:
        """A view of this rig's live figures. The age of what is replayed says nothing, so none of it is silent."""
        return LiveView(ceiling_ns=self.rig.spec.sync.ceiling_ns, sparse=self.rig.sparse)

    def start_uploader(self) -> None:
        """Starts `uploadd`, which hands accepted episodes to the rig file's store; an embedded store is made here."""
        if not Path(self.rig.file.store.directory).is_absolute():
            try:
                self.store.mkdir(exist_ok=True)
            except OSError as exc:
                raise StoreError(f"the store {self.store} cannot be made ({exc.strerror}); make room for it") from exc
        self._uploader = self._spawn(
            "firsthand_edge.daemon.uploadd",
            "uploadd",
            "--state",
            str(self.state),
            "--store",
            str(self.store),
            "--poll-s",
            "0.2",
        )

    def check_uploader(self) -> None:
        """Raises when the uploader ended, with its last line and its exit status, and for an interrupt."""
        self._interrupts.check()
        if self._uploader is None or self._uploader.poll() is None:
            return
        lines = self.log("uploadd").read_text(errors="replace").splitlines() or ["it said nothing"]
        raise ProcessEndedBadly(f"the uploader ended: {lines[-1]}", _status_of(self._uploader.returncode))

    def wait_for_store(self, episodes: set[str]) -> None:
        """Waits until the store has proved that it holds `episodes`. Raises StoreError when it does not."""
        deadline = time.monotonic() + UPLOAD_LIMIT_S
        while missing := episodes - self.episodes_in("uploaded"):
            self.check_uploader()
            refused = self._refused_uploads()
            if why := next((refused[name] for name in sorted(missing) if name in refused), None):
                raise StoreError(f"{why}; accepted episodes that it lacks stay on the rig: {len(missing)}")
            if time.monotonic() > deadline:
                raise StoreError(
                    f"the store has not proved after {UPLOAD_LIMIT_S:g} s that it holds {', '.join(sorted(missing))}; "
                    f"they stay on the rig; see {self.log('uploadd')}"
                )
            time.sleep(0.05)

    def _refused_uploads(self) -> dict[str, str]:
        """Why the store refused which episode, as the uploader's log says."""
        out = {}
        for line in self.log("uploadd").read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if "why" in row and row.get("episode"):
                    out[row["episode"]] = row["why"]
        return out

    @property
    def store(self) -> Path:
        """The embedded store, a directory."""
        return self.state / self.rig.file.store.directory

    def check_daemon(self) -> None:
        """Raises what the daemon died of, if it did, and for an interrupt."""
        self._interrupts.check()
        if self._daemon is None or self._daemon.poll() is None:
            return
        with contextlib.suppress(OSError, ValueError):
            words = json.loads((self.run_dir / LAST_WORDS).read_text())
            raise ProcessEndedBadly(words["sentence"], words["exit_status"])
        raise ProcessEndedBadly(
            f"the daemon ended with status {self._daemon.returncode}; see {self.log('captured')}",
            CannotJudge.exit_status,
        )

    def call(self, command: str, *, timeout_s: float, **arguments: Any) -> Any:
        """Asks the daemon."""
        if self._control is None:
            raise DeviceError("the daemon has not been started")
        return self._control.call(command, timeout_s=timeout_s, meanwhile=self.check_daemon, **arguments)

    def status(self) -> dict[str, Any]:
        """What the daemon says of itself."""
        status: dict[str, Any] = self.call("status", timeout_s=30.0)
        return status

    @property
    def daemon_pid(self) -> int:
        """Process id of `captured`."""
        if self._daemon is None:
            raise DeviceError("the daemon has not been started")
        return self._daemon.pid

    def kill_daemon(self) -> None:
        """SIGKILL to the daemon itself, nothing else; waits for its end."""
        if self._daemon is not None:
            self._daemon.send_signal(signal.SIGKILL)
            self._await_end(self._daemon)
            self._daemon = None

    def record(
        self,
        *,
        number: int,
        seconds: float | None,
        title: str,
        view: LiveView,
        capture: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Records one take and shows it meanwhile; returns the daemon's summary of the judged episode.

        Args:
            number: Number of the take; scripted faults go by it.
            seconds: How long; None until every device says that its recording is over.
            title: Heads the live view.
            view: Where to show it.
            capture: What is captured; None for what the plan's next take says.
        """
        return self.finish(self.begin(number=number, capture=capture), seconds=seconds, title=title, view=view)

    def finish(self, episode: str, *, seconds: float | None, title: str, view: LiveView) -> dict[str, Any]:
        """The rest of `record`, for a take that was begun."""
        still = self.watch(episode, seconds=seconds, title=title, view=view)
        # A take that the daemon had to give up is judged already.
        arguments = {} if still else {"episode": episode}
        summary: dict[str, Any] = self.call("stop_take" if still else "episode", timeout_s=120.0, **arguments)
        return summary

    def begin(self, *, number: int, capture: Mapping[str, Any] | None = None) -> str:
        """Arms and starts a take; returns the episode's id.

        Args:
            number: Number of the take.
            capture: What is captured; None for what the plan's next take says.
        """
        given = {} if capture is None else {"capture": dict(capture)}
        episode: str = self.call("start_take", timeout_s=START_LIMIT_S, number=number, **given)
        return episode

    def watch(self, episode: str, *, seconds: float | None, title: str, view: LiveView) -> bool:
        """Shows the running take for `seconds`, or until every device's recording is over.

        Returns:
            Whether `episode` is still being recorded; False when the daemon had to give the take up.
        """
        from firsthand_edge import _core

        page = _core.LivePage(self.run_dir / "live")
        start = time.monotonic()
        while (gone := time.monotonic() - start) < (seconds if seconds is not None else float("inf")):
            self.check_daemon()
            view.show(page.read(), title=title, seconds=gone)
            status = self.status()
            if status["episode"] != episode:
                view.done()
                return False
            if seconds is None and status["over"]:
                break
            time.sleep(min(REFRESH_S, max(0.0, seconds - gone)) if seconds is not None else REFRESH_S)
        view.show(page.read(), title=title, seconds=time.monotonic() - start)
        view.done()
        return True

    def close(self) -> None:
        """Tells uploader and daemon to stop, then waits for them; an impatient second interrupt does not keep it."""
        processes = [process for process in (self._uploader, self._daemon) if process is not None]
        for process in processes:
            process.terminate()
        for process in processes:
            self._await_end(process)
        self._uploader = self._daemon = None
        if self._control is not None:
            self._control.close()
            self._control = None

    @staticmethod
    def _await_end(process: subprocess.Popen[bytes]) -> None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
