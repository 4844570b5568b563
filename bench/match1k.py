"""match1k: for each 60 Hz tick the nearest sample of a 1 kHz stream, within half a tick's period.

As match60, with one dense partner: the same ways, the same answers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench.line import Line
from bench.match60 import by_core, by_numpy, by_pandas, by_polars
from bench.timing import interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.dataset import Stamps, Take


def read_bound(reference: Stamps, partners: list[Stamps]) -> None:
    """Reads every stamp once, no more; not an answer. Of numpy's reductions none is faster."""
    for times in (reference, *partners):
        np.bitwise_xor.reduce(times)


def lines(take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table."""
    reference, partners = take.pictures[0], [take.imu]
    (ours,) = by_core(reference, partners)
    for rival in (by_polars, by_numpy, by_pandas):
        assert np.array_equal(np.abs(ours), np.abs(rival(reference, partners)[0])), rival.__name__
    ways: dict[str, Callable[[Stamps, list[Stamps]], object]] = {
        "core": by_core,
        "polars": by_polars,
        "numpy": by_numpy,
        "pandas": by_pandas,
        "bound": read_bound,
    }
    ns = interleaved({name: partial(way, reference, partners) for name, way in ways.items()}, rounds=rounds)
    return [
        Line("match1k", f"{take.label}: core, a tick", ns["core"] / reference.size, "ns"),
        Line("match1k", f"{take.label}: polars join_asof(nearest) / core", ns["polars"] / ns["core"], "x", 4),
        Line("match1k", f"{take.label}: numpy searchsorted / core", ns["numpy"] / ns["core"], "x"),
        Line("match1k", f"{take.label}: pandas merge_asof / core", ns["pandas"] / ns["core"], "x"),
        Line("match1k", f"{take.label}: read bound / core", 100 * ns["bound"] / ns["core"], "%", 50),
    ]
