"""The conformance check itself: a sound driver passes, each unsound one is caught."""

import dataclasses

import pytest

from firsthand_edge.errors import DeviceError
from firsthand_edge.model import ABSENT, Counter, DeviceInfo, Domain, Sample, StampPoint, StreamInfo
from firsthand_edge.sensors.seam import SensorSilent
from firsthand_edge.testing.sensors import check_sensor

STREAM = StreamInfo("s", "record", triggered=False, stamp_point=StampPoint.INSTANT, period_ns=1_000_000)
INFO = DeviceInfo("d", "fake", "m", "1", "1", Domain.DEVICE, Counter(bits=32), (STREAM,))


class Sound:
    """A driver without a device."""

    info = INFO

    def __init__(self):
        self.is_open = self.is_armed = False
        self.count = 0

    def open(self):
        self.is_open = True
        return self.info

    def arm(self):
        if not self.is_open:
            raise DeviceError("not open")
        self.is_armed = True

    def sample(self, n):
        return Sample("s", n, n * 10, Domain.DEVICE, n * 1000)

    def read(self, *, timeout_s):
        if not self.is_armed:
            raise DeviceError("not armed")
        self.count += 1
        if self.count % 3 == 0:
            raise SensorSilent("nothing")
        return [self.sample(self.count)]

    def disarm(self):
        self.is_armed = False

    def close(self):
        self.is_open = self.is_armed = False


def changed(**change):
    class Unsound(Sound):
        def sample(self, n):
            return dataclasses.replace(super().sample(n), **{k: v(n) if callable(v) else v for k, v in change.items()})

    return Unsound


class ArmsWithoutOpen(Sound):
    def arm(self):
        self.is_armed = True


class DeliversUnarmed(Sound):
    def read(self, *, timeout_s):
        return [self.sample(1)]


class ReturnsNothing(Sound):
    def read(self, *, timeout_s):
        if not self.is_armed:
            raise DeviceError("not armed")
        return []


class ClosesOnce(Sound):
    closed = False

    def close(self):
        if self.closed:
            raise RuntimeError("closed twice")
        self.closed = True


class ChangesItsMind(Sound):
    opened = 0

    def open(self):
        ChangesItsMind.opened += 1
        super().open()
        return dataclasses.replace(INFO, serial=str(ChangesItsMind.opened))


class NamesAStreamTwice(Sound):
    info = dataclasses.replace(INFO, streams=(STREAM, STREAM))


def test_a_sound_driver_passes():
    assert check_sensor(Sound, timeout_s=5) == INFO


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (ArmsWithoutOpen, "arm before open raises"),
        (DeliversUnarmed, "nothing is delivered before arm"),
        (ReturnsNothing, "read returns at least one sample"),
        (ChangesItsMind, "opened again says the same"),
        (NamesAStreamTwice, "names of their own"),
        (changed(stream="other"), "which open did not name"),
        (changed(device_ticks=1.5), "device_ticks of s is an int, not float"),
        (changed(arrival_ns=2**63), "fits int64"),
        (changed(domain=1), "has a Domain"),
        (changed(domain=Domain.PTP), "in the domain that open named"),
        (changed(device_ticks=2**32), "stays within its bits"),
        (changed(payload="text"), "a payload is bytes"),
        (changed(metadata=b"\x01"), "metadata is msgpack of a map"),
        (changed(trigger_index=3), "has no trigger index"),
        (changed(exposure_ns=-1), "not negative"),
        (changed(sequence=7), "sequence numbers of s increase"),
        (changed(arrival_ns=lambda n: -n), "in order of arrival"),
    ],
)
def test_an_unsound_driver_is_caught(driver, said):
    with pytest.raises(AssertionError, match=said):
        check_sensor(driver, timeout_s=5)


def test_a_driver_that_cannot_be_closed_twice_is_caught():
    with pytest.raises(RuntimeError, match="closed twice"):
        check_sensor(ClosesOnce, timeout_s=5)


def test_a_silent_driver_is_caught():
    class Silent(Sound):
        def read(self, *, timeout_s):
            if not self.is_armed:
                raise DeviceError("not armed")
            raise SensorSilent("nothing")

    with pytest.raises(AssertionError, match="3 samples come in time; only 0 came"):
        check_sensor(Silent, timeout_s=0.05)


def test_samples_without_stamp_sequence_or_arrival_are_sound():
    check_sensor(changed(device_ticks=ABSENT, sequence=ABSENT, arrival_ns=ABSENT), timeout_s=5)
