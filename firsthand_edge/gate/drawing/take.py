"""What the drawing shows: a report, the figures behind it, and where on the sheet their time goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge.gate.drawing.scale import TimeScale
from firsthand_edge.gate.drawing.words import LONGEST_NAME, shortened, telling
from firsthand_edge.gate.rules_stream import take_span
from firsthand_edge.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Facts, Figures, Int64

__all__ = ["LABEL", "PLOT", "RIGHT", "WIDTH", "Block", "Take"]

WIDTH = 1120
"""Of the sheet, in pixels of the drawing."""
LABEL = 206
"""Room for names, left of everything that has a time."""
PLOT = 716
"""Columns of the time axis."""
RIGHT = LABEL + PLOT + 8
"""Where the figures right of it begin."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the sheet: SVG whose top is 0, and its height."""

    svg: str
    height: int


@dataclass(frozen=True, slots=True, eq=False)
class Take:
    """One recording that has something to draw."""

    report: Mapping[str, Any]
    """`firsthand.sync-report/1`."""
    figures: Figures
    scale: TimeScale
    """From the earliest first to the latest last sample of the streams that are judged."""
    accused: frozenset[str]
    """Streams that a reason, or its diagnosis, holds to be at fault."""
    telling: Mapping[str, str]
    """Of each name, what tells it from the others."""

    def short(self, name: str, most: int = LONGEST_NAME) -> str:
        """A stream's name as far as there is room for, so that one still knows whose it is."""
        return name if len(name) <= most else shortened(self.telling.get(name, name), most)

    @classmethod
    def of(cls, report: Mapping[str, Any], figures: Figures) -> Take | None:
        """The take; None where no stream that is judged holds a sample."""
        span = take_span(figures)
        if span is None:
            return None
        start, end = span
        sync = figures.sync
        if sync is not None and sync.reference_ns.size:  # trigger edges are no stream and may lie outside
            start, end = min(start, int(sync.reference_ns[0])), max(end, int(sync.reference_ns[-1]))
        scale = TimeScale(start, end, LABEL, PLOT)
        names = telling([facts.name for facts in figures.streams])
        return cls(report, figures, scale, frozenset(_accused(report)), names)

    @property
    def matched(self) -> _core.Figures | None:
        """The match, where it has ticks."""
        sync = self.figures.sync
        return sync if sync is not None and sync.tick.size else None

    @property
    def ceiling_ns(self) -> int:
        """What the disagreement is held against."""
        return int(self.report["ceiling_ns"])

    @property
    def guard_band(self) -> bool:
        """Whether G is held against the ceiling, instead of R."""
        return bool(self.report["guard_band"])

    @property
    def held(self) -> Mapping[str, Any]:
        """The order statistics of what is held against the ceiling."""
        found: Mapping[str, Any] = self.report["guarded_ns" if self.guard_band else "residual_ns"]
        return found

    def streams(self) -> list[Facts]:
        """The streams that are judged: the accused first, then the reference, then by name."""
        return sorted(
            self.figures.judged, key=lambda f: (f.name not in self.accused, f.name != self.figures.reference, f.name)
        )

    def time_of(self, tick: int) -> int | None:
        """When a tick was; of an absent one, the next that was; None where there is none."""
        sync = self.matched
        if sync is None:
            return None
        place = int(np.searchsorted(sync.tick, tick))
        return int(sync.reference_ns[place]) if place < sync.tick.size else None

    def time_of_sample(self, stream: str, sample: int) -> int | None:
        """When a sample was; of one whose time is not known, the last before it; None of a stream without samples."""
        times_ns, _ = self.figures.columns.get(stream, (None, None))
        if times_ns is None or times_ns.size == 0:
            return None
        return int(times_ns[min(sample, times_ns.size - 1)])

    def expected_ns(self, facts: Facts) -> tuple[Int64, npt.NDArray[np.bool_]]:
        """The ticks at which a stream that is not the reference is expected, and at which of them it has no match."""
        sync = self.matched
        if sync is None or facts.name not in sync.streams:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
        row = sync.streams[facts.name]
        gone = sync.offset_ns(facts.name) == ABSENT
        if row.decimate == 1:
            return sync.reference_ns, gone
        there = sync.tick % row.decimate == row.phase
        return sync.reference_ns[there], gone[there]


def _accused(report: Mapping[str, Any]) -> Iterator[str]:
    """Whom each reason names: the streams of its diagnoses, else its own; of a pair of which it tells no more, both."""
    for row in report["reasons"]:
        named = [one["stream"] for one in row.get("diagnosis", ()) if one["stream"]]
        own = row.get("stream")
        yield from named or ((own,) if own else row.get("pair") or ())
