"""Text in SVG, which neither wraps nor shortens by itself: how wide it is, where to break it, what may stand in XML."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["LONGEST_NAME", "ROOMY", "attribute", "shortened", "telling", "text", "width", "wrapped"]

LONGEST_NAME = 26
"""Letters of a stream's name that a row has room for."""
ROOMY = 1.18
"""How much wider than `width` says the text is in the widest of the common faces (DejaVu Sans, Verdana)."""
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped: most control characters, and halves of surrogate pairs."""
NARROW, SLIM, WIDE = frozenset("ijlI.,:;'|!()[] "), frozenset('frt-/`"*'), frozenset("mwMW@%")


def attribute(words: str) -> str:
    """`words` for an attribute or the content of an element."""
    return escape(NO_XML.sub("\ufffd", words))


def text(x: float, y: float, words: str, kind: str, *, anchor: str = "", title: str = "") -> str:
    """One line of text.

    Args:
        x: Place of its start, or of what `anchor` says.
        y: Its base line.
        words: What it says.
        kind: Its class.
        anchor: `middle` or `end`.
        title: What a pointer that rests on it is told.
    """
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    told = f"<title>{attribute(title)}</title>" if title else ""
    return f'<text class="{kind}" x="{x:.4g}" y="{y:.5g}"{anchored}>{told}{attribute(words)}</text>'


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """A name that fits: the middle is left out, because channels often differ in their ends."""
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}\u2026{name[len(name) - tail :]}"


def telling(names: Collection[str]) -> dict[str, str]:
    """Each name without the parts between slashes that others have too, as long as it is still told from them.

    Topics of a rig often have both ends in common, as `/rig/left/image/compressed` and `/rig/right/image/compressed`.
    """
    held = Counter(part for name in names for part in set(name.split("/")))
    told = {name: _without_parts(name, {part for part, times in held.items() if times > 1}) for name in names}
    again = Counter(told.values())
    return {name: name if again[short] > 1 or short == "\u2026" else short for name, short in told.items()}


def _without_parts(name: str, common: Collection[str]) -> str:
    parts = ["\u2026" if part and part in common else part for part in name.split("/")]
    return re.sub("/?\u2026(?:/\u2026)*/?", "\u2026", "/".join(parts))


def width(words: str, size: float) -> float:
    """About how wide text of a font size is, rather too much than too little; a sans-serif face is assumed."""
    return size * sum(_advance(letter) for letter in words)


def _advance(letter: str) -> float:
    if letter in NARROW:
        return 0.29
    if letter in SLIM:
        return 0.38
    if letter.isdigit():
        return 0.6
    if letter in WIDE:
        return 0.9
    if ord(letter) >= 0x1100:
        return 1.0
    return 0.65 if letter.isupper() else 0.56


def wrapped(words: str, room: float, size: float) -> list[str]:
    """Lines of at most `room`; a word that is longer than a line is cut."""
    lines: list[str] = []
    line = ""
    for word in words.split():
        grown = f"{line} {word}" if line else word
        if width(grown, size) <= room:
            line = grown
            continue
        if line:
            lines.append(line)
        while width(word, size) > room:
            most = max(1, next(n for n in range(1, len(word) + 1) if width(word[:n], size) > room) - 1)
            lines.append(word[:most])
            word = word[most:]  # noqa: PLW2901 - what is left of it
        line = word
    return [*lines, line] if line else lines
