"""Which of the situations that sync.md speaks of a take is in: so that tests can count what they have really tried."""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from tests.sync import brute

if TYPE_CHECKING:
    from tests.sync.takes import Take

EXPECTED = {
    # Share of random takes, in percent, that must be in each situation: a third of what is seen, or less.
    "edges are the reference": 12, "a stream is the reference": 12, "long": 8, "short": 10,
    "dropped samples": 10, "duplicates": 10, "backwards": 5, "absent ticks": 5, "trimmed at the start": 5,
    "trimmed at the end": 5, "nothing overlaps": 1, "late beyond the trim": 1, "dead before the end": 1,
    "extra": 8, "decimated, phase configured": 2.5, "decimated, phase found": 2.5,
    "sampled": 4, "sampled, out of reach": 2, "interpolated": 4, "interpolated, not bracketed": 2, "event": 8,
    "matched by index": 2, "slipped by index": 1, "an index is absent": 0.7, "an index comes twice": 0.3,
    "samples compete for a tick": 4, "ticks compete for a sample": 4, "samples tie": 0.8, "ticks tie": 0.8,
    "half a period apart": 2.5, "one short of half a period": 3, "empty stream": 4, "one-sample stream": 4,
    "no tick": 3, "one tick": 2, "one clock map": 0.8, "uncertain": 12, "no guard": 3,
    "near the lowest stamp": 5, "near the highest stamp": 5, "extent from 2^61": 5, "extent from 2^62": 2,
    "extent of 2^63 - 1": 0.7, "offset beyond 32 bits": 3, "over the ceiling": 5, "at the ceiling": 0.6,
    "residuals tie": 4, "a run of 64 matches": 6, "a run of 64 matches that ends": 2, "period unknown": 3,
    "odd period": 10,
}  # fmt: skip
"""Every situation that is named here, and how often it is to occur at least."""


def situations(take: Take, figures: dict[str, Any]) -> set[str]:
    """Names of `EXPECTED` that apply; `figures` as of `brute.measure`."""
    rows = figures["streams"]
    span = figures["ticks"]
    found = {
        "edges are the reference": take.edges is not None,
        "a stream is the reference": take.edges is None,
        "long": span >= 64,
        "short": 0 < span < 64,
        "absent ticks": figures["absent"] > 0,
        "trimmed at the start": figures["trimmed_start"] > 0,
        "trimmed at the end": figures["trimmed_end"] > 0,
        "nothing overlaps": span == 0 and figures["trimmed_start"] > 0 and len(rows) > 1,
        "no tick": span + figures["trimmed_start"] + figures["trimmed_end"] == 0,
        "one tick": span + figures["trimmed_start"] + figures["trimmed_end"] == 1,
        "over the ceiling": figures["residual"]["over_ceiling"] > 0,
        "at the ceiling": take.settings["ceiling_ns"] in figures["residual_ns"],
        "residuals tie": figures["residual_ns"].count(figures["residual"]["max_ns"]) > 1 and bool(span),
        "no guard": span > 0 and len(rows) > 1 and figures["guarded_ns"] == figures["residual_ns"],
        "period unknown": take.settings["period_ns"] is None,
        "odd period": figures["period_ns"] % 2 == 1,
    }
    names = {name for name, holds in found.items() if holds}
    names |= _extents(take)
    ticks = sorted(set(take.edges)) if take.edges is not None else _stamps(take, "ref")
    pulses = take.edges is not None or _is_indexed(next(s for s in take.streams if s["name"] == "ref"))
    for stream in take.streams:
        row = rows[stream["name"]]
        by_index = pulses and stream["name"] != "ref" and _is_indexed(stream)
        names |= _row(stream, row, figures, by_index=by_index)
        if row["kind"] == "triggered" and stream["name"] != take.reference:
            names |= _neighbours(ticks, sorted(set(stream["times_ns"])), figures["period_ns"])
    clocks = [s["clock"] for s in take.streams if s["clock"] and s["uncertainty_ns"] and rows[s["name"]]["matched"]]
    if len(clocks) > len(set(clocks)):
        names.add("one clock map")
    return names


def _is_indexed(stream: dict[str, Any]) -> bool:
    index = stream.get("trigger_index")
    return stream["kind"] == "triggered" and index is not None and brute.ABSENT not in index


