"""A departure taken apart: slips of whole ticks, steps, a drift, a constant, and the spread of what remains.

All of it is order statistics of integers: one sample that is far off moves none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge import _core

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Int64

__all__ = ["Jump", "Pieces", "middle", "spread", "take_apart"]

MOST_STEPS = 3
"""More of them are jitter, not a clock that stepped."""
BLOCKS = 60
"""Blocks that a departure is looked at in; of each its median counts."""
FEWEST_IN_BLOCK = 5
BLOCKS_AROUND = 8
"""A step is measured between the medians of so many blocks on either side of it, up to the next step."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A change from one sample to the next."""

    place: int
    """Position of the first sample after it."""
    size: int
    """ns of a step, ticks of a slip."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What a departure is made of."""

    slips: tuple[Jump, ...]
    steps: tuple[Jump, ...]
    drift_from: int | None
    """Position at which it begins to drift; None where it does not."""
    drift_ppb: int
    constant_ns: int
    """The level at the beginning, without the drift."""
    rest_ns: Int64
    """(n,) what all these leave."""


def middle(values: Int64) -> int:
    """The median of sync.md section 4; 0 of nothing."""
    return _core.quantile(np.ascontiguousarray(values), 1, 2) or 0


def spread(values: Int64) -> int:
    """How wide 90 of 100 values lie apart: from the 5th to the 95th percentile."""
    found = _core.quantiles(np.ascontiguousarray(values), [(5, 100), (95, 100)])
    return 0 if found is None else found[1] - found[0]


def take_apart(offset_ns: Int64, time_ns: Int64, *, period_ns: int, least_ns: int) -> Pieces:
    """Takes a departure apart.

    Args:
        offset_ns: (n,) signed departures, n >= 8.
        time_ns: (n,) their times, rising.
        period_ns: T. Offsets beyond half of it come from a match by trigger index; else a drift that reaches half of
            it goes on at the other side, which is undone.
        least_ns: Steps and drifts are looked for that change the offset by more than this.
    """
    slips, straight = _slips(offset_ns, period_ns)
    # By its own count the stream has come as much further as it slipped: a rate is over its own time.
    own_ns = time_ns + offset_ns - straight
    steps, level = _steps(straight, _Blocks(straight, own_ns), least_ns)
    drift_from, drift_ppb, level = _drift(level, own_ns, least_ns)
    constant_ns = middle(level)
    return Pieces(slips, steps, drift_from, drift_ppb, constant_ns, level - constant_ns)


def _slips(offset_ns: Int64, period_ns: int) -> tuple[tuple[Jump, ...], Int64]:
    """Whole ticks: of a match by index the stream slipped by them; of a match by time they are undone."""
    if period_ns <= 0:
        return (), offset_ns
    change = np.diff(offset_ns)
    whole = np.where(4 * np.abs(change) >= 3 * period_ns, _rounded(change, period_ns), 0)
    # Of a match by time an offset is below half a period, and what the rest is off by is far less.
    by_index = 4 * int(np.abs(offset_ns).max()) > 3 * period_ns
    first = _rounded(np.array([middle(offset_ns[: max(1, int(np.argmax(whole != 0)) or whole.size)])]), period_ns)[0]
    before = int(first) if by_index else 0
    slipped = before + np.concatenate(([0], np.cumsum(whole)))
    straight: Int64 = offset_ns - period_ns * slipped
    if not by_index:
        # Where neighbours are an eighth of a period apart as a rule, two that are further apart jitter, not drift.
        return (), straight if 8 * middle(np.abs(change)) < period_ns else offset_ns
    places = np.flatnonzero(whole)
    jumps = ([Jump(0, before)] if before else []) + [Jump(int(at) + 1, int(whole[at])) for at in places]
    return tuple(jumps[:MOST_STEPS]), straight


