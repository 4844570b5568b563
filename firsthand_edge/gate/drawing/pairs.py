"""How the disagreement of every pair is distributed: one histogram a pair over one scale, worst first, and a matrix.

Heights go by the logarithm of the count, so that one tick over the ceiling is seen beside two million below it. The
ceiling is an edge between two bars: no bar holds ticks of both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.drawing.scale import round_step
from firsthand_edge.gate.drawing.take import LABEL, WIDTH, Block
from firsthand_edge.gate.drawing.words import ROOMY, text, width
from firsthand_edge.gate.pairs import Pair, judged_ns, pair_names, summary
from firsthand_edge.gate.wording import fixed, ms

if TYPE_CHECKING:
    from firsthand_edge.gate.drawing.take import Take
    from firsthand_edge.gate.figures import Int64

__all__ = ["distribution", "matrix", "pairs"]

HEAD = 40
LEFT = 262
HISTOGRAM = 440
ROW = 27
BAR = 21
COLUMNS = (800, 890, 980, WIDTH)
"""Right edges of the figures."""
LEAST = 4.5
MOST_ROWS = 36
BARS_BELOW = 60
"""Bars between zero and the ceiling; fewer where the largest disagreement is many ceilings away."""
MOST_BARS = 150
CHUNK = 1 << 15
FEWEST_IN_MATRIX = 4
CELL_HEIGHT = 22
WIDEST_CELL, NARROWEST_CELL = 62, 12
FIGURES_FIT = 28
MOST_IN_MATRIX = 40


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Where bars begin: `below` of them from zero to the ceiling, as many more of the same width as it takes."""

    ceiling_ns: int
    below: int
    bars: int

    @classmethod
    def up_to(cls, ceiling_ns: int, largest_ns: int) -> _Bins:
        ceilings = max(1.25, largest_ns / ceiling_ns)
        below = max(1, min(BARS_BELOW, math.floor(MOST_BARS / ceilings)))
        # One column that is many ceilings away would make them all thinner than a pixel; the last bar holds the rest.
        return cls(ceiling_ns, below, min(MOST_BARS, math.ceil(ceilings * below)))

    @property
    def reach_ns(self) -> float:
        return self.bars * self.ceiling_ns / self.below

    def counts(self, values_ns: Int64) -> Int64:
        """(bars,) how many of `values_ns` lie in each; a value that is the ceiling lies below it."""
        found = np.zeros(self.bars, dtype=np.int64)
        for begin in range(0, values_ns.size, CHUNK):  # what fits into the cache is counted in half the time
            values = values_ns[begin : begin + CHUNK]
            place = np.ceil(values * (self.below / self.ceiling_ns)).astype(np.int64) - 1
            # A float may round across the ceiling; on which side a value lies is told by the integers.
            over = values > self.ceiling_ns
            place[over] = np.maximum(place[over], min(self.below, self.bars - 1))
            np.clip(place, 0, np.where(over, self.bars - 1, self.below - 1), out=place)
            found += np.bincount(place, minlength=self.bars)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    pair: Pair
    counts: Int64


def pairs(take: Take) -> Block:
    """The distribution of every pair, and with four streams or more the matrix of their largest disagreements."""
    if take.matched is None:
        return Block("", 0)
    bins = _Bins.up_to(take.ceiling_ns, take.held["max"] or 0)
    measured = []
    for names in pair_names(take.figures, guard_band=take.guard_band):
        values = judged_ns(take.figures, names, guard_band=take.guard_band)
        measured.append(_Measured(summary(names, values, ceiling_ns=take.ceiling_ns), bins.counts(values)))
    if not measured:
        return Block("", 0)
    measured.sort(key=lambda m: (-(m.pair.max_ns if m.pair.max_ns is not None else -1), m.pair.streams))
    rows = distribution(take, measured, bins)
    square = matrix(take, [m.pair for m in measured])
    return Block(f'{square.svg}<g transform="translate(0 {square.height})">{rows.svg}</g>', square.height + rows.height)


def distribution(take: Take, measured: list[_Measured], bins: _Bins) -> Block:
    """A row a pair: histogram over a common scale, and the exact order statistics."""
    shown = measured[:MOST_ROWS]
    bottom = HEAD + ROW * len(shown)
    parts = [
        text(0, 14, "Every pair", "head"),
        text(LEFT, 14, "how often they disagree by how much; heights by the logarithm of the count", "small"),
        *(
            text(right, HEAD - 8, words, "axis", anchor="end")
            for right, words in zip(COLUMNS, ("median ms", "p99 ms", "max ms", "ticks over / judged"), strict=True)
        ),
    ]
    most = max(int(m.counts.max()) for m in measured)
    for place, found in enumerate(shown):
        parts.append(f'<g transform="translate(0 {HEAD + ROW * place})">{_row(take, found, bins, most)}</g>')
    x = LEFT + HISTOGRAM * bins.below / bins.bars
    parts.append(f'<line class="ceiling" x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{bottom}"/>')
    parts.append(text(x, HEAD - 8, "ceiling", "axis bad", anchor="middle"))
    step = round_step(bins.reach_ns / 1e6, 8)
    places = max(0, -math.floor(math.log10(step)))
    parts += [
        text(LEFT + HISTOGRAM * number * step * 1e6 / bins.reach_ns, bottom + 12, words, "axis", anchor="middle")
        for number in range(int(bins.reach_ns / 1e6 / step) + 1)
        for words in (f"{number * step:.{places}f} ms",)
    ]
    height = bottom + 26
    rest = measured[MOST_ROWS:]
    if rest:
        largest = rest[0].pair.max_ns
        words = f"{len(rest)} further pairs, none further apart than {'—' if largest is None else ms(largest)}"
        parts.append(text(LEFT, height, words, "small"))
        height += 18
    return Block("".join(parts), height)


