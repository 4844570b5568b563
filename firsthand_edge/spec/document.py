"""The skill spec: one TOML document that says what is recorded and what rejects it.

These models are the documentation of the document, field by field. Every limit is **the greatest value that passes**:
a figure equal to its limit is good, one above it rejects. Times are written in milliseconds and held as decimals; the
properties named `*_ns` are the integers that everything computes with.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from firsthand_edge.config import parse_document, read_file, toml_table
from firsthand_edge.errors import SpecInvalid
from firsthand_edge.model import Kind
from firsthand_edge.spec.canonical import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Loc", "Rules", "Spec", "StreamSpec", "SyncSpec", "load_spec", "ms_to_ns", "parse_spec"]

Loc: TypeAlias = tuple[str | int, ...]
"""A place in the document: `("streams", 3, "decimate")`."""

M = TypeVar("M", bound=BaseModel)

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def ms_to_ns(value: Decimal) -> int:
    """Milliseconds to nanoseconds, exactly. Raises ValueError for a value finer than one nanosecond."""
    exact = Fraction(value) * NS_PER_MS
    if exact.denominator != 1:
        raise ValueError("is finer than one nanosecond; write at most six decimal places of a millisecond")
    return exact.numerator


def _number(value: object) -> object:
    """TOML has integers and decimals; both are numbers here. A float cannot be exact and is refused."""
    if isinstance(value, bool | str | float):
        raise ValueError(f"must be a number, exactly as written, and is a {type(value).__name__}")  # noqa: TRY004
    return Decimal(value) if isinstance(value, int) else value


def _whole_nanoseconds(value: Decimal) -> Decimal:
    ms_to_ns(value)
    return value


Number: TypeAlias = Annotated[Decimal, BeforeValidator(_number)]
Milliseconds: TypeAlias = Annotated[Number, AfterValidator(_whole_nanoseconds), Field(gt=0, le=Decimal(3_600_000))]
Ratio: TypeAlias = Annotated[Number, Field(ge=0, le=1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31)]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=64)]
"""Streams name files, sockets and topics, so they are made of letters, digits, `_`, `.` and `-`."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StreamSpec(_Frozen):
    """One stream that an episode must hold (`[[streams]]`)."""

    name: Name
    """As the rig file and the recording call it."""
    kind: Annotated[Kind, Field(strict=False)]
    """How it is judged: `triggered`, `sampled`, `interpolated` or `event` (sync.md section 2)."""
    rate_hz: Annotated[Number, Field(ge=Decimal("0.001"), le=Decimal(1_000_000))] | None = None
    """Nominal rate, samples a second. Without it `stream.rate` and `stamp.unit` are not judged. Required
    sampled streams must state it; events have none."""
    decimate: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """A triggered stream that delivers one sample for every `decimate`-th tick."""
    phase: Count | None = None
    """The ticks of a decimated stream are those with `number mod decimate == phase`; without it, the phase at
    which most of its samples matched."""
    max_gap_ms: Milliseconds | None = None
    """The longest distance between the two samples that bracket a tick of an interpolated stream; without it, two
    nominal periods."""
    required: bool = True
    """False: recorded, and never judged."""

    @property
    def period_ns(self) -> int | None:
        """Nominal period: 1e9 / rate, rounded half up. None without a rate."""
        if self.rate_hz is None:
            return None
        exact = NS_PER_S / Fraction(self.rate_hz)
        return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)

    @property
    def max_gap_ns(self) -> int | None:
        """`max_gap_ms` in nanoseconds."""
        return None if self.max_gap_ms is None else ms_to_ns(self.max_gap_ms)


