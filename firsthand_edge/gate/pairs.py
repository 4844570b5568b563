"""How far each pair of streams disagrees, tick by tick: what the residual is the worst of.

`R(k)` is the largest of `|t_i - t_j|` over the pairs of triggered and sampled streams at tick `k`, the reference stream
included; `G(k)` the largest of `|t_i - t_j| + u_i + u_j`, in which interpolated streams take part at the tick
(sync.md section 4). So the largest figure of all pairs is the residual's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge import _core
from firsthand_edge.gate.figures import every
from firsthand_edge.model import ABSENT, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.gate.figures import Facts, Figures, Int64

__all__ = ["Pair", "disagreement_ns", "judged_ns", "pair_names", "summary"]

LARGEST_NS = 2**63 - 1
"""Where G saturates."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Exact order statistics of what two streams disagree by; every figure is one that occurred.

    None where the two were never matched at one tick.
    """

    streams: tuple[str, str]
    ticks: int
    """Ticks at which both were matched."""
    median_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    over_ceiling: int
    """Ticks at which they disagree by more than the ceiling."""


def pair_names(figures: Figures, *, guard_band: bool) -> Iterator[tuple[str, str]]:
    """The pairs that the residual is the worst of: the reference first, then by name.

    Args:
        figures: What was measured.
        guard_band: Whether G is held against the ceiling, where interpolated streams take part.
    """
    if figures.sync is None:
        return
    there = [facts for facts in figures.judged if facts.name in figures.sync.streams]
    members = [facts.name for facts in there if guard_band or facts.kind is not Kind.INTERPOLATED]
    yield from combinations(members, 2)


def disagreement_ns(figures: Figures, streams: tuple[str, str], *, guard_band: bool = False) -> Int64:
    """What two streams disagree by at each tick of the span.

    Args:
        figures: What was measured; something must have been matched.
        streams: The two, in any order.
        guard_band: Add the uncertainties of both, unless they share one clock map.

    Returns:
        (ticks,) int64 `|t_i - t_j|`, absent where either has no match.

    Raises:
        KeyError: a stream that was not matched.
    """
    first, second = (_offset_ns(figures, name) for name in streams)
    lacking = [column == ABSENT for column in (first, second) if column is not None]
    if first is None or second is None:
        only = second if first is None else first
        out = np.abs(only) if only is not None else np.zeros(_ticks(figures), dtype=np.int64)
    else:
        out = np.subtract(first, second)
        np.abs(out, out=out)
    if guard_band:
        margin = _margin_ns(figures.stream(streams[0]), figures.stream(streams[1]))
        out = np.minimum(out, LARGEST_NS - margin) + margin
    for absent in lacking:
        out[absent] = ABSENT
    return out


def judged_ns(figures: Figures, streams: tuple[str, str], *, guard_band: bool = False) -> Int64:
    """What `disagreement_ns` finds at the ticks at which both were matched: (n,) int64, none absent."""
    values = disagreement_ns(figures, streams, guard_band=guard_band)
    there = values != ABSENT
    return values if every(there) else values[there]


def summary(streams: tuple[str, str], values_ns: Int64, *, ceiling_ns: int) -> Pair:
    """The order statistics of what `judged_ns` found."""
    return Pair(
        streams,
        int(values_ns.size),
        _core.quantile(values_ns, 1, 2),
        _core.quantile(values_ns, 99, 100),
        int(values_ns.max()) if values_ns.size else None,
        int(np.count_nonzero(values_ns > ceiling_ns)),
    )


def _ticks(figures: Figures) -> int:
    return figures.sync.ticks if figures.sync is not None else 0


def _offset_ns(figures: Figures, name: str) -> Int64 | None:
    """The offsets of a stream to the ticks; None for the reference, which lies on every one."""
    if figures.sync is None:
        raise KeyError(name)
    return None if name == figures.sync.reference else figures.sync.offset_ns(name)


def _margin_ns(first: Facts, second: Facts) -> int:
    if first.device is not None and first.device == second.device:
        return 0
    return first.uncertainty_ns + second.uncertainty_ns
