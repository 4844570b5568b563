"""The recorder process: reads the workers' sockets and hands every message, unread, to the core.

It runs no other Python (docs/decisions/0001), so nothing can delay a sample between its socket and its bytes on disk or
its stamp in the live monitor. One owner (`captured`) commands it over its stdin.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zmq

from firsthand_edge import _core
from firsthand_edge.errors import DeviceError, UsageError
from firsthand_edge.model import DeviceInfo
from firsthand_edge.process import Owner
from firsthand_edge.sensors.transport import bind, decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Recorder", "main"]

ADVANCE_NS: Final = 20_000_000
"""The monitor finishes ticks by the rig clock at least this often, also when nothing arrives."""
BURST: Final = 64
"""Messages taken from one socket before the others get their turn."""


def losses(worker: Mapping[str, Mapping[str, int]], recorder: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Per stream what was lost to back-pressure, and where; `under_way` went with a killed worker or its socket.

    Args:
        worker: `sent` and `dropped_socket` of each stream.
        recorder: `received`, `lost_queue` and `lost_disk` of each stream.
    """
    out = {}
    for stream, kept in recorder.items():
        made = worker.get(stream, {})
        out[stream] = {
            "under_way": max(0, made.get("sent", 0) - kept["received"]),
            "lost_socket": made.get("dropped_socket", 0),
            "lost_queue": kept["lost_queue"],
            "lost_disk": kept["lost_disk"],
        }
    return out


class Recorder:
    """The sockets of all streams and the core's intake behind them."""

    def __init__(self) -> None:
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._sockets: list[zmq.Socket[bytes]] = []
        self._intake: _core.Intake | None = None
        self._advance_at_ns = 0
        self._malformed = 0
        self._ended: dict[str, int] = {}
        self._live = Path()

    def prepare(self, *, devices: str, plan: str, run_dir: str) -> None:
        """Binds one bounded socket a stream and makes the intake; before any worker is armed.

        Args:
            devices: JSON list of `DeviceInfo.to_json()`.
            plan: JSON of `recorder_plan`.
            run_dir: Where sockets and the live page are.
        """
        if self._intake is not None:
            raise UsageError("the recorder is prepared already; start a new one for another set of devices")
        directory = Path(run_dir)
        for device in json.loads(devices):
            for stream in DeviceInfo.from_json(device).streams:
                socket = bind(self._context, directory, stream)
                self._sockets.append(socket)
                self._poller.register(socket, zmq.POLLIN)
                self._ended[stream.name] = -1
        self._live = directory / "live"
        self._intake = _core.Intake(devices, plan=plan, live=self._live)

    @property
    def intake(self) -> _core.Intake:
        """The intake, once prepared."""
        if self._intake is None:
            raise UsageError("the recorder has not been prepared")
        return self._intake

    def wait(self, owner_fd: int, seconds: float) -> None:
        """Waits until a sample or the owner has something to say."""
        if owner_fd not in self._poller:
            self._poller.register(owner_fd, zmq.POLLIN)
        self._poller.poll(min(round(seconds * 1000), ADVANCE_NS // 1_000_000))

    def pump(self) -> float:
        """Takes what is on the sockets; returns how long the loop may wait."""
        if self._intake is None:
            return 1.0
        more = False
        for socket in self._sockets:
            for _ in range(BURST):
                try:
                    frames = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                self._push(frames)
            else:
                more = True
        now_ns = time.monotonic_ns()
        if now_ns >= self._advance_at_ns:
            self._intake.advance(now_ns)
            self._advance_at_ns = now_ns + ADVANCE_NS
        return 0.0 if more else ADVANCE_NS / 1e9

    def _push(self, frames: list[bytes]) -> None:
        try:
            first, body = frames
            header = decode(first)
            self.intake.push(
                header.stream, header.incarnation, header.epoch, header.flags, header.count, header.records, body
            )
            if header.end:
                self._ended[header.stream] = header.epoch
        except (ValueError, DeviceError):
            self._malformed += 1  # not one of our workers; counted, and shown by `status`

    def start_take(self, *, directory: str, epoch: int, take: str, attachments: Sequence[Sequence[Any]]) -> None:
        """Opens the episode's files; samples of `epoch` belong to it from now on."""
        named = [(name, media_type, data) for name, media_type, data in attachments]
        self.intake.start_take(Path(directory), epoch=epoch, take=take, attachments=named)

    def edges(self, *, index: bytes, time_ns: bytes) -> None:
        """Trigger edges of the running take: int64 little-endian columns."""
        self.intake.edges(np.frombuffer(index, "<i8"), np.frombuffer(time_ns, "<i8"))

    def stop_take(
        self,
        *,
        ended: str,
        worker: dict[str, dict[str, int]],
        pulses: dict[str, int | None],
        outcome: str | None = None,
    ) -> dict[str, Any]:
        """Closes and fsyncs the files of the take; the evidence gets the balance of its samples.

        Args:
            ended: How the take ended.
            outcome: How the attempt at the task ended, as was said last; None where nobody says such a thing.
            worker: Per stream `exposures`, `sent`, `dropped_socket`, as the workers counted.
            pulses: Per stream the pulses that its device was sent; None where nobody counts.
        """
        self.intake.advance(time.monotonic_ns())  # publishes what was counted up to now
        balance = losses(worker, _core.LivePage(self._live).read()["streams"])
        note = {"ended": ended, "outcome": outcome, "worker": worker, "pulses": pulses, "balance": balance}
        return self.intake.stop_take(json.dumps(note, sort_keys=True))

    def status(self) -> dict[str, Any]:
        """Which clock maps are settled, the last epoch that each stream has ended, and what could not be read."""
        return {"settled": self.intake.settled(), "ended": self._ended, "malformed": self._malformed}

    def close(self) -> None:
        """Ends a running take unsealed (a restart recovers it) and closes the sockets. Safe twice."""
        if self._intake is not None:
            self._intake.abort_take()
            self._intake = None
        for socket in self._sockets:
            socket.close(linger=0)
        self._sockets.clear()
        self._context.term()


def main() -> None:
    """Entry point: `python -m firsthand_edge.record.recorder`."""
    owner = Owner()
    recorder = Recorder()
    owner.serve(
        {
            "prepare": recorder.prepare,
            "start_take": recorder.start_take,
            "edges": recorder.edges,
            "event": lambda *, event: recorder.intake.event(event),
            "status": recorder.status,
            "stop_take": recorder.stop_take,
            "close": recorder.close,
        },
        poll=recorder.pump,
        wait=recorder.wait,
    )


if __name__ == "__main__":
    main()
