"""Pages of 80 columns for people: labels, wrapped text, marks. Colours only where the output is a terminal."""

from __future__ import annotations

import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WIDTH", "Page"]

WIDTH: Final = 80
LABEL: Final = 9
"""Leaves 71 columns: a digest, `blake3:` and 64 digits, stays on one line."""
MARK: Final = 13
INDENT: Final = 4


class Page:
    """Prints line by line to standard output as it is now."""

    def __init__(self) -> None:
        """Prints nothing yet."""
        self._console = Console(file=sys.stdout, highlight=False, width=WIDTH)
        self._blank = True

    def columns(self, parts: Iterable[tuple[str, str]]) -> None:
        """One line of `(text, style)` parts, as it is."""
        line = Text.assemble(*parts)
        line.rstrip()
        self._console.print(line, soft_wrap=True)
        self._blank = False

    def line(self, text: str, style: str = "") -> None:
        """One line, as it is."""
        self.columns(((text, style),))

    def space(self) -> None:
        """An empty line, unless there is one already."""
        if not self._blank:
            self._console.print()
            self._blank = True

    def head(self, text: str) -> None:
        """The title of a part."""
        self.space()
        self.line(text, "bold")

    def text(self, text: str, style: str = "") -> None:
        """A paragraph."""
        for line in _wrapped(text, WIDTH):
            self.line(line, style)

    def item(self, text: str) -> None:
        """One of several sentences."""
        for number, line in enumerate(_wrapped(text, WIDTH - 2)):
            self.line(("- " if number == 0 else "  ") + line)

    def row(self, label: str, text: str, style: str = "") -> None:
        """A label and what belongs to it."""
        for number, line in enumerate(_wrapped(text, WIDTH - LABEL)):
            self.columns(((f"{label if number == 0 else '':<{LABEL}}", "dim"), (line, style)))

    def marked(self, mark: str, style: str, text: str) -> None:
        """A mark and the sentence that it stands for."""
        for number, line in enumerate(_wrapped(text, WIDTH - MARK)):
            self.columns(((f"{mark if number == 0 else '':<{MARK}}", style), (line, "")))

    def indented(self, text: str) -> None:
        """What was found, below a marked sentence."""
        for line in _wrapped(text, WIDTH - INDENT):
            self.columns(((" " * INDENT, ""), (line, "dim")))


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, break_on_hyphens=False) or [""]
