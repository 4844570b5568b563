"""Text of unknown origin, made fit to be shown: a file's name or a document's word must not steer a terminal."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """`text` with escapes for everything that is not shown as itself: control characters, halves of surrogate pairs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
