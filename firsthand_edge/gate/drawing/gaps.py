"""Where samples are: a lane for each stream, from its first to its last, cut where it is missing, silent or frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.gate.drawing.shapes import bars, runs
from firsthand_edge.gate.drawing.take import LABEL, PLOT, RIGHT, Block
from firsthand_edge.gate.drawing.words import ROOMY, text, width
from firsthand_edge.gate.figures import TRIGGER
from firsthand_edge.gate.wording import count, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from firsthand_edge import _core
    from firsthand_edge.gate.drawing.take import Take
    from firsthand_edge.gate.figures import Facts, Int64

__all__ = ["gaps"]

HEAD = 26
LANE = 21
BAR = 10
MOST_LANES = 60


def gaps(take: Take) -> Block:
    """A lane a stream: the accused first, then the reference."""
    streams = take.streams()
    parts = [text(0, 14, "Samples", "head")]
    if take.matched is not None:
        span = take.report["span"]
        parts.append(text(LABEL, 14, _about(span), "over-lines small"))
    top = HEAD
    if take.figures.reference == TRIGGER and take.matched is not None:
        parts.append(_edges(take, take.matched, top))
        top += LANE
    for facts in streams[:MOST_LANES]:
        parts.append(_lane(take, facts, top))
        top += LANE
    if len(streams) > MOST_LANES:
        rest = sum(take.report["streams"][facts.name].get("missing", 0) for facts in streams[MOST_LANES:])
        parts.append(
            text(0, top + 12, f"{len(streams) - MOST_LANES} further streams; together {rest} missing", "small")
        )
        top += LANE
    return Block("".join(parts), top + 8)


def _about(span: dict[str, int]) -> str:
    trimmed = f"{span['trimmed_start']} trimmed at the start, {span['trimmed_end']} at the end"
    return f"{count(span['ticks'], 'tick')} in the span, {span['absent']} absent, {trimmed}"


def _lane(take: Take, facts: Facts, top: int) -> str:
    scale, row = take.scale, take.report["streams"][facts.name]
    bad = facts.name in take.accused
    reference = facts.name == take.figures.reference
    title = f"{facts.name}, {facts.kind.value}{', the reference' if reference else ''}: {facts.samples} samples"
    parts = [text(0, top + 10, take.short(facts.name), f"name{' bad' if bad else ''}", title=title)]
    if facts.span is not None:
        begin, end = scale.x(facts.span.first_ns), scale.x(facts.span.last_ns)
        parts.append(
            f'<rect class="cover" x="{begin:.1f}" y="{top}" width="{max(end - begin, 1.5):.1f}" height="{BAR}"/>'
        )
        parts += [
            _stretch(take, "silent", silence.start_ns, silence.start_ns + silence.length_ns, top)
            for silence in facts.span.long_silences
        ]
    gone = _gone(take, facts)
    if gone.any():
        parts.append(f'<path class="gone" d="{bars(runs(gone), LABEL, top, BAR)}"/>')
    parts += [_marked(take, mark, top) for mark in _marks(take, facts)]
    parts.append(text(RIGHT, top + 10, _said(facts, row, reference=reference), f"small{' gap' if gone.any() else ''}"))
    return "".join(parts)


def _edges(take: Take, sync: _core.Figures, top: int) -> str:
    """The lane of the trigger, which is no stream: its recorded edges number the ticks."""
    begin, end = take.scale.x(int(sync.reference_ns[0])), take.scale.x(int(sync.reference_ns[-1]))
    absent = _absent(take, sync)
    return "".join(
        (
            text(0, top + 10, TRIGGER, "name", title="recorded trigger edges, the reference"),
            f'<rect class="cover" x="{begin:.1f}" y="{top}" width="{max(end - begin, 1.5):.1f}" height="{BAR}"/>',
            f'<path class="gone" d="{bars(runs(absent), LABEL, top, BAR)}"/>',
            text(RIGHT, top + 10, f"reference, {sync.absent} absent", f"small{' gap' if absent.any() else ''}"),
        )
    )


def _said(facts: Facts, row: dict[str, int], *, reference: bool) -> str:
    if not facts.samples:
        return "no sample"
    if "expected" not in row:
        return count(facts.samples, "sample")
    run = f", run of {row['longest_missing_run']}" if row["longest_missing_run"] > 1 else ""
    return f"{row['missing']} of {row['expected']} {'absent' if reference else 'missing'}{run}"


def _gone(take: Take, facts: Facts) -> npt.NDArray[np.bool_]:
    """(PLOT,) columns with a tick at which the stream is missing."""
    sync = take.matched
    if sync is not None and facts.name == sync.reference:
        return _absent(take, sync)
    expected_ns, missing = take.expected_ns(facts)
    place = np.flatnonzero(missing)
    column = take.scale.column_of(expected_ns[place])
    following = np.flatnonzero(np.diff(place) == 1)  # a run of missing ones is one gap, however far apart they lie
    return _filled(np.concatenate((column, column[following])), np.concatenate((column, column[following + 1])))


def _filled(first: Int64, last: Int64) -> npt.NDArray[np.bool_]:
    """(PLOT,) the columns that lie within any of the stretches, their ends included."""
    change = np.zeros(PLOT + 1, dtype=np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, np.maximum(first, last) + 1, -1)
    return np.asarray(np.cumsum(change)[:PLOT] > 0, dtype=np.bool_)


def _absent(take: Take, sync: _core.Figures) -> npt.NDArray[np.bool_]:
    """(PLOT,) columns in which the reference lacks ticks: from one period after a tick to one before the next."""
    steps = sync.tick[1:] - sync.tick[:-1]
    before = np.flatnonzero(steps > 1)
    share = (sync.reference_ns[before + 1] - sync.reference_ns[before]) // steps[before]
    first = take.scale.column_of(sync.reference_ns[before] + share)
    last = take.scale.column_of(sync.reference_ns[before + 1] - share)
    return _filled(first, last)


def _marks(take: Take, facts: Facts) -> Iterator[tuple[str, int, int, str]]:
    """What a rule has found too much of: where the take runs and the stream does not, or its pictures stand still."""
    span, frozen, scale = facts.span, facts.frozen, take.scale
    if span is None:
        yield "silent", scale.start_ns, scale.end_ns, ""
        return
    if _is_named(take, "stream.late", facts):
        yield "silent", scale.start_ns, span.first_ns, f"late by {seconds(span.first_ns - scale.start_ns)}"
    if _is_named(take, "stream.early", facts):
        yield "silent", span.last_ns, scale.end_ns, f"ends {seconds(scale.end_ns - span.last_ns)} early"
    if frozen is None or frozen.start_ns is None or frozen.end_ns is None:
        return
    if _is_named(take, "picture.frozen", facts):
        yield "frozen", frozen.start_ns, frozen.end_ns, f"frozen, {count(frozen.run, 'picture')}"


def _marked(take: Take, mark: tuple[str, int, int, str], top: int) -> str:
    """A stretch, and beside it, right of it where there is room, what it is."""
    kind, begin_ns, end_ns, words = mark
    begin, end = take.scale.x(begin_ns), take.scale.x(end_ns)
    right = end + 5 + width(words, 11) * ROOMY < LABEL + PLOT
    said = text(
        end + 5 if right else begin - 5,
        top + 9,
        words,
        f"over-lines axis {'gap' if kind == 'silent' else 'bad'}",
        anchor="" if right else "end",
    )
    return _stretch(take, kind, begin_ns, end_ns, top) + (said if words else "")


def _is_named(take: Take, code: str, facts: Facts) -> bool:
    return any(row["code"] == code and row.get("stream") == facts.name for row in take.report["reasons"])


def _stretch(take: Take, kind: str, begin_ns: int, end_ns: int, top: int) -> str:
    begin, end = take.scale.x(begin_ns), take.scale.x(end_ns)
    return f'<rect class="{kind}" x="{begin:.1f}" y="{top - 2}" width="{max(end - begin, 2):.1f}" height="{BAR + 4}"/>'
