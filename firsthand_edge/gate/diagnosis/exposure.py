"""A departure that follows the exposure: a wrong stamp point, or a plan that lets exposures move the middle.

A camera that begins to expose at a fixed delay after its edge has its middle at `delay + exposure / 2`: the slope of
middle against exposure is a half (sync.md section 1). Where that moves pictures apart, the plan is at fault. A slope
that differs from it by halves says that not the stated instant of the exposure is stamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.diagnosis.pieces import middle, spread

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Int64

__all__ = ["Follows", "follows", "is_half"]

LEAST_SPREAD_NS = 200_000
"""Exposures that vary by less tell nothing of a slope."""


@dataclass(frozen=True, slots=True)
class Follows:
    """A departure moves with the exposure."""

    halves: int
    """So many half exposures: 1 is what a fixed delay implies."""
    moved_ns: int
    """How wide 90 of 100 samples are moved by it."""


def follows(offset_ns: Int64, exposure_ns: Int64) -> tuple[Follows | None, Int64]:
    """Whether, and what that leaves of the departure.

    Args:
        offset_ns: (n,) departures.
        exposure_ns: (n,) exposures of the same samples.
    """
    width = spread(exposure_ns)
    if width < LEAST_SPREAD_NS:
        return None, offset_ns
    order = np.argsort(exposure_ns, kind="stable")
    quarter = max(1, order.size // 4)
    short, long = order[:quarter], order[-quarter:]
    run = middle(exposure_ns[long]) - middle(exposure_ns[short])
    rise = middle(offset_ns[long]) - middle(offset_ns[short])
    if run <= 0:
        return None, offset_ns
    halves = (4 * rise + run) // (2 * run)
    if halves == 0 or 20 * abs(2 * rise - halves * run) > 3 * run:
        return None, offset_ns
    left: Int64 = offset_ns - halves * (exposure_ns - middle(exposure_ns)) // 2
    if 2 * spread(left) > spread(offset_ns):
        return None, offset_ns
    return Follows(int(halves), abs(int(halves)) * width // 2), left


def is_half(constant_ns: int, exposure_ns: Int64) -> bool:
    """Whether a constant is half the exposure, either way, within 5 %."""
    exposure = middle(exposure_ns)
    return exposure > 0 and 20 * abs(2 * abs(constant_ns) - exposure) <= exposure