def _rounded(values: Int64, unit: int) -> Int64:
    """To the nearest whole number of units, halves away from zero."""
    out: Int64 = np.sign(values) * ((2 * np.abs(values) + unit) // (2 * unit))
    return out


class _Blocks:
    """Medians of equal stretches of a departure."""

    def __init__(self, values: Int64, time_ns: Int64) -> None:
        self.length = max(FEWEST_IN_BLOCK, values.size // BLOCKS)
        starts = range(0, max(1, values.size - self.length + 1), self.length)
        self.start = np.array(starts, np.int64)
        self.level = np.array([middle(values[at : at + self.length]) for at in starts], np.int64)
        self.time_ns = np.array([middle(time_ns[at : at + self.length]) for at in starts], np.int64)


def _steps(values: Int64, blocks: _Blocks, least_ns: int) -> tuple[tuple[Jump, ...], Int64]:
    """Steps: changes between neighbouring blocks that stand out from those of a drift and from noise."""
    change = np.diff(blocks.level)
    if change.size < 3:
        return (), values
    usual = middle(change)
    noise = middle(np.abs(change - usual))
    far = np.abs(change - usual) > max(least_ns, 8 * noise)
    groups = np.split(np.flatnonzero(far), np.flatnonzero(np.diff(np.flatnonzero(far)) > 1) + 1)
    groups = [group for group in groups if group.size]
    # A step within a block shows in the changes on both sides of it.
    if not groups or len(groups) > MOST_STEPS or any(group.size > 2 for group in groups):
        return _one_step(values, least_ns)
    jumps, level = [], values.copy()
    places = []
    for group in groups:
        first, last = int(group[0]), int(group[-1]) + 1
        begin, end = int(blocks.start[first]), min(values.size, int(blocks.start[last]) + blocks.length)
        places.append(begin + _place(values[begin:end]))
    for before, place, after in zip([0, *places[:-1]], places, [*places[1:], values.size], strict=True):
        # One block is as noisy as the root of its few values; over several a drift goes on, which is no step.
        around = BLOCKS_AROUND * blocks.length
        sides = values[max(before, place - around) : place], values[place : min(after, place + around)]
        drifted = usual * (sides[0].size + sides[1].size) // (2 * blocks.length)
        size = middle(sides[1]) - middle(sides[0]) - drifted
        if abs(size) > least_ns:
            jumps.append(Jump(place, size))
            level[place:] -= size
    return tuple(jumps), level


def _one_step(values: Int64, least_ns: int) -> tuple[tuple[Jump, ...], Int64]:
    """The one step that noise hides from blocks.

    Both sides are level, and their middles lie apart by far more than noise makes them.
    """
    place = _place(values)
    sides = values[:place], values[place:]
    size = middle(sides[1]) - middle(sides[0])
    fewest = min(side.size for side in sides)
    if fewest < 4 * FEWEST_IN_BLOCK or abs(size) <= least_ns:
        return (), values
    level = values.copy()
    level[place:] -= size
    # A median of n values of even noise, the widest, is known to half the width by the root of n: 0.56 of what 90 of
    # 100 values lie apart. The difference of two must be five times as large, because its place was chosen.
    if size * size * fewest < 8 * spread(level) ** 2:
        return (), values
    for side in sides:
        half = side.size // 2
        if 3 * abs(middle(side[half:]) - middle(side[:half])) > abs(size):
            return (), values
    return (Jump(place, size),), level


def _place(values: Int64) -> int:
    """Where a stretch with one step changes: such that both sides lie closest to their own end's level."""
    edge = max(1, values.size // 4)
    before, after = middle(values[:edge]), middle(values[-edge:])
    left = np.concatenate(([0], np.cumsum(np.abs(values - before))))
    right = np.concatenate((np.cumsum(np.abs(values - after)[::-1])[::-1], [0]))
    return int((left + right)[1:-1].argmin()) + 1


def _drift(values: Int64, time_ns: Int64, least_ns: int) -> tuple[int | None, int, Int64]:
    """A straight rise or fall, from the beginning or from somewhere on; what it leaves."""
    blocks = _Blocks(values, time_ns)
    if blocks.level.size < 4:
        return None, 0, values
    noise = middle(np.abs(np.diff(blocks.level)))
    at_first = middle(blocks.level[: max(1, blocks.level.size // 10)])
    near = np.abs(blocks.level - at_first) <= max(least_ns // 4, 3 * noise)
    knee = int(np.flatnonzero(near)[-1]) if near.any() else 0
    best: tuple[int, int, int, Int64] | None = None
    for start in dict.fromkeys((0, knee)):
        slope = _slope(blocks, start)
        if slope is None or abs(slope[1] - slope[0]) <= least_ns:
            continue
        rise, run = slope[1] - slope[0], slope[3] - slope[2]
        ppb = (2 * rise * 10**9 + run) // (2 * run)
        begin = int(blocks.start[start])
        since_ns = np.maximum(0, time_ns - time_ns[begin])
        left: Int64 = values - since_ns * ppb // 10**9
        off = spread(_Blocks(left, time_ns).level)
        # From the beginning, unless from later on it is straighter by far.
        if 2 * off < abs(rise) and (best is None or 10 * off < 7 * best[0]):
            best = off, begin, int(ppb), left
    return (None, 0, values) if best is None else best[1:]


def _slope(blocks: _Blocks, start: int) -> tuple[int, int, int, int] | None:
    """Levels and times of the first and the last quarter from a block on."""
    level, time_ns = blocks.level[start:], blocks.time_ns[start:]
    quarter = level.size // 4
    if quarter < 1:
        return None
    first, last = slice(0, quarter), slice(level.size - quarter, None)
    return middle(level[first]), middle(level[last]), middle(time_ns[first]), middle(time_ns[last])
