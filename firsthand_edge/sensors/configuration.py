"""The `[[device]]` tables of a rig file, a union told apart by `driver`. Times are whole numbers or decimals.

Validate with the context `{"directory": <folder of the rig file>}`: paths of recordings are relative to it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from firsthand_edge.model import StampPoint
from firsthand_edge.sensors.faults import (
    Exposure,
    Fault,
    Offset,
    OfTrigger,
    Slip,
    Wrap,
    WrongStampPoint,
    WrongUnit,
    contradiction,
)

__all__ = ["DeviceConfig", "ReplayDevice", "ReplayStream", "SimDevice", "SimStream", "period_of"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")
_NS_PER_S = 1_000_000_000


def period_of(rate_hz: Decimal) -> int:
    """The period of a rate, ns, rounded half up."""
    return int(Decimal(_NS_PER_S) / rate_hz + Decimal("0.5"))


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("name", check_fields=False)
    @classmethod
    def _plain(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                "a name is 1 to 48 letters, digits, _ and -, because files and sockets are called after it"
            )
        return name


class SimStream(_Table):
    """`[[device.stream]]` of a simulated device."""

    name: str
    content: Literal["picture", "depth", "imu", "poses", "contact", "action"]
    """What it shows: a gray PNG that differs every time, 16-bit depth, 6 float64, 21 joints, or JSON events."""
    triggered: bool = True
    """Whether it exposes on pulses; otherwise it runs by the device's own clock."""
    rate_hz: Decimal | None = Field(default=None, gt=0, le=10_000)
    """Nominal rate. Of a triggered stream it is the pulses' rate over `decimate`; of events their mean rate."""
    decimate: int = Field(default=1, ge=1)
    """It exposes on each pulse whose number mod `decimate` is `phase`."""
    phase: int = Field(default=0, ge=0)
    stamp_point: StampPoint = StampPoint.START
    exposure_us: int = Field(default=0, ge=0)
    trigger_delay_us: int = Field(default=0, ge=0)
    """From pulse to start of exposure; set it so that the middles of all exposures coincide."""
    offset_ns: int = 0
    """Calibrated constant, reported with the stream and added to each stamp by whoever interprets it."""
    has_trigger_index: bool = False
    """Whether it counts pulses at its input."""
    width: int = Field(default=64, ge=64, le=8192)
    height: int = Field(default=48, ge=16, le=8192)
    batch: int = Field(default=1, ge=1, le=64)
    """Samples that the device gathers before it delivers them together."""

    @property
    def is_event(self) -> bool:
        """Whether it is sparse: no period, never matched."""
        return self.content in ("contact", "action")

    @property
    def period_ns(self) -> int | None:
        """Nominal period, ns; None of events."""
        return None if self.is_event or self.rate_hz is None else period_of(self.rate_hz)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.rate_hz is None:
            raise ValueError(f"stream {self.name} has no rate_hz; say how many samples a second it makes")
        if self.is_event and self.triggered:
            raise ValueError(f"stream {self.name} shows events, which no pulse triggers; set triggered = false")
        if not self.triggered and (self.decimate != 1 or self.has_trigger_index or self.trigger_delay_us):
            raise ValueError(
                f"stream {self.name} is not triggered; take out decimate, has_trigger_index and trigger_delay_us"
            )
        if self.phase >= self.decimate:
            raise ValueError(f"phase {self.phase} of stream {self.name} is not below decimate {self.decimate}")
        if self.exposure_us and self.stamp_point is StampPoint.INSTANT:
            raise ValueError(f"stream {self.name} stamps an instant and exposes; say which point of the exposure")
        if self.batch > 1 and self.triggered:
            raise ValueError(f"stream {self.name} is triggered; batch is for free-running streams")
        return self


