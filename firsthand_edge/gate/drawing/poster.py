"""The picture as one image, for a bug report or a chat: what the page says, as SVG, and its drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate.drawing.sheet import sheet
from firsthand_edge.gate.drawing.style import LIGHT, SHEET, resolved
from firsthand_edge.gate.drawing.take import WIDTH, Block
from firsthand_edge.gate.drawing.words import attribute, shortened, text, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from firsthand_edge.gate.drawing.panel import Card, Panel, Statement

__all__ = ["poster"]

MARGIN = 28
BETWEEN = 26
LINE = 19
SIZE = 13.5
"""Of sentences, in pixels."""
CHECK, CROSS = "M0 4l3 3l6 -7", "M0 0l8 8m0 -8l-8 8"
"""Drawn, because few typefaces have them."""
OWN = """
.paper{fill:var(--card)}
.title{font-size:20px;font-weight:700;fill:var(--ink)}
.badge{font-size:13px;font-weight:700}
.accepted{fill:var(--good)}.rejected{fill:var(--bad)}
.accepted-wash{fill:var(--good-wash)}.rejected-wash{fill:var(--bad-wash)}
.mark{fill:none;stroke-width:2}.mark.accepted{stroke:var(--good)}.mark.rejected{stroke:var(--bad)}
.rule{fill:none;stroke:var(--line)}
.value{font-size:18px;font-weight:700;fill:var(--ink)}.value.bad{fill:var(--bad)}
.reason-wash{fill:var(--bad-wash)}.warning-wash{fill:var(--warn-wash)}
.reason{fill:var(--bad)}.warning{fill:var(--warn)}
.code{font-size:13px;font-weight:700}
.said{font-size:13.5px;fill:var(--ink)}
"""


def poster(panels: Sequence[Panel]) -> str:
    """One SVG document of all recordings, below one another, in colours for a white background."""
    parts, top = [], MARGIN
    for panel in panels:
        for block in _blocks(panel):
            parts.append(f'<g transform="translate({MARGIN} {top})">{block.svg}</g>')
            top += block.height
        top += BETWEEN
    wide, height = WIDTH + 2 * MARGIN, top - BETWEEN + MARGIN
    style = resolved(SHEET + OWN, LIGHT)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height}" viewBox="0 0 {wide} {height}" '
        f'font-family="sans-serif"><style>{style}</style><rect class="paper" width="{wide}" height="{height}"/>'
        f"{''.join(parts)}</svg>"
    )


def _blocks(panel: Panel) -> Iterable[Block]:
    yield _title(panel)
    yield _cards(panel.cards())
    for said in panel.statements():
        yield _statement(said)
    nothing = panel.nothing()
    if nothing:
        yield Block(text(0, 20, nothing, "said"), 34)
    drawn = sheet(panel.report, panel.figures)
    if drawn is not None:
        yield Block(f'<g transform="translate(0 14)">{drawn.svg}</g>', drawn.height + 22)
    for note in panel.footnotes():
        lines = wrapped(note, WIDTH, 12)
        yield Block("".join(text(0, 14 + 16 * n, line, "small") for n, line in enumerate(lines)), 16 * len(lines) + 6)


def _title(panel: Panel) -> Block:
    shown = shortened(panel.title, 70)
    verdict = "accepted" if panel.accepted else "rejected"
    x = min(width(shown, 20) + 14, WIDTH - 110)
    return Block(
        f"{text(0, 20, shown, 'title', title=panel.title)}"
        f'<rect class="{verdict}-wash" x="{x:.1f}" y="2" width="{width(verdict, 13) + 44:.1f}" height="25" rx="12.5"/>'
        f'<path class="mark {verdict}" transform="translate({x + 13:.1f} {11 if panel.accepted else 10})" '
        f'd="{CHECK if panel.accepted else CROSS}"/>{text(x + 29, 19, verdict, f"badge {verdict}")}',
        42,
    )


def _cards(cards: Sequence[Card]) -> Block:
    wide = WIDTH / len(cards)
    parts = [f'<rect class="rule" x=".5" y=".5" width="{WIDTH - 1}" height="56" rx="8"/>']
    for place, card in enumerate(cards):
        x = place * wide
        if place:
            parts.append(f'<path class="rule" d="M{x:.1f} 1v55"/>')
        parts.append(text(x + 13, 26, card.value, f"value{' bad' if card.bad else ''}"))
        parts.append(text(x + 13, 45, card.label, "small"))
    return Block("".join(parts), 70)


def _statement(said: Statement) -> Block:
    indent = width(said.code, 13) + 26
    words = f"{said.sentence} {said.more}".strip()
    lines = wrapped(words, WIDTH - indent - 14, SIZE)
    height = LINE * len(lines) + 15
    return Block(
        f'<rect class="{said.kind}-wash" x="0" y="0" width="{WIDTH}" height="{height}" rx="5"/>'
        f'<rect class="{said.kind}" x="0" y="0" width="4" height="{height}"/>'
        f'<text class="code {said.kind}" x="15" y="21">{attribute(said.code)}</text>'
        + "".join(text(indent, 21 + LINE * n, line, "said") for n, line in enumerate(lines)),
        height + 8,
    )
