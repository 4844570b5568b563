"""A sample's time is the middle of its exposure."""

import numpy as np
import pytest

from firsthand_edge.clock.exposure import mid_exposure
from firsthand_edge.model import ABSENT, StampPoint

TIMES = np.array([1_000, 2_000], dtype=np.int64)
EXPOSURE = np.array([9, 8], dtype=np.int64)


@pytest.mark.parametrize(
    ("point", "wanted"),
    [
        (StampPoint.START, [1_005, 2_005]),
        (StampPoint.MIDDLE, [1_001, 2_001]),
        (StampPoint.INSTANT, [1_001, 2_001]),
        (StampPoint.END, [997, 1_997]),
        (StampPoint.READOUT_START, [997, 1_997]),
    ],
)
def test_half_an_exposure_is_floored(point, wanted):
    found = mid_exposure(TIMES, EXPOSURE, point, 1)
    assert found.tolist() == wanted
    assert found.dtype == np.int64


def test_an_absent_exposure_counts_as_none():
    exposure = np.array([ABSENT, -5], dtype=np.int64)
    assert mid_exposure(TIMES, exposure, StampPoint.END, 0).tolist() == TIMES.tolist()


def test_sums_end_where_int64_does():
    most = 2**63 - 1
    times = np.array([most - 3, 5, -most + 2], dtype=np.int64)
    assert mid_exposure(times, np.array([8, 8, 0], dtype=np.int64), StampPoint.START, 0).tolist() == [most, 9, 2 - most]
    assert mid_exposure(times, np.array([0, 0, 8], dtype=np.int64), StampPoint.END, 0).tolist()[2] == ABSENT
    assert mid_exposure(times, EXPOSURE[:1], StampPoint.MIDDLE, most).tolist() == [most, most, 2]


def test_the_stamps_are_left_as_they_are():
    before = TIMES.copy()
    mid_exposure(TIMES, EXPOSURE, StampPoint.START, 7)
    assert (before == TIMES).all()


def test_an_unknown_point_is_refused():
    with pytest.raises(ValueError, match="state it per stream"):
        mid_exposure(TIMES, EXPOSURE, StampPoint.UNKNOWN, 0)
