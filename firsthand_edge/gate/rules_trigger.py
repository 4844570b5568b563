"""Rules on the trigger: its recorded pulses, and which streams missed the first of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from firsthand_edge.gate.figures import TRIGGER
from firsthand_edge.gate.wording import count, percent, ratio
from firsthand_edge.model import Kind, Reason

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Figures
    from firsthand_edge.gate.limits import Limits

__all__ = ["doubled", "first_missed", "missed", "rate"]


def missed(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`trigger.missed`: the recorded pulses leave out some that were due."""
    edges = figures.edges
    if edges is None or edges.missed == 0:
        return []
    return [
        Reason(
            "trigger.missed",
            f"The trigger left out {count(edges.missed, 'pulse')} between {edges.pulses} recorded ones (0 may be), "
            f"the first before pulse {edges.first_missed}. See the trigger board and its cable.",
            measured=edges.missed,
            limit=0,
            unit="pulses",
            first_tick=edges.first_missed,
        )
    ]


def doubled(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`trigger.doubled`: two pulses within half a period."""
    edges = figures.edges
    if edges is None or edges.doubled == 0:
        return []
    return [
        Reason(
            "trigger.doubled",
            f"{count(edges.doubled, 'pulse')} of {edges.pulses} came within half a period of the one before (0 may "
            f"be), the first is pulse {edges.first_doubled}. See the trigger line for noise.",
            measured=edges.doubled,
            limit=0,
            unit="pulses",
            first_tick=edges.first_doubled,
        )
    ]


def rate(figures: Figures, limits: Limits) -> list[Reason]:
    """`trigger.rate`: the mean rate of the recorded pulses is off nominal."""
    edges = figures.edges
    if edges is None or edges.period_ns is None or edges.span_ns == 0:
        return []
    off = abs(Fraction((edges.pulses - 1) * edges.period_ns, edges.span_ns) - 1)
    if off <= limits.rate_ratio:
        return []
    return [
        Reason(
            "trigger.rate",
            f"The trigger's mean rate is {percent(off)} off nominal ({percent(limits.rate_ratio)} may be). See the "
            "trigger's settings.",
            measured=ratio(off.numerator, off.denominator),
            limit=float(limits.rate_ratio),
            unit="share",
        )
    ]


def first_missed(figures: Figures, limits: Limits) -> list[Reason]:
    """Warning `trigger.first_missed`: triggered streams that begin one or more pulses after the earliest one.

    Those ticks are trimmed and the take is matched by time. Pairing by index would slip by as many ticks in the whole
    take. Later than `trim_max` is `stream.late` and no longer this warning.
    """
    sync = figures.sync
    if sync is None or sync.period_ns == 0:
        return []
    triggered = [f for f in figures.judged if f.kind is Kind.TRIGGERED and f.span is not None]
    reference = next((f for f in triggered if f.name == figures.reference), None)
    period = sync.period_ns
    if reference is not None and reference.span is not None:
        zero = reference.span.first_ns
    elif figures.reference == TRIGGER and sync.tick.size:
        zero = int(sync.reference_ns[0]) - int(sync.tick[0]) * period
    else:
        return []
    starts = {f.name: (2 * (f.span.first_ns - zero) + period) // (2 * period) for f in triggered if f.span is not None}
    # Edges number the pulses themselves; of streams alone, the earliest one shows where the pulses began.
    begin = 0 if figures.reference == TRIGGER else min(starts.values())
    out = []
    for facts in triggered:
        row = sync.streams.get(facts.name)
        if row is None or (starts[facts.name] - begin) * period > limits.trim_max_ns:
            continue
        # Numbers from `begin` on and below the stream's first one that are at its phase.
        pulses = -(-(starts[facts.name] - row.phase) // row.decimate) + (row.phase - begin) // row.decimate
        if pulses == 0:
            continue
        out.append(
            Reason(
                "trigger.first_missed",
                f"{facts.name}: missed the first {'pulse' if pulses == 1 else f'{pulses} pulses'}; matched by time, "
                "and the ticks before its "
                "first sample are trimmed. Wait until every camera reports armed before the first pulse.",
                stream=facts.name,
                measured=pulses,
                limit=0,
                unit="pulses",
                first_tick=begin,
                last_tick=starts[facts.name] - 1,
            )
        )
    return out
