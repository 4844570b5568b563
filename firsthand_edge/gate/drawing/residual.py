"""The disagreement of all streams over time: its envelope, the ceiling, whatever lies beyond it, and the worst tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate.drawing.shapes import Envelope, envelope, stems, trace
from firsthand_edge.gate.drawing.take import LABEL, PLOT, RIGHT, Block
from firsthand_edge.gate.drawing.words import text
from firsthand_edge.gate.wording import ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from firsthand_edge.gate.drawing.take import Take

__all__ = ["residual"]

TOP = 12
HEIGHT = 132
BELOW = 14


def residual(take: Take) -> Block:
    """R, or G with a guard band, at every tick. Nothing where there are no ticks."""
    sync = take.matched
    if sync is None:
        return Block("", 0)
    values = sync.guarded_ns if take.guard_band else sync.residual_ns
    found = envelope(take.scale, sync.reference_ns, values)
    ceiling, held = take.ceiling_ns, take.held
    reach = max(ceiling * 5 // 4, (held["max"] or 0) * 53 // 50, 1)

    def y(value_ns: float) -> float:
        return TOP + HEIGHT * (1 - value_ns / reach)

    over = held["over_ceiling"] > 0
    lines = (
        (f"max {_ms(held['max'])}", over),
        (f"{held['over_ceiling']} of {held['ticks']} ticks over", over),
    )
    level = y(ceiling)
    parts = [
        text(0, TOP + 14, "Disagreement", "head"),
        text(0, TOP + 31, "worst pair at each tick" + (", guarded" if take.guard_band else ""), "small"),
        *(
            text(0, TOP + 54 + 17 * place, words, f"figure{' bad' if bad else ''}")
            for place, (words, bad) in enumerate(lines)
        ),
        f'<rect class="frame" x="{LABEL}" y="{TOP}" width="{PLOT}" height="{HEIGHT}"/>',
        f'<line class="ceiling" x1="{LABEL}" y1="{level:.1f}" x2="{LABEL + PLOT}" y2="{level:.1f}"/>',
        text(RIGHT, level + 4, f"ceiling {ms(ceiling)}", "axis bad"),
        f'<path class="trace" d="{trace(found, LABEL, y)}"/>',
        f'<path class="over" d="{stems(found, LABEL, y, ceiling)}"/>',
        f'<path class="flag" d="{_above(found, ceiling)}"/>',
    ]
    if level < TOP + HEIGHT - 24:
        parts.append(text(RIGHT, TOP + HEIGHT, "0", "axis"))
    return Block("".join([*parts, _worst(take, y)]), TOP + HEIGHT + BELOW)


def _above(found: Envelope, ceiling_ns: int) -> str:
    """A mark above the row for each column with a tick over the ceiling: one of two million is seen."""
    return "".join(f"M{LABEL + column} {TOP - 7}v5" for column in found.column[found.high > ceiling_ns].tolist())


def _worst(take: Take, y: Callable[[float], float]) -> str:
    held = take.held
    if held["worst_tick"] is None:
        return ""
    time = take.time_of(held["worst_tick"])
    if time is None:
        return ""
    level = y(take.ceiling_ns)
    top = TOP + 12 if level > TOP + 60 else level + 22  # beside the row, clear of the ceiling's own label
    over = held["over_ceiling"] > 0
    pair = " and ".join(take.short(name, 12) for name in held["worst_pair"] or ())
    lines = (f"worst: {ms(held['max'])}", f"at tick {held['worst_tick']}", pair)
    told = [
        text(RIGHT, top + 15 * n, line, "axis bad" if over else "axis", title=" and ".join(held["worst_pair"] or ()))
        for n, line in enumerate(lines)
    ]
    dot = "worst" if over else "worst calm"
    ring = f'<circle class="{dot}" cx="{take.scale.x(time):.1f}" cy="{y(held["max"]):.1f}" r="3.5"/>'
    return ring + "".join(told)


def _ms(value: int | None) -> str:
    return "\u2014" if value is None else ms(value)
