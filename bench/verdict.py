"""verdict: the figures of a whole take from Python: seven 60 Hz streams and the 1 kHz IMU.

Everybody gets numpy arrays in order (with repeats) and gives: each stream's count of matches and the median, p99 and
maximum of its offsets; the residual of every tick; its median, p99, p99.9 and maximum, how many are over the ceiling,
and the worst tick. The core does more for it (mutual matching, order, tick numbers, runs of missing ticks, the pair at
fault) and trusts nobody that stamps are in order; polars is told that they are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl

from bench.dataset import CEILING_NS, IMU_PERIOD_NS, PERIOD_NS, Stamps, Take
from bench.line import Line
from bench.timing import interleaved
from firsthand_edge import _core

if TYPE_CHECKING:
    from collections.abc import Callable

ABSENT = -(2**63)
NEAR_NS = PERIOD_NS // 2
RANKS = ((1, 2), (99, 100), (999, 1000), (1, 1))
NAMES = ("head", "wrist_left", "wrist_right", "stereo_left", "stereo_right", "depth", "pose")
"""`pictures[i]` is `NAMES[i]`; `imu` comes after them."""

Answer = dict[str, Any]


def by_core(take: Take) -> Answer:
    """The core."""
    streams = [
        _core.Stream(name, "triggered", times, period_ns=PERIOD_NS)
        for name, times in zip(NAMES, take.pictures, strict=True)
    ]
    streams.append(_core.Stream("imu", "sampled", take.imu, period_ns=IMU_PERIOD_NS))
    figures = _core.measure(streams, reference="head", period_ns=PERIOD_NS, ceiling_ns=CEILING_NS)
    residual = figures.residual
    return {
        "residual_ns": figures.residual_ns,
        "residual": [residual.median_ns, residual.p99_ns, residual.p999_ns, residual.max_ns],
        "over": residual.over_ceiling,
        "worst": int(np.searchsorted(figures.tick, residual.worst_tick or 0)),
        "streams": {
            name: [row.matched, row.offset_median_ns, row.offset_p99_abs_ns, row.offset_max_abs_ns]
            for name, row in figures.streams.items()
            if name != "head"
        },
    }


def judged(take: Take, reference: Stamps) -> slice:
    """The ticks of the span: sync.md section 3.3, for streams that start and end within a second of each other."""
    starts = [int(times[0]) for times in take.pictures]
    ends = [int(times[-1]) for times in take.pictures]
    first = max(max([*starts, int(take.imu[0])]) - (PERIOD_NS - 1) // 2, int(take.imu[0]))
    last = min(min([*ends, int(take.imu[-1])]) + (PERIOD_NS - 1) // 2, int(take.imu[-1]))
    return slice(int(np.searchsorted(reference, first)), int(np.searchsorted(reference, last, side="right")))


def partners(take: Take) -> list[tuple[str, Stamps, int]]:
    """Name, stamps and how near is near enough, of all streams but the reference."""
    near = [(name, times, NEAR_NS) for name, times in zip(NAMES[1:], take.pictures[1:], strict=True)]
    return [*near, ("imu", take.imu, IMU_PERIOD_NS)]


def rank(n: int, num: int, den: int) -> int:
    """Position of an order statistic of section 4 among n values in order."""
    return (n * num + den - 1) // den - 1


def by_polars(take: Take) -> Answer:
    """polars: one lazy query over as-of joins, told that all stamps are in order."""
    ticks = pl.Series("t", take.pictures[0]).set_sorted().unique(maintain_order=True)
    ticks = ticks[judged(take, ticks.to_numpy())]
    left = pl.DataFrame({"t": ticks}).set_sorted("t")
    offsets = {}
    for name, times, near in partners(take):
        right = pl.DataFrame({"t": times, "near": times}).set_sorted("t")
        joined = left.join_asof(right, on="t", strategy="nearest", tolerance=near)
        offsets[name] = joined["near"] - joined["t"]
    frame = pl.DataFrame(offsets)
    zero = pl.lit(0, dtype=pl.Int64)
    residual = frame.select(r=pl.max_horizontal(pl.all(), zero) - pl.min_horizontal(pl.all(), zero))["r"]
    in_order = residual.sort()
    rows = frame.select(
        *[pl.col(c).count().alias(f"{c}:matched") for c in offsets],
        *[pl.col(c).quantile(0.5, "equiprobable").cast(pl.Int64).alias(f"{c}:median") for c in offsets],
        *[pl.col(c).abs().quantile(0.99, "equiprobable").cast(pl.Int64).alias(f"{c}:p99") for c in offsets],
        *[pl.col(c).abs().max().alias(f"{c}:max") for c in offsets],
    ).row(0, named=True)
    return {
        "residual_ns": residual.to_numpy(),
        "residual": [in_order[rank(len(in_order), num, den)] for num, den in RANKS],
        "over": int((residual > CEILING_NS).sum()),
        "worst": residual.arg_max(),
        "streams": {c: [rows[f"{c}:{f}"] for f in ("matched", "median", "p99", "max")] for c in offsets},
    }


def summed_up(offsets: dict[str, tuple[Stamps, np.ndarray[Any, np.dtype[np.bool_]]]]) -> Answer:
    """From offsets and where they are there, with numpy."""
    high = np.zeros_like(next(iter(offsets.values()))[0])
    low = np.zeros_like(high)
    streams = {}
    for name, (offset, there) in offsets.items():
        known = np.where(there, offset, 0)
        np.maximum(high, known, out=high)
        np.minimum(low, known, out=low)
        present = offset[there]
        n = present.size
        median = np.partition(present, rank(n, 1, 2))[rank(n, 1, 2)]
        distances = np.abs(present)
        p99 = np.partition(distances, rank(n, 99, 100))[rank(n, 99, 100)]
        streams[name] = [n, int(median), int(p99), int(distances.max())]
    residual = high - low
    ranks = [rank(residual.size, num, den) for num, den in RANKS]
    parts = np.partition(residual, ranks)
    return {
        "residual_ns": residual,
        "residual": [int(parts[r]) for r in ranks],
        "over": int(np.count_nonzero(residual > CEILING_NS)),
        "worst": int(residual.argmax()),
        "streams": streams,
    }


def distinct(times: Stamps) -> Stamps:
    """Without repeats."""
    first: Stamps = times[np.concatenate([[True], times[1:] != times[:-1]])]
    return first


def by_numpy(take: Take) -> Answer:
    """numpy: binary search."""
    ticks = distinct(take.pictures[0])
    ticks = ticks[judged(take, ticks)]
    offsets = {}
    for name, times, near in partners(take):
        above = np.clip(np.searchsorted(times, ticks), 1, times.size - 1)
        before, after = times[above - 1] - ticks, times[above] - ticks
        offset = np.where(-before <= after, before, after)
        offsets[name] = (offset, np.abs(offset) <= near)
    return summed_up(offsets)


def by_pandas(take: Take) -> Answer:
    """pandas: as-of joins."""
    ticks = distinct(take.pictures[0])
    ticks = ticks[judged(take, ticks)]
    left = pd.DataFrame({"t": ticks})
    offsets = {}
    for name, times, near in partners(take):
        right = pd.DataFrame({"t": times, "row": np.arange(times.size)})
        joined = pd.merge_asof(left, right, on="t", direction="nearest", tolerance=near)["row"].to_numpy()
        there = ~np.isnan(joined)
        offsets[name] = (times[np.where(there, joined, 0).astype(np.int64)] - ticks, there)
    return summed_up(offsets)


def memory_bound(take: Take) -> None:
    """Reads every input once and writes every output once, in the core's widths; not an answer."""
    ticks = take.pictures[0].size
    for times in (*take.pictures, take.imu):
        np.bitwise_xor.reduce(times)
        np.empty(ticks, dtype=np.int32).fill(1)
    np.empty(ticks, dtype=np.int64).fill(1)