def _row(take: Take, found: _Measured, bins: _Bins, most: int) -> str:
    pair = found.pair
    over = pair.over_ceiling > 0
    full = " \u00b7 ".join(pair.streams)
    names = (
        full if width(full, 13) * ROOMY < LEFT - 8 else " \u00b7 ".join(take.short(name, 15) for name in pair.streams)
    )
    figures = (pair.median_ns, pair.p99_ns, pair.max_ns)
    cells = [
        text(
            right,
            16,
            "\u2014" if value is None else fixed(value, places=6, keep=1),
            f"figure{' bad' if (value or 0) > bins.ceiling_ns else ''}",
            anchor="end",
        )
        for right, value in zip(COLUMNS, figures, strict=False)
    ]
    cells.append(
        text(COLUMNS[-1], 16, f"{pair.over_ceiling} / {pair.ticks}", "figure bad" if over else "figure", anchor="end")
    )
    title = " and ".join(pair.streams)
    good, bad = (
        _bars(found.counts[: bins.below], 0, bins, most),
        _bars(found.counts[bins.below :], bins.below, bins, most),
    )
    return (
        f"{text(0, 16, names, 'name bad' if over else 'name', title=title)}"
        f'<line class="zero" x1="{LEFT}" y1="{BAR + 0.5}" x2="{LEFT + HISTOGRAM}" y2="{BAR + 0.5}"/>'
        f'<path class="bar" d="{good}"/><path class="bar bad" d="{bad}"/>{"".join(cells)}'
    )


def _bars(counts: Int64, first: int, bins: _Bins, most: int) -> str:
    """Bars as a path; a count of one has some height too."""
    wide = HISTOGRAM / bins.bars
    out = []
    for place in np.flatnonzero(counts).tolist():
        height = BAR * (1 + math.log10(int(counts[place]))) / (1 + math.log10(most))
        height = max(height, LEAST)
        out.append(f"M{LEFT + (first + place) * wide:.2f} {BAR}v{-height:.1f}h{max(wide, 1.6):.2f}v{height:.1f}z")
    return "".join(out)


def matrix(take: Take, found: list[Pair]) -> Block:
    """The largest disagreement of every pair, at the crossing of the two streams; the darker, the larger."""
    paired = {name for pair in found for name in pair.streams}
    names = [facts.name for facts in take.figures.judged if facts.name in paired]
    if not FEWEST_IN_MATRIX <= len(names) <= MOST_IN_MATRIX:
        return Block("", 0)
    largest = {frozenset(pair.streams): pair.max_ns for pair in found}
    wide = max(NARROWEST_CELL, min(WIDEST_CELL, (WIDTH - LABEL - 170) // len(names)))
    parts = [text(0, 24, "Largest disagreement", "head"), text(0, 41, "of each pair, in ms", "small")]
    top, left = 14, LABEL
    for row, name in enumerate(names):
        y = top + row * CELL_HEIGHT
        for column, other in enumerate(names[:row]):
            parts.append(_cell(left + column * wide, y, wide, largest[frozenset((name, other))], take.ceiling_ns))
        parts.append(text(left + row * wide + 6, y + 15, take.short(name), "small", title=name))
    return Block("".join(parts), top + CELL_HEIGHT * len(names) + 10)


def _cell(x: int, y: int, wide: int, value_ns: int | None, ceiling_ns: int) -> str:
    if value_ns is None:
        return f'<rect class="frame" x="{x}" y="{y}" width="{wide - 2}" height="{CELL_HEIGHT - 2}"/>'
    over = value_ns > ceiling_ns
    share = 1.0 if over else 0.1 + 0.4 * value_ns / ceiling_ns
    said = text(
        x + wide / 2 - 1,
        y + 15,
        f"{value_ns / 1e6:.2f}" if value_ns < 10**8 else f"{value_ns / 1e6:.0f}",
        f"in{' bad' if over else ''}",
    )
    return (
        f'<rect class="cell{" bad" if over else ""}" fill-opacity="{share:.2f}" x="{x}" y="{y}" width="{wide - 2}" '
        f'height="{CELL_HEIGHT - 2}"/>{said if wide >= FIGURES_FIT else ""}'
    )
