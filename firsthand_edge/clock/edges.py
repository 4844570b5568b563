"""Recorded times of a triggered device, held against the trigger edges that caused its exposures (sync.md section 1).

The recorder maps a device clock by arrivals, which takes a calibrated minimum delay. The edges need none: an exposure's
stamp and its edge plus the planned delay are one instant. So they tell what the recorded times are off by, which is the
uncertainty of those times, measured instead of stated, and the minimum delay that would have been right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from firsthand_edge.model import ABSENT, StampPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMPARED_MIN", "EdgeCheck", "after_edge", "check"]

Int64: TypeAlias = npt.NDArray[np.int64]

HALVES: Final[Mapping[StampPoint, int]] = {
    StampPoint.START: 0,
    StampPoint.MIDDLE: 1,
    StampPoint.END: 2,
    StampPoint.READOUT_START: 2,
}
"""How many half exposures lie between the start of exposure and the stamped instant."""

SETTLED_NS: Final = 50_000
"""Uncertainty of the fit to edges up to which it judges a calibration, which usually states some 100 us."""
COMPARED_MIN: Final = 30
"""Samples that must be comparable before a calibration is judged."""
CONTRADICTED_ONE_IN: Final = 100
"""A stated uncertainty holds for 999 of 1000 times; ten times as many that contradict it are no chance."""


@dataclass(frozen=True, slots=True)
class EdgeCheck:
    """What the trigger edges say of one device clock's recorded times."""

    pairs: int
    """Samples that agree with the edges."""
    refused: int
    """Samples whose edge contradicts all others: miscounted pulses, or exposures off their plan."""
    compared: int
    """Samples at which both maps are certain enough to be compared."""
    late_ns: int = 0
    """The recorded times are later than the edges by so much: the median of those samples."""
    spread_ns: int = 0
    """999 of 1000 of them lie within this of it, the uncertainty of the fit to edges included."""
    unpaired: int = 0
    """Exposures without an edge: none was recorded, or none lies where the stated minimum delay puts them."""
    contradicted: bool = False
    """The recorded times are off by more than the stated minimum delay and its bound allow."""

    def min_delay_ns(self, stated_ns: int) -> int:
        """The minimum delay that brings the recorded times, made with `stated_ns`, onto the edges."""
        return stated_ns + self.late_ns


def after_edge(point: StampPoint, trigger_delay_ns: int, exposure_ns: Int64) -> Int64 | None:
    """Planned time from the edge to the stamped instant: `trigger_delay + k * exposure`, k = 0, 1/2 or 1.

    Half an exposure is floored, as in `mid_exposure`; an absent or negative exposure counts as none.

    Args:
        point: Which instant of the exposure was stamped.
        trigger_delay_ns: From the edge to the start of exposure.
        exposure_ns: (n,) int64, exposure of each sample.

    Returns:
        (n,) int64, or None where the point has no place in an exposure.
    """
    halves = HALVES.get(point)
    if halves is None:
        return None
    exposure = np.maximum(exposure_ns, 0)
    shift: Int64 = trigger_delay_ns + (exposure // 2 if halves == 1 else exposure * (halves // 2))
    return shift


def check(
    recorded_ns: Int64,
    stated_ns: Int64,
    edge_ns: Int64,
    edge_uncertainty_ns: Int64,
    *,
    calibrated: bool,
    pairs: int,
    refused: int,
    unpaired: int,
) -> tuple[EdgeCheck, Int64]:
    """Compares two maps of one device clock, reading by reading.

    Args:
        recorded_ns: (n,) int64, rig times as recorded, by arrivals.
        stated_ns: (n,) int64, their uncertainties, the bound of the minimum delay included.
        edge_ns: (n,) int64, rig times of the fit to edges.
        edge_uncertainty_ns: (n,) int64, their uncertainties.
        calibrated: The minimum delay was calibrated; otherwise `stated_ns` says nothing of it.
        pairs: Of the fit.
        refused: Of the fit.
        unpaired: Of the fit.

    Returns:
        What the edges say, and (n,) int64: what each recorded time is off by at most, ns.
    """
    known = (recorded_ns != ABSENT) & (edge_ns != ABSENT)
    late = np.where(known, recorded_ns - edge_ns, 0)
    compared = known & (edge_uncertainty_ns <= SETTLED_NS)
    count = int(np.count_nonzero(compared))
    if count < COMPARED_MIN:
        # A single edge may be lost, but where most exposures have none, they are not where they are said to be.
        astray = calibrated and unpaired >= COMPARED_MIN and 2 * unpaired > pairs + refused + unpaired
        return EdgeCheck(pairs, refused, count, unpaired=unpaired, contradicted=astray), stated_ns
    measured = np.abs(late) + edge_uncertainty_ns
    median = _quantile(late[compared], 1, 2)
    spread = _quantile(np.abs(late[compared] - median), 999, 1000) + _quantile(edge_uncertainty_ns[compared], 1, 2)
    beyond = np.count_nonzero(np.abs(late[compared]) > (stated_ns + edge_uncertainty_ns)[compared])
    contradicted = calibrated and int(beyond) * CONTRADICTED_ONE_IN > count
    # The minimum delay is a constant, so where it is known best it is known for the readings that no edge measures.
    best = int((measured + stated_ns)[compared].min())
    off_by: Int64 = np.where(compared, measured, np.minimum(measured, stated_ns + best))
    if calibrated and not contradicted:
        off_by = np.minimum(off_by, stated_ns)
    return EdgeCheck(pairs, refused, count, median, spread, unpaired, contradicted), np.where(known, off_by, stated_ns)


def _quantile(values: Int64, num: int, den: int) -> int:
    """The order statistic of sync.md section 4."""
    rank = (values.size * num + den - 1) // den
    return int(np.partition(values, rank - 1)[rank - 1])