def check(take: Take) -> None:
    """All answers are the same."""
    ours = by_core(take)
    for rival in (by_polars, by_numpy, by_pandas):
        theirs = rival(take)
        assert np.array_equal(ours.pop("residual_ns"), theirs.pop("residual_ns")), rival.__name__
        assert ours == theirs, f"{rival.__name__}: {theirs}, the core: {ours}"
        ours = by_core(take)


def lines(take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table."""
    check(take)
    ways: dict[str, Callable[[Take], object]] = {
        "core": by_core,
        "polars": by_polars,
        "numpy": by_numpy,
        "pandas": by_pandas,
        "bound": memory_bound,
    }
    ns = interleaved({name: partial(way, take) for name, way in ways.items()}, rounds=rounds)
    return [
        Line("verdict", f"{take.label}: core, 7 streams and IMU", ns["core"] / 1e6, "ms"),
        Line("verdict", f"{take.label}: polars / core", ns["polars"] / ns["core"], "x", 8),
        Line("verdict", f"{take.label}: numpy / core", ns["numpy"] / ns["core"], "x", 12),
        Line("verdict", f"{take.label}: pandas / core", ns["pandas"] / ns["core"], "x"),
        Line("verdict", f"{take.label}: one-pass bound / core", 100 * ns["bound"] / ns["core"], "%", 55),
    ]
