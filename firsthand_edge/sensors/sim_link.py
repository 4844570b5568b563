"""The link of a simulated device: each delivery is late by a least time, an exponential tail, and rarely a spike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from firsthand_edge.sensors.configuration import SimDevice

__all__ = ["Draws"]

Int64 = npt.NDArray[np.int64]
_BLOCK_BITS: Final = 10
_BLOCK: Final = 1 << _BLOCK_BITS
_TAIL_MAX: Final = 10.0
"""Tails longer than this many means are cut off there."""


class Draws:
    """Random draws addressed by number, so that they do not depend on when a device was armed or asked.

    Args:
        config: Seed and sizes of delay.
        stream: Position of the stream in its device; each stream has draws of its own.
    """

    def __init__(self, config: SimDevice, stream: int) -> None:
        self._config = config
        self._stream = stream
        self._blocks: dict[tuple[int, int], tuple[Int64, npt.NDArray[np.float64]]] = {}

    def delays_ns(self, take: int, numbers: Int64) -> Int64:
        """Transport delay of each number within a take, (n,) ns, never below the least."""
        return np.concatenate([self._block(take, b)[0][at] for b, at in _by_block(numbers)])

    def shares(self, take: int, numbers: Int64) -> npt.NDArray[np.float64]:
        """A draw from [0, 1) of each number within a take, (n,)."""
        return np.concatenate([self._block(take, b)[1][at] for b, at in _by_block(numbers)])

    def _block(self, take: int, block: int) -> tuple[Int64, npt.NDArray[np.float64]]:
        known = self._blocks.get((take, block))
        if known is None:
            c = self._config
            draw = np.random.Generator(np.random.Philox(np.random.SeedSequence([c.seed, self._stream, take, block])))
            tail = np.minimum(draw.exponential(1.0, _BLOCK), _TAIL_MAX) * c.delay_tail_us * 1000
            spike = (draw.random(_BLOCK) < float(c.spike_share)) * draw.random(_BLOCK) * c.spike_us * 1000
            least_ns = max(0, c.min_delay_us + c.delay_error_us) * 1000
            known = (least_ns + (tail + spike).astype(np.int64), draw.random(_BLOCK))
            if len(self._blocks) > 2:
                self._blocks.clear()
            self._blocks[take, block] = known
        return known


def _by_block(numbers: Int64) -> list[tuple[int, Int64]]:
    """Ascending numbers cut into (block, positions in it)."""
    first, last = int(numbers[0]) >> _BLOCK_BITS, int(numbers[-1]) >> _BLOCK_BITS
    if first == last:
        return [(first, numbers & (_BLOCK - 1))]
    edges = np.searchsorted(numbers, np.arange(first + 1, last + 1) << _BLOCK_BITS)
    return [(first + i, part & (_BLOCK - 1)) for i, part in enumerate(np.split(numbers, edges)) if len(part)]
