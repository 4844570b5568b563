"""Quantiles are exact order statistics (sync.md section 4)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge import _core
from tests.sync import brute

VALUES = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-50, 50)


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, max_size=40), st.integers(1, 1000), st.integers(0, 1000))
def test_ranks_are_those_of_the_document(values, num, more):
    array = np.array(values, dtype=np.int64)
    assert _core.quantile(array, num, num + more) == brute.quantile(values, num, num + more)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5000), st.sampled_from([1, 60, 2_000_000, 2**63 - 1]))
def test_many_values_are_exact_too(seed, n, spread):
    values = np.random.default_rng(seed).integers(-spread, spread, n)
    values[0] = spread * (seed % 2)
    for num, den in [(1, 2), (99, 100), (999, 1000), (1, 1), (1, 2**32 - 1)]:
        assert _core.quantile(values, num, den) == brute.quantile(values.tolist(), num, den)


def test_absent_entries_are_not_values():
    assert _core.quantile(np.array([brute.ABSENT, 4, brute.ABSENT]), 1, 2) == 4
    assert _core.quantile(np.array([brute.ABSENT]), 1, 2) is None
    assert _core.quantile(np.array([], dtype=np.int64), 1, 2) is None


@pytest.mark.parametrize(("num", "den"), [(0, 1), (2, 1), (1, 0), (-1, -2), (1, 2**32)])
def test_a_fraction_is_above_0_and_at_most_1(num, den):
    with pytest.raises(ValueError, match="it must be"):
        _core.quantile(np.array([1]), num, den)