class SyncSpec(_Frozen):
    """How far streams may disagree (`[sync]`)."""

    reference: Name = "head"
    """The triggered stream whose samples number the ticks; required, and never decimated."""
    ceiling_ms: Milliseconds = Decimal("2.0")
    """`sync.ceiling`: the chosen statistic of the residual may reach this and not exceed it."""
    statistic: Literal["max", "p99", "p99.9"] = "max"
    """Which order statistic of the residuals is held against the ceiling."""
    guard_band: bool = False
    """True: the residual is widened by the stamps' uncertainties before it is held against the ceiling."""
    min_ticks: Annotated[int, Field(ge=1, le=2**31)] = 30
    """`sync.no_ticks`: fewer judged ticks than this are not enough to accept on."""

    @property
    def ceiling_ns(self) -> int:
        """`ceiling_ms` in nanoseconds."""
        return ms_to_ns(self.ceiling_ms)


class Rules(_Frozen):
    """Limits of the reject rule (`[rules]`); the defaults are those of sync.md section 5.

    Rules without a limit (`stamp.unit`, `stamp.domain`, `stamp.tai_utc`, `stamp.unverified`, `record.torn`) always
    hold.
    """

    missing_ratio_max: Ratio = Decimal("0.005")
    """`sync.missing`: missing / expected of a stream, the reference included."""
    missing_run_max: Count = 3
    """`sync.missing`: longest run of missing expected ticks."""
    backwards_max: Count = 0
    """`stamp.backwards`: samples out of order beyond the reorder bound that the stream's driver states."""
    duplicate_ratio_max: Ratio = Decimal("0.001")
    """`stamp.duplicate`: further samples of an equal stamp / samples."""
    jump_max: Count = 0
    """`stamp.jump`: steps that neither the sequence nor the arrivals explain."""
    wrap_max: Count = 0
    """`stamp.wrap`: steps of minus a power-of-two counter that was not unwrapped."""
    future_max: Count = 0
    """`stamp.future`: samples mapped later than their own arrival by more than their uncertainty."""
    rate_ratio_max: Ratio = Decimal("0.02")
    """`stream.rate`: |mean rate - nominal| / nominal."""
    trim_max_ms: Milliseconds = Decimal(1000)
    """How much of the start and of the end may be trimmed to where all streams run; `stream.late` and `stream.early`
    beyond it."""
    silence_max_ms: Milliseconds = Decimal(500)
    """`stream.lost`: longest silence of a stream that has a rate."""
    frozen_run_max: Annotated[int, Field(ge=1, le=2**31)] = 3
    """`picture.frozen`: longest run of pictures with equal payload while their stamps advance."""
    overrun_max: Count = 0
    """`record.overrun`: samples of a stream lost to back-pressure."""
    near_ratio: Ratio = Decimal("0.9")
    """`sync.near` warns from this share of the ceiling on; it never rejects."""

    @property
    def trim_max_ns(self) -> int:
        """`trim_max_ms` in nanoseconds."""
        return ms_to_ns(self.trim_max_ms)

    @property
    def silence_max_ns(self) -> int:
        """`silence_max_ms` in nanoseconds."""
        return ms_to_ns(self.silence_max_ms)


class Spec(_Frozen):
    """The whole document. What it says is what `digest` covers; how it is formatted is not."""

    id: Name
    """Name of the collection's spec; stays the same from version to version."""
    title: Annotated[str, Field(min_length=1, max_length=200)]
    """One line for people."""
    version: Annotated[int, Field(ge=1, le=2**31)]
    """Raised by one whenever a criterion changes."""
    streams: Annotated[tuple[StreamSpec, ...], Field(strict=False, min_length=1)]
    """`[[streams]]`, in any order."""
    sync: SyncSpec = SyncSpec()
    """`[sync]`."""
    rules: Rules = Rules()
    """`[rules]`."""

    @property
    def digest(self) -> str:
        """`blake3:<hex>` over the canonical form with every default filled in.

        Comments, white space, the order of keys and of streams, and `2.0` against `2.00` do not change it; a changed
        criterion does, also when a later version of this software changed a default.
        """
        document = self.model_dump(mode="python")
        document["streams"] = sorted(document["streams"], key=_name_of)
        return digest(document)

    def stream(self, name: str) -> StreamSpec | None:
        """The stream of that name, None when the spec does not know it."""
        return next((stream for stream in self.streams if stream.name == name), None)

    @property
    def required(self) -> tuple[StreamSpec, ...]:
        """The streams that are judged."""
        return tuple(stream for stream in self.streams if stream.required)

    def contradictions(self) -> list[tuple[Loc, str]]:
        """What cannot be true at once: place and sentence of each, all of them."""
        return _contradictions(dict(enumerate(self.streams)), self.sync, self.rules, complete=True)


