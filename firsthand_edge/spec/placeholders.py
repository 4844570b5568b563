"""What `spec new` leaves to be filled in: texts of the form `<what belongs here>`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spec.fields import Loc

__all__ = ["placeholders"]

PLACEHOLDER: Final = re.compile(r"\s*<[^<>]*>\s*")


def placeholders(value: object, place: Loc = ()) -> Iterator[tuple[Loc, str]]:
    """Place and sentence of each placeholder in a TOML value, at any depth."""
    pending: list[tuple[Loc, object]] = [(place, value)]
    while pending:
        at, found = pending.pop()
        if isinstance(found, dict):
            pending += [((*at, key), inner) for key, inner in found.items()]
        elif isinstance(found, list):
            pending += [((*at, index), inner) for index, inner in enumerate(found)]
        elif isinstance(found, str) and PLACEHOLDER.fullmatch(found):
            yield at, f"is not filled in yet: {found.strip()[1:-1].strip()[:120]}"
