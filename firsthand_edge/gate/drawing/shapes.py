"""What a screen needs of a long series: the smallest and the largest value of every pixel column, and runs of columns.

So ten hours are drawn with as many strokes as ten seconds, and no single tick over the ceiling is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from firsthand_edge.gate.drawing.scale import TimeScale
    from firsthand_edge.gate.figures import Int64

__all__ = ["Envelope", "bars", "envelope", "runs", "stems", "trace"]


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """A series as a screen shows it."""

    column: Int64
    """(m,) columns that hold a value, ascending."""
    low: Int64
    """(m,) the smallest value there."""
    high: Int64
    """(m,) the largest."""


def envelope(scale: TimeScale, times_ns: Int64, values_ns: Int64) -> Envelope:
    """The envelope of a series.

    Args:
        scale: Where its columns are.
        times_ns: (n,) ascending times.
        values_ns: (n,) values, ABSENT where there is none.
    """
    starts = np.searchsorted(times_ns, scale.begins_ns()[1:])
    bounds = np.concatenate(([0], starts, [times_ns.size]))
    column = np.flatnonzero(bounds[1:] > bounds[:-1])
    if column.size == 0:
        return Envelope(column, column, column)
    high = np.maximum.reduceat(values_ns, bounds[column])  # ABSENT is the smallest int64 and never the largest
    filled = np.where(values_ns == ABSENT, np.int64(2**63 - 1), values_ns)
    low = np.minimum.reduceat(filled, bounds[column])
    there = high != ABSENT
    return Envelope(column[there], low[there], high[there])


def trace(found: Envelope, left: int, y: Callable[[float], float]) -> str:
    """A path through the smallest and the largest value of every column, broken where columns lie far apart."""
    usual = int(np.median(np.diff(found.column))) if found.column.size > 1 else 1
    out = []
    last = -(10**9)
    for column, low, high in zip(found.column.tolist(), found.low.tolist(), found.high.tolist(), strict=True):
        top = y(high)
        out.append(f"{'L' if column - last <= 2 * usual + 1 else 'M'}{left + column} {top:.1f}")
        out.append(f"V{max(y(low), top + 1):.1f}")
        last = column
    return "".join(out)


def stems(found: Envelope, left: int, y: Callable[[float], float], ceiling_ns: int) -> str:
    """Strokes from the ceiling to the farthest value of every column that lies beyond it, either way."""
    up, down = found.high > ceiling_ns, found.low < -ceiling_ns
    sides = ((found.column[up], found.high[up], ceiling_ns), (found.column[down], found.low[down], -ceiling_ns))
    return "".join(
        f"M{left + column} {y(level):.1f}V{y(value):.1f}"
        for columns, values, level in sides
        for column, value in zip(columns.tolist(), values.tolist(), strict=True)
    )


def runs(filled: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where neighbouring columns are filled: first column and number of columns of each run."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], filled, [False])).astype(np.int8)))
    return [(begin, end - begin) for begin, end in edges.reshape(-1, 2).tolist()]


def bars(found: list[tuple[int, int]], left: int, top: float, height: float, *, least: float = 1.6) -> str:
    """A path of upright bars over runs of columns, each at least `least` wide."""
    return "".join(
        f"M{left + begin} {top:.4g}h{max(long, least):g}v{height:g}h{-max(long, least):g}z" for begin, long in found
    )
