"""How figures are written in sentences: exact, from integers, with the unit a technician thinks in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

__all__ = ["count", "fixed", "listed", "ms", "percent", "ratio", "seconds"]


def fixed(value: int, *, places: int, keep: int) -> str:
    """`value / 10**places` in decimal, without trailing zeros beyond `keep` decimals.

    With `places=6, keep=1`, 2000001 is `2.000001` and 2000000 is `2.0`.
    """
    sign = "-" if value < 0 else ""
    whole, part = divmod(abs(value), 10**places)
    digits = f"{part:0{places}d}"
    return f"{sign}{whole}.{digits[:keep]}{digits[keep:].rstrip('0')}"


def ms(value_ns: int) -> str:
    """Milliseconds, every digit that is there: `16.009 ms`."""
    return f"{fixed(value_ns, places=6, keep=1)} ms"


def seconds(value_ns: int) -> str:
    """Seconds to the millisecond, halves up: `0.613 s`."""
    return f"{fixed((value_ns + 500_000) // 1_000_000, places=3, keep=3)} s"


def ratio(part: int, whole: int) -> float:
    """`part / whole` to six decimals, halves up; for the machine-readable field of a reason."""
    return (2 * part * 10**6 + whole) // (2 * whole) / 10**6 if whole else 0.0


def percent(value: Fraction) -> str:
    """Percent to three decimals, halves up, trailing zeros dropped: `17.73 %`."""
    thousandths = (2 * value.numerator * 100_000 + value.denominator) // (2 * value.denominator)
    return f"{fixed(thousandths, places=3, keep=1)} %"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 tick`, `2 ticks`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
