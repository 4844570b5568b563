"""Random takes: streams as devices deliver them, with every fault that sync.md speaks of.

A take is made of few choices (how long, what streams, which faults, where) and of noise that costs one choice, so that
hypothesis, which may make the choices, makes a failing take small. With a seeded `random.Random` it is a fixed take.
Times are made around 0 in Python's integers and moved to their place in int64 at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.sync import brute

MOST, LEAST = brute.MOST, brute.ABSENT + 1
EPOCH = 1_700_000_000_000_000_000
EXTENTS = [2**61, 2**62, MOST]
"""Where arithmetic in 64 bits may need care: differences, their sums, their own range."""
KINDS = ["triggered", "triggered", "triggered", "sampled", "interpolated", "event"]
TICKS_MAX = 5000
"""Expected ticks at most: the brute-force reading lists them one by one."""


@dataclass(frozen=True)
class Take:
    """The arguments of `brute.measure`."""

    streams: list[dict[str, Any]]
    edges: list[int] | None
    settings: dict[str, int | None]

    @property
    def reference(self) -> str:
        """Name of the reference stream or of the edges."""
        return "ref"


@dataclass(frozen=True)
class Shape:
    """What all streams of a take have in common."""

    ticks: int
    period: int

    @property
    def jitters(self) -> list[int]:
        """Offsets at which inequalities turn: halves and quarters of the period, and one to either side."""
        half, quarter = self.period // 2, self.period // 4
        near = [0, 0, 0, 1, -1, half, -half, half + 1, -half - 1, half - 1, quarter, -quarter]
        return [*near, self.period - half, half - self.period, self.period]


def take(random: Random, *, far: bool = True) -> Take:
    """A take. `far`: with extents near the range of int64, and periods to match."""
    shape = _shape(random, far=far)
    reference = _faulty(random, shape, _grid(random, shape), indexed=random.random() < 0.4)
    streams = [_stream(random, shape, name) for name in "abcd"[: random.choice([2, 3, 1, 2, 3, 4, 0])]]
    edges = random.random() < 0.35
    if not edges:
        head = _named("ref", "triggered", reference, random)
        head["uncertainty_ns"], head["clock"] = random.choice([0, 20]), "x"
        streams.insert(random.randint(0, len(streams)), head)
    ticks = [t for t, _ in reference]
    if far and random.random() < 0.15:
        _reach_far(random, streams, ticks, edges=edges)
    _settle(random, streams, ticks)
    settings: dict[str, int | None] = {
        "period_ns": random.choice([shape.period] * 4 + [None, shape.period + 1, max(1, shape.period - 1), 1]),
        "trim_max_ns": random.choice([10**9, 10**9, 2 * shape.period, shape.period // 2, 0, MOST]),
        "ceiling_ns": random.choice([0, shape.period // 10, shape.period // 4, 2_000_000, MOST]),
    }
    if _expected(ticks, settings["period_ns"]) > TICKS_MAX:
        settings["period_ns"] = max(shape.period, (max(ticks) - min(ticks)) // TICKS_MAX)
    for stream in streams:
        if random.random() < 0.5 and stream["kind"] == "triggered" and stream["name"] != "ref":
            stream["period_ns"] = random.choice([1, shape.period])  # says nothing of a stream that is no reference
    return Take(streams, ticks if edges else None, settings)


def _shape(random: Random, *, far: bool) -> Shape:
    few, many = random.choice([12, 5, 1, 2, 3, 0, 8, 12, 20]), random.randint(64, 300)
    ticks = many if random.random() < 0.3 else few
    period = random.choice([10, 1000, 1000, 1001, 16_666_667, 16_666_667, 33_333_333, 2**31 + 1, 2**33])
    if far and random.random() < 0.2:
        period = random.choice(EXTENTS) // max(1, ticks + 2)
    return Shape(ticks, period)


def _expected(ticks: list[int], period: int | None) -> int:
    if len(ticks) < 2:
        return 0
    period = period or brute.median_step(sorted(set(ticks))) or 1
    return (max(ticks) - min(ticks)) // period


Sample = tuple[int, int]
"""Time, and the pulse that it was exposed for."""


def _grid(random: Random, shape: Shape, *, step: int = 1, first: int = 0, offset: int = 0) -> list[Sample]:
    """One sample at every `step`-th tick, each off by noise of one sort."""
    noise = Random(random.getrandbits(32))  # noqa: S311 - noise, no secrets
    spread = random.choice([0, 0, 1, 2, 3])
    samples = []
    for tick in range(first, shape.ticks, step):
        off = [
            0,
            noise.choice(shape.jitters) if noise.random() < 0.2 else 0,
            noise.randint(-shape.period // 3, shape.period // 3),
            noise.choice(shape.jitters),
        ][spread]
        samples.append((tick * shape.period + offset + off, tick))
    return samples


def _faulty(random: Random, shape: Shape, samples: list[Sample], *, indexed: bool) -> list[Sample]:
    """With up to three faults; without `indexed` the second of each sample is `ABSENT`."""
    for _ in range(random.choice([0, 1, 2, 3])):
        if samples:
            at = random.randrange(len(samples))
            random.choice([_drop, _compete, _repeat, _delay, _compete, _shift, _drop])(random, shape, samples, at)
    if not indexed:
        return [(t, brute.ABSENT) for t, _ in samples]
    if samples and random.random() < 0.15:
        at = random.randrange(len(samples))
        samples[at] = (samples[at][0], random.choice([brute.ABSENT, samples[0][1], samples[-1][1]]))
    return samples


def _drop(random: Random, _shape: Shape, samples: list[Sample], at: int) -> None:
    del samples[at : at + random.choice([1, 1, 1, 2, 4, 40])]


def _repeat(random: Random, _shape: Shape, samples: list[Sample], at: int) -> None:
    samples.insert(random.choice([at + 1, at + 1, random.randint(0, len(samples))]), samples[at])


def _delay(random: Random, _shape: Shape, samples: list[Sample], at: int) -> None:
    late = samples.pop(at)
    samples.insert(min(len(samples), at + random.choice([1, 1, 2, 5, len(samples)])), late)


def _compete(random: Random, shape: Shape, samples: list[Sample], at: int) -> None:
    """One more sample near a tick: beside the one that is there, or as far from the tick on the other side."""
    t, pulse = samples[at]
    tick = pulse * shape.period
    samples.insert(at + 1, (random.choice([2 * tick - t, t + 1, t - shape.period // 10, tick]), pulse))


def _shift(random: Random, shape: Shape, samples: list[Sample], at: int) -> None:
    """Everything from there on comes at another time, as after a step of the clock."""
    by = random.choice(shape.jitters) + random.choice([0, 0, shape.period])
    samples[at:] = [(t + by, pulse) for t, pulse in samples[at:]]


def _named(name: str, kind: str, samples: list[Sample], random: Random) -> dict[str, Any]:
    stream: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "times_ns": [t for t, _ in samples],
        "uncertainty_ns": random.choice([0, 0, 7, 300, 2**60]),
        "clock": random.choice([None, None, "x", "y"]),
    }
    if samples and any(index != brute.ABSENT for _, index in samples):
        stream["trigger_index"] = [index for _, index in samples]
    return stream


def _stream(random: Random, shape: Shape, name: str) -> dict[str, Any]:
    kind = random.choice(KINDS)
    if kind == "event":
        times = [random.randint(-2 * shape.period, shape.ticks * shape.period) for _ in range(random.randint(0, 3))]
        return _named(name, kind, [(t, brute.ABSENT) for t in times], random)
    stream = _triggered(random, shape, name) if kind == "triggered" else _free(random, shape, name, kind)
    if random.random() < 0.05 and stream["times_ns"]:
        keep = random.randint(0, 1)
        stream["times_ns"] = stream["times_ns"][:keep]
        if "trigger_index" in stream:
            stream["trigger_index"] = stream["trigger_index"][:keep]
    return stream


def _triggered(random: Random, shape: Shape, name: str) -> dict[str, Any]:
    decimate = random.choice([1, 1, 2, 3])
    first = random.randrange(decimate)
    step = random.choice([decimate, decimate, decimate, 1])  # 1: a device that nobody told to decimate
    samples = _grid(random, shape, step=step, first=first, offset=random.choice(shape.jitters))
    late, early = (random.choice([0, 0, 0, 1, 3, len(samples) // 2]) for _ in range(2))
    samples = samples[late : len(samples) - early]
    indexed = random.random() < 0.35
    samples = _faulty(random, shape, samples, indexed=indexed)
    if indexed:
        slip = random.choice([0, 0, 1, -1, 2])
        samples = [(t, index if index == brute.ABSENT else index + slip) for t, index in samples]
    phase = random.choice([None, None, first, random.randrange(decimate)])
    return {**_named(name, "triggered", samples, random), "decimate": decimate, "phase": phase}


def _free(random: Random, shape: Shape, name: str, kind: str) -> dict[str, Any]:
    parts = [1, 1, 3, 7] if shape.ticks > 20 else [1, 3, 7, 16]
    step = random.choice([max(1, shape.period // random.choice(parts)), min(shape.period * 5 // 2, MOST)])
    late, early = (random.choice([0, 0, 0, 1, 3, shape.ticks // 2]) for _ in range(2))
    length = (shape.ticks - late - early) * shape.period
    own = Shape(max(0, length // step + 1), step)
    samples = _faulty(random, own, _grid(random, own), indexed=False)
    start = late * shape.period - random.choice([0, 0, step // 2, step])
    stream = _named(name, kind, [(t + start, index) for t, index in samples], random)
    stream["period_ns"] = random.choice([None, step])
    if kind == "interpolated":
        stream["max_gap_ns"] = random.choice([None, None, step, min(step + step // 20, MOST)])
    return stream


def _reach_far(random: Random, streams: list[dict[str, Any]], ticks: list[int], *, edges: bool) -> None:
    """Moves the latest sample of one stream, not of the reference, so far that all extend over a turning point."""
    judged = [s for s in streams if s["kind"] != "event"]
    others = [s for s in judged if s["name"] != "ref" and s["times_ns"]]
    if others:
        least = min([t for s in judged for t in s["times_ns"]] + (ticks if edges else []))
        times = random.choice(others)["times_ns"]
        times[times.index(max(times))] = least + min(random.choice(EXTENTS) + random.randint(-1, 1), MOST)


def _settle(random: Random, streams: list[dict[str, Any]], ticks: list[int]) -> None:
    """Moves all streams and ticks to their place in int64, in place, and cuts off what does not fit together."""
    judged = [s for s in streams if s["kind"] != "event"]
    lists = [s["times_ns"] for s in judged] + [ticks]
    least = min((t for times in lists for t in times), default=0)
    for stream in judged:
        kept = [i for i, t in enumerate(stream["times_ns"]) if t - least <= MOST]
        for name in ("times_ns", "trigger_index"):
            if stream.get(name) is not None:
                stream[name] = [stream[name][i] for i in kept]
    ticks[:] = [t for t in ticks if t - least <= MOST]
    most = max((t for times in [s["times_ns"] for s in judged] + [ticks] for t in times), default=0)
    lowest, highest = LEAST - least, MOST - most
    shift = max(lowest, min(random.choice([0, EPOCH, EPOCH, lowest, highest]), highest))
    ticks[:] = [t + shift for t in ticks]
    for stream in streams:
        stream["times_ns"] = [max(LEAST, min(t + shift, MOST)) for t in stream["times_ns"]]
