"""Interleaved timing: every candidate runs once a round, so that a noisy neighbour hits all of them."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def interleaved(candidates: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Median time of each candidate in ns. One round before the first warms caches and lazy imports."""
    taken: dict[str, list[int]] = {name: [] for name in candidates}
    for turn in range(rounds + 1):
        for name, run in candidates.items():
            start = time.perf_counter_ns()
            run()
            spent = time.perf_counter_ns() - start
            if turn:
                taken[name].append(spent)
    return {name: statistics.median(times) for name, times in taken.items()}
