"""Rules on stamps: a stream against itself and against its device's clock, before anything is matched."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.wording import count, ms, percent, ratio, seconds
from firsthand_edge.model import Diagnosis, Domain, Fault, Kind, Reason, StampPoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.clock.edges import EdgeCheck
    from firsthand_edge.gate.figures import Facts, Figures, Step
    from firsthand_edge.gate.limits import Limits

__all__ = [
    "backwards",
    "domain",
    "duplicate",
    "float64",
    "future",
    "jump",
    "tai_utc",
    "tai_utc_streams",
    "unit",
    "unverified",
    "wrap",
]

NS_PER_S = 1_000_000_000
WHOLE_SECONDS = range(10, 61)
"""TAI - UTC is 37 s since 2017, GPS - UTC 18 s, TAI - GPS 19 s; the range leaves room for leap seconds to come."""
NEAR_WHOLE_NS = 50_000_000
UNIT_FACTORS = (10**3, 10**6, 10**9)
UNIT_TOLERANCE = 20
"""A twentieth, 5 %."""
FLOAT64_MIN_STAMPS = 30
FLOAT64_MIN_GCD_NS = 64
DOMAIN_NAMES = {
    Domain.PTP: "the rig's timebase",
    Domain.DEVICE: "the device's counter",
    Domain.MONOTONIC: "the host's monotonic clock",
    Domain.UTC: "UTC",
}


def tai_utc(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`stamp.tai_utc`: two streams a whole number of seconds apart, or one that steps by such a number."""
    return [*_tai_utc_steps(figures), *tai_utc_streams(figures.judged)]


def _tai_utc_steps(figures: Figures) -> list[Reason]:
    out = []
    for facts in figures.judged:
        if not facts.stamps.tai_utc_count:
            continue
        step = facts.stamps.first("tai_utc")
        off = 0 if step is None else step.step_ns - (step.expected_ns or 0)
        number = (2 * abs(off) + NS_PER_S) // (2 * NS_PER_S)
        where = "" if step is None else f" by {seconds(step.step_ns)} at sample {step.index}"
        found = Diagnosis(
            Fault.TAI_UTC,
            facts.name,
            f"{facts.name} stepped to another time scale: {_scale(number)}",
            began_ns=None if step is None else figures.since_ns(facts.name, step.index),
            offset_ns=off,
        )
        out.append(
            Reason(
                "stamp.tai_utc",
                f"{facts.name}: stamps step{where} while the device counts on by one; its clock changed its time "
                "scale, so nothing is matched across it. Set the device to the PTP timescale and keep it there.",
                stream=facts.name,
                measured=number,
                limit=0,
                unit="s",
                cause=found.sentence,
                first_sample=None if step is None else step.index,
                diagnosis=(found,),
            )
        )
    return out


def tai_utc_streams(streams: Sequence[Facts]) -> list[Reason]:
    """The two-stream form: first and last stamps both differ by the same whole number of seconds, 10 to 60.

    One reason a stream that is apart, the one apart from most others first; `pair` names the first stream that it
    differs from.

    Args:
        streams: Matched streams, the reference first; their spans are in one timebase.
    """
    apart: dict[tuple[str, str], int] = {}
    for place, one in enumerate(streams):
        for other in streams[place + 1 :]:
            number = _seconds_apart(one, other)
            if number is not None:
                apart[one.name, other.name] = number
    out = []
    while apart:
        involved = Counter(name for pair in apart for name in pair)
        # The stream apart from most; on ties the later one, so that two streams blame the one that is not the
        # reference.
        odd = max(reversed([s.name for s in streams]), key=lambda name: involved[name])
        pair, number = next((pair, number) for pair, number in apart.items() if odd in pair)
        partner = pair[0] if pair[1] == odd else pair[1]
        sign = number if pair[1] == odd else -number
        others = sum(odd in p for p in apart) - 1
        also = f" (and from {count(others, 'other stream')})" if others else ""
        found = Diagnosis(
            Fault.TAI_UTC,
            odd if len(streams) > 2 else None,
            f"{odd} is on another time scale than {partner}: {_scale(abs(number))}",
            began_ns=0,
            offset_ns=sign * NS_PER_S,
        )
        out.append(
            Reason(
                "stamp.tai_utc",
                f"{odd}: all stamps are {abs(number)} s {'later' if sign > 0 else 'earlier'} than those of "
                f"{partner}{also}, "
                "at the first and at the last one; the two are on different time scales, so nothing is matched. Set "
                "both devices to the PTP timescale.",
                stream=odd,
                pair=(partner, odd),
                measured=abs(number),
                limit=0,
                unit="s",
                cause=found.sentence,
                diagnosis=(found,),
            )
        )
        apart = {p: n for p, n in apart.items() if odd not in p}
    return out


