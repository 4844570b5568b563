"""The envelope loses no extreme: the columns together hold the smallest and the largest of everything."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.gate.drawing.scale import TimeScale
from firsthand_edge.gate.drawing.shapes import bars, envelope, runs, stems, trace
from firsthand_edge.model import ABSENT

values = st.lists(st.one_of(st.just(ABSENT), st.integers(-(2**40), 2**40)), min_size=1, max_size=200)


@given(values, st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_an_envelope_is_the_brute_force_one(series, columns, seed):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 10_000, len(series)))
    scale = TimeScale(int(times[0]), int(times[-1]), 0, columns)
    found = envelope(scale, times, np.array(series, dtype=np.int64))
    expected = {}
    for column, value in zip(scale.column_of(times).tolist(), series, strict=True):
        if value != ABSENT:
            expected.setdefault(column, []).append(value)
    assert found.column.tolist() == sorted(expected)
    assert found.low.tolist() == [min(expected[c]) for c in sorted(expected)]
    assert found.high.tolist() == [max(expected[c]) for c in sorted(expected)]


def test_one_tick_over_the_ceiling_among_two_million_has_a_stem():
    times = np.arange(2_000_000, dtype=np.int64)
    series = np.zeros(times.size, dtype=np.int64)
    series[1_234_567] = 11
    found = envelope(TimeScale(0, 1_999_999, 0, 700), times, series)
    assert re.fullmatch(r"M432 10\.0V11\.0", stems(found, 0, float, 10))
    assert stems(found, 0, float, 11) == ""


def test_stems_go_both_ways_from_their_ceiling():
    found = envelope(TimeScale(0, 10, 0, 2), np.array([0, 10]), np.array([-5, 5]))
    assert stems(found, 100, float, 3) == "M101 3.0V5.0M100 -3.0V-5.0"


def test_a_trace_breaks_where_columns_lie_far_apart():
    times = np.concatenate((np.arange(20), np.arange(60, 80)))
    found = envelope(TimeScale(0, 79, 0, 80), times, np.zeros(40, dtype=np.int64))
    assert trace(found, 0, float).count("M") == 2


def test_nothing_makes_no_path():
    found = envelope(TimeScale(0, 9, 0, 5), np.arange(10), np.full(10, ABSENT))
    assert (trace(found, 0, float), stems(found, 0, float, 1)) == ("", "")


@given(st.lists(st.booleans(), max_size=60))
def test_runs_cover_what_is_filled_and_nothing_else(filled):
    found = runs(np.array(filled, dtype=np.bool_))
    covered = [False] * len(filled)
    for begin, long in found:
        assert long > 0
        covered[begin : begin + long] = [True] * long
    assert covered == filled
    assert all(a + n < b for (a, n), (b, _) in pairwise(found))


def test_a_single_column_is_wide_enough_to_see():
    assert bars([(3, 1), (7, 4)], 100, 2, 8) == "M103 2h1.6v8h-1.6zM107 2h4v8h-4z"
