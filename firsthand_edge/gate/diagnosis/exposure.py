"""A departure that follows the exposure: a wrong stamp point, or a plan that lets exposures move the middle.

A camera that begins to expose at a fixed delay after its edge has its middle at `delay + exposure / 2`: the slope of
middle against exposure is a half (sync.md section 1). Where that moves pictures apart, the plan is at fault. A slope
that differs from it by halves says that not the stated instant of the exposure is stamped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate.diagnosis.pieces import middle, spread

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Int64

__all__ = ["HALVES", "is_half", "moved_by", "planned", "vary"]

LEAST_SPREAD_NS = 200_000
"""Exposures that vary by less tell nothing of a slope."""
FIRST = 15
"""Samples that tell with which exposure a camera begins."""


HALVES = (1, 2, -1, 3, -2)
"""So many half exposures a departure may move by; 1 is what a fixed delay implies, the others are stamp points."""


def vary(exposure_ns: Int64) -> bool:
    """Whether exposures tell anything of a slope."""
    return spread(exposure_ns) >= LEAST_SPREAD_NS


def moved_by(halves: int, exposure_ns: Int64) -> Int64:
    """By how much each sample is moved, where the departure moves by so many half exposures.

    The trigger delay is planned for the exposure that the camera begins with. So of halves other than 1 even that one
    is moved.

    Args:
        halves: How many.
        exposure_ns: (n,) exposures in order of time.
    """
    out: Int64 = (halves * exposure_ns - planned(exposure_ns)) // 2
    return out


def planned(exposure_ns: Int64) -> int:
    """The exposure that a camera begins with."""
    return middle(exposure_ns[:FIRST])


def is_half(constant_ns: int, exposure_ns: Int64) -> bool:
    """Whether a constant is half the planned exposure, either way, within 5 %."""
    exposure = planned(exposure_ns)
    return exposure > 0 and 20 * abs(2 * abs(constant_ns) - exposure) <= exposure
