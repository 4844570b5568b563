"""Plain lists of stamps: one a line, or the first column of a CSV. Decimals are read as decimals, never as floats."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from firsthand_edge.gate.figures import Int64

__all__ = ["StampList", "Unit", "parse_stamps", "read_stamps"]

LARGEST_FILE = 1 << 29
"""Bytes; seven hours of a 1 kHz stream in nanoseconds."""
LARGEST_LINE = 65_536
MOST_SENTENCES = 20
LARGEST_NS = 1 << 62
"""The year 2116; beyond it, differences would leave 64 bits."""

INTEGER = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]{1,3})?")
COLUMN_END = re.compile(r"[,;\t ]")
COMMENTS = ("#", ";", "//", "%")
NUMBER_MADE_WRONG = re.compile(r"[+-]?\.?[0-9](?:[0-9._:'+-]|(?<=[0-9.])[eE](?=[+-]?[0-9]))*|0[xX][0-9a-fA-F]+")
"""Digits and what people put between them: a time of day, grouped thousands, two points; hexadecimal."""
NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
DATE = re.compile(r"[0-9]{4}[-.][0-9]{1,2}[-.][0-9]{1,2}|[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4}")
FEWEST_DIGITS = 10
"""Of a stamp since 2001, in any unit; whatever begins with so many is meant as one, not as a word."""
MOST_HEADERS = 1_000
"""Lines above the first number that are kept to know them again."""


class Unit(StrEnum):
    """The unit of a list's numbers."""

    AUTO = "auto"
    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"


NANOSECONDS = {Unit.NS: 1, Unit.US: 10**3, Unit.MS: 10**6, Unit.S: 10**9}
SMALLEST = ((10**18, Unit.NS), (10**15, Unit.US), (10**12, Unit.MS), (10**9, Unit.S))
"""From which number on an integer is taken for what, since 2001 in every unit (sync.md section 7)."""


@dataclass(frozen=True, slots=True, eq=False)
class StampList:
    """A list as read."""

    times_ns: Int64
    """(n,) int64 in the list's own timebase, in the order of the file."""
    unit: Unit
    """The unit that was stated or found; `auto` for a list without stamps."""
    rounded: int
    """Stamps with digits finer than a nanosecond, rounded halves up."""
    repeated_headers: int = 0
    """Lines between the numbers that are equal to one above the first number, as joined files have them; skipped."""


def read_stamps(path: Path, unit: Unit = Unit.AUTO) -> StampList:
    """Reads a list of stamps.

    Args:
        path: A text file, UTF-8; a byte-order mark, CRLF, blank lines, comments (`#`, `;`, `//`, `%`) and header lines
            above the first number are skipped, and so are those header lines wherever they come again.
        unit: Unit of the numbers; `auto` takes decimals for seconds and integers by their size.

    Raises:
        RecordingUnreadable: when the file cannot be read, or lines of it are no stamps; each bad line with its number.
        UsageError: when the unit cannot be told from the numbers.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise RecordingUnreadable(
                f"{path} has {size} bytes, more than the {LARGEST_FILE} of a list of stamps; split it"
            )
        with path.open("r", encoding="utf-8-sig", newline=None) as file:
            return parse_stamps(file, unit, place=str(path))
    except OSError as exc:
        raise RecordingUnreadable(f"{path} cannot be read ({exc.strerror or exc}); name a list of stamps") from exc
    except UnicodeDecodeError as exc:
        raise RecordingUnreadable(f"{path} is not a text file; name a list of stamps, one a line") from exc


def parse_stamps(lines: Iterable[str], unit: Unit = Unit.AUTO, *, place: str) -> StampList:
    """Parses the lines of a list. `place` is what to call it in messages; otherwise as `read_stamps`."""
    numbers: list[int | Decimal] = []
    headers: dict[str, None] = {}
    doubtful: list[tuple[int, str]] = []
    mistakes = _Mistakes(place)
    repeated = 0
    for number, line in _lines(lines):
        field = _first_column(line)
        value = _number(field)
        if value is not None:
            numbers.append(value)
        elif line in headers and numbers:
            repeated += 1
        elif numbers or _is_mistaken(field):
            mistakes.add(number, field)
        elif len(headers) < MOST_HEADERS:
            headers[line] = None
            if field[:1].isdigit():
                doubtful.append((number, field))
    if not numbers:
        # Dates and the like are a header above numbers; with no number below they are what the list consists of.
        for number, field in doubtful:
            mistakes.add(number, field)
    mistakes.tell()
    found = _unit(numbers, place) if unit is Unit.AUTO else unit
    return replace(_scaled(numbers, found, place), repeated_headers=repeated)


class _Mistakes:
    """Lines that are no stamps: all are counted, the first ones told."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._count = 0
        self._sentences: list[str] = []

    def add(self, number: int, field: str) -> None:
        self._count += 1
        if len(self._sentences) < MOST_SENTENCES:
            self._sentences.append(f"line {number}: {_shown(field)} is not a stamp")

    def tell(self) -> None:
        """Raises RecordingUnreadable when there are any."""
        if not self._count:
            return
        more = f"; and {self._count - len(self._sentences)} more" if self._count > len(self._sentences) else ""
        raise RecordingUnreadable(
            f"{self._place} has {count(self._count, 'bad line')}: {'; '.join(self._sentences)}{more}; correct or "
            "remove them"
        )


