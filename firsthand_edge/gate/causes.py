"""First causes: what most likely lies behind a reason, in a few words, from the same figures. Never a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.wording import count

if TYPE_CHECKING:
    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Facts, Figures

__all__ = ["culprit", "death", "end_of_run", "of_missing", "tick_at"]


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
