"""What every driver must do, as one check: run it on a driver of your own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgpack

from firsthand_edge.errors import DeviceError
from firsthand_edge.model import ABSENT, DeviceInfo, Domain, Sample
from firsthand_edge.sensors.seam import DeviceEnded, Sensor, SensorSilent

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_sensor"]

_INT64_MAX = 2**63 - 1


def _nothing() -> None:
    """The default of a hook."""


def check_sensor(
    make_sensor: Callable[[], Sensor],
    *,
    timeout_s: float,
    start: Callable[[], object] = _nothing,
    stop: Callable[[], object] = _nothing,
    samples: int = 3,
) -> DeviceInfo:
    """Checks that a driver keeps the contract of `Sensor`.

    Args:
        make_sensor: Makes a driver that was never opened; called several times.
        timeout_s: Within this, `samples` samples come after `start`, by whatever clock the driver sleeps on.
        start: Starts the pulses, or whatever makes the device deliver; called after arming.
        stop: Ends that; called before disarming.
        samples: How many samples to see in each arming.

    Returns:
        What the device said of itself.

    Raises:
        AssertionError: It does not; the message says what.
    """
    _check_closing_is_safe(make_sensor)
    sensor = make_sensor()
    _require(isinstance(sensor, Sensor), "a driver has open, arm, read, disarm and close")
    _check_order(make_sensor)
    info = sensor.open()
    try:
        _check_info(info)
        _check_silent_before_arming(sensor)
        for _ in range(2):  # a device is armed for every take, so the second time must be as the first
            sensor.arm()
            _check_silence(sensor)
            start()
            _check_samples(info, _gather(sensor, samples, timeout_s))
            stop()
            sensor.disarm()
            _check_silent_before_arming(sensor)
        sensor.disarm()
    finally:
        sensor.close()
        sensor.close()
    again = sensor.open()
    _require(again == info, "a device that is opened again says the same of itself")
    sensor.close()
    return info


def _require(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _check_closing_is_safe(make_sensor: Callable[[], Sensor]) -> None:
    sensor = make_sensor()
    sensor.close()
    sensor.close()
    sensor.disarm()


def _check_order(make_sensor: Callable[[], Sensor]) -> None:
    sensor = make_sensor()
    try:
        sensor.arm()
    except DeviceError:
        return
    finally:
        sensor.close()
    raise AssertionError("arm before open raises DeviceError")


def _check_silent_before_arming(sensor: Sensor) -> None:
    try:
        sensor.read(timeout_s=0.0)
    except DeviceError:
        return
    raise AssertionError("nothing is delivered before arm or after disarm: read raises")


def _check_silence(sensor: Sensor) -> None:
    """Before anything makes it deliver, a device may only be silent, or deliver what runs freely."""
    try:
        got = sensor.read(timeout_s=0.0)
    except SensorSilent:
        return
    _require(len(got) > 0, "read returns at least one sample, or raises SensorSilent")


def _gather(sensor: Sensor, count: int, timeout_s: float) -> list[Sample]:
    out: list[Sample] = []
    tries = 0
    deadline = time.monotonic() + timeout_s
    while len(out) < count:
        tries += 1
        _require(tries < 10_000 and time.monotonic() < deadline, f"{count} samples come in time; only {len(out)} came")
        try:
            got = sensor.read(timeout_s=0.05)
        except SensorSilent:
            continue
        except DeviceEnded:
            break
        _require(len(got) > 0, "read returns at least one sample, or raises SensorSilent")
        out.extend(got)
    _require(out, "a device delivers something in an arming")
    return out


def _check_info(info: DeviceInfo) -> None:
    _require(isinstance(info, DeviceInfo), "open returns DeviceInfo")
    _require(info.name and info.serial and info.driver, "a device has a name, a serial and a driver")
    _require(info.streams, "a device has a stream")
    names = [s.name for s in info.streams]
    _require(len(set(names)) == len(names), "streams of a device have names of their own")
    _require(1 <= info.counter.bits <= 64, "a counter has 1 to 64 bits")
    _require(info.counter.tick_num > 0 and info.counter.tick_den > 0, "a tick is longer than nothing")
    _require(DeviceInfo.from_json(info.to_json()) == info, "what a device says survives JSON")
    for stream in info.streams:
        _require(stream.period_ns is None or stream.period_ns > 0, f"{stream.name} has a period above 0 or None")
        _require(not stream.has_trigger_index or stream.triggered, f"{stream.name}: only a trigger input counts pulses")


def _check_samples(info: DeviceInfo, samples: list[Sample]) -> None:
    streams = {s.name: s for s in info.streams}
    arrival: dict[str, int] = {}
    sequence: dict[str, list[int]] = {}
    for sample in samples:
        stream = streams.get(sample.stream)
        if stream is None:
            raise AssertionError(f"a sample of {sample.stream}, which open did not name")
        for field in ("sequence", "device_ticks", "arrival_ns", "trigger_index", "exposure_ns"):
            value = getattr(sample, field)
            _require(type(value) is int, f"{field} of {sample.stream} is an int, not {type(value).__name__}")
            _require(ABSENT <= value <= _INT64_MAX, f"{field} of {sample.stream} fits int64")
        _require(isinstance(sample.domain, Domain), "a stamp has a Domain")
        _require(isinstance(sample.payload, bytes | memoryview), "a payload is bytes or a memoryview")
        _require(isinstance(sample.metadata, bytes), "metadata is bytes")
        if sample.metadata:
            _require(isinstance(msgpack.unpackb(sample.metadata), dict), "metadata is msgpack of a map, or empty")
        _require(sample.exposure_ns >= 0, "an exposure is not negative")
        if sample.device_ticks != ABSENT:
            _require(sample.domain == info.domain, f"{sample.stream} stamps in the domain that open named")
            if info.counter.bits < 63:
                _require(0 <= sample.device_ticks < 2**info.counter.bits, "a raw counter stays within its bits")
        _require(
            stream.has_trigger_index or sample.trigger_index == ABSENT,
            f"{sample.stream} has no trigger index, since open said so",
        )
        if sample.arrival_ns != ABSENT:
            _require(sample.arrival_ns >= arrival.get(sample.stream, ABSENT), f"{sample.stream} is in order of arrival")
            arrival[sample.stream] = sample.arrival_ns
        if sample.sequence != ABSENT:
            sequence.setdefault(sample.stream, []).append(sample.sequence)
    for name, numbers in sequence.items():
        bound = streams[name].reorder_bound
        for i, number in enumerate(numbers):
            before = numbers[: max(0, i - bound)]
            _require(not before or number > max(before), f"sequence numbers of {name} increase (it states {bound})")
