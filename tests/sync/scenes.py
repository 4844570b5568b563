"""Random takes as they happen: every sample with its arrival on the rig clock, for the live monitor (section 6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from firsthand_edge import _core
from tests.sync import brute
from tests.sync.figures import int64, told
from tests.sync.takes import Take, take

ABSENT = brute.ABSENT
END_OF_TIME = brute.MOST
NO_NUMBER = [ABSENT, 0]


@dataclass(frozen=True)
class Push:
    """A sample that comes in."""

    arrival: int
    stream: int
    time: int
    index: int


@dataclass
class Scene:
    """What a monitor is made of and what it is fed with."""

    taken: Take
    streams: list[tuple[str, str, int, int, int]]
    settings: dict[str, Any]
    pushes: list[Push]
    indexed: list[str] = field(default_factory=list)

    def monitor(self) -> _core.Monitor:
        """A monitor for it."""
        edges = self.taken.edges is not None
        return _core.Monitor(self.streams, reference="ref", edges=edges, indexed=self.indexed, **self.settings)

    def batch(self, taken: list[Push]) -> _core.Figures:
        """What the batch core says of these samples."""

        def column(at: int, what: str) -> Any:
            return int64([getattr(push, what) for push in taken if push.stream == at])

        columns = [
            _core.Stream(
                name,
                kind,
                column(at, "time"),
                period_ns=period or None,
                decimate=decimate,
                phase=phase,
                trigger_index=column(at, "index") if name in self.indexed else None,
            )
            for at, (name, kind, period, decimate, phase) in enumerate(self.streams)
        ]
        return _core.measure(
            columns,
            reference="ref",
            edges_ns=None if self.taken.edges is None else column(len(self.streams), "time"),
            period_ns=self.settings["period_ns"],
            trim_max_ns=self.settings["trim_max_ns"],
            ceiling_ns=self.settings["ceiling_ns"],
        )


def scene(random: Random, *, keeps_bounds: bool = True) -> Scene:
    """A take whose samples come late, in bursts and in disorder, within the bounds that the monitor is told or not."""
    taken = take(random, far=False)
    columns = [list(zip(s["times_ns"], _indices(s), strict=True)) for s in taken.streams]
    if taken.edges is not None:
        columns.append([(t, ABSENT) for t in sorted(taken.edges)])
    distinct = sorted({t for t, _ in columns[_reference(taken)]})
    period = taken.settings["period_ns"] or brute.median_step(distinct) or 1000
    indexed = [s["name"] for s, column in zip(taken.streams, columns, strict=False) if _counts_up(column)]
    pulse_times = _pulse_times(taken, columns[_reference(taken)], period, indexed)

    noise = Random(random.getrandbits(32))  # noqa: S311 - noise, no secrets
    most_late = random.choice([0, period // 3, 3 * period])
    pushes, reorder, latency = [], 0, 0
    for at, column in enumerate(columns):
        own = taken.streams[at]["name"] if at < len(taken.streams) else ""
        before = highest = ABSENT
        for t, index in column:
            arrival = t + noise.choice([0, 0, most_late, noise.randint(0, most_late)])
            before = arrival = min(max(before, arrival), END_OF_TIME - 1)
            highest = max(highest, t)
            pushes.append(Push(arrival, at, t, index))
            reorder, latency = max(reorder, highest - t), max(latency, arrival - t)
            if own in indexed and own != "ref" and (tick := _tick_of(index, pulse_times)) is not None:
                # The bound of an indexed stream counts from its tick: one that slipped is that much later.
                latency = max(latency, arrival - tick - period // 2 + 1)
    pushes.sort(key=lambda push: push.arrival)
    if not keeps_bounds:
        latency, reorder = latency // random.choice([1, 2, 8]), reorder // random.choice([1, 2, 8])
    streams = [
        (s["name"], s["kind"], _nominal(s, period), s.get("decimate", 1), s.get("phase") or 0) for s in taken.streams
    ]
    settings = {
        "period_ns": period,
        "latency_ns": latency,
        "reorder_ns": reorder,
        "trim_max_ns": taken.settings["trim_max_ns"],
        "ceiling_ns": taken.settings["ceiling_ns"],
    }
    return Scene(taken, streams, settings, pushes, indexed)


def _reference(taken: Take) -> int:
    return next((at for at, s in enumerate(taken.streams) if s["name"] == "ref"), len(taken.streams))


def _indices(stream: dict[str, Any]) -> list[int]:
    return stream.get("trigger_index") or [ABSENT] * len(stream["times_ns"])


def _counts_up(column: list[tuple[int, int]]) -> bool:
    """Whether every sample has an index and they go up with time, as a counter's do."""
    in_order = [index for _, index in sorted(column, key=lambda sample: sample[0])]
    return bool(in_order) and ABSENT not in in_order and all(a <= b for a, b in pairwise(in_order))


def _pulse_times(taken: Take, reference: list[tuple[int, int]], period: int, indexed: list[str]) -> dict[int, int]:
    """The time of each pulse's tick, where ticks have pulses."""
    if taken.edges is not None:
        ticks = sorted({t for t, _ in reference})
        return dict(zip(brute.tick_numbers(ticks, period), ticks, strict=True))
    return {index: t for t, index in sorted(reference, reverse=True)} if "ref" in indexed else {}


def _tick_of(pulse: int, pulse_times: dict[int, int]) -> int | None:
    """Time of the tick of this pulse, else, as it is absent, of the next that is there."""
    later = [own for own in pulse_times if own >= pulse]
    return pulse_times[min(later)] if later else None


def _nominal(stream: dict[str, Any], period: int) -> int:
    """A live monitor knows no median step."""
    if stream["kind"] in ("sampled", "interpolated"):
        return stream["period_ns"] or brute.median_step(sorted(set(stream["times_ns"]))) or period
    return 0


def play(scene: Scene, asking: Random) -> tuple[list[tuple[int, int, int, int]], list[Push], _core.Monitor]:
    """Final ticks, the samples that were not late, and the monitor; the clock is asked now and then."""
    monitor, ticks, taken = scene.monitor(), [], []
    for push in scene.pushes:
        late = monitor.late
        monitor.push(push.stream, push.time, push.index)
        if monitor.late == late:
            taken.append(push)
        ticks += monitor.advance(asking.choice([ABSENT, push.arrival]))
    return ticks + monitor.advance(END_OF_TIME), taken, monitor


def assert_live_is_batch(scene: Scene, asking: Random) -> tuple[_core.Figures, int]:
    """Final ticks and figures at close are those of the batch core on what was not late; (figures, how many were)."""
    live, taken, monitor = play(scene, asking)
    figures = scene.batch(taken)
    assert told(monitor.close()) == told(figures)
    assert [tick[1] for tick in live] == sorted(tick[1] for tick in live)
    columns = [figures.tick.tolist(), figures.reference_ns.tolist(), figures.residual_ns.tolist(), _matched(figures)]
    assert live[figures.trimmed_start : len(live) - figures.trimmed_end] == list(zip(*columns, strict=True))
    assert len(live) == figures.ticks + figures.trimmed_start + figures.trimmed_end
    return figures, monitor.late


def _matched(figures: _core.Figures) -> list[int]:
    """Per tick the streams that matched, as a bit set."""
    columns = [figures.offset_ns(name).tolist() for name in figures.streams]
    return [sum(1 << at for at, column in enumerate(columns) if column[k] != ABSENT) for k in range(figures.ticks)]