def _whole_seconds(difference_ns: int) -> int | None:
    """The whole number of seconds, 10 to 60 either way, that a difference is within 50 ms of."""
    size = abs(difference_ns)
    number = (2 * size + NS_PER_S) // (2 * NS_PER_S)
    if number not in WHOLE_SECONDS or abs(size - number * NS_PER_S) > NEAR_WHOLE_NS:
        return None
    return number if difference_ns > 0 else -number


def _seconds_apart(one: Facts, other: Facts) -> int | None:
    if one.span is None or other.span is None:
        return None
    first = _whole_seconds(other.span.first_ns - one.span.first_ns)
    last = _whole_seconds(other.span.last_ns - one.span.last_ns)
    return first if first == last else None


def _scale(number: int) -> str:
    known = {37: "TAI - UTC", 18: "GPS - UTC", 19: "TAI - GPS"}
    return f"{number} s is {known[number]}" if number in known else f"{number} whole seconds: a time scale, not a delay"


def backwards(figures: Figures, limits: Limits) -> list[Reason]:
    """`stamp.backwards`: samples below the running maximum, beyond the reorder bound that the driver states."""
    out = []
    for facts in figures.required:
        stamps = facts.stamps
        if stamps.backwards <= limits.backwards or stamps.late_by <= facts.reorder_bound:
            continue
        out.append(
            Reason(
                "stamp.backwards",
                f"{facts.name}: {count(stamps.backwards, 'sample')} out of order, the first at sample "
                f"{stamps.first_backwards}, by up to {ms(stamps.largest_backwards_ns)} and {stamps.late_by} places "
                f"({facts.reorder_bound} places and {count(limits.backwards, 'sample')} may be); sorting would hide "
                "a clock that stepped back. See the device's clock and its driver's stamps.",
                stream=facts.name,
                measured=stamps.backwards,
                limit=limits.backwards,
                unit="samples",
                cause=f"stamps went back by up to {ms(stamps.largest_backwards_ns)} at sample {stamps.first_backwards}",
                first_sample=stamps.first_backwards,
            )
        )
    return out


def duplicate(figures: Figures, limits: Limits) -> list[Reason]:
    """`stamp.duplicate`: share of samples whose stamp another sample has already."""
    out = []
    for facts in figures.judged:
        stamps = facts.stamps
        if stamps.samples == 0 or Fraction(stamps.duplicate, stamps.samples) <= limits.duplicate_ratio:
            continue
        share = Fraction(stamps.duplicate, stamps.samples)
        out.append(
            Reason(
                "stamp.duplicate",
                f"{facts.name}: {stamps.duplicate} of {count(stamps.samples, 'sample')} repeat a stamp "
                f"({percent(share)}; {percent(limits.duplicate_ratio)} may be); a stamp that names two samples names "
                "neither. See whether the driver stamps each exposure, or delivers one twice.",
                stream=facts.name,
                measured=ratio(stamps.duplicate, stamps.samples),
                limit=float(limits.duplicate_ratio),
                unit="share",
            )
        )
    return out


def jump(figures: Figures, limits: Limits) -> list[Reason]:
    """`stamp.jump`: steps that neither the sequence nor the arrivals explain.

    Of a stream with neither, a forward step over the limit on silence counts only when no other stream falls silent
    over the same stretch: a recording that paused has not jumped.
    """
    out = []
    for facts in figures.judged:
        jumps = [step for step in facts.stamps.steps if step.kind == "jump"]
        number = facts.stamps.jump_count
        if not (facts.has_sequence or facts.has_arrival):
            silent = facts.span.long_silences if facts.span else ()
            own = [s for s in silent if not _shared(figures, facts, s.start_ns, s.start_ns + s.length_ns)]
            jumps = [step for step in jumps if any(step.step_ns == s.length_ns for s in own)]
            number = len(jumps)
        if number <= limits.jumps:
            continue
        out.append(_jump(facts, jumps[0] if jumps else None, number, limits))
    return out


