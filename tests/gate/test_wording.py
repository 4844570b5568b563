"""Figures in sentences are exact."""

from fractions import Fraction

import pytest

from firsthand_edge.gate.wording import count, fixed, listed, ms, percent, ratio, seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 ms"),
        (2_000_000, "2.0 ms"),
        (2_000_001, "2.000001 ms"),
        (16_009_000, "16.009 ms"),
        (-26_000, "-0.026 ms"),
    ],
)
def test_milliseconds_keep_every_digit(value, text):
    assert ms(value) == text


def test_seconds_are_rounded_to_the_millisecond():
    assert (seconds(613_499_999), seconds(612_500_000), seconds(-1_000_000)) == ("0.613 s", "0.613 s", "-0.001 s")


def test_percent_and_ratio():
    assert percent(Fraction(414, 2335)) == "17.73 %"
    assert percent(Fraction(1, 200)) == "0.5 %"
    assert ratio(414, 2335) == 0.177302
    assert ratio(1, 0) == 0.0


def test_words():
    assert (count(1, "tick"), count(2, "tick"), count(2, "stretch", "stretches")) == (
        "1 tick",
        "2 ticks",
        "2 stretches",
    )
    assert (listed([]), listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])) == (
        "",
        "a",
        "a and b",
        "a, b and c",
    )
    assert fixed(-12_345, places=3, keep=0) == "-12.345"
