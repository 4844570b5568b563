"""How far each stream is from what the others agree on, tick by tick.

Against recorded trigger edges every stream stands alone: the edges are what it should follow. Else the middle one of
all streams of a tick is what they agree on, so that one that is wrong, the reference too, does not move it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from firsthand_edge.gate.figures import TRIGGER
from firsthand_edge.model import ABSENT, Kind

if TYPE_CHECKING:
    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Figures, Int64

__all__ = ["FEWEST_TICKS", "Departure", "departures"]

FEWEST_TICKS = 8
"""Of fewer nothing can be said but how far they are apart."""
_CHUNK = 65_536
"""Ticks that are sorted at once, which bounds the memory of ten hours."""


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """One stream against the rest, at the ticks where it has a sample."""

    stream: str
    rest: str
    """What it is held against, in words."""
    is_certain: bool
    """False where one other stream is all there is."""
    tick: Int64
    """(n,) tick numbers."""
    time_ns: Int64
    """(n,) since the first tick of the span."""
    offset_ns: Int64
    """(n,) signed, later is positive."""
    over: int
    """Ticks over the ceiling at which it is more than half the ceiling away from the rest."""


def departures(figures: Figures, sync: _core.Figures, *, ceiling_ns: int, series_ns: Int64) -> list[Departure]:
    """The streams that have a part in what is over the ceiling, the one with the largest part first.

    Args:
        figures: The take's figures.
        sync: Its match.
        ceiling_ns: The ceiling.
        series_ns: (ticks,) the residual that is held against it.
    """
    members = [f for f in figures.judged if f.kind is not Kind.INTERPOLATED and f.name in sync.streams]
    if sync.reference_ns.size == 0 or not members:
        return []
    over = series_ns > ceiling_ns
    at_tick = np.zeros(over.size, np.int64)
    voting = {f.name: sync.offset_ns(f.name) for f in members if f.kind is Kind.TRIGGERED}
    # The nearest sample of a free-running stream follows the reference wherever that goes: it has no say in who is
    # right, and is itself held against the tick.
    others = {f.name: sync.offset_ns(f.name) for f in members if f.name not in voting}
    found = _accused(others, at_tick, over, ceiling_ns)
    held = dict.fromkeys(found, (figures.reference, at_tick))
    if figures.reference == TRIGGER:
        accused = _accused(voting, at_tick, over, ceiling_ns)
        held |= dict.fromkeys(accused, ("the trigger", at_tick))
    elif voting:
        accused = _accused(voting, _middle(list(voting.values())), over, ceiling_ns)
        # Those that depart would pull the middle a little to their side: what they depart from is what the others say.
        parts = {name: column for name, column in voting.items() if name not in accused} or voting
        rest = "the rest" if len(parts) > 1 else next(iter(parts))
        held |= dict.fromkeys(accused, (rest, _middle(list(parts.values()))))
    else:
        accused = {}
    since_ns = sync.reference_ns - sync.reference_ns[0]
    is_certain = figures.reference == TRIGGER or len(voting) > 2
    out = []
    for name, ticks_over in (found | accused).items():
        column, (rest, middle) = (others | voting)[name], held[name]
        there = (column != ABSENT) & (middle != ABSENT)
        if np.count_nonzero(there) >= FEWEST_TICKS:
            apart = column[there] - middle[there]
            sure = is_certain or name in others
            out.append(Departure(name, rest, sure, sync.tick[there], since_ns[there], apart, ticks_over))
    return sorted(out, key=lambda found: (-found.over, found.stream))


def _accused(offsets: dict[str, Int64], middle: Int64, over: npt.NDArray[np.bool_], ceiling_ns: int) -> dict[str, int]:
    """At how many ticks over the ceiling each stream is more than half of it away; who never is is left out."""
    out = {}
    for name, column in offsets.items():
        there = over & (column != ABSENT) & (middle != ABSENT)
        far = int(np.count_nonzero(2 * np.abs(column[there] - middle[there]) > ceiling_ns))
        if far:
            out[name] = far
    return out


def _middle(columns: list[Int64]) -> Int64:
    """The middle offset of each tick, ABSENT without any; of two in the middle the one nearer to the reference.

    The reference's own offset is 0, so that of two streams the other one departs.
    """
    out = np.full(columns[0].size, ABSENT, np.int64)
    for start in range(0, out.size, _CHUNK):
        rows = np.sort(np.stack([column[start : start + _CHUNK] for column in columns]), axis=0)
        lacking = np.count_nonzero(rows == ABSENT, axis=0)  # ABSENT is the least of all
        count = len(columns) - lacking
        place = np.arange(rows.shape[1])
        low = rows[np.minimum(lacking + np.maximum(count - 1, 0) // 2, len(columns) - 1), place]
        high = rows[np.minimum(lacking + count // 2, len(columns) - 1), place]
        nearer = np.where(np.abs(low) <= np.abs(high), low, high)
        out[start : start + _CHUNK] = np.where(count >= 1, nearer, ABSENT)
    return out
