"""Numbers, names and texts: what they take, and that no hostile one costs time or reaches a terminal."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.fields import Days, Line, Milliseconds, Name, Number, Ratio, Text, ms_to_ns


def refused(kind: object, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value, strict=True)
    return caught.value.errors()[0]["msg"]


def test_milliseconds_are_exact() -> None:
    assert ms_to_ns(Decimal("0.000001")) == 1
    with pytest.raises(ValueError, match="finer than one nanosecond"):
        ms_to_ns(Decimal("0.0000001"))


@given(st.decimals(min_value="0.000001", max_value=3_600_000, places=6))
def test_any_milliseconds_in_range_are_whole_nanoseconds(value: Decimal) -> None:
    assert ms_to_ns(TypeAdapter(Milliseconds).validate_python(value)) == Fraction(value) * 10**6


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (2.5, "must be a number, exactly as written, and is a float"),
        ("2", "must be a number, exactly as written, and is a str"),
        (True, "must be a number, exactly as written, and is a bool"),
        (None, "must be a number"),
        ([1], "must be a number"),
        (Decimal("NaN"), "must be a finite number"),
        (Decimal("sNaN"), "must be a finite number"),
        (Decimal("Infinity"), "must be a finite number"),
        (Decimal("1E+999999999"), "is too large; no number here has more than 18 digits before the point"),
        (10**18, "is too large"),
        (Decimal("1E-999999999"), "is too fine; write at most 9 decimal places"),
        (Decimal("1.0000000001"), "is too fine"),
    ],
)
@pytest.mark.parametrize("kind", [Number, Milliseconds, Ratio])
def test_what_is_no_number_here(kind: object, value: object, sentence: str) -> None:
    assert sentence in refused(kind, value)


@given(st.decimals(allow_nan=True, allow_infinity=True))
def test_every_number_that_is_taken_has_a_canonical_form(value: Decimal) -> None:
    try:
        taken = TypeAdapter(Number).validate_python(value)
    except ValidationError:
        return
    assert Decimal(decimal_text(taken)) == value


@pytest.mark.parametrize(("kind", "value"), [(Ratio, -1), (Ratio, Decimal("1.01")), (Days, -1), (Days, 36_501)])
def test_bounds(kind: object, value: object) -> None:
    assert "than or equal to" in refused(kind, value)


@pytest.mark.parametrize("value", ["", "-a", "a b", "a/b", "..", "a\n", "ä", "a" * 65])
def test_what_is_no_name(value: str) -> None:
    assert refused(Name, value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("", "is empty"),
        (" \n\t ", "is empty"),
        ("a\x1b[2Jb", "holds the control character U+001B; remove it"),
        ("a\x00", "U+0000"),
        ("a\rb", "U+000D"),
        ("a\x7fb", "U+007F"),
        ("a\x85b", "U+0085"),
        ("agree \u202etoN", "U+202E"),
        ("a\u2066b", "U+2066"),
    ],
)
def test_a_text_deceives_no_reader(value: str, sentence: str) -> None:
    assert sentence in refused(Text, value)
    assert sentence in refused(Line, value)


def test_a_line_is_one_line_and_white_space_around_a_text_is_none_of_it() -> None:
    assert "must be one line" in refused(Line, "a\nb")
    assert "must be one line" in refused(Line, "a\tb")
    assert "at most 200" in refused(Line, "a" * 201)
    assert "at most 20000" in refused(Text, "a" * 20_001)
    assert TypeAdapter(Line).validate_python("  a b\n") == "a b"
    assert TypeAdapter(Text).validate_python("\n a\n\tb\n") == "a\n\tb"