class SimDevice(_Table):
    """`[[device]]` with `driver = "sim"`: one worker process, one drifting, wrapping counter, one delayed link."""

    driver: Literal["sim"]
    name: str
    seed: int = Field(ge=0, lt=2**32)
    """Same seed, same pulses: same samples, ticks and delays."""
    stream: tuple[SimStream, ...] = Field(min_length=1)
    fault: tuple[Fault, ...] = ()
    serial: str | None = None
    """None: made of the name."""
    drift_ppm: Decimal = Field(default=Decimal(0), ge=-1000, le=1000)
    """How much faster than true time its oscillator runs."""
    counter_bits: int = Field(default=32, ge=16, le=64)
    tick_num: int = Field(default=1000, ge=1, le=1_000_000_000)
    tick_den: int = Field(default=1, ge=1, le=1000)
    """The counter counts ticks of `tick_num / tick_den` ns: 1000 / 1 is a microsecond, 80 / 3 is 37.5 MHz."""
    wrap_after_s: Decimal | None = Field(default=None, gt=0)
    """The counter begins such that it wraps this long after power on; None: it begins at `counter_start`."""
    counter_start: int = Field(default=0, ge=0)
    min_delay_us: int = Field(default=1000, ge=0)
    """The least time from the stamped instant to the arrival at the host; it is what the device reports."""
    min_delay_bound_us: int | None = Field(default=200, ge=0)
    """How well that least time is known; None: never calibrated."""
    check_edges: bool = False
    """Whether its stamps are held against the recorded trigger edges, with the delays that its streams state."""
    delay_error_us: int = 0
    """How far the true least delay lies above the reported one, within the bound on an honest device."""
    delay_tail_us: int = Field(default=300, ge=0)
    """Mean of the exponential part of the delay."""
    spike_share: Decimal = Field(default=Decimal("0.002"), ge=0, le=1)
    """Share of deliveries that take up to `spike_us` longer still."""
    spike_us: int = Field(default=20_000, ge=0)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if len({s.name for s in self.stream}) != len(self.stream):
            raise ValueError(f"device {self.name} has two streams of one name; rename one")
        for s in self.stream:
            self._arrives_after(s, s.stamp_point, s.exposure_us)
        if self.check_edges and not any(s.triggered for s in self.stream):
            raise ValueError(
                f"device {self.name} has no triggered stream, so no edge causes its samples; take out check_edges"
            )
        if self.counter_bits < 64 and self.counter_start >= 2**self.counter_bits:
            raise ValueError(f"counter_start {self.counter_start} does not fit {self.counter_bits} bits; lower it")
        why_not = contradiction(self.fault)
        if why_not is not None:
            raise ValueError(why_not)
        for fault in self.fault:
            self._can_befall(fault)
        return self

    def _can_befall(self, fault: Fault) -> None:
        """Refuses a fault that a device like this cannot have."""
        triggered = [s for s in self.stream if s.triggered]
        if isinstance(fault, OfTrigger) and not triggered:
            raise ValueError(f"the fault {fault.kind} needs a triggered stream; {self.name} has none")
        match fault:
            case Wrap() if fault.bits >= self.counter_bits:
                raise ValueError(f"a wrap at {fault.bits} bits is none: the counter has {self.counter_bits}")
            case Slip() if not any(s.has_trigger_index for s in triggered):
                raise ValueError(
                    f"the fault slip needs a stream that counts pulses; {self.name} has none, so set has_trigger_index"
                )
            case WrongUnit():
                self._can_count(fault)
            case Offset():
                for s in triggered:
                    self._can_begin(s, fault.amount_us, f"an offset of {fault.amount_us} us")
            case Exposure():
                for s in triggered:
                    self._can_expose(s, fault)
            case WrongStampPoint():
                self._can_stamp(fault)
            case _:
                pass

    def _can_count(self, fault: WrongUnit) -> None:
        ratio = Decimal(fault.counts_ns * self.tick_den) / self.tick_num
        if ratio == 1 or ratio.normalize().as_tuple().digits != (1,):
            raise ValueError(
                f"a counter that claims ticks of {self.tick_num} / {self.tick_den} ns and counts {fault.counts} is off "
                "by no power of ten; give a tick_num of 1, 1000, 1000000 or 1000000000, and counts another of them"
            )

    @staticmethod
    def _can_begin(stream: SimStream, shift_us: int, what: str) -> None:
        if stream.trigger_delay_us + shift_us < 0:
            raise ValueError(
                f"{what} would begin exposures of stream {stream.name} before their pulses, which its trigger delay of "
                f"{stream.trigger_delay_us} us does not allow; raise trigger_delay_us"
            )

    def _can_expose(self, stream: SimStream, fault: Exposure) -> None:
        if stream.stamp_point is StampPoint.INSTANT or not stream.exposure_us:
            raise ValueError(f"stream {stream.name} makes no exposures, so none can change; give it exposure_us")
        if stream.rate_hz is not None and fault.to_us * stream.rate_hz >= 1_000_000:
            raise ValueError(
                f"exposures of {fault.to_us} us do not fit {stream.rate_hz} Hz of stream {stream.name}; lower to_us"
            )
        if fault.compensated:
            shift_us = (stream.exposure_us - fault.to_us) // 2
            self._can_begin(stream, shift_us, f"compensated exposures of {fault.to_us} us")
        self._arrives_after(stream, stream.stamp_point, fault.to_us)

    def _can_stamp(self, fault: WrongStampPoint) -> None:
        exposed = [s for s in self.stream if s.exposure_us]
        if not exposed or all(s.stamp_point is fault.stamps for s in exposed):
            raise ValueError(
                f"no stream of {self.name} that exposes claims another stamp point than {fault.stamps.value}; give "
                "another one"
            )
        reached_us = [other.to_us for other in self.fault if isinstance(other, Exposure)]
        for s in exposed:
            self._arrives_after(s, fault.stamps, max([s.exposure_us, *reached_us]))

    def _arrives_after(self, stream: SimStream, point: StampPoint, exposure_us: int) -> None:
        """Refuses arrivals before the end of the exposure."""
        rest_us = {StampPoint.START: exposure_us, StampPoint.MIDDLE: exposure_us - exposure_us // 2}.get(point, 0)
        if self.min_delay_us + self.delay_error_us < rest_us:
            raise ValueError(
                f"stream {stream.name} would arrive {self.min_delay_us} us after its stamp, before its exposure ends "
                f"{rest_us} us after it; raise min_delay_us"
            )


class ReplayStream(_Table):
    """`[[device.stream]]` of a replayed foreign recording: how to read one of its streams."""

    source: str
    """What the recording calls it: a VRS stream id such as `214-1`."""
    name: str = ""
    """What the rig calls it; empty: the same."""
    media: str = "record"
    """Of its payload: `picture/jpeg`, or `record` for bytes kept as they are."""
    triggered: bool = False
    rate_hz: Decimal | None = Field(default=None, gt=0)
    stamp_point: StampPoint = StampPoint.UNKNOWN
    offset_ns: int = 0

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("name") and "source" in data:
            return {**data, "name": data["source"]}
        return data

    @property
    def period_ns(self) -> int | None:
        """Nominal period, ns; None where the recording states none."""
        return None if self.rate_hz is None else period_of(self.rate_hz)


class ReplayDevice(_Table):
    """`[[device]]` with `driver = "replay"`: plays a recording with its own stamps and its own arrivals.

    Of a foreign recording (VRS) one device plays every stream, by one clock that already is rig time. Of an episode of
    ours each device that recorded it is played by a device of its own (`device` names it; default: the same name), with
    the counter, drift and delays it had; its streams are those of the episode, and `stream` stays out.
    """

    driver: Literal["replay"]
    name: str
    path: Path
    """A `.vrs` file, or the folder of an episode of ours. Relative to the rig file."""
    pace: Literal["recorded", "fast"] = "recorded"
    """At the recording's own pace, or as fast as the recorder takes it."""
    device: str | None = None
    """Of an episode of ours: which of its devices."""
    timebase: Literal["arb", "ptp"] = "arb"
    """Of a foreign recording: what its one clock is. `arb` claims no TAI."""
    stream: tuple[ReplayStream, ...] = ()

    @field_validator("path")
    @classmethod
    def _beside_the_rig_file(cls, path: Path, info: ValidationInfo) -> Path:
        directory = (info.context or {}).get("directory")
        return path if directory is None else Path(directory) / path

    @property
    def is_vrs(self) -> bool:
        """Whether the recording is a VRS file."""
        return self.path.suffix.lower() == ".vrs"

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        names = [s.name for s in self.stream]
        if len(set(names)) != len(names) or len({s.source for s in self.stream}) != len(names):
            raise ValueError(f"device {self.name} plays a stream twice; keep one")
        if self.is_vrs and not self.stream:
            raise ValueError(f"device {self.name} plays a VRS file; list its streams as [[device.stream]]")
        if self.is_vrs and self.device is not None:
            raise ValueError(f"device {self.name} plays a VRS file, which has no devices; take out device")
        if not self.is_vrs and self.stream:
            raise ValueError(f"device {self.name} plays an episode, which knows its streams; take out stream")
        return self


DeviceConfig = Annotated[SimDevice | ReplayDevice, Field(discriminator="driver")]
"""A device of the rig file."""
