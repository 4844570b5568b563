"""What the sections of a spec are made of: exact numbers, bounded texts, names, and the one base of all sections."""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

__all__ = [
    "NAME",
    "NS_PER_S",
    "Count",
    "Days",
    "Line",
    "Loc",
    "Milliseconds",
    "Name",
    "Number",
    "Ratio",
    "Section",
    "Text",
    "ms_to_ns",
]

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the document: `("streams", 3, "decimate")`."""

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
DECIMAL_PLACES: Final = 9
INTEGER_DIGITS: Final = 18
BIDI_CONTROLS: Final = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")
"""They make a text read in another order than it is written in, which a contract must not."""


class Section(BaseModel):
    """A table of the document: frozen, no unknown keys, no conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def ms_to_ns(value: Decimal) -> int:
    """Milliseconds to nanoseconds, exactly. Raises ValueError for a value finer than one nanosecond."""
    exact = Fraction(value) * NS_PER_MS
    if exact.denominator != 1:
        raise ValueError("is finer than one nanosecond; write at most six decimal places of a millisecond")
    return exact.numerator


def _number(value: object) -> object:
    """TOML has integers and decimals; both are numbers here. A float cannot be exact and is refused."""
    if isinstance(value, bool | str | float):
        raise ValueError(f"must be a number, exactly as written, and is a {type(value).__name__}")  # noqa: TRY004
    if not isinstance(value, int | Decimal):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic collects ValueErrors
    number = Decimal(value)
    _, _, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("must be a finite number")  # noqa: TRY004 - the value is wrong, not its type
    if number and number.adjusted() >= INTEGER_DIGITS:
        raise ValueError(f"is too large; no number here has more than {INTEGER_DIGITS} digits before the point")
    if exponent < -DECIMAL_PLACES:
        raise ValueError(f"is too fine; write at most {DECIMAL_PLACES} decimal places")
    return number


def _whole_nanoseconds(value: Decimal) -> Decimal:
    ms_to_ns(value)
    return value


def _text(value: str) -> str:
    """Without white space around it; what a terminal or a reader could be deceived by is refused."""
    text = value.strip()
    if not text:
        raise ValueError("is empty; write what it asks for")
    for character in text:
        if character in BIDI_CONTROLS or (unicodedata.category(character) == "Cc" and character not in "\n\t"):
            raise ValueError(f"holds the control character U+{ord(character):04X}; remove it")
    return text


def _line(value: str) -> str:
    if "\n" in value or "\t" in value:
        raise ValueError("must be one line, without tabs")
    return value


Number: TypeAlias = Annotated[Decimal, BeforeValidator(_number)]
Milliseconds: TypeAlias = Annotated[Number, Field(gt=0, le=Decimal(3_600_000)), AfterValidator(_whole_nanoseconds)]
Ratio: TypeAlias = Annotated[Number, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31)]
Days: TypeAlias = Annotated[int, Field(ge=0, le=36_500)]
Name: TypeAlias = Annotated[str, Field(pattern=NAME, max_length=64)]
"""Streams, tasks and cells name files, sockets and topics, so they are made of letters, digits, `_`, `.` and `-`."""
Line: TypeAlias = Annotated[str, Field(max_length=200), AfterValidator(_text), AfterValidator(_line)]
"""One line for people."""
Text: TypeAlias = Annotated[str, Field(max_length=20_000), AfterValidator(_text)]
"""One or more lines for people."""