def _lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Number and text of every line that is neither blank nor a comment."""
    for number, raw in enumerate(lines, start=1):
        line = raw[:LARGEST_LINE].strip().lstrip("\ufeff").lstrip()
        if line and not line.startswith(COMMENTS):
            yield number, line


def _first_column(line: str) -> str:
    return COLUMN_END.split(line, maxsplit=1)[0].strip("\"'")


def _is_mistaken(field: str) -> bool:
    """Whether a field above the first number was clearly meant as a number, so that it is no header."""
    if DATE.fullmatch(field):
        return False
    if NUMBER_MADE_WRONG.fullmatch(field) or NO_NUMBER.fullmatch(field):
        return True
    begins = field.lstrip("+-.")[:1]
    return begins.isdigit() and sum(c.isdigit() for c in field) >= FEWEST_DIGITS


def _number(field: str) -> int | Decimal | None:
    if len(field) > 64:
        return None
    if INTEGER.fullmatch(field):
        return int(field)
    return Decimal(field) if DECIMAL.fullmatch(field) else None


def _shown(field: str) -> str:
    return repr(field if len(field) <= 40 else f"{field[:37]}...")


def _unit(numbers: list[int | Decimal], place: str) -> Unit:
    if not numbers:
        return Unit.AUTO
    if any(isinstance(value, Decimal) for value in numbers):
        return Unit.S
    units = {_unit_of(int(value)) for value in (min(numbers), max(numbers))}
    unit = units.pop()
    if unit is None or units:
        raise UsageError(
            f"{place}: the unit of {min(numbers)} to {max(numbers)} cannot be told; add `,unit=ns`, `us`, `ms` or "
            "`s` to its --stream"
        )
    return unit


def _unit_of(value: int) -> Unit | None:
    return next((unit for smallest, unit in SMALLEST if value >= smallest), None)


def _scaled(numbers: list[int | Decimal], unit: Unit, place: str) -> StampList:
    if unit is Unit.AUTO:
        return StampList(np.empty(0, np.int64), unit, 0)
    factor = NANOSECONDS[unit]
    times = np.empty(len(numbers), np.int64)
    rounded = 0
    for position, value in enumerate(numbers):
        if isinstance(value, int):
            ns = value * factor
        else:
            num, den = value.as_integer_ratio()
            ns = (2 * num * factor + den) // (2 * den)
            rounded += (num * factor) % den != 0
        if abs(ns) >= LARGEST_NS:
            raise UsageError(
                f"{place}: {value} {unit.value} is after the year 2116; its unit is another one, so add `,unit=ns`, "
                "`us`, `ms` or `s` to its --stream"
            )
        times[position] = ns
    return StampList(times, unit, rounded)
