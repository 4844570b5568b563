"""Device stamp to sample time: a sample's time is the middle of its exposure (sync.md section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from firsthand_edge.model import StampPoint

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["mid_exposure", "still_exposed"]

Int64: TypeAlias = npt.NDArray[np.int64]

HALVES: Mapping[StampPoint, int] = {
    StampPoint.START: 1,
    StampPoint.MIDDLE: 0,
    StampPoint.INSTANT: 0,
    StampPoint.END: -1,
    StampPoint.READOUT_START: -1,
}
"""How many half exposures lie between the stamped instant and the middle."""


def mid_exposure(times_ns: Int64, exposure_ns: Int64, point: StampPoint, offset_ns: int) -> Int64:
    """Times of the middle of exposure: `t = t_point + k * exposure + offset`, k = +1/2, 0 or -1/2 (sync.md section 1).

    Half an exposure is `exposure // 2`, floored, so an odd exposure gives the same nanosecond on every machine. An
    absent or negative exposure counts as none. Sums end where int64 does, as in the recorder.

    Args:
        times_ns: (n,) int64, instants that the device stamped, in any one timebase.
        exposure_ns: (n,) int64, exposure of each sample; not read where the point does not depend on it.
        point: Which instant of the exposure was stamped.
        offset_ns: Constant calibrated for the device and mode.

    Returns:
        (n,) int64 in the timebase of `times_ns`.

    Raises:
        ValueError: when the stamp point is unknown: nobody can say when such a picture was taken.
    """
    if point is StampPoint.UNKNOWN:
        raise ValueError(
            "the stamp point is unknown, so the middle of the exposure cannot be told; state it per stream"
        )
    halves = HALVES[point]
    if halves == 0:
        return _shifted(times_ns, np.int64(offset_ns))
    half = np.maximum(exposure_ns, 0) // 2
    return _shifted(_shifted(times_ns, halves * half), np.int64(offset_ns))


def still_exposed(exposure_ns: Int64, point: StampPoint) -> Int64:
    """How long the exposure goes on after the stamped instant: no picture is sent before. (n,) int64, at least 0."""
    exposed = np.maximum(exposure_ns, 0)
    after: Int64 = {StampPoint.START: exposed, StampPoint.MIDDLE: exposed - exposed // 2}.get(point, 0 * exposed)
    return after


def _shifted(times_ns: Int64, by_ns: Int64 | np.int64) -> Int64:
    """Their sum; one beyond int64 is the end that it passed."""
    with np.errstate(over="ignore"):
        sums: Int64 = times_ns + by_ns
    passed = (sums < times_ns) != (by_ns < 0)
    if passed.any():
        ends = np.iinfo(np.int64)
        sums = np.where(passed, np.where(times_ns > 0, ends.max, ends.min), sums)
    return sums
