"""quantile: the exact median, 99th percentile and maximum of a column of residuals.

Everybody gets a numpy array of int64 nanoseconds and gives three numbers. numpy is exact too (its order statistics are
held against ours, its timing is that of its default); the digest is an estimate, held to one percent but for the
maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from fastdigest import TDigest

from bench.dataset import PERIOD_NS, Stamps, Take
from bench.line import Line
from bench.timing import interleaved
from firsthand_edge import _core

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = [(1, 2), (99, 100), (1, 1)]
PERCENT = [50, 99, 100]


def by_core(values: Stamps) -> list[int] | None:
    """The core."""
    return _core.quantiles(values, RANKS)


def by_numpy(values: Stamps) -> list[float]:
    """numpy's percentile."""
    found: list[float] = np.percentile(values, PERCENT).tolist()
    return found


def by_partition(values: Stamps) -> list[int]:
    """numpy's partition at the ranks."""
    ranks = [(values.size * num + den - 1) // den - 1 for num, den in RANKS]
    parts = np.partition(values, ranks)
    return [int(parts[rank]) for rank in ranks]


def by_digest(values: Stamps) -> list[float]:
    """A t-digest in Rust."""
    digest = TDigest.from_values(values)
    return [digest.quantile(percent / 100) for percent in PERCENT]


def read_bound(values: Stamps) -> object:
    """Reads the values, no more; not an answer."""
    return np.bitwise_xor.reduce(values)


def check(values: Stamps) -> None:
    """The exact ways say the same, the estimate nearly so."""
    ours = by_core(values)
    assert ours == by_partition(values) == np.percentile(values, PERCENT, method="inverted_cdf").tolist()
    assert np.allclose(ours[:2], by_digest(values)[:2], rtol=1e-2)


def lines(take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table."""
    reference, partner = take.pictures[:2]
    offsets = _core.match_nearest(reference, partner, PERIOD_NS // 2)[1]
    values = np.abs(offsets[offsets != -(2**63)])
    values.flags.writeable = False
    check(values)
    ways: dict[str, Callable[[], object]] = {
        "core": lambda: by_core(values),
        "numpy": lambda: by_numpy(values),
        "partition": lambda: by_partition(values),
        "digest": lambda: by_digest(values),
        "bound": lambda: read_bound(values),
    }
    ns = interleaved(ways, rounds=rounds)
    return [
        Line("quantile", f"{take.label}: core, a value", ns["core"] / values.size, "ns"),
        Line("quantile", f"{take.label}: np.percentile / core", ns["numpy"] / ns["core"], "x", 5),
        Line("quantile", f"{take.label}: np.partition / core", ns["partition"] / ns["core"], "x"),
        Line("quantile", f"{take.label}: fastdigest (an estimate) / core", ns["digest"] / ns["core"], "x", 25),
        Line("quantile", f"{take.label}: read bound / core", 100 * ns["bound"] / ns["core"], "%"),
    ]
