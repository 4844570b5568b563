"""Fault scripts of simulated devices: what goes wrong, in which take, when.

In a rig file a fault is a table `[[device.fault]]` of the device it befalls. All have `take` (number of the take in
this run of the daemon; absent: every take, previews never), `at_s` (seconds after the take's pulse 0) and `for_s`
(how long; absent: to the end of the take, for clocks: for good). Seconds are decimals, never floats.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from firsthand_edge.model import StampPoint  # noqa: TC001  (pydantic reads annotations at run time)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ComeBack",
    "Die",
    "Drift",
    "Drop",
    "Exposure",
    "Fault",
    "FreeRun",
    "Jitter",
    "Jump",
    "MissFirst",
    "OfTrigger",
    "Offset",
    "Repeat",
    "Slip",
    "Stall",
    "StartLate",
    "Wrap",
    "WrongStampPoint",
    "WrongUnit",
    "contradiction",
]

_NS_PER_S = 1_000_000_000


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    take: int | None = Field(default=None, ge=1)
    """The take that it befalls; None: every one."""
    at_s: Decimal = Field(default=Decimal(0), ge=0)
    """When it begins, in seconds after pulse 0 of the take."""
    for_s: Decimal | None = Field(default=None, gt=0)
    """How long it lasts; None: to the end."""

    def befalls(self, take: int) -> bool:
        """Whether it is for this take. Previews (take 0) have no faults."""
        return take > 0 and self.take in (None, take)

    def begin_ns(self, take_start_ns: int) -> int:
        """When it begins in a take whose pulse 0 was at `take_start_ns`, ns."""
        return take_start_ns + int(self.at_s * _NS_PER_S)

    def end_ns(self, take_start_ns: int) -> int | None:
        """When it ends, ns; None: it does not."""
        return None if self.for_s is None else self.begin_ns(take_start_ns) + int(self.for_s * _NS_PER_S)


class Drop(_Fault):
    """Exposures happen and are counted, and their samples never arrive."""

    kind: Literal["drop"]
    every: int = Field(default=1, ge=1)
    """Each how-manieth sample is lost."""


class Stall(_Fault):
    """The device hangs: it repeats its last picture while its stamps go on, or makes nothing at all."""

    kind: Literal["stall"]
    mode: Literal["repeat", "silence"] = "repeat"


class Repeat(_Fault):
    """Each sample is delivered twice, with one stamp and one sequence number."""

    kind: Literal["repeat"]


class Jitter(_Fault):
    """Exposures begin up to this much early or late: a fault of the trigger input, so the streams really disagree."""

    kind: Literal["jitter"]
    amount_us: int = Field(gt=0)


class Drift(_Fault):
    """The device's oscillator changes its rate."""

    kind: Literal["drift"]
    ppm: Decimal


class Wrap(_Fault):
    """The counter wraps at fewer bits than it claims: it falls back by 2**bits ticks, once.

    The device must claim more bits than these and its counter stand above 2**bits by then.
    """

    kind: Literal["wrap"]
    bits: int = Field(ge=8, le=62)


class Jump(_Fault):
    """The device's clock jumps, forwards or (negative) backwards, as on a change between UTC and TAI."""

    kind: Literal["jump"]
    seconds: Decimal


class Offset(_Fault):
    """Exposures begin this much late, or (negative) early: a wrong trigger delay, or with `at_s` one that steps.

    What is exposed is really off, and the stamps say so. No exposure can begin before its pulse.
    """

    kind: Literal["offset"]
    amount_us: int = Field(ge=-1_000_000, le=1_000_000)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.amount_us == 0:
            raise ValueError("an offset of 0 us is none; give amount_us")
        return self


class FreeRun(_Fault):
    """The trigger is not connected: from `at_s` on the camera exposes by its own oscillator, to the end of the take.

    Its counter counts true time all the same: what drifts is when it exposes, so no clock map can hide it.
    """

    kind: Literal["free_run"]
    ppm: Decimal = Field(ge=-100_000, le=100_000)
    """How much longer (negative: shorter) than the pulses' its period is."""


class Slip(_Fault):
    """The device's count of pulses and its exposures come apart from `at_s` on, to the end of the take.

    With n > 0 ticks it lets n pulses by without counting them, as one that is still busy, and answers each later one
    with a number n too low: the exposure that it calls k happens n ticks after pulse k. With n < 0 its input counts
    -n pulses that were none.
    """

    kind: Literal["slip"]
    ticks: int = Field(ge=-1000, le=1000)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.ticks == 0:
            raise ValueError("a slip of 0 ticks is none; give ticks")
        return self


