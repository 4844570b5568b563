"""Judging what anybody recorded: our own episodes, other recordings, plain lists of stamps (sync.md section 7).

Stamps of others are taken as declared mid-exposure times, and the report says so, and what they are worth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge import _core
from firsthand_edge.errors import CannotJudge, UsageError
from firsthand_edge.gate import rules
from firsthand_edge.gate.figures import Facts, Grade, Stamps, span_of
from firsthand_edge.gate.limits import Limits, Statistic
from firsthand_edge.gate.matching import TakeStream, match
from firsthand_edge.gate.recordings import read_recording
from firsthand_edge.gate.report import report
from firsthand_edge.gate.stamp_lists import Unit, read_stamps
from firsthand_edge.gate.verdict import Judgement, examine
from firsthand_edge.gate.wording import count, listed, seconds
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from firsthand_edge.gate.channels import Channel, Progress, Recording, StampSource
    from firsthand_edge.gate.figures import Int64
    from firsthand_edge.spec.document import Spec, StreamSpec

__all__ = ["StreamChoice", "audit", "audit_stamps", "evidence_of", "parse_stream"]

DEFAULT_REFERENCE = "head"
KEYS = ("unit", "kind", "rate", "decimate", "offset_ns")
KEY_VALUE = re.compile(r"[A-Za-z_]+=[^=]*")
FAR_NS = 3600 * 10**9
TAKEN_AS = "Stamps are taken as declared mid-exposure times."
UNJUDGED_ROWS = (
    "the row clock is on a time axis of its own and not judged beside other stamps; name it with --stream, or as the "
    "reference, to have it judged."
)
NO_SEQUENCES = (
    "No sequence numbers: a step of a time scale within a stream is not told from other jumps, and a jump counts "
    "only as a silence that no other stream shares."
)


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """One `--stream`: a channel of the recording or a file of stamps, and how to judge it. None: not stated."""

    name: str
    file: Path | None = None
    unit: Unit | None = None
    kind: Kind | None = None
    rate_hz: Decimal | Fraction | None = None
    decimate: int | None = None
    offset_ns: int = 0

    @property
    def period_ns(self) -> int | None:
        """Nominal period: 1e9 / rate, rounded half up."""
        if self.rate_hz is None:
            return None
        exact = 10**9 / Fraction(self.rate_hz)
        return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def parse_stream(text: str | StreamChoice, *, is_file: bool) -> StreamChoice:
    """Reads `NAME=FILE[,key=value...]`, or `CHANNEL[,key=value...]` for a recording; a choice stays what it is.

    Raises:
        UsageError: for an unknown key, a value that is none, or a missing part.
    """
    if isinstance(text, StreamChoice):
        return text
    parts = text.split(",")
    values: dict[str, str] = {}
    # A path or a channel may hold commas; what follows the last part that is no `key=value` are the keys.
    while len(parts) > 1 and KEY_VALUE.fullmatch(parts[-1]):
        key, value = parts.pop().split("=", 1)
        if key in values:
            raise UsageError(f"--stream {text}: `{key}` is there twice; state it once")
        values[key] = value
    unknown = sorted(set(values) - set(KEYS))
    if unknown:
        raise UsageError(f"--stream {text}: unknown key `{unknown[0]}`; keys are {', '.join(KEYS)}")
    head = ",".join(parts)
    name, equals, file = head.partition("=")
    if is_file and not (name and equals and file):
        raise UsageError(f"--stream {text}: write NAME=FILE, or name a recording before it")
    if not is_file and not head:
        raise UsageError(f"--stream {text}: name a channel of the recording")
    choice = StreamChoice(
        _readable(name if is_file else head),
        Path(file) if is_file else None,
        unit=_value(text, values, "unit", Unit, f"one of {', '.join(Unit)}"),
        kind=_value(text, values, "kind", Kind, f"one of {', '.join(Kind)}"),
        rate_hz=_value(text, values, "rate", _rate, "a rate in Hz between 0.001 and 1000000"),
        decimate=_value(text, values, "decimate", _decimate, "a whole number from 1 on"),
        offset_ns=_value(text, values, "offset_ns", _offset, "a whole number of nanoseconds within an hour") or 0,
    )
    if choice.unit is not None and not is_file:
        raise UsageError(f"--stream {text}: `unit` is for lists of stamps; a recording's stamps have their unit")
    if (choice.decimate or 1) != 1 and choice.kind not in (None, Kind.TRIGGERED):
        raise UsageError(f"--stream {text}: `decimate` is for triggered streams; leave it out")
    return choice


def _readable(name: str) -> str:
    """A name as text: bytes of the command line that are no UTF-8 are written as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _value(text: str, values: dict[str, str], key: str, read: Callable[[str], Any], wanted: str) -> Any:
    if key not in values:
        return None
    try:
        return read(values[key])
    except (ValueError, InvalidOperation) as exc:
        raise UsageError(f"--stream {text}: `{key}={values[key]}` is not {wanted}") from exc