def _jump(facts: Facts, step: Step | None, number: int, limits: Limits) -> Reason:
    where = ""
    if step is not None:
        due = "" if step.expected_ns is None else f" where {ms(step.expected_ns)} was due"
        where = f", the first at sample {step.index}: {ms(step.step_ns)}{due}"
    known = facts.has_sequence or facts.has_arrival
    why = f"neither count nor arrival explains it{_detail(step)}" if known else "no other stream was silent then"
    return Reason(
        "stamp.jump",
        f"{facts.name}: stamps jump {count(number, 'time')} ({limits.jumps} may be){where}; {why}. The device's "
        "clock was set or restarted: see its log.",
        stream=facts.name,
        measured=number,
        limit=limits.jumps,
        unit="jumps",
        first_sample=None if step is None else step.index,
    )


def _detail(step: Step | None) -> str:
    return f" ({step.detail})" if step is not None and step.detail else ""


def _shared(figures: Figures, facts: Facts, start_ns: int, end_ns: int) -> bool:
    return any(
        silence.start_ns < end_ns and silence.start_ns + silence.length_ns > start_ns
        for other in figures.judged
        if other.name != facts.name and other.span is not None
        for silence in other.span.long_silences
    )


def wrap(figures: Figures, limits: Limits) -> list[Reason]:
    """`stamp.wrap`: a step of minus a power-of-two counter that nobody unwrapped."""
    out = []
    for facts in figures.judged:
        number = facts.stamps.wrap_count
        if number <= limits.wraps:
            continue
        step = facts.stamps.first("wrap")
        where = "" if step is None else f", the first at sample {step.index} by {seconds(step.step_ns)}"
        width = f" of {step.detail}" if step is not None and step.detail else ""
        found = Diagnosis(
            Fault.WRAP,
            facts.name,
            f"{facts.name}'s counter{width} wrapped and was not unwrapped",
            began_ns=None if step is None else figures.since_ns(facts.name, step.index),
            offset_ns=None if step is None else step.step_ns,
        )
        out.append(
            Reason(
                "stamp.wrap",
                f"{facts.name}: a counter wrapped {count(number, 'time')} and was not unwrapped{where}; "
                f"{limits.wraps} may be. State the counter's width, or unwrap before exporting.",
                stream=facts.name,
                measured=number,
                limit=limits.wraps,
                unit="wraps",
                cause=found.sentence,
                first_sample=None if step is None else step.index,
                diagnosis=(found,),
            )
        )
    return out


