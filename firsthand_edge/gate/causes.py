"""First causes: what most likely lies behind a reason, in a few words, from the same figures. Never a verdict."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.figures import TRIGGER, Facts, span_of
from firsthand_edge.gate.wording import count, ms
from firsthand_edge.model import ABSENT, Kind

if TYPE_CHECKING:
    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Figures, Int64

__all__ = ["culprit", "death", "drift_ppm", "end_of_run", "of_missing", "of_pair", "tick_at"]

MOST_STEPS = 3
"""More big steps than this are jitter, not a clock that stepped."""
FEWEST_TICKS = 8


def death(facts: Facts) -> str | None:
    """The worker that died, in words; None when none did."""
    if not facts.deaths:
        return None
    first = facts.deaths[0]
    how = f": {first.how}" if first.how else ""
    return f"the worker of {first.device} died{how}"


def of_missing(facts: Facts) -> str | None:
    """Why samples of a stream are not there."""
    died = death(facts)
    if died is not None:
        return died
    if facts.loss is not None and facts.loss.total:
        return f"{count(facts.loss.total, 'sample')} lost because the rig could not keep up"
    if facts.domain_change is not None:
        return f"its clock changed at sample {facts.domain_change.index}"
    if facts.has_sequence and facts.stamps.sequence_gaps:
        return f"the device counted {count(facts.stamps.sequence_gaps, 'sample')} that did not arrive"
    return None


def end_of_run(row: _core.StreamFigures) -> int | None:
    """The last tick of a stream's longest run of missing ones."""
    first = row.longest_missing_first_tick
    return None if first is None else first + (row.longest_missing_run - 1) * row.decimate


def tick_at(figures: Figures, time_ns: int) -> int | None:
    """The first tick of the span at or after a time, None where there is none."""
    sync = figures.sync
    if sync is None or sync.reference_ns.size == 0:
        return None
    place = int(np.searchsorted(sync.reference_ns, time_ns))
    return int(sync.tick[place]) if place < sync.tick.size else None


def culprit(figures: Figures, pair: tuple[str, str]) -> str:
    """The one of a pair that is not the reference; of two others, the one that strays further from it."""
    sync = figures.sync
    others = [name for name in pair if name != figures.reference]
    if sync is None or len(others) == 1:
        return others[0] if others else pair[1]
    return max(others, key=lambda name: sync.streams[name].offset_max_abs_ns or 0)


def drift_ppm(facts: Facts, reference: Facts) -> Fraction | None:
    """How much longer a stream's mean period is than the reference's, in parts per million.

    Periods that went by are counted, not samples, so that missing samples do not look like drift.
    """
    own, base = facts.span, reference.span
    if own is None or base is None or own.periods == 0 or base.periods == 0:
        return None
    period = Fraction(own.last_ns - own.first_ns, own.periods * facts.decimate)
    nominal = Fraction(base.last_ns - base.first_ns, base.periods)
    return (period - nominal) / nominal * 1_000_000


def of_pair(figures: Figures, pair: tuple[str, str], ceiling_ns: int) -> str | None:
    """Why two streams disagree: a clock that stepped, a drift, a constant offset; None when it is none of these.

    Args:
        figures: The take's figures.
        pair: The two streams of the worst tick.
        ceiling_ns: What counts as much.
    """
    sync = figures.sync
    if sync is None:
        return None
    name = culprit(figures, pair)
    offset = sync.offset_ns(name)
    there = offset != ABSENT
    ticks, offsets = sync.tick[there], offset[there]
    if offsets.size < FEWEST_TICKS:
        return None
    facts, reference = figures.stream(name), _reference(figures, sync)
    return (
        _slip(name, offsets, sync.period_ns)
        or _step(name, ticks, offsets, sync.period_ns, ceiling_ns)
        or _drift(facts, reference, offsets, sync.period_ns, ceiling_ns)
        or _constant(name, reference.name, offsets, ceiling_ns)
    )


def _reference(figures: Figures, sync: _core.Figures) -> Facts:
    """The facts of the reference; of trigger edges, what their ticks say."""
    if figures.reference != TRIGGER:
        return figures.stream(figures.reference)
    span = span_of(sync.reference_ns, silence_max_ns=int(np.iinfo(np.int64).max))
    return Facts(TRIGGER, Kind.TRIGGERED, samples=sync.ticks, period_ns=sync.period_ns, span=span)


def _rank(values: Int64, num: int, den: int) -> int:
    """The order statistic of rank ceil(n*num/den), rank 1 the smallest (sync.md section 4)."""
    return int(np.sort(values)[max(1, (values.size * num + den - 1) // den) - 1])


def _slip(name: str, offsets: Int64, period_ns: int) -> str | None:
    """Only a match by trigger index can be a whole period or more apart."""
    middle = _rank(np.abs(offsets), 1, 2)
    if 2 * middle < period_ns:
        return None
    number = (2 * middle + period_ns) // (2 * period_ns)
    return f"{name} slipped by {count(number, 'tick')} against its trigger count"


def _step(name: str, ticks: Int64, offsets: Int64, period_ns: int, ceiling_ns: int) -> str | None:
    change = np.diff(offsets)
    size = np.abs(change)
    # A drifting stream that slips to the next tick changes by a whole period; that is no step of its clock.
    big = np.flatnonzero((2 * size > ceiling_ns) & (4 * size < 3 * period_ns))
    if not 1 <= big.size <= MOST_STEPS:
        return None
    pieces = np.split(offsets, big + 1)
    if any(2 * (_rank(piece, 95, 100) - _rank(piece, 5, 100)) > ceiling_ns for piece in pieces):
        return None
    first = int(big[0])
    return f"{name} stepped by {ms(int(change[first]))} at tick {int(ticks[first + 1])}"


def _drift(facts: Facts, reference: Facts, offsets: Int64, period_ns: int, ceiling_ns: int) -> str | None:
    ppm = drift_ppm(facts, reference)
    if ppm is None or facts.kind is not Kind.TRIGGERED:
        return None
    change = np.diff(offsets)
    slips = np.where(4 * np.abs(change) >= 3 * period_ns, np.sign(change) * period_ns, 0)
    straight = offsets - np.concatenate(([0], np.cumsum(slips)))
    quarter = straight.size // 4
    begin, middle, end = (_rank(part, 1, 2) for part in np.split(straight, [quarter, straight.size - quarter]))
    grown = end - begin
    bent = abs(2 * (middle - begin) - grown)
    if 2 * abs(grown) <= ceiling_ns or 2 * bent > abs(grown) or (grown > 0) != (ppm > 0):
        return None
    size = abs(ppm)
    number = (2 * size.numerator + size.denominator) // (2 * size.denominator)
    pace = "slower" if ppm > 0 else "faster"
    return f"{facts.name} runs {number} ppm {pace} than {reference.name}: trigger not connected"


def _constant(name: str, reference: str, offsets: Int64, ceiling_ns: int) -> str | None:
    middle = _rank(offsets, 1, 2)
    spread = _rank(offsets, 95, 100) - _rank(offsets, 5, 100)
    if 2 * abs(middle) <= ceiling_ns or 2 * spread > ceiling_ns:
        return None
    side = "after" if middle > 0 else "before"
    return f"{name} stays {ms(abs(middle))} {side} {reference}: stamp point, trigger delay or calibrated offset"
