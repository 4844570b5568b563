"""Streams to figures: what is matched, by the core, and what is withheld because times would not be comparable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from firsthand_edge import _core
from firsthand_edge.errors import CannotJudge
from firsthand_edge.gate import rules_stamp
from firsthand_edge.gate.figures import TRIGGER, Facts, Figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.gate.figures import Edges, Int64
    from firsthand_edge.gate.limits import Limits

__all__ = ["TakeStream", "match"]


@dataclass(frozen=True, slots=True, eq=False)
class TakeStream:
    """One stream of a take: its facts, and its times for the match."""

    facts: Facts
    times_ns: Int64
    """(n,) int64 mid-exposure times of one timebase, in arrival order."""
    phase: int | None = None
    max_gap_ns: int | None = None
    trigger_index: Int64 | None = None
    """(n,) int64 hardware pulse count, where the device has one and it holds for the whole take."""
    exposure_ns: Int64 | None = None
    """(n,) int64 exposure of each sample, where the device tells it."""


def match(
    streams: Sequence[TakeStream],
    *,
    reference: str,
    period_ns: int | None,
    limits: Limits,
    edges: Edges | None = None,
    ticks_ns: Int64 | None = None,
    torn: str | None = None,
    recorded: bool = False,
    outcome: str | None = None,
    notes: Sequence[str] = (),
) -> Figures:
    """Matches the required streams and puts all figures together.

    `stamp.tai_utc` and mixed clocks are looked at first: nothing is matched across either.

    Args:
        streams: All streams of the take or recording.
        reference: The stream whose samples number the ticks, unless `ticks_ns` are given.
        period_ns: Nominal period T; None for the median step of the reference.
        limits: `trim_max_ns` and `ceiling_ns` enter the measurement.
        edges: Figures of the recorded pulses.
        ticks_ns: (n,) int64 planned mid-exposures of the recorded pulses, in order of their count; they are the
            reference then, under the name `trigger`.
        torn: What recovery found, in words.
        recorded: Whether the streams come from an evidence file.
        outcome: How the attempt at the task ended; None where nobody tells.
        notes: What a reader of the report should know.

    Raises:
        CannotJudge: when the core cannot take the streams as they are.
    """
    if ticks_ns is not None:
        reference = TRIGGER
    ordered = sorted(streams, key=lambda stream: (stream.facts.name != reference, stream.facts.name))
    figures = Figures(
        reference=reference,
        streams=tuple(stream.facts for stream in ordered),
        edges=edges,
        torn=torn,
        recorded=recorded,
        outcome=outcome,
        notes=tuple(notes),
        columns={stream.facts.name: (stream.times_ns, stream.exposure_ns) for stream in ordered},
    )
    withheld = _withheld(figures, limits)
    sync = None if withheld else _measure(ordered, reference, ticks_ns, period_ns, limits)
    return replace(figures, sync=sync, withheld=withheld)


def _withheld(figures: Figures, limits: Limits) -> str | None:
    if rules_stamp.tai_utc(figures, limits):
        return "stamp.tai_utc"
    if any(reason.pair is not None for reason in rules_stamp.domain(figures, limits)):
        return "stamp.domain"
    return None


def _measure(
    streams: Sequence[TakeStream], reference: str, ticks_ns: Int64 | None, period_ns: int | None, limits: Limits
) -> _core.Figures | None:
    judged = [stream for stream in streams if stream.facts.judged]
    if ticks_ns is None and not any(stream.facts.name == reference and stream.facts.samples for stream in judged):
        return None
    try:
        return _core.measure(
            [
                _core.Stream(
                    stream.facts.name,
                    stream.facts.kind.value,
                    stream.times_ns,
                    period_ns=stream.facts.period_ns,
                    decimate=stream.facts.decimate,
                    phase=stream.phase,
                    max_gap_ns=stream.max_gap_ns,
                    trigger_index=stream.trigger_index,
                    uncertainty_ns=stream.facts.uncertainty_ns,
                    clock=stream.facts.device,
                )
                for stream in judged
            ],
            reference=reference,
            edges_ns=ticks_ns,
            period_ns=period_ns,
            trim_max_ns=limits.trim_max_ns,
            ceiling_ns=limits.ceiling_ns,
        )
    except (ValueError, OverflowError) as exc:
        raise CannotJudge(f"the streams cannot be matched ({exc}); see their stamps and rates") from exc