def _rate(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite() or not Decimal("0.001") <= value <= 1_000_000:
        raise ValueError(text)
    return value


def _decimate(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000_000:
        raise ValueError(text)
    return value


def _offset(text: str) -> int:
    value = int(text)
    if abs(value) > 3600 * 10**9:
        raise ValueError(text)
    return value


def evidence_of(recording: Path) -> Path | None:
    """The evidence of one of our own episodes: its folder, its `episode.mcap` or its `evidence.mcap` may be named."""
    if recording.name == "evidence.mcap":
        return recording
    folder = recording if recording.is_dir() else recording.parent if recording.name == "episode.mcap" else None
    if folder is None:
        return None
    evidence = folder / "evidence.mcap"
    return evidence if evidence.is_file() else None


@dataclass(frozen=True, slots=True, eq=False)
class _Input:
    """A stream to be judged, wherever it came from."""

    name: str
    times_ns: Int64
    kind: Kind
    source: dict[str, Any]
    choice: StreamChoice
    required: bool = True
    """Whatever is named; of a recording that nothing is named of, all but its events and a data set's row clock."""
    unstamped: int = 0
    grade: Grade = Grade.DECLARED
    period_ns: int | None = None
    """As the recording states it."""
    of_rows: bool = False


def audit(
    recording: Path | None = None,
    streams: Sequence[str | StreamChoice] = (),
    *,
    reference: str | None = None,
    spec: Spec | None = None,
    ceiling_ns: int | None = None,
    statistic: Statistic | None = None,
    stamps: StampSource | None = None,
    episode: int | None = None,
    progress: Progress | None = None,
) -> Judgement:
    """Judges a recording or lists of stamps.

    Args:
        recording: An episode of ours, an MCAP, a ROS 1 bag, a VRS file, the folder of a LeRobot data set; None for
            lists.
        streams: Channels of the recording, or `NAME=FILE`, as choices or `--stream` arguments. Every one is required.
        reference: The triggered stream whose samples number the ticks; None for the spec's, else `head`.
        spec: Limits, kinds, rates and required streams.
        ceiling_ns: Ceiling in place of the spec's.
        statistic: Statistic in place of the spec's.
        stamps: Which times of an MCAP or a bag to take.
        episode: Which episode of a data set.
        progress: Told how far files are read, in bytes; what it raises ends the audit.

    Raises:
        UsageError: when the arguments do not fit the recording.
        CannotJudge: when it cannot be read, or there is nothing that could be judged either way.
    """
    limits = Limits.of_spec(spec) if spec is not None else Limits()
    if recording is None:
        if not streams:
            raise UsageError("name a recording, or lists of stamps with --stream NAME=FILE; --help shows both")
        if stamps is not None:
            raise UsageError("--stamps chooses among the times of an MCAP; lists of stamps have one, so leave it out")
        if episode is not None:
            raise UsageError("--episode chooses among the episodes of a LeRobot data set; leave it out")
        choices = [parse_stream(text, is_file=True) for text in streams]
        inputs, notes, form = *_lists(choices, spec, progress), "lists"
        found = None
    else:
        evidence = evidence_of(recording)
        foreign = bool(streams) or reference is not None or stamps is not None or episode is not None
        if evidence is not None and (not foreign or evidence == recording):
            if foreign:
                raise UsageError(
                    f"{recording} is evidence and says itself what is judged; leave --stream, --reference and "
                    f"--stamps out{', and --episode' if episode is not None else ''}"
                )
            base = limits if spec is not None else None
            return _own(evidence, spec, base, ceiling_ns=ceiling_ns, statistic=statistic, progress=progress)
        episode_file = recording / "episode.mcap"
        path = episode_file if episode_file.is_file() else recording
        found = read_recording(path, stamps=stamps, episode=episode, progress=progress)
        if not found.channels:
            raise CannotJudge(f"{path} holds no samples, so there is nothing to judge; see whether its recorder ran")
        choices = [parse_stream(text, is_file=False) for text in streams]
        inputs, notes, form = _channels(found, choices, spec), list(found.notes), found.format
    limits = _overridden(limits, ceiling_ns, statistic)
    named = _reference(inputs, reference, spec, found)
    inputs = [replace(stream, required=True) if stream.name == named else stream for stream in inputs]
    notes += [f"{stream.name}: {UNJUDGED_ROWS}" for stream in inputs if stream.of_rows and not stream.required]
    about = {} if found is None or found.episode is None else {"episode": found.episode}
    return _judged(inputs, reference=named, spec=spec, limits=limits, form={"recording": form, **about}, notes=notes)


def audit_stamps(
    stamps: Sequence[tuple[StreamChoice, Int64]],
    *,
    reference: str | None = None,
    spec: Spec | None = None,
    ceiling_ns: int | None = None,
    statistic: Statistic | None = None,
) -> Judgement:
    """Judges lists of stamps that are in memory, as `audit` judges those of files.

    Args:
        stamps: Each stream and its (n,) int64 nanoseconds in arrival order, none absent. They are not copied.
        reference: As of `audit`, and all that follows.
        spec: Limits, kinds, rates and required streams.
        ceiling_ns: Ceiling in place of the spec's.
        statistic: Statistic in place of the spec's.

    Raises:
        UsageError: when the arguments do not fit one another.
        CannotJudge: when the streams cannot be matched.
    """
    _refuse_twins([choice.name for choice, _ in stamps])
    inputs = []
    for choice, times_ns in stamps:
        wanted = spec.stream(choice.name) if spec is not None else None
        kind = choice.kind or (wanted.kind if wanted is not None else Kind.TRIGGERED)
        source = {"unit": Unit.NS.value, "taken_as": "mid-exposure"}
        inputs.append(_Input(choice.name, times_ns, kind, source, choice))
    limits = _overridden(Limits.of_spec(spec) if spec is not None else Limits(), ceiling_ns, statistic)
    named = _reference(inputs, reference, spec, None)
    return _judged(inputs, reference=named, spec=spec, limits=limits, form={"recording": "lists"}, notes=[])


def _own(
    evidence: Path,
    spec: Spec | None,
    limits: Limits | None,
    *,
    ceiling_ns: int | None,
    statistic: Statistic | None,
    progress: Progress | None,
) -> Judgement:
    if limits is None and (ceiling_ns is not None or statistic is not None):
        from firsthand_edge.gate.evidence import Evidence
        from firsthand_edge.gate.verdict import spec_of

        limits = Limits.of_spec(spec_of(Evidence.read(evidence)))
    if limits is not None:
        limits = _overridden(limits, ceiling_ns, statistic)
    return examine(evidence, spec, limits=limits, progress=progress)


def _overridden(limits: Limits, ceiling_ns: int | None, statistic: Statistic | None) -> Limits:
    if ceiling_ns is not None:
        limits = replace(limits, ceiling_ns=ceiling_ns)
    return limits if statistic is None else replace(limits, statistic=statistic)


def _lists(
    choices: Sequence[StreamChoice], spec: Spec | None, progress: Progress | None
) -> tuple[list[_Input], list[str]]:
    """The lists as streams, and what a reader of the report should know of them."""
    _refuse_twins([choice.name for choice in choices])
    inputs, notes = [], []
    for choice in choices:
        if choice.file is None:
            raise UsageError(f"--stream {choice.name}: write NAME=FILE")
        found = read_stamps(choice.file, choice.unit or Unit.AUTO, progress)
        source: dict[str, Any] = {"file": str(choice.file), "unit": found.unit.value, "taken_as": "mid-exposure"}
        if found.rounded:
            source["rounded"] = found.rounded
        if found.repeated_headers:
            source["repeated_headers"] = found.repeated_headers
            lines = count(found.repeated_headers, "line repeats a header", "lines repeat a header")
            notes.append(f"{choice.name}: {lines} in the middle of the list, as joined files do; skipped.")
        wanted = spec.stream(choice.name) if spec is not None else None
        kind = choice.kind or (wanted.kind if wanted is not None else Kind.TRIGGERED)
        inputs.append(_Input(choice.name, found.times_ns, kind, source, choice))
    return inputs, notes


def _channels(found: Recording, choices: Sequence[StreamChoice], spec: Spec | None) -> list[_Input]:
    """The channels that are judged: those named, else those of the spec, else all that are no events."""
    if choices:
        chosen = [(found.channel(choice.name), choice) for choice in choices]
    elif spec is not None:
        there = {channel.name.lstrip("/"): channel for channel in found.channels}
        chosen = [(there[s.name], StreamChoice(s.name)) for s in spec.required if s.name in there]
    else:
        chosen = [(channel, StreamChoice(channel.name)) for channel in found.channels]
    _refuse_twins([channel.name for channel, _ in chosen])
    return [_channel_input(channel, choice, spec, named=bool(choices)) for channel, choice in chosen]


def _channel_input(channel: Channel, choice: StreamChoice, spec: Spec | None, *, named: bool) -> _Input:
    wanted = spec.stream(choice.name) if spec is not None else None
    stated = choice.kind or (wanted.kind if wanted is not None else None)
    # Naming a channel makes it required; `kind=` says how, else what the recording is.
    kind = stated or channel.kind
    name = choice.name if named or wanted is not None else channel.name
    source = {"stamps": channel.stamps, "taken_as": "mid-exposure"}
    required = named or wanted is not None or not (kind is Kind.EVENT or channel.of_rows)
    return _Input(
        name,
        channel.times_ns,
        kind,
        source,
        choice,
        required,
        unstamped=channel.unstamped,
        grade=channel.grade,
        period_ns=channel.period_ns,
        of_rows=channel.of_rows,
    )


def _refuse_twins(names: Sequence[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise UsageError(f"stream `{twins[0]}` is named twice; give each stream its own name")


def _reference(inputs: Sequence[_Input], reference: str | None, spec: Spec | None, found: Recording | None) -> str:
    """The name of the stream that numbers the ticks.

    Raises:
        UsageError: listing the streams, or all channels of the recording, when it is not there or cannot number ticks.
    """
    there = _described(inputs) if found is None else found.described()
    wanted = _readable(reference) if reference else (spec.sync.reference if spec is not None else DEFAULT_REFERENCE)
    for name in (wanted, f"/{wanted}"):
        for stream in inputs:
            if stream.name != name:
                continue
            if stream.kind is not Kind.TRIGGERED:
                raise UsageError(
                    f"the reference `{name}` is {stream.kind.value}; only a triggered stream numbers ticks, so name "
                    f"another with --reference, or add `,kind=triggered` to its --stream: {there}"
                )
            if (stream.choice.decimate or 1) != 1:
                raise UsageError(f"the reference `{name}` has a sample for each tick; leave `decimate` out")
            return name
    if found is not None and found.has(wanted):
        raise UsageError(
            f"the reference `{wanted}` is not among the streams that are judged; add it with --stream, or name another "
            f"with --reference: {there}"
        )
    raise UsageError(f"there is no stream `{wanted}` to be the reference; name one with --reference: {there}")


def _described(inputs: Sequence[_Input]) -> str:
    return (
        ", ".join(f"{i.name} ({i.kind.value}, {count(i.times_ns.size, 'sample')})" for i in inputs) or "there is none"
    )


def _judged(
    inputs: Sequence[_Input],
    *,
    reference: str,
    spec: Spec | None,
    limits: Limits,
    form: dict[str, Any],
    notes: list[str],
) -> Judgement:
    streams = [_stream(found, spec.stream(found.name) if spec is not None else None, limits) for found in inputs]
    there = {found.name for found in inputs}
    if spec is not None:
        streams += [
            TakeStream(Facts(s.name, s.kind, period_ns=s.period_ns, decimate=s.decimate), np.empty(0, np.int64))
            for s in spec.required
            if s.name not in there and f"/{s.name}" not in there
        ]
    base = next(stream.facts for stream in streams if stream.facts.name == reference)
    slower = _slower([stream.facts for stream in streams], base)
    figures = match(
        streams,
        reference=reference,
        period_ns=base.period_ns,
        limits=limits,
        notes=[
            TAKEN_AS,
            _sources(inputs),
            *_warnings(inputs),
            *_far_apart(inputs, reference),
            *slower,
            NO_SEQUENCES,
            *notes,
        ],
    )
    verdict = rules.apply(figures, limits)
    bound: dict[str, Any] = {**form, "sources": {found.name: found.source for found in inputs}}
    if spec is not None:
        bound["spec"] = {"id": spec.id, "version": spec.version, "digest": spec.digest}
    return Judgement(figures, verdict, report(figures, verdict, limits, bound=bound))


def _sources(inputs: Sequence[_Input]) -> str:
    """Which times or which unit each stream was read in: `Times used: header of head; log of wrist.`."""
    by_source: dict[str, list[str]] = {}
    for found in inputs:
        key = "stamps" if "stamps" in found.source else "unit"
        by_source.setdefault(f"{found.source[key]} {'of' if key == 'stamps' else 'in'}", []).append(found.name)
    parts = [f"{source} {listed(names)}" for source, names in sorted(by_source.items())]
    return f"Times used: {'; '.join(parts)}."


def _warnings(inputs: Sequence[_Input]) -> list[str]:
    """What the times of a stream are not, where they are no stamps of capture."""
    told = (
        (Grade.RECEIVED, "log times are when the recorder received a sample, not when it was taken"),
        (Grade.SENT, "publish times are when a sample was sent, not when it was taken"),
    )
    notes = []
    for grade, sentence in told:
        names = [found.name for found in inputs if found.grade is grade and found.required]
        if names:
            notes.append(f"{listed(names)}: {sentence} (grade `{grade.value}`).")
    received = [found.name for found in inputs if found.grade is Grade.RECEIVED and found.required]
    stamped = [found.name for found in inputs if found.source.get("stamps") == "header" and found.required]
    if received and stamped:
        notes.append(
            f"Stamps in messages of {listed(stamped)} are held against log times of {listed(received)}, so transport "
            "counts as disagreement; --stamps log compares like with like."
        )
    return notes


def _far_apart(inputs: Sequence[_Input], reference: str) -> list[str]:
    """Streams that are hours away from the reference, as happens when they count from different beginnings."""
    spans = {i.name: (int(i.times_ns.min()), int(i.times_ns.max())) for i in inputs if i.required and i.times_ns.size}
    if reference not in spans:
        return []
    begin, end = spans.pop(reference)
    notes = []
    for name, (first, last) in spans.items():
        away = max(first - end, begin - last)
        if away > FAR_NS:
            side = "after" if first > end else "before"
            notes.append(
                f"{name}: all of it lies {seconds(away)} {side} {reference}; the two count from different beginnings, "
                "as the epoch and the start of a machine, or were not recorded together."
            )
    return notes


def _slower(streams: Sequence[Facts], base: Facts) -> list[str]:
    """Triggered streams that come at every so many ticks of the reference, as cameras of a lower rate do."""
    period = base.period_ns or base.stamps.median_step_ns
    notes = []
    for facts in streams:
        step = facts.stamps.median_step_ns
        if facts.kind is not Kind.TRIGGERED or not facts.judged or facts.decimate != 1 or not period or not step:
            continue
        ticks = (2 * step + period) // (2 * period)
        if ticks > 1 and 50 * abs(step - ticks * period) <= step:
            notes.append(
                f"{facts.name}: its samples come at every {ticks} ticks of {base.name}; if they are meant to, state "
                f"decimate={ticks}."
            )
    return notes


def _stream(found: _Input, wanted: StreamSpec | None, limits: Limits) -> TakeStream:
    choice = found.choice
    times = found.times_ns + np.int64(choice.offset_ns) if choice.offset_ns else found.times_ns
    stated = choice.period_ns if choice.rate_hz is not None or wanted is None else wanted.period_ns
    period = found.period_ns if stated is None else stated
    decimate = choice.decimate or (wanted.decimate if wanted is not None else 1)
    scan = _core.scan_stamps(times, period_ns=period, silence_max_ns=limits.silence_max_ns)
    facts = Facts(
        found.name,
        found.kind,
        required=found.required,
        samples=int(times.size),
        unstamped=found.unstamped,
        grade=found.grade,
        period_ns=period,
        decimate=decimate if found.kind is Kind.TRIGGERED else 1,
        stamps=Stamps.of(scan),
        span=span_of(times, silence_max_ns=limits.silence_max_ns),
    )
    return TakeStream(
        facts,
        times,
        phase=wanted.phase if wanted is not None else None,
        max_gap_ns=wanted.max_gap_ns if wanted is not None else None,
    )
