"""One rig in operation: its workers, its recorder, its trigger, and the steps of a take.

The order of a take: pulses stop, every device is disarmed; the recorder opens the files; every device is armed and says
so; pulse 0. At the end: pulses stop, what is under way arrives, devices are disarmed and each stream sends its end
marker; the recorder closes the files.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.daemon.contract import misfits
from firsthand_edge.daemon.judging import bind
from firsthand_edge.daemon.software import software
from firsthand_edge.errors import DeviceError, DiskFull, FirsthandError
from firsthand_edge.model import Kind
from firsthand_edge.process import Child
from firsthand_edge.record.plan import recorder_plan
from firsthand_edge.sensors.supervisor import Supervisor
from firsthand_edge.spool.manifest import Balance, Ended, Lost
from firsthand_edge.trigger.replayed import ReplayedTrigger
from firsthand_edge.trigger.simulated import SimulatedTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from firsthand_edge.daemon.contract import Contract
    from firsthand_edge.daemon.rig import LoadedRig
    from firsthand_edge.model import DeviceInfo
    from firsthand_edge.sensors.page import StreamCounters
    from firsthand_edge.spec.capture import Capture, Outcome
    from firsthand_edge.spool.episode import Episode
    from firsthand_edge.spool.manifest import Manifest
    from firsthand_edge.trigger.seam import Edges, Trigger

__all__ = ["Rig"]

OPEN_LIMIT_S: Final = 30.0
ARM_LIMIT_S: Final = 10.0
DRAIN_LIMIT_S: Final = 3.0
CLOSE_LIMIT_S: Final = 60.0
"""A disk that takes longer than this to sync what is left is a fault of the disk."""
POLL_S: Final = 0.01
FREE_MIN_BYTES: Final = 64 * 1024 * 1024
"""Below this no take starts: it could not even be closed."""


class Rig:
    """Everything of a rig that runs, behind the steps of a take. One thread calls."""

    def __init__(self, loaded: LoadedRig, contract: Contract, *, run_dir: Path, log_dir: Path) -> None:
        self._loaded = loaded
        self._contract = contract
        self._run_dir = run_dir
        self._log_dir = log_dir
        self._supervisor = Supervisor(loaded.file.device, run_dir=run_dir, log_dir=log_dir)
        self._trigger: Trigger | None = None
        self._recorder: Child | None = None
        self._devices: dict[str, DeviceInfo] = {}
        self._epoch = 0
        self._take: dict[str, Any] | None = None
        self._episode: Episode | None = None
        self._deaths: Counter[str] = Counter()
        self._ended: set[str] = set()

    # ---- life

    def open(self) -> None:
        """Starts the trigger, a worker a device, and the recorder, in this order; opens every device.

        Raises:
            DeviceError: with what is wrong with each device that did not open, or where the rig does not fit its spec.
        """
        self._trigger = self._make_trigger()
        self._devices = {device.name: device for device in self._supervisor.start(timeout_s=OPEN_LIMIT_S)}
        wrong = misfits(self._loaded.spec, self._devices.values())
        if wrong:
            raise DeviceError(f"the rig does not fit its spec: {'; '.join(wrong)}; mend the rig file or the spec")
        self._start_recorder()

    def _make_trigger(self) -> Trigger:
        if self._loaded.file.trigger.kind == "simulated":
            return SimulatedTrigger(self._run_dir)
        ours = next((d.path for d in self._loaded.file.device if d.driver == "replay" and not d.is_vrs), None)
        return ReplayedTrigger(self._run_dir, recording=ours)

    def _start_recorder(self) -> None:
        if self._recorder is not None:
            self._recorder.stop()
            self._recorder = None
        recorder = Child("firsthand_edge.record.recorder", name="recorder", log_path=self._log_dir / "recorder.log")
        try:
            recorder.call(
                "prepare",
                timeout_s=OPEN_LIMIT_S,
                devices=json.dumps([device.to_json() for device in self._devices.values()]),
                plan=recorder_plan(
                    self._loaded.spec,
                    period_ns=self._loaded.period_ns,
                    latency_ns=int(self._loaded.file.rig.latency_ms * 1_000_000),
                    lossless=self._loaded.file.trigger.kind == "replayed",
                ),
                run_dir=str(self._run_dir),
            )
        except BaseException:
            recorder.stop()  # its live page may find no room on a disk that just filled up; `preview` tries again
            raise
        self._recorder = recorder

    def close(self) -> None:
        """Stops recorder, workers and trigger: the reverse of `open`. Safe twice."""
        if self._recorder is not None:
            self._recorder.stop()
        self._supervisor.stop()
        if self._trigger is not None:
            self._trigger.close()

    # ---- what goes on

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        recorder = {} if self._recorder is None else {"recorder": self._recorder.pid}
        return {**self._supervisor.pids(), **recorder}

    @property
    def episode_id(self) -> str | None:
        """The episode being recorded."""
        return None if self._episode is None else self._episode.id

    @property
    def over(self) -> bool:
        """Whether every device has delivered all it ever will: a recording that was replayed is at its end."""
        return self._ended >= set(self._devices)

    def watch(self) -> list[dict[str, Any]]:
        """Looks after the children; returns what happened to devices, and puts it into the evidence of a running take.

        Raises:
            DeviceError: when the recorder is gone; the running take is torn.
        """
        if self._recorder is not None and not self._recorder.alive:
            raise DeviceError(f"the recorder ended with {self._recorder.exit_cause()}; see {self._recorder.log_path}")
        events = self._supervisor.watch()
        for event in events:
            if event["kind"] == "ended":
                self._ended.add(event["device"])
            elif event["kind"] == "worker_died":
                self._deaths[event["device"]] += 1
            if self._take is not None:
                self._ask("event", timeout_s=ARM_LIMIT_S, event=json.dumps(event))
        return events

    def preview(self) -> None:
        """Lets the devices deliver without recording, so that clock maps settle."""
        replayed_again = self._epoch and self._loaded.file.trigger.kind == "replayed"
        if self._recorder is None or replayed_again:  # a recording begins again, and so do its clocks
            self._start_recorder()
        self._arm()
        self._start_pulses(take=0)

    def _arm(self) -> None:
        self._epoch += 1
        self._ended.clear()
        self._supervisor.arm(self._epoch, timeout_s=ARM_LIMIT_S)

    def unsettled(self) -> set[str]:
        """Devices that are judged and whose clock map is not settled yet; of recordings, whose warm-up still plays."""
        if self._loaded.file.trigger.kind == "replayed":
            return set(self._devices) - self._ended
        judged = {s.name for s in self._loaded.spec.streams if s.required and s.kind is not Kind.EVENT}
        settled = self._ask("status", timeout_s=ARM_LIMIT_S)["settled"]
        return {
            name
            for name, device in self._devices.items()
            if not settled.get(name, False) and any(stream.name in judged for stream in device.streams)
        }

    # ---- a take

    def start_take(self, episode: Episode, *, number: int, capture: Capture, name: str = "") -> None:
        """Records from now on into `episode`.

        Args:
            episode: New and empty.
            number: Of the take, in this run of the daemon.
            capture: What is captured.
            name: As the plan calls the take.

        Raises:
            DeviceError: when a device does not arm.
            DiskFull, DiskError: when the files cannot be made.
        """
        self._require_room(episode.path)
        self._stop_pulses()
        self._supervisor.disarm(drain_s=0.0, timeout_s=ARM_LIMIT_S)
        self._wait_end_markers()
        self._episode = episode
        self._take = self._describe(episode, number, capture, name)
        self._deaths.clear()
        self._ask(
            "start_take",
            timeout_s=ARM_LIMIT_S,
            directory=str(episode.path),
            epoch=self._epoch + 1,
            take=json.dumps(self._take, sort_keys=True),
            attachments=[
                ("spec.toml", "application/toml", self._loaded.spec_document),
                ("rig.toml", "application/toml", self._loaded.document),
            ],
        )
        self._arm()
        self._start_pulses(take=number)

    def stop_take(self, outcome: Outcome | None = None) -> tuple[Episode, Manifest]:
        """Ends the take; its files are closed and durable when this returns.

        Args:
            outcome: How the attempt ended; None: as was said at the start.

        Raises:
            DiskFull, DiskError: when the disk refused; what is durable stays.
            DeviceError: when the recorder is gone.
        """
        if self._take is None or self._episode is None:
            raise DeviceError("no take is running")
        edges = self._stop_pulses()
        # Exposures of the last pulses are still on their way to us for as long as the rig file allows.
        under_way_s = float(self._loaded.file.rig.latency_ms) / 1000
        self._supervisor.disarm(drain_s=under_way_s, timeout_s=ARM_LIMIT_S)
        self._wait_end_markers()
        self.watch()
        counters = self._supervisor.counters()
        pulses = self._pulses(edges)
        if len(edges.index):
            self._ask("edges", timeout_s=ARM_LIMIT_S, index=edges.index.tobytes(), time_ns=edges.time_ns.tobytes())
        closed = self._ask(
            "stop_take",
            timeout_s=CLOSE_LIMIT_S,
            ended="stopped",
            outcome=self._outcome(outcome),
            worker={name: _counts(row) for name, row in counters.items()},
            pulses=pulses,
        )
        manifest = bind(
            take=self._take,
            devices=list(self._devices.values()),
            balance=balance_sheet(counters, closed["counts"], pulses),
            files=closed["files"],
            ended=Ended(how="stopped"),
            outcome=self._outcome(outcome),
            starts={name: 1 + count for name, count in self._deaths.items()},
        )
        episode = self._episode
        self._take = self._episode = None
        return episode, manifest

    def abandon_take(self) -> None:
        """Gives a take up that cannot be closed; its folder is left for recovery. Never raises."""
        self._take = self._episode = None
        with contextlib.suppress(FirsthandError):
            self._stop_pulses()
        with contextlib.suppress(FirsthandError):
            self._supervisor.disarm(drain_s=0.0, timeout_s=ARM_LIMIT_S)
        with contextlib.suppress(FirsthandError):
            self._start_recorder()

    def _outcome(self, outcome: Outcome | None) -> str:
        """What was said of the attempt last."""
        said: str = (self._take or {})["capture"]["outcome"]
        return said if outcome is None else outcome.value

    def _describe(self, episode: Episode, number: int, capture: Capture, name: str) -> dict[str, Any]:
        """What the evidence says of the take from its first byte on; the manifest is made of it."""
        file, spec = self._loaded.file, self._loaded.spec
        return {
            "episode": episode.id,
            "rig": file.rig.id,
            "number": number,
            "name": name,
            "claimed_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "capture": capture.model_dump(mode="json"),
            "software": software(),
            "spec": self._contract.identity(),
            "consent": file.consent.model_dump(),
            "clock": {
                "timebase": file.rig.timebase,
                "source": "simulated" if file.trigger.kind == "simulated" else "recorded",
                "maps": {
                    name: {"kind": "identity" if device.identity_map else "envelope"}
                    for name, device in self._devices.items()
                },
            },
            "reference": spec.sync.reference,
            "period_ns": self._loaded.period_ns,
            "tick_offset_ns": self._loaded.tick_offset_ns,
        }

    def _require_room(self, folder: Path) -> None:
        import shutil

        free = shutil.disk_usage(folder).free
        if free < FREE_MIN_BYTES:
            raise DiskFull(
                f"{folder} has {free // 1_000_000} MB free and a take needs {FREE_MIN_BYTES // 1_000_000} MB to begin; "
                "make room on this disk"
            )

    def _start_pulses(self, *, take: int) -> None:
        if self._trigger is not None:
            self._trigger.start(take, period_ns=self._loaded.period_ns or 1_000_000_000)

    def _stop_pulses(self) -> Edges:
        if self._trigger is None:
            raise DeviceError("the rig is not open")
        return self._trigger.stop()

    def _wait_end_markers(self) -> None:
        """Waits until all that was sent in this epoch has arrived; a dead worker's streams never say so."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while time.monotonic() < deadline:
            ended = self._ask("status", timeout_s=ARM_LIMIT_S)["ended"]
            if all(epoch >= self._epoch for epoch in ended.values()):
                return
            time.sleep(POLL_S)

    def _pulses(self, edges: Edges) -> dict[str, int | None]:
        """Pulses that each stream's device was sent in this take."""
        count = len(edges.index) if self._loaded.file.trigger.kind == "simulated" else None
        return {
            stream.name: count if stream.triggered else None
            for device in self._devices.values()
            for stream in device.streams
        }

    def _ask(self, command: str, *, timeout_s: float, **arguments: Any) -> Any:
        if self._recorder is None:
            raise DeviceError("the recorder has not been started")
        return self._recorder.call(command, timeout_s=timeout_s, **arguments)


