"""On which line of a TOML document a place stands: no TOML library tells.

One pass over the text, whatever its size; it is made only when there is something to say about the document.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Loc", "lines_of"]

Loc: TypeAlias = tuple[str | int, ...]
"""A place in a document: `("device", 2, "name")`."""

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
BLANK: Final = re.compile(r"[ \t]*")
BETWEEN: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}' r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}" r'|"(?:[^"\\\n]|\\.)*"' r"|'[^'\n]*'",
    re.DOTALL,
)
SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def lines_of(text: str, places: Iterable[Loc]) -> list[int]:
    """The line of each place, counted from 1; for one that is not there, the line of the table that lacks it.

    Args:
        text: A TOML document that is known to parse.
        places: Keys and positions, from the top of the document.
    """
    asked = [tuple(place) for place in places]
    wanted = {place[:depth] for place in asked for depth in range(len(place) + 1)}
    scan = _Scan(text.replace("\r\n", "\n"), wanted)
    with suppress(RecursionError):  # values nested this deep are found on no line of their own
        scan.document()
    return [
        next(scan.found[place[:depth]] for depth in range(len(place), -1, -1) if place[:depth] in scan.found)
        for place in asked
    ]


class _Scan:
    """Walks a valid document; remembers where each wanted place begins."""

    def __init__(self, text: str, wanted: set[Loc]) -> None:
        self._text = text
        self._wanted = wanted
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._rows: dict[Loc, int] = {}
        self.found: dict[Loc, int] = {(): 1}

    def document(self) -> None:
        table: Loc = ()
        while True:
            self._skip(BETWEEN)
            if self._at == len(self._text):
                return
            begin = self._at
            if self._text.startswith("[[", begin):
                self._at += 2
                *outer, last = self._keys()
                place = (*self._resolved(outer, begin), last)
                self._note(place, begin)
                self._rows[place] = self._rows.get(place, -1) + 1
                table = (*place, self._rows[place])
                self._note(table, begin)
                self._at += 2
            elif self._text[begin] == "[":
                self._at += 1
                table = self._resolved(self._keys(), begin)
                self._at += 1
            else:
                self._pair(table)

    def _resolved(self, keys: list[str], begin: int) -> Loc:
        """The table that a header names: of an array of tables it is the last row."""
        place: Loc = ()
        for key in keys:
            place = (*place, key)
            self._note(place, begin)
            if place in self._rows:
                place = (*place, self._rows[place])
            elif place not in self._wanted:
                return place  # whatever is below is not asked for either
        return place

    def _note(self, place: Loc, begin: int) -> None:
        if place in self._wanted and place not in self.found:
            self.found[place] = bisect_right(self._breaks, begin - 1) + 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _keys(self) -> list[str]:
        """A dotted key; ends before what follows it."""
        keys = []
        while True:
            self._skip(BLANK)
            begin = self._at
            quoted = self._text[begin] in "\"'"
            self._skip(STRING if quoted else BARE_KEY)
            raw = self._text[begin : self._at]
            keys.append(tomllib.loads(f"k = {raw}")["k"] if quoted else raw)
            self._skip(BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _pair(self, table: Loc | None) -> None:
        """A key and its value; `table` is None where nothing is asked for."""
        begin = self._at
        place = table
        for key in self._keys():
            if place is not None:
                place = (*place, key)
                self._note(place, begin)
                place = place if place in self._wanted else None
        self._at += 1  # the equals sign
        self._value(place)

    def _value(self, place: Loc | None) -> None:
        self._skip(BLANK)
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(STRING)
        elif opening in "[{":
            self._items(place, is_array=opening == "[")
        else:
            self._skip(SCALAR)

    def _items(self, place: Loc | None, *, is_array: bool) -> None:
        self._at += 1
        position = 0
        while True:
            self._skip(BETWEEN)
            if self._text[self._at] in "]}":
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
            elif is_array:
                inner = None if place is None else (*place, position)
                if inner is not None:
                    self._note(inner, self._at)
                self._value(inner if inner in self._wanted else None)
                position += 1
            else:
                self._pair(place)
