from __future__ import annotations

import math
from decimal import Decimal
from enum import StrEnum

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.spec.canonical import canonical_bytes, decimal_text, digest

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | TEXT | st.decimals(allow_nan=False, allow_infinity=False, places=9)
DOCUMENTS = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def independent(value: object) -> str:  # noqa: PLR0911 - one return a JSON type
    """RFC 8785 for documents without floats, written from the RFC and sharing nothing with the product."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        whole, _, fraction = f"{value.copy_abs():f}".partition(".")
        fraction = fraction.rstrip("0")
        text = (whole.lstrip("0") or "0") + ("." + fraction if fraction else "")
        return f'"{"-" if value < 0 else ""}{text}"'
    if isinstance(value, str):
        return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 else c) for c in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(independent, value)) + "]"
    assert isinstance(value, dict)
    keys = sorted(value, key=lambda key: [*memoryview(key.encode("utf-16-le")).cast("H")])
    return "{" + ",".join(f"{independent(key)}:{independent(value[key])}" for key in keys) + "}"


@given(DOCUMENTS)
def test_agrees_with_an_independent_implementation(document: object) -> None:
    expected = independent(document).encode()
    assert canonical_bytes(document) == expected
    assert digest(document) == "blake3:" + blake3(expected).hexdigest()


def test_rfc_8785_sorts_by_utf16_code_units() -> None:
    # The example of section 3.2.3, whose order differs from that of code points.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = canonical_bytes(dict.fromkeys(keys, 0)).decode()
    order = sorted(keys, key=lambda k: found.index(canonical_bytes(k).decode()))
    assert order == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@given(st.integers(min_value=-(10**30), max_value=10**30), st.integers(0, 30), st.integers(0, 20))
def test_trailing_zeros_of_a_decimal_change_nothing(digits: int, scale: int, zeros: int) -> None:
    value = Decimal(digits).scaleb(-scale) if abs(digits) < 10**27 else Decimal(digits)
    longer = Decimal(f"{value:f}" + ("." if "." not in f"{value:f}" else "") + "0" * zeros)
    assert decimal_text(longer) == decimal_text(value)
    assert Decimal(decimal_text(value)) == value


def test_decimals_beyond_the_context_precision_stay_apart() -> None:
    a, b = Decimal("0." + "1" * 40), Decimal("0." + "1" * 39 + "2")
    assert decimal_text(a) != decimal_text(b)


@pytest.mark.parametrize(
    ("value", "text"),
    [("2.0", "2"), ("2.00", "2"), ("20E-1", "2"), ("-0", "0"), ("1E+3", "1000"), ("0.0050", "0.005"), ("100", "100")],
)
def test_decimal_text(value: str, text: str) -> None:
    assert decimal_text(Decimal(value)) == text


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        math.nan,
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1e100"),
        Decimal("1e-100"),
        b"bytes",
        {1: 2},
        {"a": {"b": [0, 2.5]}},
        "\ud800",
        object(),
        {1, 2},
    ],
)
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical_bytes(value)


def test_refusal_names_the_place() -> None:
    with pytest.raises(ValueError, match=r"document\.a\.b\[1\]: is the float 2\.5"):
        canonical_bytes({"a": {"b": [0, 2.5]}})


def test_enums_are_their_values() -> None:
    class Colour(StrEnum):
        RED = "red"

    assert canonical_bytes({"c": Colour.RED}) == b'{"c":"red"}'
