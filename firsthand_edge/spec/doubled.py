"""Whatever is there twice: names that must tell rows apart, and rows that say the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from firsthand_edge.spec.fields import Loc

__all__ = ["doubled", "repeated"]


def doubled(names: Mapping[int, str], place: Loc, key: str, what: str) -> Iterator[tuple[Loc, str]]:
    """One sentence for each row whose name an earlier row has.

    Args:
        names: Of the rows, by their position in the document.
        place: Of the array of tables.
        key: The field that holds the name; the sentence stands there.
        what: What a row is: `stream`.
    """
    count = Counter(names.values())
    seen: set[str] = set()
    for index, name in names.items():
        if name in seen:
            yield (*place, index, key), f"`{name}` is there {count[name]} times; name each {what} once"
        seen.add(name)


def repeated(values: Sequence[str], place: Loc) -> Iterator[tuple[Loc, str]]:
    """One sentence for each entry of a list that an earlier entry equals."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield (*place, index), f"`{value}` is in the list twice; write it once"
        seen.add(value)
