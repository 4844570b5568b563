"""Short ways through columns give what the plain ones give."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.gate.episode import _numbers, _or_none, _rows
from firsthand_edge.gate.figures import _distinct, every, frozen_run, span_of
from firsthand_edge.model import ABSENT

MASKS = st.lists(st.booleans(), max_size=40).map(lambda values: np.array(values, dtype=np.bool_))
SMALL = st.lists(st.integers(-4, 4), max_size=40).map(lambda values: np.array(values, dtype=np.int64))
WIDE = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20).map(lambda values: np.array(values, dtype=np.int64))


@given(MASKS)
def test_rows_are_those_where_the_mask_is_true(mask):
    column = np.arange(mask.size)
    assert column[_rows(mask)].tolist() == column[mask].tolist()


@given(MASKS)
def test_every(mask):
    assert every(mask) is bool(mask.all())


@given(SMALL | WIDE | SMALL.map(np.sort) | WIDE.map(np.unique))
def test_distinct_times_in_order(times):
    if times.size:
        assert _distinct(times).tolist() == np.unique(times).tolist()


@given(SMALL)
def test_incarnations_in_the_order_in_which_they_came(numbers):
    assert _numbers(numbers) == list(dict.fromkeys(numbers.tolist()))


@given(st.lists(st.sampled_from([ABSENT, 0, 1]), max_size=6).map(lambda v: np.array(v, dtype=np.int64)))
def test_a_column_that_nobody_filled_is_none(column):
    assert (_or_none(column) is None) == (set(column.tolist()) <= {ABSENT})


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30), st.integers(1, 20))
def test_the_span_of_times_in_any_order(times, silence):
    span = span_of(np.array(times, dtype=np.int64), silence_max_ns=silence)
    ordered = sorted(set(times))
    steps = [later - earlier for earlier, later in pairwise(ordered)]
    assert (span.first_ns, span.last_ns, span.steps) == (ordered[0], ordered[-1], len(steps))
    if steps:
        median = sorted(steps)[(len(steps) + 1) // 2 - 1]
        assert span.periods == sum(max(1, math.floor(Fraction(step, median) + Fraction(1, 2))) for step in steps)
        assert span.silence.length_ns == max(steps)
        assert span.silence.start_ns == ordered[steps.index(max(steps))]
        assert [s.length_ns for s in span.long_silences] == [step for step in steps if step > silence][:16]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=30))
def test_the_longest_run_of_equal_pictures(rows):
    digest, stamps = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    frozen = frozen_run(digest, stamps, stamps)
    kept: list[int] = []
    highest = None
    for position, stamp in enumerate(stamps.tolist()):
        if highest is None or stamp > highest:
            kept.append(position)
            highest = stamp
    runs: list[list[int]] = []
    for position in kept:
        if runs and digest[runs[-1][-1]] == digest[position]:
            runs[-1].append(position)
        else:
            runs.append([position])
    longest = max(runs, key=len)
    assert (frozen.run, frozen.first, frozen.last) == (len(longest), longest[0], longest[-1])


@given(st.lists(st.one_of(st.integers(1, 40), st.integers(1, 10**6), st.integers(1, 2**58)), min_size=1, max_size=60))
def test_periods_are_every_step_over_the_median_halves_up(steps):
    times = np.cumsum([0, *steps], dtype=np.object_)
    if times[-1] >= 2**62:
        return
    span = span_of(times.astype(np.int64), silence_max_ns=10**9)
    median = sorted(steps)[(len(steps) + 1) // 2 - 1]
    assert span.periods == sum(max(1, (2 * step + median) // (2 * median)) for step in steps)
    assert (span.steps, span.silence.length_ns) == (len(steps), max(steps))