def _counts(row: StreamCounters) -> dict[str, int]:
    return {"exposures": row.exposures, "sent": row.sent, "dropped_socket": row.dropped_socket}


def balance_sheet(
    worker: Mapping[str, StreamCounters],
    recorder: Mapping[str, Mapping[str, int]],
    pulses: Mapping[str, int | None],
) -> dict[str, Balance]:
    """Joins the counters of worker and recorder; every column is counted where it happens.

    Samples that a killed worker or its socket took along (sent, never received) are lost at the socket; exposures that
    the device counted and nobody read are lost at the device.
    """
    sheet = {}
    for stream in sorted(set(worker) | set(recorder)):
        kept = recorder.get(stream, {})
        received, written, durable = (kept.get(name, 0) for name in ("received", "written", "durable"))
        made = worker.get(stream)
        lost = Lost(
            device=0 if made is None else max(0, made.exposures - made.sent - made.dropped_socket),
            socket=0 if made is None else made.dropped_socket + max(0, made.sent - received),
            queue=kept.get("lost_queue", 0),
            disk=max(kept.get("lost_disk", 0), written - durable),
        )
        sheet[stream] = Balance(
            pulses=pulses.get(stream),
            exposures=None if made is None else made.exposures,
            received=received,
            written=written,
            durable=durable,
            lost=lost,
        )
    return sheet
