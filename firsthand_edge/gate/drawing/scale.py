"""From nanoseconds to places: the time axis of a take, and where along it a pixel column begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.gate.figures import Int64

__all__ = ["TimeScale", "round_step"]

UNITS = ((100 * 86_400, "d", 86_400), (3 * 3_600, "h", 3_600), (180, "min", 60), (0, "s", 1))
"""From how many seconds on a take is told in which unit."""
STEPS = {"h": (0.25, 0.5, 1, 2, 3, 6, 12, 24), "min": (0.5, 1, 2, 5, 10, 15, 30)}
"""Steps that people count these units in; the others go by 1, 2 and 5."""
MOST_MARKS = 9


def round_step(length: float, most: int) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that divides `length` into at most `most` parts."""
    step = 10.0 ** math.floor(math.log10(length / most))
    return step * next(m for m in (1, 2, 5, 10) if length / (step * m) <= most)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """A stretch of time, drawn from `left` on over a number of columns of one pixel."""

    start_ns: int
    end_ns: int
    left: int
    columns: int

    @property
    def length_ns(self) -> int:
        """At least 1."""
        return max(1, self.end_ns - self.start_ns)

    def x(self, time_ns: int) -> float:
        """Place of a time; integers are subtracted, so that no date costs digits."""
        share = (min(max(time_ns, self.start_ns), self.end_ns) - self.start_ns) / self.length_ns
        return self.left + share * self.columns

    def begins_ns(self) -> Int64:
        """(columns,) where each column begins."""
        return np.array(
            [self.start_ns + number * self.length_ns // self.columns for number in range(self.columns)], dtype=np.int64
        )

    def column_of(self, times_ns: Int64) -> Int64:
        """(n,) the column that each time lies in, 0 to columns - 1."""
        return np.clip(np.searchsorted(self.begins_ns(), times_ns, side="right") - 1, 0, self.columns - 1)

    def axis(self) -> Iterator[tuple[float, str]]:
        """Places and texts of the axis, counted from the start: seconds, minutes, hours or days, as fits."""
        seconds = self.length_ns / 1e9
        unit, size = next((unit, size) for least, unit, size in UNITS if seconds >= least)
        length = seconds / size
        usual = (step for step in STEPS.get(unit, ()) if length / step <= MOST_MARKS)
        step = next(usual, None) or round_step(length, MOST_MARKS)
        places = 0 if step >= 1 else (2 if step == 0.25 else -math.floor(math.log10(step)))
        for number in range(int(length / step) + 1):
            yield self.left + number * step / length * self.columns, f"{number * step:.{places}f} {unit}"
