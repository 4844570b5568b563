"""When it began: a flag above the rows for each reason that names a tick or a sample, and a line down through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.drawing.take import LABEL, PLOT, Block
from firsthand_edge.gate.drawing.words import shortened, text, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.gate.drawing.take import Take

__all__ = ["began_ticks", "beginnings", "lines"]

ROW = 15
MOST_ROWS = 5


def began_ticks(reason: Mapping[str, Any]) -> list[int]:
    """When what a reason tells of began: as its diagnoses say, where there are any, else its first tick."""
    began = [one["began_tick"] for one in reason.get("diagnosis", ()) if one.get("began_tick") is not None]
    first = reason.get("first_tick")
    return list(dict.fromkeys(began)) or ([] if first is None else [first])


def _places(take: Take, reason: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Time and place in words of each beginning. A stream that is judged against itself has no ticks, but samples."""
    ticks = began_ticks(reason)
    for tick in ticks:
        time = take.time_of(tick)
        if time is not None:
            yield time, f"tick {tick}"
    sample, stream = reason.get("first_sample"), reason.get("stream")
    if not ticks and sample is not None and stream is not None:
        time = take.time_of_sample(stream, sample)
        if time is not None:
            yield time, f"sample {sample} of {shortened(stream)}"


def _flags(take: Take) -> dict[tuple[int, str], list[str]]:
    """What began at each time and place, in the order of the report."""
    flags: dict[tuple[int, str], list[str]] = {}
    for reason in take.report["reasons"]:
        for place in _places(take, reason):
            flags.setdefault(place, []).append(reason["code"])
    return flags


def beginnings(take: Take) -> Block:
    """The flags, set below one another where they would overlap; what finds no room keeps its line."""
    ends: list[float] = []
    parts = []
    for (time, place), codes in sorted(_flags(take).items()):
        x = take.scale.x(time)
        words = f"{', '.join(dict.fromkeys(codes))} from {place}"
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
    places = dict.fromkeys(round(take.scale.x(time), 1) for time, _ in _flags(take))
    return "".join(f'<line class="begin" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>' for x in places)
