"""Figures of overviews: three decimals, exact, halves up."""

import pytest

from firsthand_edge.cli.live import signed
from firsthand_edge.cli.words import milliseconds


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [
        (None, "-", "-"),
        (0, "0.000 ms", "+0.000 ms"),
        (499, "0.000 ms", "+0.000 ms"),
        (500, "0.001 ms", "+0.001 ms"),
        (-500, "0.000 ms", "+0.000 ms"),
        (-501, "-0.001 ms", "-0.001 ms"),
        (2_000_000, "2.000 ms", "+2.000 ms"),
        (16_009_499, "16.009 ms", "+16.009 ms"),
        (2**62 + 1, "4611686018427.388 ms", "+4611686018427.388 ms"),
    ],
)
def test_milliseconds(value, plain, with_sign):
    assert (milliseconds(value), signed(value)) == (plain, with_sign)
