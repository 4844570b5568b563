"""What rejects a take, where the limits are, and what happens to a take that was rejected."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from firsthand_edge.spec.fields import Count, Milliseconds, Name, Ratio, Section, ms_to_ns

__all__ = ["RejectRule", "Rules"]


class Rules(Section):
    """Limits of the reject rule (`[rules]`); the defaults are those of sync.md section 5.

    Rules without a limit (`stamp.unit`, `stamp.domain`, `stamp.tai_utc`, `stamp.unverified`, `record.torn`) always
    hold.
    """

    missing_ratio_max: Ratio = Decimal("0.005")
    """`sync.missing`: missing / expected of a stream, the reference included."""
    missing_run_max: Count = 3
    """`sync.missing`: longest run of missing expected ticks."""
    backwards_max: Count = 0
    """`stamp.backwards`: samples out of order beyond the reorder bound that the stream's driver states."""
    duplicate_ratio_max: Ratio = Decimal("0.001")
    """`stamp.duplicate`: further samples of an equal stamp / samples."""
    jump_max: Count = 0
    """`stamp.jump`: steps that neither the sequence nor the arrivals explain."""
    wrap_max: Count = 0
    """`stamp.wrap`: steps of minus a power-of-two counter that was not unwrapped."""
    future_max: Count = 0
    """`stamp.future`: samples mapped later than their own arrival by more than their uncertainty."""
    rate_ratio_max: Ratio = Decimal("0.02")
    """`stream.rate`: |mean rate - nominal| / nominal."""
    trim_max_ms: Milliseconds = Decimal(1000)
    """How much of the start and of the end may be trimmed to where all streams run; `stream.late` and `stream.early`
    beyond it."""
    silence_max_ms: Milliseconds = Decimal(500)
    """`stream.lost`: longest silence of a stream that has a rate."""
    frozen_run_max: Annotated[int, Field(ge=1, le=2**31)] = 3
    """`picture.frozen`: longest run of pictures with equal payload while their stamps advance."""
    overrun_max: Count = 0
    """`record.overrun`: samples of a stream lost to back-pressure."""
    near_ratio: Ratio = Decimal("0.9")
    """`sync.near` warns from this share of the ceiling on; it never rejects."""

    @property
    def trim_max_ns(self) -> int:
        """`trim_max_ms` in nanoseconds."""
        return ms_to_ns(self.trim_max_ms)

    @property
    def silence_max_ns(self) -> int:
        """`silence_max_ms` in nanoseconds."""
        return ms_to_ns(self.silence_max_ms)


class RejectRule(Section):
    """What follows from a rejection (`[reject]`); what rejects is in `[rules]`."""

    recapture: bool
    """Whether a rejected take is recorded again; the new take names the old one."""
    recapture_except: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    """Codes for which it is the other way round: with `recapture = true` these are not recorded again, with
    `recapture = false` only these are."""
    retain_failures: bool
    """Whether failed and near-miss attempts belong to the collection. False: such an attempt is rejected
    (`take.outcome_not_retained`)."""

    def recaptures(self, code: str) -> bool:
        """Whether a take that was rejected for `code` is recorded again."""
        return self.recapture != (code in self.recapture_except)
