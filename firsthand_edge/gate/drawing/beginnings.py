"""When it began: a flag above the rows for each reason that names a first tick, and a line down through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate.drawing.take import LABEL, PLOT, Block
from firsthand_edge.gate.drawing.words import text, width

if TYPE_CHECKING:
    from firsthand_edge.gate.drawing.take import Take

__all__ = ["began_tick", "beginnings", "lines"]

ROW = 15
MOST_ROWS = 5


def began_tick(reason: dict[str, object]) -> int | None:
    """When what a reason tells of began: as the diagnosis says, where there is one, else its first tick."""
    diagnosis = reason.get("diagnosis")
    began = diagnosis.get("began_tick") if isinstance(diagnosis, dict) else None
    tick = began if began is not None else reason.get("first_tick")
    return tick if isinstance(tick, int) else None


def _flags(take: Take) -> dict[int, tuple[int, list[str]]]:
    """Per tick at which something began: its time, and what began, in the order of the report."""
    flags: dict[int, tuple[int, list[str]]] = {}
    for reason in take.report["reasons"]:
        tick = began_tick(reason)
        time = None if tick is None else take.time_of(tick)
        if tick is not None and time is not None:
            flags.setdefault(tick, (time, []))[1].append(reason["code"])
    return flags


def beginnings(take: Take) -> Block:
    """The flags, set below one another where they would overlap; what finds no room keeps its line."""
    ends: list[float] = []
    parts = []
    for tick, (time, codes) in sorted(_flags(take).items()):
        x = take.scale.x(time)
        words = f"{', '.join(dict.fromkeys(codes))} from tick {tick}"
        long = width(words, 11)
        right = x + 8 + long < LABEL + PLOT + 120
        begin, end = (x, x + 8 + long) if right else (x - 8 - long, x)
        row = next((number for number, used in enumerate(ends) if used < begin), len(ends))
        if row == MOST_ROWS:
            continue
        ends[row : row + 1] = [end + 8]
        parts.append((row, x, right, words))
    height = ROW * len(ends)
    drawn = [
        f'<line class="begin" x1="{x:.1f}" y1="{row * ROW + 3}" x2="{x:.1f}" y2="{height}"/>'
        f"{text(x + (4 if right else -4), row * ROW + 11, words, 'over-lines axis bad', anchor='' if right else 'end')}"
        for row, x, right, words in parts
    ]
    return Block("".join(drawn), height)


def lines(take: Take, top: int, bottom: int) -> str:
    """The lines through everything that has a time."""
    places = dict.fromkeys(round(take.scale.x(time), 1) for time, _ in _flags(take).values())
    return "".join(f'<line class="begin" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>' for x in places)
