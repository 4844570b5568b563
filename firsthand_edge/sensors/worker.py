"""The process of one device: `python -m firsthand_edge.sensors.worker DEVICE RUN_DIR INCARNATION`.

It reads its driver and sends what comes to the recorder, between commands of its owner: `open`, `arm`, `disarm`,
`close`, `info`. A driver that fails ends the process, after it has reported why.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zmq
from pydantic import TypeAdapter

from firsthand_edge.errors import DeviceError, FirsthandError
from firsthand_edge.model import ABSENT
from firsthand_edge.process import Owner
from firsthand_edge.sensors import lock
from firsthand_edge.sensors.configuration import DeviceConfig
from firsthand_edge.sensors.drivers import is_lossless, make_sensor
from firsthand_edge.sensors.page import CountersPage
from firsthand_edge.sensors.seam import DeviceEnded, Sensor, SensorSilent
from firsthand_edge.sensors.transport import StreamSender

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firsthand_edge.model import DeviceInfo, Sample

__all__ = ["Worker", "main"]

_READ_S: Final = 0.05
"""A command waits this long for the driver at most."""
_IDLE_S: Final = 0.25
_PATIENCE_S: Final = 10.0
"""How long a recording waits for a recorder that takes nothing."""
_CLOSE_LINGER_S: Final = 0.5


class Worker:
    """Owns one device.

    Args:
        owner: The process that started this one.
        device: Its name in the rig file.
        run_dir: Sockets and pages.
        incarnation: How often it was started before.
    """

    def __init__(self, owner: Owner, device: str, run_dir: Path, incarnation: int) -> None:
        self._owner = owner
        self._device = device
        self._run_dir = run_dir
        self._incarnation = incarnation
        self._sensor: Sensor | None = None
        self._info: DeviceInfo | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._page: CountersPage | None = None
        self._senders: dict[str, StreamSender] = {}
        self._epoch: int | None = None
        self._ended = False
        self._in_order = False
        self._last_sequence: dict[str, int] = {}

    def open(self, config: str) -> dict[str, Any]:
        """Opens the device of this JSON configuration; returns its `DeviceInfo` as JSON. Can be tried again.

        Raises:
            FirsthandError: As the driver's `open`.
        """
        self.close()
        parsed: DeviceConfig = TypeAdapter(DeviceConfig).validate_json(config)
        sensor = make_sensor(parsed, self._run_dir)
        try:
            info = sensor.open()
        except BaseException:
            sensor.close()
            raise
        self._sensor, self._info = sensor, info
        self._page = CountersPage.create(
            self._run_dir, self._device, [s.name for s in info.streams], incarnation=self._incarnation
        )
        self._page.beat(time.monotonic_ns())
        self._context = zmq.Context(io_threads=1)
        self._in_order = is_lossless(parsed)
        first: StreamSender | None = None
        for s in info.streams:
            self._senders[s.name] = StreamSender(
                self._context,
                self._run_dir,
                s,
                incarnation=self._incarnation,
                page=self._page,
                patience_s=_PATIENCE_S if self._in_order else None,
                share=first,
            )
            if self._in_order:
                first = first or self._senders[s.name]
        return info.to_json()

    def arm(self, epoch: int) -> None:
        """Makes the device ready; whatever it delivers from now on belongs to `epoch`.

        Raises:
            DeviceError: It is not open, or cannot be armed.
        """
        if self._sensor is None or self._page is None:
            raise DeviceError(f"device {self._device} is not open; open it before arming")
        self._page.begin(epoch)
        self._last_sequence.clear()
        self._ended = False
        self._sensor.arm()
        self._epoch = epoch

    def disarm(self, drain_s: float) -> dict[str, bool]:
        """Reads on for `drain_s`, disarms, and ends the epoch on every stream.

        Returns:
            Per stream whether its end marker was sent; empty when the device was not armed.
        """
        if self._sensor is None or self._epoch is None:
            return {}
        deadline = time.monotonic() + drain_s
        while not self._ended and (left := deadline - time.monotonic()) > 0:
            self._work(min(left, _READ_S))
        epoch, self._epoch = self._epoch, None
        self._sensor.disarm()
        return {name: sender.end(epoch) for name, sender in self._senders.items()}

    def info(self) -> dict[str, Any]:
        """Process id, incarnation, epoch, and the device as it was opened."""
        return {
            "pid": os.getpid(),
            "incarnation": self._incarnation,
            "epoch": self._epoch,
            "device": None if self._info is None else self._info.to_json(),
        }

    def close(self) -> None:
        """Closes the device and everything else. Safe twice."""
        self._epoch = None
        sensor, self._sensor = self._sensor, None
        if sensor is not None:
            sensor.close()
        for sender in self._senders.values():
            sender.close(linger_s=0.0 if self._owner.gone else _CLOSE_LINGER_S)
        self._senders = {}
        if self._context is not None:
            self._context.term()
            self._context = None
        if self._page is not None:
            self._page.close()
            self._page = None

    def poll(self) -> float:
        """One slice of work."""
        if self._page is not None:
            self._page.beat(time.monotonic_ns())
        if self._epoch is None or self._ended:
            return _IDLE_S
        self._work(_READ_S)
        return 0.0

    def _work(self, timeout_s: float) -> None:
        if self._sensor is None:
            return
        try:
            self._send(self._sensor.read(timeout_s=timeout_s))
        except SensorSilent:
            return
        except DeviceEnded as end:
            self._ended = True
            self._owner.report({"kind": "ended", "sentence": str(end)})
        except Exception as error:
            # Whatever a driver raises ends this process, and only this one, with its cause said.
            traceback.print_exc()
            code = error.code if isinstance(error, FirsthandError) else DeviceError.code
            said = str(error) if isinstance(error, FirsthandError) else f"{type(error).__name__}: {error}"
            self._owner.report({"kind": "failed", "code": code, "sentence": said})
            raise SystemExit(DeviceError.exit_status) from error

    def _send(self, samples: Sequence[Sample]) -> None:
        if self._page is None or self._epoch is None:
            return
        for name, part in self._parts(samples):
            self._page.add(name, exposures=self._exposures(name, part))
            self._senders[name].send(self._epoch, part)

    def _parts(self, samples: Sequence[Sample]) -> Iterable[tuple[str, Sequence[Sample]]]:
        """Samples by stream; of a recording, only neighbours go together, so that its order is kept."""
        if self._in_order:
            return ((name, list(part)) for name, part in groupby(samples, attrgetter("stream")))
        by_stream: dict[str, list[Sample]] = {}
        for sample in samples:
            by_stream.setdefault(sample.stream, []).append(sample)
        return by_stream.items()

    def _exposures(self, stream: str, samples: Sequence[Sample]) -> int:
        """How many exposures these samples stand for by the device's own count, lost ones included."""
        if samples[0].sequence == ABSENT:
            return len(samples)
        last = max(s.sequence for s in samples)
        known = self._last_sequence.get(stream, samples[0].sequence - 1)
        self._last_sequence[stream] = max(known, last)
        return max(0, last - known)


def main(argv: Sequence[str]) -> None:
    """Runs until the owner lets go."""
    device, run_dir, incarnation = argv[0], Path(argv[1]), int(argv[2])
    owner = Owner()
    try:
        held = lock.acquire(run_dir, device)
    except FirsthandError as error:
        sys.stderr.write(f"{error}\n")
        owner.report({"kind": "failed", "code": error.code, "sentence": str(error)})
        raise SystemExit(error.exit_status) from None
    worker = Worker(owner, device, run_dir, incarnation)
    owner.serve(
        {
            "open": worker.open,
            "arm": worker.arm,
            "disarm": worker.disarm,
            "info": worker.info,
            "close": worker.close,
        },
        poll=worker.poll,
    )
    os.close(held)


if __name__ == "__main__":
    main(sys.argv[1:])
