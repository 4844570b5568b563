from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firsthand_edge.model import Domain
from firsthand_edge.spec.streams import StampDomain, StreamSpec, SyncSpec


@given(st.decimals(min_value="0.001", max_value="1000000", allow_nan=False, places=5))
def test_period_is_rounded_half_up(rate: Decimal) -> None:
    stream = StreamSpec.model_validate({"name": "s", "kind": "sampled", "rate_hz": rate})
    assert stream.period_ns is not None
    exact = Fraction(10**9) / Fraction(rate)
    assert -Fraction(1, 2) < stream.period_ns - exact <= Fraction(1, 2)


def test_period_examples() -> None:
    def period(rate: str) -> int | None:
        return StreamSpec(name="s", kind="sampled", rate_hz=Decimal(rate)).period_ns  # type: ignore[arg-type]

    assert [period(r) for r in ("60", "60.0", "30", "1000", "800", "59.94")] == [
        16666667,
        16666667,
        33333333,
        1000000,
        1250000,
        16683350,
    ]
    assert StreamSpec(name="s", kind="event").period_ns is None  # type: ignore[arg-type]


def test_floats_cannot_be_exact_and_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be a number, exactly as written"):
        SyncSpec(ceiling_ms=2.5)  # type: ignore[arg-type]


def test_stamp_domains_are_those_of_the_model() -> None:
    assert set(StampDomain.__args__) == {domain.name.lower() for domain in Domain}  # type: ignore[attr-defined]
