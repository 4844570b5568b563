"""The audit as two functions: stamps that are in memory, and recordings on disk. The engine is the command's."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from firsthand_edge.api.report import Report
from firsthand_edge.api.stamps import FASTEST, Channel, StreamStamps, as_stamps, exact, kind_of, rate_of
from firsthand_edge.errors import UsageError
from firsthand_edge.gate import audit as gate
from firsthand_edge.gate.channels import StampSource
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from firsthand_edge.api.stamps import Number
    from firsthand_edge.gate.figures import Int64
    from firsthand_edge.gate.limits import Statistic
    from firsthand_edge.spec.document import Spec

__all__ = ["audit_recording", "audit_streams"]

STATISTICS = ("max", "p99", "p99.9")
LONGEST_CEILING_MS = 3_600_000
LARGEST_OFFSET_NS = 3600 * 10**9
MOST_DECIMATE = 1_000_000


def audit_streams(
    streams: Mapping[str, Any],
    *,
    reference: str | None = None,
    ceiling_ms: Number | None = None,
    statistic: Statistic | None = None,
    spec: str | os.PathLike[str] | None = None,
    title: str = "Stamps",
) -> Report:
    """Judges how far streams of stamps disagree.

    Args:
        streams: By name, the stamps of each stream: (n,) int64 nanoseconds of mid-exposure in order of arrival, or a
            `StreamStamps` that also says how the stream is judged. Every stream is required.
        reference: The triggered stream whose samples number the ticks; the spec's, else `head`, where None.
        ceiling_ms: How far the streams of a tick may disagree, ms; the spec's, else 2, where None. A float counts as
            what it prints as.
        statistic: What of the disagreement is held against it; the spec's, else `max`, where None.
        spec: File of a skill spec to judge against.
        title: What pictures call it.

    Raises:
        UsageError: stamps that are no whole nanoseconds, or arguments that do not fit one another.
        CannotJudge: the streams cannot be matched either way.
        SpecInvalid: the spec is malformed or not there.
    """
    if not isinstance(streams, Mapping):
        raise UsageError(f"streams is a {type(streams).__name__}; pass a mapping of each stream's name to its stamps")
    contract = _spec(spec)
    chosen = [_stamps(name, given, contract) for name, given in streams.items()]
    _refuse_reference([choice for choice, _ in chosen], reference, contract)
    found = gate.audit_stamps(
        chosen,
        reference=reference,
        spec=contract,
        ceiling_ns=_ceiling_ns(ceiling_ms),
        statistic=_statistic(statistic),
    )
    return Report.of(found, title=title)


def audit_recording(
    recording: str | os.PathLike[str],
    *,
    streams: Iterable[str] | Mapping[str, Channel] = (),
    reference: str | None = None,
    ceiling_ms: Number | None = None,
    statistic: Statistic | None = None,
    spec: str | os.PathLike[str] | None = None,
    stamps: StampSource | None = None,
    episode: int | None = None,
) -> Report:
    """Judges how far the streams of a recording disagree.

    Args:
        recording: Whatever `firsthand-edge audit` reads: an episode of ours, any other MCAP, a ROS 1 bag, a VRS file,
            the folder of a LeRobot data set.
        streams: Names of the channels to judge, or a mapping to how each is judged; every one is required. All
            that are no events where there is none.
        reference: As of `audit_streams`, and the four that follow.
        ceiling_ms: Milliseconds.
        statistic: `max`, `p99` or `p99.9`.
        spec: File of a skill spec.
        stamps: Which times of the recording to take; by default the header's, where the schema has one.
        episode: Which episode of a data set; it must be named where there are several.

    Raises:
        UsageError: arguments that do not fit the recording.
        CannotJudge: it cannot be read, or nothing in it can be judged either way.
        SpecInvalid: the spec is malformed or not there.
    """
    if isinstance(streams, str):
        raise UsageError(f"streams={streams!r}: pass a list of channels, or a mapping of each to how it is judged")
    if stamps is not None and stamps not in get_args(StampSource):
        raise UsageError(f"stamps={stamps!r} is not one of {', '.join(get_args(StampSource))}")
    if episode is not None and (isinstance(episode, bool) or not isinstance(episode, int)):
        raise UsageError(f"episode={episode!r}: state the number of an episode")
    how = streams if isinstance(streams, Mapping) else dict.fromkeys(streams, Channel())
    path = Path(recording)
    found = gate.audit(
        path,
        [_choice(name, channel) for name, channel in how.items()],
        reference=reference,
        spec=_spec(spec),
        ceiling_ns=_ceiling_ns(ceiling_ms),
        statistic=_statistic(statistic),
        stamps=stamps,
        episode=episode,
    )
    return Report.of(found, title=path.name)


def _stamps(name: Any, given: Any, spec: Spec | None) -> tuple[gate.StreamChoice, Int64]:
    stream = given if isinstance(given, StreamStamps) else StreamStamps(given)
    choice = _choice(name, Channel(stream.kind, stream.rate_hz, stream.decimate, stream.offset_ns))
    wanted = spec.stream(name) if spec is not None else None
    kind = choice.kind or (wanted.kind if wanted is not None else Kind.TRIGGERED)
    stated = choice.rate_hz is not None or wanted is not None
    return choice, as_stamps(name, stream.stamps_ns, least_step_ns=None if stated else FASTEST.get(kind))


def _choice(name: Any, how: Any) -> gate.StreamChoice:
    if not isinstance(name, str) or not name:
        raise UsageError(f"{name!r} is no name of a stream; use a text that is not empty")
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise UsageError(f"{name!r} holds halves of surrogate pairs, which no text does; name the stream otherwise")
    if not isinstance(how, Channel):
        raise UsageError(f"{name}: {type(how).__name__} says nothing on how it is judged; pass a Channel")
    kind = kind_of(name, how.kind)
    decimate = None if how.decimate is None else _whole(name, "decimate", how.decimate, 1, MOST_DECIMATE)
    if (decimate or 1) != 1 and kind not in (None, Kind.TRIGGERED):
        raise UsageError(f"{name}: decimate is for triggered streams; leave it out")
    return gate.StreamChoice(
        name,
        kind=kind,
        rate_hz=rate_of(name, how.rate_hz),
        decimate=None if decimate == 1 else decimate,
        offset_ns=_whole(name, "offset_ns", how.offset_ns, -LARGEST_OFFSET_NS, LARGEST_OFFSET_NS),
    )


def _whole(name: str, what: str, value: Any, least: int, most: int) -> int:
    number = Fraction(exact(value, f"{name}: {what}"))
    if number.denominator != 1 or not least <= number <= most:
        raise UsageError(f"{name}: {what}={value} is not a whole number from {least} to {most}")
    return number.numerator


def _refuse_reference(choices: list[gate.StreamChoice], reference: str | None, spec: Spec | None) -> None:
    """The gate refuses the same, in words of the command line."""
    names = [choice.name for choice in choices]
    wanted = reference or (spec.sync.reference if spec is not None else gate.DEFAULT_REFERENCE)
    if not names:
        raise UsageError("streams is empty; name two streams or more")
    found = next((choice for choice in choices if choice.name in (wanted, f"/{wanted}")), None)
    if found is None:
        raise UsageError(
            f"there is no stream `{wanted}` to number the ticks; name one of {', '.join(names)} as reference"
        )
    contracted = spec.stream(found.name) if spec is not None else None
    kind = found.kind or (contracted.kind if contracted is not None else Kind.TRIGGERED)
    if kind is not Kind.TRIGGERED:
        raise UsageError(f"the reference `{found.name}` is {kind.value}; only a triggered stream numbers ticks")
    if found.decimate is not None:
        raise UsageError(f"the reference `{found.name}` has a sample for each tick; leave decimate out")


def _ceiling_ns(value: Number | None) -> int | None:
    if value is None:
        return None
    ceiling = Fraction(exact(value, "ceiling_ms"))
    if not 0 < ceiling <= LONGEST_CEILING_MS:
        raise UsageError(f"ceiling_ms={value}: state milliseconds above 0 and up to an hour")
    exact_ns = ceiling * 1_000_000
    if exact_ns.denominator != 1:
        raise UsageError(f"ceiling_ms={value} is finer than one nanosecond; state at most six decimal places")
    return exact_ns.numerator


def _statistic(value: Statistic | None) -> Statistic | None:
    if value is not None and value not in STATISTICS:
        raise UsageError(f"statistic={value!r} is not one of {', '.join(STATISTICS)}")
    return value


def _spec(path: str | os.PathLike[str] | None) -> Spec | None:
    if path is None:
        return None
    from firsthand_edge.spec.document import load_spec

    return load_spec(Path(path))
