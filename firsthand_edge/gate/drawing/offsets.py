"""Who it is: each stream's signed offset to the reference over time, between the ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate.drawing.shapes import envelope, stems, trace
from firsthand_edge.gate.drawing.take import LABEL, PLOT, RIGHT, Block
from firsthand_edge.gate.drawing.words import text
from firsthand_edge.gate.wording import count, ms
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from firsthand_edge import _core
    from firsthand_edge.gate.drawing.take import Take
    from firsthand_edge.gate.figures import Facts

__all__ = ["offsets"]

HEAD = 26
HEIGHT = 50
ROW = 62
MOST_ROWS = 30
SMALLEST_LABEL = 9


def offsets(take: Take) -> Block:
    """A row a stream, the accused first, then those that stray furthest; interpolated streams have no offset."""
    sync = take.matched
    if sync is None:
        return Block("", 0)
    streams = [
        facts
        for facts in take.streams()
        if facts.kind is not Kind.INTERPOLATED and facts.name != sync.reference and facts.name in sync.streams
    ]
    if not streams:
        return Block("", 0)
    streams.sort(key=lambda f: (f.name not in take.accused, -_largest(sync, f), f.name))
    to = f"Offset to {take.short(sync.reference)}"
    parts = [
        text(0, 14, to, "head", title=sync.reference),
        text(LABEL + PLOT, 14, "up is later", "over-lines axis", anchor="end"),
    ]
    top = HEAD
    for facts in streams[:MOST_ROWS]:
        parts.append(f'<g transform="translate(0 {top})">{_row(take, sync, facts)}</g>')
        top += ROW
    rest = streams[MOST_ROWS:]
    if rest:
        words = f"{len(rest)} further streams, none further off than {ms(max(_largest(sync, f) for f in rest))}"
        parts.append(text(LABEL, top + 12, words, "small"))
        top += 20
    return Block("".join(parts), top)


def _largest(sync: _core.Figures, facts: Facts) -> int:
    return sync.streams[facts.name].offset_max_abs_ns or 0


def _row(take: Take, sync: _core.Figures, facts: Facts) -> str:
    row, ceiling = sync.streams[facts.name], take.ceiling_ns
    found = envelope(take.scale, sync.reference_ns, sync.offset_ns(facts.name))
    reach = max(ceiling * 5 // 4, _largest(sync, facts) * 53 // 50, 1)

    def y(value_ns: float) -> float:
        return HEIGHT / 2 * (1 - value_ns / reach)

    over = _largest(sync, facts) > ceiling
    bad = " bad" if facts.name in take.accused else ""
    if row.offset_median_ns is None or row.offset_max_abs_ns is None:
        said = ["no match"]
    else:
        said = [f"median {ms(row.offset_median_ns)}", f"max |{ms(row.offset_max_abs_ns).removesuffix(' ms')}| ms"]
    parts = [
        text(0, 13, take.short(facts.name), f"name{bad}", title=facts.name),
        text(0, 29, said[0], "small"),
        *(text(0, 44, words, f"small{' bad' if over else ''}") for words in said[1:]),
        f'<rect class="frame" x="{LABEL}" y="0" width="{PLOT}" height="{HEIGHT}"/>',
        *(
            f'<line class="{name}" x1="{LABEL}" y1="{y(level):.1f}" x2="{LABEL + PLOT}" y2="{y(level):.1f}"/>'
            for name, level in (("zero", 0), ("ceiling", ceiling), ("ceiling", -ceiling))
        ),
        f'<path class="trace" d="{trace(found, LABEL, y)}"/>',
        f'<path class="over" d="{stems(found, LABEL, y, ceiling)}"/>',
    ]
    kind = "" if facts.kind is Kind.TRIGGERED else facts.kind.value
    if facts.decimate > 1:
        kind = f"every {count(facts.decimate, 'tick')}"
    parts.append(text(RIGHT + 70, HEIGHT / 2 + 4, kind, "small"))
    if y(0) - y(ceiling) > SMALLEST_LABEL:
        parts.append(text(RIGHT, y(ceiling) + 4, f"+{ms(ceiling)}", "axis"))
        parts.append(text(RIGHT, y(-ceiling) + 4, f"\u2212{ms(ceiling)}", "axis"))
    return "".join(parts)
