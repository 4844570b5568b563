"""A simulated rig run in simulated time and in one process: ten minutes of it take seconds.

Drivers, trigger and wire records are those of the real thing; only the clock and the processes are not.
"""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.sensors.seam import SensorSilent
from firsthand_edge.sensors.sim import SimSensor
from firsthand_edge.sensors.transport import BATCH_MAX, FLAG_END, decode, encode
from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.trigger.simulated import SimulatedTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from firsthand_edge._core import Intake
    from firsthand_edge.model import DeviceInfo, Sample
    from firsthand_edge.sensors.configuration import SimDevice
    from firsthand_edge.trigger.seam import Edges

__all__ = ["SimulatedRig", "record_simulated"]

_NS_PER_S: Final = 1_000_000_000
_STEP_S: Final = 0.05
_DRAIN_S: Final = 0.2


class SimulatedRig:
    """Drivers and trigger of a rig on a clock of their own.

    Args:
        devices: Tables of the rig file.
        run_dir: Holds the trigger line; made if it is not there.
        start_ns: What the clock shows first, ns.
    """

    def __init__(self, devices: Sequence[SimDevice], run_dir: Path, *, start_ns: int = 1_000 * _NS_PER_S) -> None:
        run_dir.mkdir(parents=True, exist_ok=True)
        self.clock = FakeClock(start_ns)
        self.trigger = SimulatedTrigger(run_dir, monotonic_ns=self.clock.monotonic_ns)
        self._sensors = [
            SimSensor(d, run_dir, monotonic_ns=self.clock.monotonic_ns, sleep=self.clock.sleep) for d in devices
        ]
        self.infos: tuple[DeviceInfo, ...] = tuple(s.open() for s in self._sensors)

    def arm(self) -> None:
        """Arms every device."""
        for sensor in self._sensors:
            sensor.arm()

    def disarm(self) -> None:
        """Disarms every device."""
        for sensor in self._sensors:
            sensor.disarm()

    def advance(self, seconds: float) -> list[Sample]:
        """Lets time pass; returns what arrived, over all devices in order of arrival."""
        self.clock.sleep(seconds)
        out: list[Sample] = []
        for sensor in self._sensors:
            try:
                out.extend(sensor.read(timeout_s=0.0))
            except SensorSilent:
                continue
        out.sort(key=attrgetter("arrival_ns"))
        return out

    def run(self, seconds: float, deliver: Callable[[list[Sample]], None]) -> None:
        """Lets `seconds` pass in small steps, giving what arrives in each to `deliver`."""
        until_ns = self.clock.monotonic_ns() + int(seconds * _NS_PER_S)
        while self.clock.monotonic_ns() < until_ns:
            deliver(self.advance(_STEP_S))

    def close(self) -> None:
        """Closes devices and trigger."""
        for sensor in self._sensors:
            sensor.close()
        self.trigger.close()


def _push(intake: Intake, samples: Sequence[Sample], epoch: int) -> None:
    """Pushes samples in their order, neighbours of one stream together as one message."""
    begin = 0
    for i in range(1, len(samples) + 1):
        if i == len(samples) or samples[i].stream != samples[begin].stream or i - begin == BATCH_MAX:
            stream = samples[begin].stream
            frame, body = encode(samples[begin:i], stream=stream, incarnation=0, epoch=epoch)
            intake.push(stream, 0, epoch, 0, i - begin, decode(frame).records, body)
            begin = i


def record_simulated(
    rig: SimulatedRig,
    intake: Intake,
    *,
    directory: Path,
    seconds: float,
    period_ns: int,
    take: dict[str, Any],
    attachments: Sequence[tuple[str, str, bytes]] = (),
    warm_up_s: float = 3.0,
    number: int = 1,
) -> tuple[Edges, dict[str, Any]]:
    """Records one take of a simulated rig: a warm-up as preview, then the take, then the end markers.

    Args:
        rig: Nothing armed.
        intake: Made for `rig.infos`.
        directory: Of the episode; exists and is empty.
        seconds: Length of the take.
        period_ns: Of the pulses.
        take: Goes into the evidence as JSON.
        attachments: `(name, media type, bytes)`, such as spec.toml and rig.toml.
        warm_up_s: Length of the preview.
        number: Number of the take, for fault scripts.

    Returns:
        The pulses, and what `Intake.stop_take` returned.
    """
    preview, epoch = 2 * number - 1, 2 * number

    def deliver_as(this_epoch: int) -> Callable[[list[Sample]], None]:
        def deliver(samples: list[Sample]) -> None:
            _push(intake, samples, this_epoch)
            intake.advance(rig.clock.monotonic_ns())

        return deliver

    rig.arm()
    rig.trigger.start(0, period_ns=period_ns)
    rig.run(warm_up_s, deliver_as(preview))
    rig.trigger.stop()
    rig.run(_DRAIN_S, deliver_as(preview))
    rig.disarm()
    rig.arm()
    intake.start_take(directory, epoch=epoch, take=json.dumps(take), attachments=list(attachments))
    rig.trigger.start(number, period_ns=period_ns)
    rig.run(seconds, deliver_as(epoch))
    edges = rig.trigger.stop()
    rig.run(_DRAIN_S, deliver_as(epoch))
    rig.disarm()
    for info in rig.infos:
        for stream in info.streams:
            intake.push(stream.name, 0, epoch, FLAG_END, 0, b"", b"")
    intake.edges(edges.index, edges.time_ns)
    return edges, intake.stop_take(json.dumps({"ended": "simulated"}))