def _name_of(stream: Mapping[str, Any]) -> str:
    return str(stream["name"])


def _contradictions(
    streams: Mapping[int, StreamSpec], sync: SyncSpec | None, rules: Rules | None, *, complete: bool
) -> list[tuple[Loc, str]]:
    """What streams, sync and rules say that cannot be true at once.

    Args:
        streams: By their position in the document.
        sync: How far streams may disagree; None when it could not be read.
        rules: The limits; None when they could not be read.
        complete: False when some streams could not be read, so that nothing is said about what is absent.
    """
    found: list[tuple[Loc, str]] = list(_doubled(streams))
    reference: StreamSpec | None = None
    if sync is not None:
        reference = next((s for s in streams.values() if s.name == sync.reference), None)
        found += _reference(streams, reference, sync, complete=complete)
    for index, stream in streams.items():
        of_stream = (*_stream(stream), *_against(stream, reference, rules))
        found += ((("streams", index, key), text) for key, text in of_stream)
    return found


def _doubled(streams: Mapping[int, StreamSpec]) -> Iterator[tuple[Loc, str]]:
    first: dict[str, int] = {}
    count = Counter(stream.name for stream in streams.values())
    for index, stream in streams.items():
        if stream.name in first:
            yield (
                ("streams", index, "name"),
                f"`{stream.name}` is there {count[stream.name]} times; name each stream once",
            )
        first.setdefault(stream.name, index)


def _reference(
    streams: Mapping[int, StreamSpec], reference: StreamSpec | None, sync: SyncSpec, *, complete: bool
) -> Iterator[tuple[Loc, str]]:
    place: Loc = ("sync", "reference")
    if reference is None:
        if complete:
            names = ", ".join(sorted(s.name for s in streams.values() if s.kind is Kind.TRIGGERED and s.required))
            yield (
                place,
                f"no stream is called `{sync.reference}`; name a required triggered one: {names or 'there is none'}",
            )
        return
    if reference.kind is not Kind.TRIGGERED:
        yield place, f"`{reference.name}` is {reference.kind.value}; only a triggered stream numbers ticks"
    if not reference.required:
        yield place, f"`{reference.name}` is not required; the reference must be"
    if reference.decimate != 1:
        yield place, f"`{reference.name}` has one sample in {reference.decimate} ticks; the reference has one for each"
    if complete and not _comparable(streams, sync):
        yield (
            ("streams",),
            "nothing is compared with the reference; a residual needs a second triggered or sampled stream",
        )
    period = reference.period_ns
    if period is not None and sync.ceiling_ns >= period:
        yield (
            ("sync", "ceiling_ms"),
            f"is not below the period of `{reference.name}` ({period} ns); no residual could ever exceed it",
        )


def _comparable(streams: Mapping[int, StreamSpec], sync: SyncSpec) -> bool:
    kinds = {Kind.TRIGGERED, Kind.SAMPLED} | ({Kind.INTERPOLATED} if sync.guard_band else set())
    return any(s.required and s.kind in kinds and s.name != sync.reference for s in streams.values())


