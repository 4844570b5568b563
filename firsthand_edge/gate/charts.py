"""Residuals as SVG: one row a stream, time to the right, offset up, the ceiling as a line, missing ticks below.

A row draws the smallest and the largest offset of every pixel column, so nothing that crossed the ceiling is lost by
drawing ten hours on a screen. Everything over the ceiling is drawn again in the colour of a fault.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.wording import count, ms, percent
from firsthand_edge.model import ABSENT, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import numpy.typing as npt

    from firsthand_edge.gate.figures import Figures, Int64

__all__ = ["Series", "chart"]

WIDTH = 1120
LABEL = 214
PLOT = 700
HISTOGRAM = 144
GAP = 56
ROW = 92
COVER_ROW = 46
RUG = 7
TOP = 22
AXIS = 30
BINS = 28
LONGEST_NAME = 26
SMALLEST_LABEL = 6


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The per-tick series of a take, as the core measured it."""

    tick: Int64
    """(n,) numbers of the present ticks of the span."""
    reference_ns: Int64
    """(n,) their times."""
    residual_ns: Int64
    """(n,) R, ABSENT where undefined."""
    offset_ns: Mapping[str, Int64]
    """Per stream but the reference (n,) signed offsets to it, ABSENT without a match."""
    kinds: Mapping[str, Kind]
    grids: Mapping[str, tuple[int, int]]
    """Per stream `decimate` and phase: at which ticks it is expected."""
    frozen_ns: Mapping[str, tuple[int, int]]
    """Per stream with pictures, the reference too: from when to when its longest run of equal pictures lasts."""

    @classmethod
    def of(cls, figures: Figures) -> Series | None:
        """The series of a take; None when nothing was matched in it."""
        sync = figures.sync
        if sync is None:
            return None
        others = [facts for facts in figures.judged if facts.name != sync.reference and facts.name in sync.streams]
        return cls(
            tick=sync.tick,
            reference_ns=sync.reference_ns,
            residual_ns=sync.residual_ns,
            offset_ns={facts.name: sync.offset_ns(facts.name) for facts in others},
            kinds={facts.name: facts.kind for facts in others},
            grids={f.name: (sync.streams[f.name].decimate, sync.streams[f.name].phase) for f in others},
            frozen_ns={
                facts.name: (facts.frozen.start_ns, facts.frozen.end_ns)
                for facts in figures.judged
                if facts.frozen is not None and facts.frozen.start_ns is not None and facts.frozen.end_ns is not None
            },
        )

    def expected(self, name: str) -> npt.NDArray[np.bool_]:
        """(n,) whether the stream is expected at each tick."""
        decimate, phase = self.grids[name]
        return np.asarray(self.tick % decimate == phase, dtype=np.bool_)

    @property
    def absent(self) -> int:
        """Ticks between the first and the last one that the reference lacks."""
        return int(self.tick[-1] - self.tick[0]) + 1 - self.tick.size if self.tick.size else 0

    def absent_ns(self) -> Int64:
        """Where the reference's absent ticks would have been, an equal share apart; of a long gap, a mark a column."""
        skipped = np.flatnonzero(np.diff(self.tick) > 1)
        parts = []
        for place in skipped.tolist():
            begin, end = int(self.reference_ns[place]), int(self.reference_ns[place + 1])
            marks = min(int(self.tick[place + 1] - self.tick[place]) - 1, PLOT)
            parts.append(
                np.array([begin + (end - begin) * n // (marks + 1) for n in range(1, marks + 1)], dtype=np.int64)
            )
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Scale:
    """Nanoseconds of the span to pixels."""

    def __init__(self, start_ns: int, end_ns: int) -> None:
        self.start_ns = start_ns
        self.length_ns = max(1, end_ns - start_ns)

    def column(self, times_ns: Int64) -> npt.NDArray[np.int64]:
        """Pixel column of each time, 0 to PLOT - 1."""
        share = (times_ns - self.start_ns).astype(np.float64) / self.length_ns
        return np.clip((share * (PLOT - 1)).astype(np.int64), 0, PLOT - 1)

    def axis(self) -> Iterator[tuple[float, str]]:
        """Places and texts of the time axis, in seconds from the span's start."""
        length = self.length_ns / 1e9
        step = 10.0 ** math.floor(math.log10(length / 5)) if length > 0 else 1.0
        step *= next(m for m in (1, 2, 5, 10) if length / (step * m) <= 8)
        places = max(0, -math.floor(math.log10(step)))
        for number in range(int(length / step) + 1):
            yield number * step / length * (PLOT - 1), f"{number * step:.{places}f} s"


class _Chart:
    """The rows of one SVG, from the top down."""

    def __init__(self, series: Series, ceiling_ns: int) -> None:
        self._times_ns = series.reference_ns
        self._scale = _Scale(int(series.reference_ns[0]), int(series.reference_ns[-1]))
        self._ceiling_ns = ceiling_ns
        self._parts: list[str] = []
        self._marks: list[str] = []
        self._top = TOP

    def cover(self, name: str, text: str, gone_ns: Int64) -> None:
        """A stream without offsets of its own: a bar, broken where the stream is missing.

        Args:
            name: The stream.
            text: What to say below its name.
            gone_ns: (m,) times at which it is missing.
        """
        columns = np.unique(self._scale.column(gone_ns)).tolist()
        self._label(name, [text], fault=bool(columns))
        top = self._top + 10
        self._parts.append(
            f'<rect class="cover" x="{LABEL}" y="{top}" width="{PLOT}" height="10" rx="3"/>'
            f'<path class="rug" d="{"".join(f"M{LABEL + column} {top - 3}v16" for column in columns)}"/>'
        )
        self._top += COVER_ROW

    def offsets(self, name: str, text: str, values_ns: Int64, gone_ns: Int64 | None = None) -> None:
        """A stream's offsets over time.

        Args:
            name: The stream.
            text: What to say below its name.
            values_ns: (n,) offsets at the ticks, ABSENT without a match.
            gone_ns: (m,) times at which it is missing; None for the residual, which has no sign and no gaps of its own.
        """
        there = values_ns != ABSENT
        columns, values = self._scale.column(self._times_ns[there]), values_ns[there]
        largest = int(np.abs(values).max()) if values.size else 0
        row = _Row(self._top, signed=gone_ns is not None, reach_ns=max(self._ceiling_ns * 5 // 4, largest * 53 // 50))
        over = np.abs(values) > self._ceiling_ns
        share = f", {percent(Fraction(int(over.sum()), int(values.size)))} over" if over.any() else ""
        fault = bool(over.any()) or (gone_ns is not None and gone_ns.size > 0)
        self._label(name, [text, f"max {ms(largest)}{share}" if values.size else "no match"], fault=fault)
        ceilings = (self._ceiling_ns, -self._ceiling_ns) if row.signed else (self._ceiling_ns,)
        self._parts += [
            f'<rect class="frame" x="{LABEL}" y="{row.top}" width="{PLOT}" height="{row.height}" rx="4"/>',
            row.level("zero", 0),
            *(row.level("ceiling", ceiling) for ceiling in ceilings),
            f'<path class="trace" d="{row.trace(columns, values)}"/>',
            f'<path class="over" d="{row.beyond(columns[over], values[over], self._ceiling_ns)}"/>',
            row.histogram(values, self._ceiling_ns),
        ]
        if row.y(0) - row.y(self._ceiling_ns) > SMALLEST_LABEL:
            y = row.y(self._ceiling_ns) + 4
            self._parts.append(f'<text class="axis" x="{LABEL + PLOT + 4}" y="{y:.1f}">{ms(self._ceiling_ns)}</text>')
        if gone_ns is not None:
            marks = "".join(
                f"M{LABEL + column} {row.top + row.height + 2}v{RUG}"
                for column in np.unique(self._scale.column(gone_ns)).tolist()
            )
            self._parts.append(f'<path class="rug" d="{marks}"/>')
        self._top += ROW

    def mark(self, span_ns: tuple[int, int] | None, height: int) -> None:
        """Marks in the next row from when to when its pictures stood still."""
        if span_ns is None:
            return
        begin, end = self._scale.column(np.array(span_ns, dtype=np.int64)).tolist()
        left, width = LABEL + begin, max(2, end - begin)
        self._marks.append(
            f'<rect class="frozen" x="{left}" y="{self._top - 2}" width="{width}" height="{height - 20}" rx="2"/>'
            f'<text class="axis bad" x="{left + 4}" y="{self._top + 9}">frozen</text>'
        )

    def svg(self, title: str) -> str:
        """The finished picture."""
        grid = "".join(
            f'<line class="grid" x1="{LABEL + x:.1f}" y1="{TOP}" x2="{LABEL + x:.1f}" y2="{self._top}"/>'
            f'<text class="axis" x="{LABEL + x:.1f}" y="{self._top + 18}" text-anchor="middle">{text}</text>'
            for x, text in self._scale.axis()
        )
        return (
            f'<svg viewBox="0 0 {WIDTH} {self._top + AXIS}" role="img" aria-label="{escape(title)}">'
            f"<title>{escape(title)}</title>"
            f'<text class="axis" x="{LABEL}" y="{TOP - 8}">over time</text>'
            f'<text class="axis" x="{LABEL + PLOT + GAP}" y="{TOP - 8}">how often (root scale)</text>'
            f"{grid}{''.join(self._parts)}{''.join(self._marks)}</svg>"
        )

    def _label(self, name: str, lines: list[str], *, fault: bool) -> None:
        shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}\u2026"
        self._parts.append(
            f'<text class="name{" bad" if fault else ""}" x="0" y="{self._top + 17}">{escape(shown)}</text>'
        )
        for place, line in enumerate(lines):
            self._parts.append(f'<text class="small" x="0" y="{self._top + 34 + 15 * place}">{escape(line)}</text>')


class _Row:
    """The vertical scale of one row, and what is drawn on it."""

    def __init__(self, top: int, *, signed: bool, reach_ns: int) -> None:
        self.top = top
        self.height = ROW - 24
        self.signed = signed
        self._reach_ns = max(1, reach_ns)
        self._base = top + (self.height / 2 if signed else self.height)
        self._unit = (self.height / 2 if signed else self.height) / self._reach_ns

    def y(self, value_ns: float) -> float:
        """Place of an offset."""
        return self._base - value_ns * self._unit

    def level(self, kind: str, value_ns: int) -> str:
        """A line over the whole row."""
        y = self.y(value_ns)
        return f'<line class="{kind}" x1="{LABEL}" y1="{y:.1f}" x2="{LABEL + PLOT}" y2="{y:.1f}"/>'

    def trace(self, columns: Int64, values: Int64) -> str:
        """A path through the smallest and the largest value of every column, broken where columns lie far apart."""
        if columns.size == 0:
            return ""
        order = np.argsort(columns, kind="stable")
        used, starts = np.unique(columns[order], return_index=True)
        low, high = np.minimum.reduceat(values[order], starts), np.maximum.reduceat(values[order], starts)
        usual = int(np.median(np.diff(used))) if used.size > 1 else 1
        out = []
        last = -(10**9)
        for column, smallest, largest in zip(used.tolist(), low.tolist(), high.tolist(), strict=True):
            up, down = self.y(largest), max(self.y(smallest), self.y(largest) + 1.0)
            near = column - last <= 2 * usual + 1
            out.append(f"{'L' if near else 'M'}{LABEL + column} {up:.1f}V{down:.1f}")
            last = column
        return "".join(out)

    def beyond(self, columns: Int64, values: Int64, ceiling_ns: int) -> str:
        """Stems from the ceiling to the largest offset of every column that is over it, either way."""
        out = []
        for side in (1, -1):
            there = values * side > 0
            farthest: dict[int, int] = {}
            for column, value in zip(columns[there].tolist(), np.abs(values[there]).tolist(), strict=True):
                farthest[column] = max(farthest.get(column, 0), value)
            out += [f"M{LABEL + c} {self.y(side * ceiling_ns):.1f}V{self.y(side * v):.1f}" for c, v in farthest.items()]
        return "".join(out)

    def histogram(self, values: Int64, ceiling_ns: int) -> str:
        """How often each offset occurs, on the row's own scale.

        Widths are square roots of counts: a few bad ticks among thousands of good ones stay visible.
        """
        if values.size == 0:
            return ""
        edges = np.linspace(-self._reach_ns if self.signed else 0, self._reach_ns, BINS + 1)
        counts, _ = np.histogram(values, bins=edges)
        widths = np.sqrt(counts / max(1, int(counts.max()))) * HISTOGRAM
        left = LABEL + PLOT + GAP
        bars = []
        for place, width in enumerate(widths.tolist()):
            if not width:
                continue
            low, high = float(edges[place]), float(edges[place + 1])
            bad = " bad" if min(abs(low), abs(high)) >= ceiling_ns else ""
            bars.append(
                f'<rect class="bar{bad}" x="{left}" y="{self.y(high):.1f}" width="{max(width, 1.5):.1f}" '
                f'height="{max(self.y(low) - self.y(high) - 0.6, 0.8):.1f}"/>'
            )
        axis = f'<line class="zero" x1="{left}" y1="{self.top}" x2="{left}" y2="{self.top + self.height}"/>'
        return axis + "".join(bars)


def chart(series: Series, *, ceiling_ns: int, reference: str, frozen: Collection[str] = ()) -> str:
    """One SVG: the residual of all streams, then a row a stream.

    Args:
        series: What was measured, tick by tick.
        ceiling_ns: Drawn as a line in every row.
        reference: Name of the reference; its row shows its absent ticks.
        frozen: Streams whose run of equal pictures is marked.
    """
    if series.tick.size == 0:
        return ""
    drawn = _Chart(series, ceiling_ns)
    drawn.offsets("worst pair", "residual R", series.residual_ns)
    absent = series.absent_ns()
    marked = {name: span for name, span in series.frozen_ns.items() if name in frozen}
    drawn.mark(marked.get(reference), COVER_ROW)
    drawn.cover(reference, f"reference, {count(series.absent, 'tick')} absent", absent)
    for name in sorted(series.offset_ns):
        offsets, expected = series.offset_ns[name], series.expected(name)
        gone = series.reference_ns[expected & (offsets == ABSENT)]
        lack = f"{gone.size} of {int(expected.sum())} missing"
        if series.kinds[name] is Kind.INTERPOLATED:
            drawn.cover(name, f"interpolated, {lack}", gone)
        else:
            drawn.mark(marked.get(name), ROW)
            drawn.offsets(name, lack, offsets, gone)
    return drawn.svg(f"Offsets to {reference} over time, with the ceiling of {ms(ceiling_ns)}")