class WrongUnit(_Fault):
    """The counter counts another unit than the device claims, from power on: milliseconds as microseconds, say."""

    kind: Literal["unit"]
    counts: Literal["s", "ms", "us", "ns"]
    """What one tick really is."""

    @property
    def counts_ns(self) -> int:
        """One tick, ns."""
        return {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}[self.counts]


class WrongStampPoint(_Fault):
    """The device stamps another point of the exposure than it claims, throughout the take."""

    kind: Literal["stamp_point"]
    stamps: Literal[StampPoint.START, StampPoint.MIDDLE, StampPoint.END, StampPoint.READOUT_START]
    """What it really stamps; `stamp_point` of the stream is what it claims."""


class Exposure(_Fault):
    """Auto exposure: from `at_s` on exposures lengthen or shorten evenly, and stay at the length that they reach.

    Their trigger delay stays as it was, so their middles move by half of the change. By itself that is a fault only
    where the change is larger than the trigger plan allows.
    """

    kind: Literal["exposure"]
    to_us: int = Field(gt=0)
    """The length reached."""
    over_s: Decimal = Field(default=Decimal(1), gt=0)
    """How long the change takes."""
    compensated: bool = False
    """Whether the device moves its trigger delay along, so that the middles stay where they are."""


class StartLate(_Fault):
    """The device makes its first exposure only `at_s` after pulse 0."""

    kind: Literal["start_late"]


class MissFirst(_Fault):
    """The device misses the first pulses of the train, as one that became ready too late."""

    kind: Literal["miss_first"]
    pulses: int = Field(default=1, ge=1)
    make_up: bool = False
    """It exposes as many times more after the last pulse, so that counts are equal: it stops by count."""


class Die(_Fault):
    """The worker process dies. The supervisor starts it again; `for_s` makes the device absent for that long."""

    kind: Literal["die"]
    how: Literal["raise", "exit", "segfault", "kill", "hang"] = "segfault"


class ComeBack(_Fault):
    """The device vanishes from its bus and comes back after `for_s`: reading it fails, then opening it does."""

    kind: Literal["come_back"]
    for_s: Decimal = Field(gt=0)


Fault = Annotated[
    Drop
    | Stall
    | Repeat
    | Jitter
    | Drift
    | Wrap
    | Jump
    | Offset
    | FreeRun
    | Slip
    | WrongUnit
    | WrongStampPoint
    | Exposure
    | StartLate
    | MissFirst
    | Die
    | ComeBack,
    Field(discriminator="kind"),
]
"""Any of them, told apart by `kind`."""

OfTrigger = Jitter | MissFirst | Offset | FreeRun | Slip | Exposure
"""Those that befall triggered exposures only."""

_WITHOUT: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "start_late": (("for_s",), "it ends when the device starts; say at_s only"),
    "free_run": (("for_s",), "a cable that came off stays off; say at_s only"),
    "slip": (("for_s",), "a count that slipped stays off; say at_s only"),
    "exposure": (("for_s",), "say with over_s how long the change takes; it stays"),
    "stamp_point": (("at_s", "for_s"), "a device stamps one point throughout; say take only"),
    "unit": (("take", "at_s", "for_s"), "a driver gets its unit wrong from power on; say counts only"),
}
"""Kinds that have no such field, and why."""
_ONCE: Final = (FreeRun, WrongUnit, WrongStampPoint, Exposure)


def contradiction(faults: Iterable[Fault]) -> str | None:
    """Why faults of one device cannot be, as a sentence; None where they can."""
    listed = tuple(faults)
    for fault in listed:
        fields, why = _WITHOUT.get(fault.kind, ((), ""))
        for field in fields:
            if getattr(fault, field) != type(fault).model_fields[field].default:
                return f"{fault.kind} has no {field}: {why}"
    for one, other in combinations(listed, 2):
        if one.take is not None and other.take is not None and one.take != other.take:
            continue
        if isinstance(one, _ONCE) and one.kind == other.kind:
            return f"the fault {one.kind} befalls one take twice; keep one"
        if {one.kind, other.kind} in ({"free_run", "slip"}, {"free_run", "miss_first"}):
            by_pulses = other if isinstance(one, FreeRun) else one
            return f"free_run follows no pulses, so {by_pulses.kind} cannot befall it in one take; keep one"
    return None