def unit(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`stamp.unit`: the median step is off nominal by a factor near a power of a thousand."""
    out = []
    for facts in figures.judged:
        step, nominal = facts.stamps.median_step_ns, facts.period_ns
        if step is None or nominal is None or step <= 0:
            continue
        factor = next((f for f in UNIT_FACTORS if _near(step, nominal * f) or _near(step * f, nominal)), None)
        if factor is None:
            continue
        size = "longer" if step > nominal else "shorter"
        sentence = f"{facts.name}'s stamps are off by a factor of {factor}"
        found = Diagnosis(Fault.UNIT, facts.name, sentence, factor=str(factor))
        out.append(
            Reason(
                "stamp.unit",
                f"{facts.name}: the step between samples is {ms(step)} and the nominal period {ms(nominal)}, "
                f"{factor} times {size}; the stamps are in another unit than stated. State the right one.",
                stream=facts.name,
                measured=step,
                limit=nominal,
                unit="ns",
                cause=found.sentence,
                diagnosis=(found,),
            )
        )
    return out


def _near(value: int, target: int) -> bool:
    return abs(value - target) * UNIT_TOLERANCE <= target


def domain(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`stamp.domain`: a stream's stamps changed clock within the take, or matched streams are on different clocks."""
    out = []
    for facts in figures.required:
        change = facts.domain_change
        if change is None:
            continue
        out.append(
            Reason(
                "stamp.domain",
                f"{facts.name}: from sample {change.index} on, stamps are of {DOMAIN_NAMES[change.after]} and no "
                "longer of "
                f"{DOMAIN_NAMES[change.before]}; the two are never subtracted, so the stream ends there. See why the "
                "device changed its clock in mid-take.",
                stream=facts.name,
                measured=1,
                limit=0,
                unit="changes",
                first_sample=change.index,
            )
        )
    native = [facts for facts in figures.judged if facts.grade is Grade.NATIVE and facts.domain is not None]
    for facts in native[1:]:
        one, other = native[0].domain, facts.domain
        if one is None or other is None or one is other:
            continue
        out.append(
            Reason(
                "stamp.domain",
                f"{facts.name} is stamped by {DOMAIN_NAMES[other]} and {native[0].name} by {DOMAIN_NAMES[one]}, and "
                "neither "
                "is mapped; stamps of two clocks are never subtracted, so nothing is matched. State a clock map for "
                "one.",
                stream=facts.name,
                pair=(native[0].name, facts.name),
                measured=2,
                limit=1,
                unit="domains",
            )
        )
    return out


def future(figures: Figures, limits: Limits) -> list[Reason]:
    """`stamp.future`: samples mapped later than their own arrival by more than their uncertainty."""
    out = []
    for facts in figures.required:
        found = facts.future
        if found is None or found.count <= limits.future:
            continue
        out.append(
            Reason(
                "stamp.future",
                f"{facts.name}: {count(found.count, 'sample')} of {facts.samples} would have been taken after they "
                "arrived, by "
                f"up to {ms(found.largest_ns)} beyond their uncertainty, the first at sample {found.first} "
                f"({limits.future} may be); the clock map or the stamp point is wrong.",
                stream=facts.name,
                measured=found.count,
                limit=limits.future,
                unit="samples",
                first_sample=found.first,
            )
        )
    return out


def unverified(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`stamp.unverified`: a required stream whose times nobody can vouch for."""
    out = []
    for facts in figures.required:
        why = []
        if facts.edge_check is not None and facts.edge_check.contradicted:
            why.append(_disproved(facts.edge_check))
        elif facts.grade is Grade.ARRIVAL:
            why.append("its transport's minimum delay was never calibrated, so its stamps are of grade `arrival`")
        if facts.grade is Grade.SYNTHETIC:
            why.append("they were computed from row numbers and a nominal rate, so no clock was read")
        if facts.stamp_point is StampPoint.UNKNOWN:
            why.append("its stamp point is unknown, so the middle of exposure cannot be told")
        if not why:
            continue
        computed = facts.grade is Grade.SYNTHETIC
        advice = "Keep the stamps of a clock with each sample" if computed else "State both for this device and mode"
        out.append(
            Reason(
                "stamp.unverified",
                f"{facts.name}: times cannot be verified: {' and '.join(why)}. {advice}.",
                stream=facts.name,
                measured=facts.samples,
                limit=0,
                unit="samples",
            )
        )
    return out


def _disproved(check: EdgeCheck) -> str:
    """How the trigger edges contradict a stated minimum delay."""
    if check.compared == 0:
        return f"no trigger edge lies where its stated minimum delay puts {check.unpaired} of its exposures"
    side = "before" if check.late_ns > 0 else "after"
    return (
        f"the trigger edges put its samples {abs(check.late_ns) / 1e6:.3f} ms {side} the times that its stated minimum "
        "delay gives, which is beyond the bound of that delay"
    )


def float64(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """Warning `stamp.float64`: all steps are multiples of a power of two of 64 ns or more, or a reader gave floats."""
    out = []
    for facts in figures.required:
        if facts.kind is Kind.EVENT:
            continue
        gcd = facts.stamps.steps_gcd_ns
        power = gcd >= FLOAT64_MIN_GCD_NS and gcd & (gcd - 1) == 0 and facts.stamps.distinct >= FLOAT64_MIN_STAMPS
        if not power and facts.grade is not Grade.FLOAT64:
            continue
        what = f"all steps are multiples of {gcd} ns" if power else "the recording holds floats of seconds"
        out.append(
            Reason(
                "stamp.float64",
                f"{facts.name}: {what}; the stamps were once held as 64-bit floats, so their last digits are not the "
                "device's. Keep stamps as integers from the device on.",
                stream=facts.name,
                measured=gcd if power else None,
                limit=None,
                unit="ns" if power else None,
            )
        )
    return out
