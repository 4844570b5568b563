"""What streams, `[sync]` and `[rules]` say that cannot be true at once."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from firsthand_edge.model import Kind, StampPoint
from firsthand_edge.spec.doubled import doubled, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.spec.fields import Loc
    from firsthand_edge.spec.parts import Parts
    from firsthand_edge.spec.rules import Rules
    from firsthand_edge.spec.streams import StreamSpec, SyncSpec

__all__ = ["stream_contradictions"]


def stream_contradictions(parts: Parts) -> Iterator[tuple[Loc, str]]:
    """Place and sentence of each; about what is absent nothing is said while a stream could not be read."""
    streams, sync = parts.streams.rows, parts.sync
    yield from doubled(parts.streams.names, ("streams",), "name", "stream")
    reference: StreamSpec | None = None
    if sync is not None:
        reference = next((s for s in streams.values() if s.name == sync.reference), None)
        yield from _reference(streams, reference, sync, complete=parts.streams.complete)
    for index, stream in streams.items():
        for key, text in (*_stream(stream), *_against(stream, reference, parts.rules)):
            yield ("streams", index, key), text
        yield from repeated(stream.stamp_domains or (), ("streams", index, "stamp_domains"))
        yield from repeated(stream.stamp_points or (), ("streams", index, "stamp_points"))


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
    if stream.required and StampPoint.UNKNOWN in (stream.stamp_points or ()):
        yield (
            "stamp_points",
            "allows `unknown`, and a required stream whose stamps cannot be verified is always rejected; remove it",
        )
    if stream.required and stream.stamp_domains == ("utc",):
        yield "stamp_domains", "allows only UTC, which steps; name a clock that does not: ptp, device or monotonic"


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
