"""The sheet of one recording: its parts from the top down, over one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.drawing.beginnings import beginnings, lines
from firsthand_edge.gate.drawing.gaps import gaps
from firsthand_edge.gate.drawing.offsets import offsets
from firsthand_edge.gate.drawing.pairs import pairs
from firsthand_edge.gate.drawing.residual import residual
from firsthand_edge.gate.drawing.take import LABEL, PLOT, Block, Take
from firsthand_edge.gate.drawing.words import text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.gate.figures import Figures

__all__ = ["sheet"]

AXIS = 34
BETWEEN = 10


def sheet(report: Mapping[str, Any], figures: Figures) -> Block | None:
    """Everything that is drawn of a recording; None where no stream that is judged holds a sample.

    Args:
        report: `firsthand.sync-report/1`.
        figures: The figures that it was made of.
    """
    take = Take.of(report, figures)
    if take is None:
        return None
    parts, top = [], 0
    timed = [block for block in (beginnings(take), residual(take), gaps(take), offsets(take)) if block.height]
    for block in timed:
        parts.append(f'<g transform="translate(0 {top})">{block.svg}</g>')
        top += block.height
    behind = _trimmed(take, top) + _grid(take, top) + lines(take, timed[0].height, top)
    top += AXIS + BETWEEN
    below = pairs(take)
    parts.append(f'<g transform="translate(0 {top})">{below.svg}</g>')
    return Block(behind + "".join(parts), top + below.height)


def _grid(take: Take, bottom: int) -> str:
    marks = "".join(
        f'<line class="grid" x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}"/>'
        f"{text(x, bottom + 16, words, 'axis', anchor='middle')}"
        for x, words in take.scale.axis()
    )
    return f"{marks}{text(0, bottom + 16, 'time since the first sample', 'axis')}"


def _trimmed(take: Take, bottom: int) -> str:
    """What lies outside of the span is in the shade; nothing is judged there."""
    sync = take.matched
    if sync is None:
        return ""
    first, last = take.scale.x(int(sync.reference_ns[0])), take.scale.x(int(sync.reference_ns[-1]))
    return "".join(
        f'<rect class="trimmed" x="{left:.1f}" y="0" width="{wide:.1f}" height="{bottom}"/>'
        for left, wide in ((LABEL, first - LABEL), (last, LABEL + PLOT - last))
        if wide > 1
    )
