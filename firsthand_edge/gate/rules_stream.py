"""Rules on one stream within the take: is it there all the time, at its rate, and do its pictures change."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from firsthand_edge.gate import causes
from firsthand_edge.gate.wording import count, fixed, percent, seconds
from firsthand_edge.model import Reason

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Facts, Figures, Span
    from firsthand_edge.gate.limits import Limits

__all__ = ["early", "frozen", "late", "lost", "mean_rate_mhz", "rate", "take_span"]


def take_span(figures: Figures) -> tuple[int, int] | None:
    """The take: from the earliest first to the latest last sample of the matched streams."""
    spans = [facts.span for facts in figures.judged if facts.span is not None]
    if not spans:
        return None
    return min(span.first_ns for span in spans), max(span.last_ns for span in spans)


def mean_rate_mhz(span: Span | None) -> int | None:
    """Mean rate in thousandths of a hertz, halves up; None where there are no two times."""
    if span is None or span.steps == 0:
        return None
    length = span.last_ns - span.first_ns
    return (2 * span.steps * 10**12 + length) // (2 * length)


def rate(figures: Figures, limits: Limits) -> list[Reason]:
    """`stream.rate`: the mean rate of what is there, `steps / (last - first)` with repeats removed, against nominal.

    Missing samples lower it, by definition: a stream that is declared at 200 Hz and delivers 100 is off its rate,
    whatever was lost. Where missing samples alone explain it, the reason says so. Exact: no rounding enters the
    comparison.
    """
    out = []
    for facts in figures.judged:
        span, nominal = facts.span, facts.period_ns
        if span is None or nominal is None or span.steps == 0:
            continue
        length = span.last_ns - span.first_ns
        off = abs(Fraction(span.steps * nominal, length) - 1)
        if off <= limits.rate_ratio:
            continue
        mean = fixed(mean_rate_mhz(span) or 0, places=3, keep=2)
        stated = fixed((2 * 10**12 + nominal) // (2 * nominal), places=3, keep=2)
        out.append(
            Reason(
                "stream.rate",
                f"{facts.name}: {mean} Hz over {seconds(length)} where {stated} Hz is nominal, {percent(off)} off "
                f"({percent(limits.rate_ratio)} may be). See the device's mode, its trigger and its link.",
                stream=facts.name,
                measured=_millionths(off),
                limit=float(limits.rate_ratio),
                unit="share",
                cause=_rate_cause(facts, span, nominal, limits),
            )
        )
    return out


def _millionths(value: Fraction) -> float:
    return (2 * value.numerator * 10**6 + value.denominator) // (2 * value.denominator) / 10**6


def _rate_cause(facts: Facts, span: Span, nominal: int, limits: Limits) -> str | None:
    lacking = span.periods - span.steps
    length = span.last_ns - span.first_ns
    if lacking and abs(Fraction(span.periods * nominal, length) - 1) <= limits.rate_ratio:
        return f"{count(lacking, 'sample')} missing between the first and the last one; at its rate otherwise"
    return causes.death(facts)


def late(figures: Figures, limits: Limits) -> list[Reason]:
    """`stream.late`: the first sample more than `trim_max` after the take's start."""
    take = take_span(figures)
    if take is None:
        return []
    out = []
    for facts in figures.judged:
        if facts.span is None:
            continue
        gap = facts.span.first_ns - take[0]
        if gap <= limits.trim_max_ns:
            continue
        out.append(
            Reason(
                "stream.late",
                f"{facts.name}: the first sample comes {seconds(gap)} after the take's start "
                f"({seconds(limits.trim_max_ns)} may be trimmed). Start the take when every device is armed.",
                stream=facts.name,
                measured=gap,
                limit=limits.trim_max_ns,
                unit="ns",
                cause=causes.death(facts),
            )
        )
    return out


def early(figures: Figures, limits: Limits) -> list[Reason]:
    """`stream.early`: the last sample more than `trim_max` before the take's end."""
    take = take_span(figures)
    if take is None:
        return []
    out = []
    for facts in figures.judged:
        if facts.span is None:
            continue
        gap = take[1] - facts.span.last_ns
        if gap <= limits.trim_max_ns:
            continue
        out.append(
            Reason(
                "stream.early",
                f"{facts.name}: the last sample comes {seconds(gap)} before the take's end "
                f"({seconds(limits.trim_max_ns)} may be trimmed). See why the device stopped.",
                stream=facts.name,
                measured=gap,
                limit=limits.trim_max_ns,
                unit="ns",
                cause=causes.death(facts),
            )
        )
    return out


def lost(figures: Figures, limits: Limits) -> list[Reason]:
    """`stream.lost`: silent for longer than `silence_max`, or its device's worker died in mid-take.

    A worker that died costs the take its verdict even when it came back quickly: what it held is gone, and a restarted
    device begins with a clock map that has not settled.
    """
    out = []
    for facts in figures.judged:
        silence = facts.span.silence if facts.span is not None else None
        why = causes.death(facts)
        if silence is not None and silence.length_ns > limits.silence_max_ns:
            tick = causes.tick_at(figures, silence.start_ns)
            out.append(
                Reason(
                    "stream.lost",
                    f"{facts.name}: silent for {seconds(silence.length_ns)} "
                    f"({seconds(limits.silence_max_ns)} may be){_at(tick)}; "
                    f"{count(len(facts.span.long_silences) if facts.span else 1, 'such stretch', 'such stretches')}. "
                    "See the device's link and power.",
                    stream=facts.name,
                    first_tick=tick,
                    measured=silence.length_ns,
                    limit=limits.silence_max_ns,
                    unit="ns",
                    cause=why,
                )
            )
        elif facts.deaths:
            out.append(
                Reason(
                    "stream.lost",
                    f"{facts.name}: the worker of {facts.deaths[0].device} died "
                    f"{count(len(facts.deaths), 'time')} in this take (0 may be); what it held is gone. See its log.",
                    stream=facts.name,
                    measured=len(facts.deaths),
                    limit=0,
                    unit="deaths",
                    cause=why,
                )
            )
    return out


def _at(tick: int | None) -> str:
    return "" if tick is None else f", from tick {tick} on"


def frozen(figures: Figures, limits: Limits) -> list[Reason]:
    """`picture.frozen`: equal payload repeated while stamps advance."""
    out = []
    for facts in figures.judged:
        found = facts.frozen
        if found is None or found.run <= limits.frozen_run or found.first is None:
            continue
        out.append(
            Reason(
                "picture.frozen",
                f"{facts.name}: {found.run} pictures in a row are the same, byte for byte, while their stamps go on "
                f"({limits.frozen_run} may be), from sample {found.first}. The camera stalled: see its driver and "
                "link.",
                stream=facts.name,
                measured=found.run,
                limit=limits.frozen_run,
                unit="pictures",
                first_sample=found.first,
                last_sample=found.last,
            )
        )
    return out
