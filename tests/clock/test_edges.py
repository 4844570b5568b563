"""Recorded times against trigger edges: what they are off by, and whose fault it is."""

import numpy as np
import pytest

from firsthand_edge.clock.edges import EdgeCheck, after_edge, check
from firsthand_edge.model import ABSENT, StampPoint

EXPOSURE = np.array([9, 8, ABSENT, -5], dtype=np.int64)


@pytest.mark.parametrize(
    ("point", "wanted"),
    [
        (StampPoint.START, [100, 100, 100, 100]),
        (StampPoint.MIDDLE, [104, 104, 100, 100]),
        (StampPoint.END, [109, 108, 100, 100]),
        (StampPoint.READOUT_START, [109, 108, 100, 100]),
    ],
)
def test_the_stamped_instant_follows_the_edge_by_delay_and_exposure(point, wanted):
    assert after_edge(point, 100, EXPOSURE).tolist() == wanted


@pytest.mark.parametrize("point", [StampPoint.INSTANT, StampPoint.UNKNOWN])
def test_a_stamp_that_has_no_place_in_an_exposure_has_none_after_an_edge(point):
    assert after_edge(point, 100, EXPOSURE) is None


def columns(*, late, stated=200_000, fit=2_000, count=100):
    """(recorded, stated, edge, edge uncertainty) of `count` readings, recorded `late` ns after the edges say."""
    edge = np.arange(count, dtype=np.int64) * 16_666_667
    return edge + late, np.full(count, stated), edge, np.full(count, fit)


def found(*, calibrated=True, **more):
    return check(*columns(**more), calibrated=calibrated, pairs=100, refused=0, unpaired=0)


def test_a_good_calibration_is_measured_better_than_it_is_stated():
    checked, off_by = found(late=30_000)
    assert checked == EdgeCheck(100, 0, 100, late_ns=30_000, spread_ns=2_000, contradicted=False)
    assert checked.min_delay_ns(1_200_000) == 1_230_000
    assert set(off_by.tolist()) == {32_000}


def test_what_is_stated_stands_where_the_edges_know_less():
    recorded, stated, edge, fit = columns(late=30_000)
    fit[:10] = 500_000
    _, off_by = check(recorded, stated, edge, fit, calibrated=True, pairs=100, refused=0, unpaired=0)
    assert set(off_by[:10].tolist()) == {200_000}
    assert set(off_by[10:].tolist()) == {32_000}


@pytest.mark.parametrize("late", [5_000_000, -5_000_000])
def test_a_calibration_that_the_edges_disprove_counts_for_nothing(late):
    checked, off_by = found(late=late)
    assert checked.contradicted
    assert checked.late_ns == late
    assert off_by.min() == 5_002_000


def test_without_a_calibration_only_what_is_measured_counts():
    recorded, stated, edge, fit = columns(late=12_000_000, stated=50_000)
    fit[:10] = 2**60  # nothing is known before the first pair
    checked, off_by = check(recorded, stated, edge, fit, calibrated=False, pairs=90, refused=0, unpaired=0)
    assert (checked.contradicted, checked.late_ns) == (False, 12_000_000)
    assert set(off_by[10:].tolist()) == {12_002_000}
    # The delay is the same before the first pair.
    assert set(off_by[:10].tolist()) == {50_000 + 12_002_000 + 50_000}


def test_few_samples_judge_nothing():
    checked, off_by = found(late=5_000_000, count=29)
    assert (checked.compared, checked.contradicted) == (29, False)
    assert set(off_by.tolist()) == {200_000}


@pytest.mark.parametrize(
    ("unpaired", "pairs", "astray"), [(100, 0, True), (51, 49, True), (50, 50, False), (20, 0, False)]
)
def test_exposures_that_no_edge_fits_disprove_a_calibration(unpaired, pairs, astray):
    recorded, stated, edge, _ = columns(late=0)
    unknown = np.full(edge.size, 2**60)
    checked, off_by = check(recorded, stated, edge, unknown, calibrated=True, pairs=pairs, refused=0, unpaired=unpaired)
    assert (checked.contradicted, checked.unpaired) == (astray, unpaired)
    assert off_by.tolist() == stated.tolist()
    # Without a calibration there is nothing to disprove.
    checked, _ = check(recorded, stated, edge, unknown, calibrated=False, pairs=0, refused=0, unpaired=unpaired)
    assert not checked.contradicted


def test_times_that_nobody_knows_are_compared_with_nothing():
    recorded, stated, edge, fit = columns(late=0)
    recorded[5], stated[5], edge[5], fit[5] = ABSENT, ABSENT, ABSENT, ABSENT
    checked, off_by = check(recorded, stated, edge, fit, calibrated=True, pairs=99, refused=0, unpaired=0)
    assert (checked.compared, checked.spread_ns) == (99, 2_000)
    assert off_by[5] == ABSENT
