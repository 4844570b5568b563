"""Stamps of any array library, or one sentence that says what to do; numbers as callers write them."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.api.audits import audit_streams
from firsthand_edge.api.stamps import as_stamps, exact, kind_of, rate_of
from firsthand_edge.errors import UsageError
from firsthand_edge.model import Kind
from tests.gate.making import ticks


class Series:
    """What pandas, polars and Arrow have in common: a column that numpy can ask for."""

    def __init__(self, column, dtype):
        self.column, self.dtype = column, dtype

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.column, dtype=dtype)


def read(values, least=1_000_000):
    return as_stamps("wrist", values, least_step_ns=least)


def test_an_int64_array_that_cannot_be_written_to_is_passed_through():
    frozen = ticks(60)
    frozen.flags.writeable = False
    assert read(frozen) is frozen
    view = frozen[::2]
    assert np.shares_memory(read(view), view)


def test_a_field_of_packed_records_is_copied_to_where_the_core_reads_it():
    records = np.zeros(60, np.dtype([("flag", "u1"), ("stamp_ns", "<i8")]))
    records["stamp_ns"] = ticks(60)
    records.flags.writeable = False
    found = audit_streams({"head": ticks(60), "wrist": records["stamp_ns"]})
    assert found.accepted
    assert read(records["stamp_ns"]).flags.aligned


def test_an_int64_array_that_can_be_written_to_is_copied_once():
    times = ticks(60)
    found = read(times)
    assert np.array_equal(found, times)
    assert not np.shares_memory(found, times)
    assert not found.flags.writeable
    assert times.flags.writeable


@pytest.mark.parametrize(
    "values",
    [
        ticks(60).tolist(),
        tuple(ticks(60).tolist()),
        ticks(60).astype(np.uint64),
        ticks(60).astype(">i8"),
        ticks(60).view("M8[ns]"),
        ticks(60).view("m8[ns]"),
        Series(ticks(60), "int64"),
        Series(ticks(60).view("M8[ns]"), "datetime64[ns]"),
        Series([np.datetime64(t, "ns") for t in ticks(60).tolist()], "datetime64[ns, UTC]"),
        np.ma.masked_array(ticks(60), False),
    ],
)
def test_columns_of_whole_nanoseconds(values):
    found = read(values)
    assert found.dtype == np.int64
    assert found.tolist() == ticks(60).tolist()


def test_coarser_datetimes_are_exact():
    times = ticks(60) // 1000 * 1000
    assert read((times // 1000).view("M8[us]")).tolist() == times.tolist()


def test_an_empty_list_is_a_stream_without_samples():
    assert read([]).tolist() == []


def test_order_is_that_of_arrival():
    assert read(ticks(60)[::-1]).tolist() == ticks(60)[::-1].tolist()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (ticks(60).astype(float), "floats hold no nanoseconds"),
        ([1.5, float("nan")], "floats hold no nanoseconds"),
        (ticks(60).reshape(30, 2), "pass one"),
        (5, "pass one"),
        ([[1, 2], [3]], "pass one array"),
        (["1", "2"], "not integers"),
        ([None, 1], "dropping what is missing"),
        ([True, False], "not integers"),
        ([2**70, 1], "not integers"),
        (np.array([2**63], dtype=np.uint64), "beyond the year 2116"),
        (np.array([2**62]), "beyond the year 2116"),
        (np.array([-(2**62)]), "beyond the year 2116"),
        (np.array([-(2**63), 5]), "1 entry of -2**63"),
        (np.array(["NaT", "NaT"], dtype="M8[ns]"), "2 entries NaT"),
        (np.array([10**15], dtype="M8[s]"), "1678 to 2262"),
        (np.ma.masked_array(ticks(3), [0, 1, 0]), "masked"),
        (ticks(60) // 10**6, "look like ms: multiply by 1000000"),
        (ticks(60) // 10**3, "look like us: multiply by 1000;"),
        (ticks(600) // 10**9, "look like s: multiply by 1000000000"),
        ((ticks(60) - ticks(1)) // 10**3, "look like us"),
        (ticks(60, period=100_000), "10000.0 Hz"),
    ],
)
def test_what_is_no_column_of_nanoseconds_is_refused(values, said):
    with pytest.raises(UsageError) as refused:
        read(values)
    assert said in str(refused.value)
    assert str(refused.value).startswith("wrist: ")
    assert "\n" not in str(refused.value)


def test_a_stated_rate_is_believed():
    assert read(ticks(60, period=100), least=None).size == 60


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_what_it_prints_as(value):
    assert exact(value, "x") == Decimal(repr(value))
    assert exact(np.float64(value), "x") == Decimal(repr(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (60, Decimal(60)),
        (np.int32(60), Decimal(60)),
        (np.float32(59.94), Decimal("59.94")),
        (Decimal("59.94"), Decimal("59.94")),
        (Fraction(60_000, 1_001), Fraction(60_000, 1_001)),
    ],
)
def test_numbers(value, expected):
    assert rate_of("wrist", value) == expected


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "60", True, None, 1 + 1j, Decimal("NaN"), np.bool_(True)]
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(UsageError, match="state a"):
        exact(value, "rate_hz")


@pytest.mark.parametrize("value", [0, -1, 2_000_000, 0.0001])
def test_rates_out_of_range(value):
    with pytest.raises(UsageError, match=r"between 0\.001 and 1000000"):
        rate_of("wrist", value)


def test_kinds():
    assert kind_of("imu", "sampled") is Kind.SAMPLED
    assert kind_of("imu", Kind.EVENT) is Kind.EVENT
    assert kind_of("imu", None) is None
    with pytest.raises(UsageError, match="triggered, sampled, interpolated, event"):
        kind_of("imu", "free")
