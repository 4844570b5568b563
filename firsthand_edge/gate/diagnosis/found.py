"""What of a departure is large enough to explain a rejection, in words that a technician can act on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge.gate.diagnosis.departure import departures
from firsthand_edge.gate.diagnosis.exposure import HALVES, is_half, moved_by, vary
from firsthand_edge.gate.diagnosis.pieces import spread, take_apart
from firsthand_edge.gate.wording import count, ms, seconds
from firsthand_edge.model import Diagnosis, Fault, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from firsthand_edge import _core
    from firsthand_edge.gate.diagnosis.departure import Departure
    from firsthand_edge.gate.diagnosis.pieces import Pieces
    from firsthand_edge.gate.figures import Figures, Int64

__all__ = ["diagnose", "diagnoses"]

DOUBT = " (there are only these two, so it may be either)"
LEAST = 4
"""Steps and drifts from a quarter of the ceiling on are looked for; two of them may make what is over it."""


def diagnose(
    figures: Figures, sync: _core.Figures, *, ceiling_ns: int, series_ns: Int64, but: Collection[str] = ()
) -> tuple[tuple[Diagnosis, ...], str]:
    """Why streams disagree by more than the ceiling, the stream with the largest part first; and that in words.

    Args:
        figures: The take's figures.
        sync: Its match.
        ceiling_ns: The ceiling.
        series_ns: (ticks,) the residual that is held against it.
        but: Streams of which nothing is said, because their times mean nothing.
    """
    found: list[Diagnosis] = []
    unknown: list[str] = []
    for departure in departures(figures, sync, ceiling_ns=ceiling_ns, series_ns=series_ns):
        if departure.stream in but:
            continue
        mine = list(_of_one(figures, sync, departure, ceiling_ns))
        found += mine
        if not mine:
            unknown += _unknown(departure, ceiling_ns)
    sentences = [one.sentence for one in found]
    if all(sentence.endswith(DOUBT) for sentence in sentences):  # said once, it holds for all of them
        sentences[:-1] = [sentence.removesuffix(DOUBT) for sentence in sentences[:-1]]
    return tuple(found), "; ".join([*sentences, *unknown])


def diagnoses(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All diagnoses of a report's reasons, in their order; each kind of a stream once."""
    seen: dict[tuple[Any, Any, Any], Mapping[str, Any]] = {}
    for reason in report["reasons"]:
        for one in reason.get("diagnosis", ()):
            seen.setdefault((one["stream"], one["kind"], one["began_tick"]), one)
    return list(seen.values())


def _unknown(departure: Departure, ceiling_ns: int) -> Iterator[str]:
    far = np.flatnonzero(2 * np.abs(departure.offset_ns) > ceiling_ns)
    if not far.size:
        return  # it departed from a middle that others had pulled aside, and agrees with those that are left
    worst = int(np.abs(departure.offset_ns).max())
    yield (
        f"{departure.stream} is up to {ms(worst)} off {departure.rest} at {count(int(far.size), 'tick')}, the first "
        f"tick {int(departure.tick[far[0]])}; what lies behind it is not known"
    )


def _of_one(figures: Figures, sync: _core.Figures, departure: Departure, ceiling_ns: int) -> Iterator[Diagnosis]:
    exposure_ns = _exposures(figures, sync, departure)
    halves, moved_ns, pieces = _taken_apart(departure, exposure_ns, period_ns=sync.period_ns, ceiling_ns=ceiling_ns)
    if 2 * int(np.abs(moved_ns).max()) > ceiling_ns:
        yield _followed(departure, halves, moved_ns, ceiling_ns)
    yield from _slipped(departure, pieces)
    for step in pieces.steps:
        yield _made(
            Fault.STEP,
            departure,
            step.place,
            f"stepped by {ms(step.size)} at tick {int(departure.tick[step.place])}: its clock was set or its trigger "
            "delay changed",
            offset_ns=step.size,
        )
    if pieces.drift_from is not None:
        yield _drifted(departure, pieces)
    wide = spread(pieces.rest_ns)
    # A middle of n values is known to half of what they lie apart, by the root of n; five times that is no chance.
    is_sure = pieces.constant_ns**2 * pieces.rest_ns.size >= 8 * wide**2
    if 2 * abs(pieces.constant_ns) > ceiling_ns and is_sure:
        yield _constant(departure, pieces.constant_ns, exposure_ns)
    if 2 * wide > ceiling_ns:
        yield _jitter(figures, departure, pieces.rest_ns, wide)


