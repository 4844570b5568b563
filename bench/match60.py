"""match60: six 60 Hz partners against the 60 Hz reference, nearest within half a period.

Everybody gets numpy arrays of stamps and gives, for every partner, the offset of each reference stamp's nearest partner
stamp as an int64 numpy array, -2**63 where none is near enough.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl

from bench.dataset import PERIOD_NS, Stamps, Take
from bench.line import Line
from bench.timing import interleaved
from firsthand_edge import _core

if TYPE_CHECKING:
    from collections.abc import Callable

NEAR_NS = PERIOD_NS // 2
ABSENT = np.int64(-(2**63))


def by_core(reference: Stamps, partners: list[Stamps]) -> list[Stamps]:
    """The core."""
    return [_core.match_nearest(reference, times, NEAR_NS)[1] for times in partners]


def by_polars(reference: Stamps, partners: list[Stamps]) -> list[Stamps]:
    """polars' as-of join, told that both sides are in order."""
    left = pl.DataFrame({"t": reference}).set_sorted("t")
    out = []
    for times in partners:
        right = pl.DataFrame({"t": times, "near": times}).set_sorted("t")
        joined = left.join_asof(right, on="t", strategy="nearest", tolerance=NEAR_NS)
        out.append(joined.select((pl.col("near") - pl.col("t")).fill_null(ABSENT))["near"].to_numpy())
    return out


def by_numpy(reference: Stamps, partners: list[Stamps]) -> list[Stamps]:
    """Binary search."""
    out = []
    for times in partners:
        above = np.clip(np.searchsorted(times, reference), 1, times.size - 1)
        before, after = times[above - 1] - reference, times[above] - reference
        nearest = np.where(-before <= after, before, after)
        out.append(np.where(np.abs(nearest) <= NEAR_NS, nearest, ABSENT))
    return out


def by_pandas(reference: Stamps, partners: list[Stamps]) -> list[Stamps]:
    """pandas' as-of join."""
    left = pd.DataFrame({"t": reference})
    out = []
    for times in partners:
        right = pd.DataFrame({"t": times, "row": np.arange(times.size)})
        joined = pd.merge_asof(left, right, on="t", direction="nearest", tolerance=NEAR_NS)
        row = joined["row"].to_numpy()
        there = ~np.isnan(row)
        nearest = times[np.where(there, row, 0).astype(np.int64)] - reference
        out.append(np.where(there, nearest, ABSENT))
    return out


def memory_bound(reference: Stamps, partners: list[Stamps]) -> list[Stamps]:
    """Reads what must be read and writes what must be written, no more; not an answer."""
    out = []
    for times in partners:
        n = min(reference.size, times.size)
        np.empty(reference.size, dtype=np.uint32).fill(1)
        out.append(np.subtract(times[:n], reference[:n]))
    return out


def check(take: Take) -> None:
    """All answers are the same, but for the side that an exact tie goes to."""
    reference, partners = take.pictures[0], list(take.pictures[1:])
    ours = by_core(reference, partners)
    for rival in (by_polars, by_numpy, by_pandas):
        for one, other in zip(ours, rival(reference, partners), strict=True):
            assert np.array_equal(np.abs(one), np.abs(other)), rival.__name__


def lines(take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table."""
    check(take)
    reference, partners = take.pictures[0], list(take.pictures[1:])
    ways: dict[str, Callable[[Stamps, list[Stamps]], list[Stamps]]] = {
        "core": by_core,
        "polars": by_polars,
        "numpy": by_numpy,
        "pandas": by_pandas,
        "bound": memory_bound,
    }
    ns = interleaved({name: partial(way, reference, partners) for name, way in ways.items()}, rounds=rounds)
    pairs = reference.size * len(partners)
    return [
        Line("match60", f"{take.label}: core, a pair of frames", ns["core"] / pairs, "ns"),
        Line("match60", f"{take.label}: polars join_asof(nearest) / core", ns["polars"] / ns["core"], "x", 10),
        Line("match60", f"{take.label}: numpy searchsorted / core", ns["numpy"] / ns["core"], "x", 25),
        Line("match60", f"{take.label}: pandas merge_asof / core", ns["pandas"] / ns["core"], "x"),
        Line("match60", f"{take.label}: memory bound / core", 100 * ns["bound"] / ns["core"], "%", 80),
    ]
