"""Fault scripts of simulated devices: what goes wrong, in which take, when.

In a rig file a fault is a table `[[device.fault]]` of the device it befalls. All have `take` (number of the take in
this run of the daemon; absent: every take, previews never), `at_s` (seconds after the take's pulse 0) and `for_s`
(how long; absent: to the end of the take, for clocks: for good). Seconds are decimals, never floats.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "ComeBack",
    "Die",
    "Drift",
    "Drop",
    "Fault",
    "Jitter",
    "Jump",
    "MissFirst",
    "Repeat",
    "Stall",
    "StartLate",
    "Wrap",
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
    Drop | Stall | Repeat | Jitter | Drift | Wrap | Jump | StartLate | MissFirst | Die | ComeBack,
    Field(discriminator="kind"),
]
"""Any of them, told apart by `kind`."""