def _stamps(take: Take, name: str) -> list[int]:
    return next(sorted(set(s["times_ns"])) for s in take.streams if s["name"] == name)


def _extents(take: Take) -> set[str]:
    times = [t for s in take.streams if s["kind"] != "event" for t in s["times_ns"]] + (take.edges or [])
    if not times:
        return set()
    extent = max(times) - min(times)
    found = {
        "near the lowest stamp": min(times) < brute.ABSENT + 1000,
        "near the highest stamp": max(times) > brute.MOST - 1000,
        "extent from 2^61": extent >= 2**61 - 1,
        "extent from 2^62": extent >= 2**62 - 1,
        "extent of 2^63 - 1": extent >= 2**63 - 2,
    }
    return {name for name, holds in found.items() if holds}


def _row(stream: dict[str, Any], row: dict[str, Any], figures: dict[str, Any], *, by_index: bool) -> set[str]:
    kind, index, offsets = row["kind"], stream.get("trigger_index"), figures["offset_ns"][stream["name"]]
    known = [offset for offset in offsets if offset is not None]
    runs = [(there, len(list(run))) for there, run in groupby(offsets, key=lambda offset: offset is not None)]
    late = row["first_ns"] is not None and figures["start_ns"] is not None and row["first_ns"] > figures["start_ns"]
    dead = row["last_ns"] is not None and figures["end_ns"] is not None and row["last_ns"] < figures["end_ns"]
    decimated = row["decimate"] > 1 and bool(known)
    # Further away than times could have matched: the index was used, and it says that the stream slipped.
    slipped = by_index and any(2 * abs(offset) >= figures["period_ns"] for offset in known)
    found = {
        "dropped samples": kind == "triggered" and 0 < row["missing"] < row["expected"],
        "duplicates": row["duplicate"] > 0,
        "backwards": row["backwards"] > 0,
        "late beyond the trim": late and row["missing"] > 0,
        "dead before the end": dead and row["missing"] > 0,
        "extra": row["extra"] > 0,
        "decimated, phase configured": decimated and stream["phase"] is not None,
        "decimated, phase found": decimated and stream["phase"] is None,
        "sampled": kind == "sampled" and bool(known),
        "sampled, out of reach": kind == "sampled" and row["missing"] > 0,
        "interpolated": kind == "interpolated" and bool(known),
        "interpolated, not bracketed": kind == "interpolated" and row["missing"] > 0,
        "event": kind == "event",
        "matched by index": by_index and bool(known),
        "slipped by index": slipped,
        "an index is absent": index is not None and brute.ABSENT in index,
        "an index comes twice": by_index and len(set(index or [])) < len(index or []) - row["duplicate"],
        "empty stream": row["samples"] == 0,
        "one-sample stream": row["samples"] == 1,
        "uncertain": stream["uncertainty_ns"] > 0 and bool(known),
        "offset beyond 32 bits": any(abs(offset) >= 2**31 for offset in known),
        "a run of 64 matches": any(there and length >= 64 for there, length in runs),
        "a run of 64 matches that ends": any(
            (one[0] and one[1] >= 64) or (other[0] and other[1] >= 64) for one, other in pairwise(runs)
        ),
    }
    return {name for name, holds in found.items() if holds}


def _neighbours(ticks: list[int], stamps: list[int], period: int) -> set[str]:
    """Who competes for whom, among ticks and samples that are less than half a period apart."""
    names = set()
    for own, others, compete, tie in [
        (ticks, stamps, "samples compete for a tick", "samples tie"),
        (stamps, ticks, "ticks compete for a sample", "ticks tie"),
    ]:
        for t in own:
            at = bisect_left(others, t)
            near = sorted((abs(other - t), other) for other in others[max(0, at - 2) : at + 2])
            reached = [distance for distance, _ in near if 2 * distance < period]
            if len(reached) > 1:
                names.add(compete)
                if reached[0] == reached[1]:
                    names.add(tie)
            if near and 2 * near[0][0] == period:
                names.add("half a period apart")
            if near and 2 * near[0][0] in (period - 1, period - 2):
                names.add("one short of half a period")
    return names
