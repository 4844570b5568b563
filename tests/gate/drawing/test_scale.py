"""Times go to the column they lie in, and axes count in what people count in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.gate.drawing.scale import TimeScale, round_step

NS = 10**9


def words(seconds):
    return [said for _, said in TimeScale(0, int(seconds * NS), 0, 700).axis()]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (10, ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]),
        (0.5, ["0.0 s", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s"]),
        (600, ["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]),
        (36_000, ["0 h", "2 h", "4 h", "6 h", "8 h", "10 h"]),
    ],
)
def test_an_axis_has_a_few_round_marks(seconds, expected):
    assert words(seconds) == expected


@given(st.integers(1, 2**62), st.integers(-(2**62), 2**62))
def test_an_axis_has_at_most_ten_marks_within_the_plot(length, start):
    marks = list(TimeScale(start, start + length, 200, 700).axis())
    assert 1 <= len(marks) <= 10
    assert all(200 <= x <= 900.001 for x, _ in marks)
    assert len({said for _, said in marks}) == len(marks)


@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=50), st.integers(1, 900))
def test_every_time_lies_in_a_column_that_begins_before_it(times, columns):
    scale = TimeScale(min(times), max(times), 0, columns)
    begins = scale.begins_ns()
    found = scale.column_of(np.array(times, dtype=np.int64))
    for time, column in zip(times, found.tolist(), strict=True):
        assert begins[column] <= time
        assert column == columns - 1 or time < begins[column + 1]


def test_a_date_costs_no_digits():
    start = 1_764_537_600_000_000_000
    scale = TimeScale(start, start + 1_000, 0, 1_000)
    assert scale.x(start + 7) == 7
    assert scale.column_of(np.array([start + 7])).tolist() == [7]


@given(st.floats(1e-6, 1e12), st.integers(1, 20))
def test_a_round_step_divides_into_at_most_so_many(length, most):
    step = round_step(length, most)
    assert length / step <= most * (1 + 1e-9)
    assert length / step * 10 > most
