"""The streams that an episode must hold, and how far they may disagree."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from firsthand_edge.model import Kind, StampPoint
from firsthand_edge.spec.fields import NS_PER_S, Count, Milliseconds, Name, Number, Section, ms_to_ns

__all__ = ["StampDomain", "StreamSpec", "SyncSpec"]

StampDomain: TypeAlias = Literal["ptp", "device", "monotonic", "utc"]
"""`firsthand_edge.model.Domain`, in lower case."""
Point: TypeAlias = Annotated[StampPoint, Field(strict=False)]


class StreamSpec(Section):
    """One stream that an episode must hold (`[[streams]]`)."""

    name: Name
    """As the rig file and the recording call it."""
    kind: Annotated[Kind, Field(strict=False)]
    """How it is judged: `triggered`, `sampled`, `interpolated` or `event` (sync.md section 2)."""
    rate_hz: Annotated[Number, Field(ge=Decimal("0.001"), le=Decimal(1_000_000))] | None = None
    """Nominal rate, samples a second. Without it `stream.rate` and `stamp.unit` are not judged. Required
    sampled streams must state it; events have none."""
    decimate: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """A triggered stream that delivers one sample for every `decimate`-th tick."""
    phase: Count | None = None
    """The ticks of a decimated stream are those with `number mod decimate == phase`; without it, the phase at
    which most of its samples matched."""
    max_gap_ms: Milliseconds | None = None
    """The longest distance between the two samples that bracket a tick of an interpolated stream; without it, two
    nominal periods."""
    required: bool = True
    """False: recorded, and never judged."""
    stamp_domains: Annotated[tuple[StampDomain, ...], Field(strict=False, min_length=1)] | None = None
    """Whose clock its stamps may be read from; without it, any. A rig whose device says otherwise does not start."""
    stamp_points: Annotated[tuple[Point, ...], Field(strict=False, min_length=1)] | None = None
    """Which instant of an exposure the device may stamp; without it, any. A rig whose device says otherwise does not
    start."""
    provenance: Literal["live", "derived"] | None = None
    """Of a label stream (poses, contacts, actions): `live`, captured with the footage, or `derived` from it later.
    None: not a label stream."""

    @property
    def period_ns(self) -> int | None:
        """Nominal period: 1e9 / rate, rounded half up. None without a rate."""
        if self.rate_hz is None:
            return None
        exact = NS_PER_S / Fraction(self.rate_hz)
        return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)

    @property
    def max_gap_ns(self) -> int | None:
        """`max_gap_ms` in nanoseconds."""
        return None if self.max_gap_ms is None else ms_to_ns(self.max_gap_ms)


class SyncSpec(Section):
    """How far streams may disagree (`[sync]`)."""

    reference: Name = "head"
    """The triggered stream whose samples number the ticks; required, and never decimated."""
    ceiling_ms: Milliseconds = Decimal("2.0")
    """`sync.ceiling`: the chosen statistic of the residual may reach this and not exceed it."""
    statistic: Literal["max", "p99", "p99.9"] = "max"
    """Which order statistic of the residuals is held against the ceiling."""
    guard_band: bool = False
    """True: the residual is widened by the stamps' uncertainties before it is held against the ceiling."""
    min_ticks: Annotated[int, Field(ge=1, le=2**31)] = 30
    """`sync.no_ticks`: fewer judged ticks than this are not enough to accept on."""

    @property
    def ceiling_ns(self) -> int:
        """`ceiling_ms` in nanoseconds."""
        return ms_to_ns(self.ceiling_ms)
