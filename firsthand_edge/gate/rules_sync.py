"""Rules on the match of streams: how far they disagree, what is missing, whether there is anything to judge."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from firsthand_edge.gate import causes, rules_stamp
from firsthand_edge.gate.diagnosis import diagnose
from firsthand_edge.gate.wording import count, listed, ms, percent, ratio
from firsthand_edge.model import Reason

if TYPE_CHECKING:
    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Figures
    from firsthand_edge.gate.limits import Limits

__all__ = ["ceiling", "held", "missing", "near", "no_ticks", "statistic_ns"]

STATISTIC_NAMES = {"max": "by up to", "p99": "in their 99th percentile by", "p99.9": "in their 99.9th percentile by"}


def held(figures: Figures, limits: Limits) -> _core.Residuals | None:
    """The residuals that the ceiling is held against: R, or G with a guard band. None when nothing was matched."""
    if figures.sync is None:
        return None
    return figures.sync.guarded if limits.guard_band else figures.sync.residual


def statistic_ns(residuals: _core.Residuals, limits: Limits) -> int | None:
    """The chosen order statistic."""
    by_name = {"max": residuals.max_ns, "p99": residuals.p99_ns, "p99.9": residuals.p999_ns}
    return by_name[limits.statistic]


def no_ticks(figures: Figures, limits: Limits) -> list[Reason]:
    """`sync.no_ticks`: a required stream is absent, or fewer ticks could be judged than the limit asks for."""
    absent = [facts.name for facts in figures.judged if facts.samples == 0]
    out = [
        Reason(
            "sync.no_ticks",
            f"{name}: required, and the recording holds no sample of it; without it there is nothing to judge. See "
            "whether its device was there.",
            stream=name,
            measured=0,
            limit=1,
            unit="samples",
            cause=causes.death(figures.stream(name)),
        )
        for name in absent
    ]
    if absent or figures.withheld is not None:
        return out
    residuals = held(figures, limits)
    ticks = residuals.ticks if residuals is not None else 0
    if ticks < limits.min_ticks:
        span = figures.sync.ticks if figures.sync is not None else 0
        alone = len(figures.judged) < 2
        why = "there is one stream and nothing to compare it with" if alone else f"{count(span, 'tick')} in the span"
        out.append(
            Reason(
                "sync.no_ticks",
                f"{count(ticks, 'tick')} could be judged and {limits.min_ticks} must be: {why}. Record longer, or "
                "see why the streams do not overlap or match.",
                measured=ticks,
                limit=limits.min_ticks,
                unit="ticks",
            )
        )
    return out


def ceiling(figures: Figures, limits: Limits) -> list[Reason]:
    """`sync.ceiling`: the chosen statistic of the residual is over the ceiling."""
    residuals = held(figures, limits)
    if figures.sync is None or residuals is None:
        return []
    measured = statistic_ns(residuals, limits)
    if measured is None or measured <= limits.ceiling_ns:
        return []
    pair = residuals.worst_pair
    who = listed(pair) if pair else "the streams"
    series_ns = figures.sync.guarded_ns if limits.guard_band else figures.sync.residual_ns
    off_unit = {reason.stream for reason in rules_stamp.unit(figures, limits) if reason.stream}
    found, cause = diagnose(figures, figures.sync, ceiling_ns=limits.ceiling_ns, series_ns=series_ns, but=off_unit)
    guard = " with their uncertainties" if limits.guard_band else ""
    return [
        Reason(
            "sync.ceiling",
            f"{who} disagree{guard} {STATISTIC_NAMES[limits.statistic]} {ms(measured)}, the worst at tick "
            f"{residuals.worst_tick}; {residuals.over_ceiling} of {count(residuals.ticks, 'judged tick')} are over "
            f"the ceiling of {ms(limits.ceiling_ns)}, the first at tick {residuals.first_over_tick}"
            f"{f'; {cause}' if cause else ''}.",
            stream=next((one.stream for one in found if one.stream), causes.culprit(figures, pair) if pair else None),
            pair=pair,
            first_tick=residuals.first_over_tick,
            last_tick=residuals.last_over_tick,
            measured=measured,
            limit=limits.ceiling_ns,
            unit="ns",
            cause=cause or None,
            diagnosis=found,
        )
    ]


def missing(figures: Figures, limits: Limits) -> list[Reason]:
    """`sync.missing`: missing / expected of a stream, the reference included, or its longest run, over the limit."""
    if figures.sync is None:
        return []
    out = []
    for facts in figures.judged:
        row = figures.sync.streams.get(facts.name)
        if row is None or row.expected == 0 or facts.samples == 0:
            continue  # a stream that is wholly absent is `sync.no_ticks`
        share = Fraction(row.missing, row.expected)
        by_share, by_run = share > limits.missing_ratio, row.longest_missing_run > limits.missing_run
        if not (by_share or by_run):
            continue
        reference = " (as reference: ticks with no time to judge them at)" if facts.name == figures.reference else ""
        out.append(
            Reason(
                "sync.missing",
                f"{facts.name}: {row.missing} of {count(row.expected, 'expected tick')} missing{reference}, "
                f"{percent(share)} ({percent(limits.missing_ratio)} may be); the longest run is "
                f"{count(row.longest_missing_run, 'tick')} "
                f"({limits.missing_run} may be), the first at tick {row.first_missing_tick}. See the camera's "
                "trigger cable, link and driver.",
                stream=facts.name,
                first_tick=row.first_missing_tick if by_share else row.longest_missing_first_tick,
                last_tick=row.last_missing_tick if by_share else causes.end_of_run(row),
                measured=ratio(row.missing, row.expected) if by_share else row.longest_missing_run,
                limit=float(limits.missing_ratio) if by_share else limits.missing_run,
                unit="share" if by_share else "ticks",
                cause=causes.of_missing(facts),
            )
        )
    return out


def near(figures: Figures, limits: Limits) -> list[Reason]:
    """Warning `sync.near`: the statistic passes, and is within a tenth of the ceiling."""
    residuals = held(figures, limits)
    measured = statistic_ns(residuals, limits) if residuals is not None else None
    if residuals is None or measured is None or measured > limits.ceiling_ns:
        return []
    if measured < limits.near_ratio * limits.ceiling_ns:
        return []
    who = listed(residuals.worst_pair) if residuals.worst_pair else "the streams"
    return [
        Reason(
            "sync.near",
            f"{who} disagree {STATISTIC_NAMES[limits.statistic]} {ms(measured)} at tick {residuals.worst_tick}, "
            f"close to the ceiling of {ms(limits.ceiling_ns)}. See to it before a take is lost.",
            pair=residuals.worst_pair,
            first_tick=residuals.worst_tick,
            measured=measured,
            limit=limits.ceiling_ns,
            unit="ns",
        )
    ]
