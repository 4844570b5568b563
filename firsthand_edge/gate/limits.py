"""The limits that rules hold figures against: a spec's, or the defaults of sync.md section 5."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from firsthand_edge.spec.document import Spec

__all__ = ["Limits", "Statistic"]

Statistic = Literal["max", "p99", "p99.9"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit is the greatest value that passes; a figure above it rejects. Times in nanoseconds."""

    ceiling_ns: int = 2_000_000
    statistic: Statistic = "max"
    guard_band: bool = False
    min_ticks: int = 30
    missing_ratio: Fraction = Fraction(5, 1000)
    missing_run: int = 3
    backwards: int = 0
    duplicate_ratio: Fraction = Fraction(1, 1000)
    jumps: int = 0
    wraps: int = 0
    future: int = 0
    rate_ratio: Fraction = Fraction(2, 100)
    trim_max_ns: int = 1_000_000_000
    silence_max_ns: int = 500_000_000
    frozen_run: int = 3
    overrun: int = 0
    near_ratio: Fraction = Fraction(9, 10)
    """`sync.near` warns from this share of the ceiling on."""
    retain_failures: bool = True
    """Whether failed and near-miss attempts are kept; without a spec nothing says that they are not."""

    @classmethod
    def of_spec(cls, spec: Spec) -> Self:
        """The limits that `spec` states."""
        sync, rules = spec.sync, spec.rules
        return cls(
            ceiling_ns=sync.ceiling_ns,
            statistic=sync.statistic,
            guard_band=sync.guard_band,
            min_ticks=sync.min_ticks,
            missing_ratio=Fraction(rules.missing_ratio_max),
            missing_run=rules.missing_run_max,
            backwards=rules.backwards_max,
            duplicate_ratio=Fraction(rules.duplicate_ratio_max),
            jumps=rules.jump_max,
            wraps=rules.wrap_max,
            future=rules.future_max,
            rate_ratio=Fraction(rules.rate_ratio_max),
            trim_max_ns=rules.trim_max_ns,
            silence_max_ns=rules.silence_max_ns,
            frozen_run=rules.frozen_run_max,
            overrun=rules.overrun_max,
            near_ratio=Fraction(rules.near_ratio),
            retain_failures=spec.reject.retain_failures,
        )