def _stream(stream: StreamSpec) -> Iterator[tuple[str, str]]:
    """A stream against itself."""
    kind = stream.kind.value
    if stream.decimate != 1 and stream.kind is not Kind.TRIGGERED:
        yield "decimate", f"is for triggered streams, and `{stream.name}` is {kind}; remove it"
    if stream.phase is not None and stream.phase >= stream.decimate:
        yield "phase", f"must be below decimate, which is {stream.decimate}"
    if stream.max_gap_ms is not None and stream.kind is not Kind.INTERPOLATED:
        yield "max_gap_ms", f"is for interpolated streams, and `{stream.name}` is {kind}; remove it"
    elif stream.max_gap_ns is not None and stream.period_ns is not None and stream.max_gap_ns < stream.period_ns:
        yield "max_gap_ms", f"is below one period ({stream.period_ns} ns); every tick would be missing"
    if stream.rate_hz is not None and stream.kind is Kind.EVENT:
        yield "rate_hz", f"`{stream.name}` holds events, which have no rate; remove it"
    if stream.rate_hz is None and stream.required:
        if stream.kind is Kind.SAMPLED:
            yield "rate_hz", f"`{stream.name}` is sampled and required, so its rate must be stated; add rate_hz"
        if stream.kind is Kind.INTERPOLATED and stream.max_gap_ms is None:
            yield "rate_hz", f"`{stream.name}` is interpolated and required; add rate_hz, or max_gap_ms"


def _against(stream: StreamSpec, reference: StreamSpec | None, rules: Rules | None) -> Iterator[tuple[str, str]]:
    """A stream against the reference and the rules."""
    if not stream.required or stream.rate_hz is None or stream.period_ns is None:
        return
    if (
        reference is not None
        and reference is not stream
        and reference.rate_hz is not None
        and stream.kind is Kind.TRIGGERED
        and Fraction(stream.rate_hz) * stream.decimate != Fraction(reference.rate_hz)
    ):
        yield (
            "rate_hz",
            (
                f"{stream.rate_hz} Hz at decimate {stream.decimate} does not follow `{reference.name}` at "
                f"{reference.rate_hz} Hz; rate_hz times decimate must be the reference's rate"
            ),
        )
    if rules is not None and rules.silence_max_ns <= stream.period_ns:
        yield "rate_hz", f"one period ({stream.period_ns} ns) already breaks rules.silence_max_ms; raise that limit"


class _AnyTable(BaseModel):
    """Fits every TOML document; lets the reader of documents say where a contradiction stands."""

    model_config = ConfigDict(extra="allow")


def parse_spec(data: bytes, *, place: str) -> Spec:
    """Reads a spec document.

    Args:
        data: TOML, UTF-8.
        place: What to call the document in messages, mostly its path.

    Raises:
        SpecInvalid: with every mistake and every contradiction, each with its line.
    """
    try:
        return parse_document(data, Spec, place=place, error=SpecInvalid, contradictions=Spec.contradictions)
    except SpecInvalid as exc:
        mistakes: list[str] = list(exc.mistakes)
    mistakes += [m for m in _readable_contradictions(data, place=place) if m not in mistakes]
    raise SpecInvalid(place, sorted(mistakes, key=_line_of))


def load_spec(path: Path) -> Spec:
    """Reads the spec document at `path`. Raises SpecInvalid as `parse_spec` does, also when it cannot be read."""
    return parse_spec(read_file(path, error=SpecInvalid), place=str(path))


def _readable_contradictions(data: bytes, *, place: str) -> list[str]:
    """Contradictions among those parts of a faulty document that can be read, so that one look finds everything."""
    try:
        table = toml_table(data, place=place, error=SpecInvalid)
    except SpecInvalid:
        return []
    rows = table.get("streams")
    read = [_fits(StreamSpec, row) for row in rows] if isinstance(rows, list) else []
    streams = {index: stream for index, stream in enumerate(read) if stream is not None}
    sync, rules = _fits(SyncSpec, table.get("sync", {})), _fits(Rules, table.get("rules", {}))
    complete = bool(read) and None not in read
    found = _contradictions(streams, sync, rules, complete=complete)
    try:
        parse_document(data, _AnyTable, place=place, error=SpecInvalid, contradictions=lambda _: found)
    except SpecInvalid as exc:
        return list(exc.mistakes)
    return []


def _fits(model: type[M], table: object) -> M | None:
    try:
        return model.model_validate(table)
    except ValidationError:
        return None


def _line_of(mistake: str) -> tuple[int, str]:
    """Orders mistakes by the line that they begin with (`line 12: ...`)."""
    head, _, _ = mistake.removeprefix("line ").partition(":")
    return (int(head) if head.isdecimal() else 0, mistake)