def _taken_apart(
    departure: Departure, exposure_ns: Int64 | None, *, period_ns: int, ceiling_ns: int
) -> tuple[int, Int64, Pieces]:
    """The pieces of a departure, and by how many half exposures it moves beside them: the least that explains it.

    What follows the exposure may look like a drift or steps, and the other way round. So each is tried, and what leaves
    least counts, where a further piece must explain an eighth of the ceiling at least.
    """
    tried: list[tuple[int, int, Int64, Pieces]] = []
    for halves in (0, *(HALVES if exposure_ns is not None and vary(exposure_ns) else ())):
        none = np.zeros(departure.offset_ns.size, np.int64)
        moved_ns = none if exposure_ns is None or halves == 0 else moved_by(halves, exposure_ns)
        left_ns = departure.offset_ns - moved_ns
        pieces = take_apart(left_ns, departure.time_ns, period_ns=period_ns, least_ns=max(1, ceiling_ns // LEAST))
        is_constant = 2 * abs(pieces.constant_ns) > ceiling_ns and not (
            halves == 0 and exposure_ns is not None and is_half(pieces.constant_ns, exposure_ns)
        )
        number = len(pieces.slips) + len(pieces.steps) + is_constant + (halves != 0)
        # An exposure that changes all the time explains the same as a drift; that its slope is a whole number of halves
        # by chance is the less likely.
        drifts = pieces.drift_from is not None
        unexplained = 0 if is_constant or 2 * abs(pieces.constant_ns) > ceiling_ns else abs(pieces.constant_ns)
        cost = (
            8 * (spread(pieces.rest_ns) + unexplained) + number * ceiling_ns + drifts * (ceiling_ns + ceiling_ns // 2)
        )
        tried.append((cost, len(tried), moved_ns, pieces))
    _, at, moved_ns, pieces = min(tried, key=lambda one: one[:2])
    return (0, *HALVES)[at], moved_ns, pieces


def _exposures(figures: Figures, sync: _core.Figures, departure: Departure) -> Int64 | None:
    """The exposure of each sample of the departure; None where nobody recorded any."""
    times_ns, exposure_ns = figures.columns.get(departure.stream, (None, None))
    if times_ns is None or exposure_ns is None:
        return None
    offset = sync.offset_ns(departure.stream)
    place = np.searchsorted(sync.tick, departure.tick)
    own_ns = sync.reference_ns[place] + offset[place]
    order = np.argsort(times_ns, kind="stable")
    at = order[np.minimum(np.searchsorted(times_ns[order], own_ns), order.size - 1)]
    out: Int64 = exposure_ns[at]
    return out


def _made(
    kind: Fault,
    departure: Departure,
    place: int,
    words: str,
    *,
    offset_ns: int | None = None,
    drift_ppb: int | None = None,
    ticks: int | None = None,
) -> Diagnosis:
    doubt = "" if departure.is_certain else DOUBT
    return Diagnosis(
        kind,
        departure.stream if departure.is_certain else None,
        f"{departure.stream} {words}{doubt}",
        began_tick=int(departure.tick[place]),
        began_ns=int(departure.time_ns[place]),
        offset_ns=offset_ns,
        drift_ppb=drift_ppb,
        ticks=ticks,
    )


def _slipped(departure: Departure, pieces: Pieces) -> Iterator[Diagnosis]:
    for slip in pieces.slips:
        since = f" from tick {int(departure.tick[slip.place])} on" if slip.place else ""
        yield _made(
            Fault.SLIP,
            departure,
            slip.place,
            f"slipped by {count(abs(slip.size), 'tick')} against its trigger count{since}: it missed pulses without "
            "counting them",
            ticks=slip.size,
        )


def _drifted(departure: Departure, pieces: Pieces) -> Diagnosis:
    ppb = pieces.drift_ppb
    place = pieces.drift_from or 0
    since = f" from tick {int(departure.tick[place])} on" if place else ""
    pace = "slower" if ppb > 0 else "faster"
    return _made(
        Fault.DRIFT,
        departure,
        place,
        f"runs {(2 * abs(ppb) + 1000) // 2000} ppm {pace} than {departure.rest}{since}: trigger not connected",
        drift_ppb=ppb,
    )


def _constant(departure: Departure, constant_ns: int, exposure_ns: Int64 | None) -> Diagnosis:
    side = "after" if constant_ns > 0 else "before"
    if exposure_ns is not None and is_half(constant_ns, exposure_ns):
        instant = "end" if constant_ns > 0 else "start"
        return _made(
            Fault.STAMP_POINT,
            departure,
            0,
            f"stays {ms(abs(constant_ns))} {side} {departure.rest}, which is half its exposure: it stamps the "
            f"{instant} of the exposure, or its stamp point is stated wrong",
            offset_ns=constant_ns,
        )
    return _made(
        Fault.CONSTANT,
        departure,
        0,
        f"stays {ms(abs(constant_ns))} {side} {departure.rest}: stamp point, trigger delay or calibrated offset",
        offset_ns=constant_ns,
    )


def _followed(departure: Departure, halves: int, moved_ns: Int64, ceiling_ns: int) -> Diagnosis:
    far = np.flatnonzero(LEAST * np.abs(moved_ns) > ceiling_ns)
    place, wide = int(far[0]), spread(moved_ns)
    if halves == 1:
        return _made(
            Fault.EXPOSURE_SPREAD,
            departure,
            place,
            f"moves by {ms(wide)} with its exposure, by half of it: fix its exposure, or have its trigger delay "
            "compensate it",
            offset_ns=wide,
        )
    times = f"{abs(halves)} half exposures" if abs(halves) > 1 else "half an exposure"
    return _made(
        Fault.STAMP_POINT,
        departure,
        place,
        f"moves {'with' if halves > 0 else 'against'} its exposure by {times}, where a fixed trigger delay "
        "implies half of it: its stamp point is stated wrong",
        offset_ns=wide,
    )


def _jitter(figures: Figures, departure: Departure, rest_ns: Int64, wide: int) -> Diagnosis:
    far = np.flatnonzero(4 * np.abs(rest_ns) > wide)
    place = int(far[0]) if far.size else 0
    since = f" from {seconds(int(departure.time_ns[place]))} on" if place else ""
    sampled = figures.stream(departure.stream).kind is Kind.SAMPLED
    why = "it is judged at its nearest sample, and its samples are far apart" if sampled else "see its trigger input"
    return _made(
        Fault.JITTER, departure, place, f"jitters, 90 of 100 samples within {ms(wide)}{since}: {why}", offset_ns=wide
    )
