"""The rule set: which rules there are, in which order they speak, and which of them had nothing to go by."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from firsthand_edge.gate import rules_record, rules_stamp, rules_stream, rules_sync, rules_trigger
from firsthand_edge.gate.figures import Figures
from firsthand_edge.model import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from firsthand_edge.gate.figures import Facts
    from firsthand_edge.gate.limits import Limits
    from firsthand_edge.model import Reason

    Rule: TypeAlias = Callable[[Figures, Limits], list[Reason]]

__all__ = ["REJECTING", "WARNING", "apply", "not_judged"]

REJECTING: tuple[tuple[str, Rule], ...] = (
    ("stamp.tai_utc", rules_stamp.tai_utc),
    ("record.torn", rules_record.torn),
    ("record.overrun", rules_record.overrun),
    ("stamp.domain", rules_stamp.domain),
    ("stamp.unverified", rules_stamp.unverified),
    ("stamp.unit", rules_stamp.unit),
    ("stamp.wrap", rules_stamp.wrap),
    ("stamp.backwards", rules_stamp.backwards),
    ("stamp.jump", rules_stamp.jump),
    ("stamp.duplicate", rules_stamp.duplicate),
    ("stamp.future", rules_stamp.future),
    ("stream.late", rules_stream.late),
    ("stream.early", rules_stream.early),
    ("stream.lost", rules_stream.lost),
    ("stream.rate", rules_stream.rate),
    ("picture.frozen", rules_stream.frozen),
    ("trigger.missed", rules_trigger.missed),
    ("trigger.doubled", rules_trigger.doubled),
    ("trigger.rate", rules_trigger.rate),
    ("sync.no_ticks", rules_sync.no_ticks),
    ("sync.missing", rules_sync.missing),
    ("sync.ceiling", rules_sync.ceiling),
    ("take.outcome_not_retained", rules_record.outcome_not_retained),
)
"""Reasons come out in this order: what breaks the times themselves first, what follows from it after that; what has
nothing to do with the recording last."""

WARNING: tuple[tuple[str, Rule], ...] = (
    ("stamp.float64", rules_stamp.float64),
    ("sync.near", rules_sync.near),
    ("trigger.first_missed", rules_trigger.first_missed),
)

ROOMS = ("calibration.*", "clock.*", "consent.*")
"""Families whose rooms this rule set does not ask."""

NEEDS_ONE_TIMEBASE = frozenset({"stream.early", "stream.late"})
"""Rules that compare the times of streams without matching them."""
NEEDS_STEADY_SCALE = frozenset({"stream.lost", "stream.rate"})
"""Rules that a step of a stream's time scale would set off a second time."""


def apply(figures: Figures, limits: Limits) -> Verdict:
    """The verdict: every rule asked, in order. Accepted when none of the rejecting ones has a reason."""
    reasons = [reason for code, rule in REJECTING for reason in rule(_seen_by(code, figures), limits)]
    warnings = [reason for _, rule in WARNING for reason in rule(figures, limits)]
    return Verdict(
        accepted=not reasons,
        reasons=tuple(reasons),
        warnings=tuple(warnings),
        not_judged=tuple(sorted(set(not_judged(figures, limits)))),
    )


def _stepped(facts: Facts) -> bool:
    return facts.stamps.tai_utc_count > 0


def _seen_by(code: str, figures: Figures) -> Figures:
    """The figures that a rule may look at: across two time scales nothing is compared."""
    if figures.withheld is None:
        return figures
    if code in NEEDS_ONE_TIMEBASE:
        return Figures(reference=figures.reference, streams=(), withheld=figures.withheld)
    if code in NEEDS_STEADY_SCALE:
        steady = tuple(facts for facts in figures.streams if not _stepped(facts))
        return Figures(reference=figures.reference, streams=steady, withheld=figures.withheld)
    return figures


def not_judged(figures: Figures, limits: Limits) -> Iterator[str]:
    """Codes of the rules that had nothing to go by, `code:stream` where that holds for some streams only.

    A rule named here is neither passed nor failed. `stamp.tai_utc:stream` is the form of that rule that looks at the
    steps of one stream; the form that compares two streams needs their times alone.
    """
    yield from ROOMS
    if figures.withheld is not None:
        yield "sync.*"
        yield from NEEDS_ONE_TIMEBASE
        yield from (f"{code}:{f.name}" for code in NEEDS_STEADY_SCALE for f in figures.judged if _stepped(f))
    else:
        yield from _unmatched(figures, limits)
    if figures.edges is None or figures.edges.period_ns is None:
        yield from ("trigger.doubled", "trigger.missed", "trigger.rate")
    if not figures.recorded:
        yield "record.torn"
    if not limits.retain_failures and figures.outcome in {None, "unstated"}:
        yield "take.outcome_not_retained"
    judged, required = figures.judged, figures.required
    for code in ("stream.rate", "stamp.unit"):
        yield from _lacking(code, judged, lambda f: f.period_ns is not None)
    yield from _lacking("record.overrun", required, lambda f: f.loss is not None)
    yield from _lacking("stamp.domain", required, lambda f: f.domain is not None)
    yield from _lacking("stamp.future", required, lambda f: f.future is not None)
    yield from _lacking("stamp.unverified", required, lambda f: not f.grade.at_its_word)
    yield from (f"stamp.tai_utc:{f.name}" for f in judged if f.samples and not f.has_sequence)
    # A camera's pictures may come as bytes of any media; what has no picture at all, as an IMU, has none to be frozen.
    pictures = [
        f for f in judged if f.frozen is not None or f.media is None or (f.kind is Kind.TRIGGERED and f.samples)
    ]
    yield from _lacking("picture.frozen", pictures, lambda f: f.frozen is not None)


def _unmatched(figures: Figures, limits: Limits) -> Iterator[str]:
    """The rules on the match where there was no match; `sync.no_ticks` says why."""
    residuals = rules_sync.held(figures, limits)
    if residuals is None or residuals.ticks == 0:
        yield "sync.ceiling"
    rows = {} if figures.sync is None else figures.sync.streams
    yield from _lacking("sync.missing", figures.judged, lambda f: f.name in rows and rows[f.name].expected > 0)


def _lacking(code: str, streams: tuple[Facts, ...] | list[Facts], has: Callable[[Facts], bool]) -> Iterator[str]:
    without = [facts.name for facts in streams if not has(facts)]
    if without and len(without) == len(streams):
        yield code
    else:
        yield from (f"{code}:{name}" for name in without)
