"""Plain lists of stamps: one a line, or the first column of a CSV. Decimals are read as decimals, never as floats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from firsthand_edge import _core
from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from firsthand_edge.gate.channels import Progress
    from firsthand_edge.gate.figures import Int64

__all__ = ["StampList", "Unit", "parse_stamps", "read_stamps"]

LARGEST_FILE = 1 << 34
"""Bytes; columns of other things may stand beside the stamps."""
BLOCK = 1 << 20
MOST_SENTENCES = 20

COLUMN_END = re.compile(r"[,;\t ]")
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


PLACES = {Unit.NS: 0, Unit.US: 3, Unit.MS: 6, Unit.S: 9}
"""Decimal places of a nanosecond in each unit."""
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


def read_stamps(path: Path, unit: Unit = Unit.AUTO, progress: Progress | None = None) -> StampList:
    """Reads a list of stamps, in blocks: memory is eight bytes a stamp.

    Args:
        path: A text file or a pipe, UTF-8; a byte-order mark, CRLF, blank lines, comments (`#`, `;`, `//`, `%`) and
            header lines above the first number are skipped, and so are those header lines wherever they come again.
        unit: Unit of the numbers; `auto` takes decimals for seconds and integers by their size.
        progress: Told how far the file is read.

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
        reading = _Reading(unit, str(path))
        done = 0
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                reading.feed(block)
                done += len(block)
                if progress is not None:  # a pipe has no size
                    progress(done, max(done, size))
        return reading.result()
    except OSError as exc:
        raise RecordingUnreadable(f"{path} cannot be read ({exc.strerror or exc}); name a list of stamps") from exc


def parse_stamps(lines: Iterable[str], unit: Unit = Unit.AUTO, *, place: str) -> StampList:
    """Parses the lines of a list. `place` is what to call it in messages; otherwise as `read_stamps`."""
    reading = _Reading(unit, place)
    for line in lines:
        reading.feed(line.removesuffix("\n").encode("utf-8", "replace") + b"\n")
    return reading.result()


class _Reading:
    """A list on its way: the core reads numbers, and what is none is looked at here."""

    def __init__(self, unit: Unit, place: str) -> None:
        self._unit = unit
        self._place = place
        self._numbers = _core.StampList(PLACES.get(unit))
        self._headers: dict[str, int] = {}
        """Lines above the first number, with where they came first."""
        self._doubtful: list[tuple[int, str]] = []
        self._mistakes = _Mistakes(place)
        self._repeated = 0

    def feed(self, block: bytes) -> None:
        """Reads on. Raises RecordingUnreadable for what is no text."""
        self._look_at(lambda: self._numbers.feed(block))

    def result(self) -> StampList:
        """The whole list. Raises as `read_stamps`."""
        self._look_at(self._numbers.finish)
        if not len(self._numbers):
            # Dates and the like are a header above numbers; with no number below they are what the list consists of. So
            # are words, but for the one line that names the column of a stream without samples.
            words = [(number, _first_column(line)) for line, number in self._headers.items()]
            for number, field in self._doubtful or words[1:]:
                self._mistakes.add(number, field)
        self._mistakes.tell()
        unit = self._found_unit()
        beyond = self._numbers.beyond
        if beyond is not None:
            stated = Unit.NS if unit is Unit.AUTO else unit
            raise UsageError(
                f"{self._place}: {_first_column(beyond)} {stated.value} is after the year 2116; its unit is another "
                "one, so add `,unit=ns`, `us`, `ms` or `s` to its --stream"
            )
        rounded = self._numbers.rounded
        return StampList(self._numbers.take_times(), unit, rounded, self._repeated)

    def _look_at(self, read: Callable[[], list[tuple[int, str, bool]]]) -> None:
        try:
            odd = read()
        except ValueError as exc:
            raise RecordingUnreadable(f"{self._place}: {exc}; name a list of stamps, one a line") from exc
        for number, line, after_numbers in odd:
            field = _first_column(line)
            if line in self._headers and after_numbers:
                self._repeated += 1
            elif after_numbers or _is_mistaken(field):
                self._mistakes.add(number, field)
            elif len(self._headers) < MOST_HEADERS:
                self._headers.setdefault(line, number)
                if field[:1].isdigit():
                    self._doubtful.append((number, field))

    def _found_unit(self) -> Unit:
        """The unit that was stated, or that the numbers tell. Raises UsageError when they do not."""
        if self._unit is not Unit.AUTO:
            return self._unit
        if self._numbers.found_decimals:
            return Unit.S
        bounds = self._numbers.undecided
        if bounds is None or self._numbers.beyond is not None:
            return Unit.AUTO
        units = {_unit_of(value) for value in bounds}
        unit = units.pop()
        if unit is None or units:
            raise UsageError(
                f"{self._place}: the unit of {bounds[0]} to {bounds[1]} cannot be told; add `,unit=ns`, `us`, `ms` or "
                "`s` to its --stream"
            )
        self._numbers.decide(PLACES[unit])
        return unit


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


def _shown(field: str) -> str:
    return repr(field if len(field) <= 40 else f"{field[:37]}...")


def _unit_of(value: int) -> Unit | None:
    return next((unit for smallest, unit in SMALLEST if value >= smallest), None)
