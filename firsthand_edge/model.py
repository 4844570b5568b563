"""Frozen nouns that every room speaks: what a device is, what it said, why an episode was rejected.

Every time is an `int` of nanoseconds. A stamp belongs to a `Domain`; stamps of different domains are never
subtracted. Arrays of times are `numpy.int64`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

__all__ = [
    "ABSENT",
    "Counter",
    "DeviceInfo",
    "Diagnosis",
    "Domain",
    "Fault",
    "Kind",
    "Reason",
    "Sample",
    "StampPoint",
    "StreamInfo",
]

ABSENT = -(2**63)
"""The int64 that stands for "the device did not say" in every column of times, sequences and indices."""


class Domain(IntEnum):
    """Whose clock a stamp was read from. Stored as one byte."""

    PTP = 0
    """The rig's timebase: the PTP timescale (TAI), or `arb` where the grandmaster declares none."""
    DEVICE = 1
    """A sensor's own counter."""
    MONOTONIC = 2
    """CLOCK_MONOTONIC of the host."""
    UTC = 3


class Kind(StrEnum):
    """How a stream is judged (sync.md section 2)."""

    TRIGGERED = "triggered"
    SAMPLED = "sampled"
    INTERPOLATED = "interpolated"
    EVENT = "event"


class StampPoint(StrEnum):
    """Which instant of an exposure the device stamps. Sample time is always the middle of the exposure."""

    START = "start"
    MIDDLE = "middle"
    END = "end"
    READOUT_START = "readout_start"
    """Start of readout: for a global shutter the end of exposure."""
    INSTANT = "instant"
    """No exposure: an IMU sample, a pose, an event."""
    UNKNOWN = "unknown"
    """Such stamps cannot be verified; a required stream that has them is rejected (`stamp.unverified`)."""


@dataclass(frozen=True, slots=True)
class Counter:
    """How a device counts time: ticks of `tick_num / tick_den` nanoseconds that wrap at `2**bits`."""

    bits: int = 64
    tick_num: int = 1
    tick_den: int = 1


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What a device says of one of its streams.

    `media` names the payload: `picture/png`, `picture/jpeg`, `video/h264`, `raw/16UC1;640x480`, `imu` (6 float64 LE:
    acceleration m/s^2, angular rate rad/s), `poses` (n x 7 float64 LE: position m, quaternion xyzw), `event` (UTF-8
    JSON object), `record` (bytes of a foreign recording, kept as they are).
    """

    name: str
    media: str
    triggered: bool
    stamp_point: StampPoint
    period_ns: int | None = None
    """Nominal period, None where the stream has none (events)."""
    offset_ns: int = 0
    """Constant calibrated for the device and mode, added to every stamp."""
    reorder_bound: int = 0
    """How many samples a sample may come late by, as the driver states."""
    has_trigger_index: bool = False
    """The device counts pulses at its input, including those that gave no exposure. A frame counter is not one."""
    trigger_delay_ns: int | None = None
    """Planned time from the trigger edge to the start of exposure, where the stream's stamps are to be held against the
    recorded edges (`firsthand_edge.clock.edges`); None where they are not."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device said when it was opened. One device is one clock: its streams share one clock map."""

    name: str
    driver: str
    model: str
    serial: str
    firmware: str
    domain: Domain
    counter: Counter
    streams: tuple[StreamInfo, ...]
    identity_map: bool = False
    """Stamps already are rig time (a foreign recording with its one clock, or a PTP-native device)."""
    min_delay_ns: int = 0
    min_delay_bound_ns: int | None = None
    """Half-width of what is known of the minimum transport delay. None: never calibrated, stamps of grade `arrival`."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the fields of this class, enums as their values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DeviceInfo:
        """The inverse of `to_json`."""
        streams = tuple(StreamInfo(**{**s, "stamp_point": StampPoint(s["stamp_point"])}) for s in data["streams"])
        return cls(
            **{**data, "domain": Domain(data["domain"]), "counter": Counter(**data["counter"]), "streams": streams}
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """What a device said once: raw, uninterpreted. `clock` and the core interpret."""

    stream: str
    sequence: int
    """As the device counts; ABSENT where it does not."""
    device_ticks: int
    """Raw counter value in ticks of the device's `Counter`; ABSENT where the record carries no stamp."""
    domain: Domain
    arrival_ns: int
    """CLOCK_MONOTONIC of the host on receipt; ABSENT where unknown (recordings)."""
    payload: bytes | memoryview = b""
    trigger_index: int = ABSENT
    exposure_ns: int = 0
    metadata: bytes = b""
    """The device's own metadata: msgpack of a map, or empty."""


class Fault(StrEnum):
    """What lies behind a disagreement, as far as the figures tell."""

    CONSTANT = "constant"
    STEP = "step"
    DRIFT = "drift"
    SLIP = "slip"
    TAI_UTC = "tai_utc"
    UNIT = "unit"
    WRAP = "wrap"
    STAMP_POINT = "stamp_point"
    EXPOSURE_SPREAD = "exposure_spread"
    JITTER = "jitter"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Which stream disagrees with the rest, how, since when and by how much. What is not known is None."""

    kind: Fault
    stream: str | None
    """None where two streams disagree and nothing else tells which of them is wrong."""
    sentence: str
    """What a technician can act on, without a full stop."""
    began_tick: int | None = None
    began_ns: int | None = None
    """Time since the first tick of the span."""
    offset_ns: int | None = None
    """Signed size of a constant or a step; of jitter and exposures, how wide 90 of 100 samples lie apart."""
    drift_ppb: int | None = None
    """How much longer its period is than that of the rest, in 10^-9."""
    ticks: int | None = None
    """Signed number of ticks that it slipped by."""
    factor: str | None = None
    """Of a unit: a power of a thousand."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an episode is rejected, or what it is warned about. A row of the reject log."""

    code: str
    sentence: str
    stream: str | None = None
    pair: tuple[str, str] | None = None
    first_tick: int | None = None
    last_tick: int | None = None
    measured: int | float | None = None
    limit: int | float | None = None
    unit: str | None = None
    rule_version: int = 1
    cause: str | None = None
    first_sample: int | None = None
    """Position of the first offending sample of `stream`, in arrival order within the take."""
    last_sample: int | None = None
    diagnosis: tuple[Diagnosis, ...] = ()
    """What lies behind it, the stream most at fault first; `cause` says the same in words."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object without the fields that say nothing; of a diagnosis all fields."""
        out = {k: v for k, v in asdict(self).items() if v is not None and k != "diagnosis"}
        if self.pair is not None:
            out["pair"] = list(self.pair)
        if self.diagnosis:
            out["diagnosis"] = [{**asdict(found), "kind": found.kind.value} for found in self.diagnosis]
        return out


@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted or rejected, with reasons, warnings and what was not judged."""

    accepted: bool
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    not_judged: tuple[str, ...] = field(default=())
