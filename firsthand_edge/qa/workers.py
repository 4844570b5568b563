"""Worker processes that prove episodes side by side: one that dies takes nothing with it but its own episode."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
from collections import deque
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Final

from firsthand_edge.qa.ledger import Ledger
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import EpisodeProof, Outcome
from firsthand_edge.qa.prove import prove_episode
from firsthand_edge.qa.standard import Standard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from firsthand_edge.qa.chains import EpisodeRows
    from firsthand_edge.qa.places import Place
    from firsthand_edge.qa.standard import Asked

__all__ = ["CHUNK", "Work", "Workers"]

CHUNK: Final = 32
"""Episodes that a worker takes at a time, at most: handing over costs little, and a dead worker held little."""
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Names of `mallopt(3)`."""
KEPT_BYTES: Final = 64 << 20
GARBAGE: Final = 100_000
"""Objects between two looks for cycles: documents have none, and looking through them takes its time."""

Work = tuple["Place", "EpisodeRows | None"]
"""An episode's folder, and what the chain says of it."""


class Workers:
    """Processes that all hold episodes against one standard."""

    def __init__(self, asked: Asked, count: int, progress: Callable[[int], None]) -> None:
        """Starts nothing yet.

        Args:
            asked: What episodes are held against.
            count: Processes.
            progress: Called with the number of episodes that are done.
        """
        self._asked: Final = asked
        self._count: Final = count
        self._progress: Final = progress
        self._proofs: dict[int, list[EpisodeProof]] = {}

    def prove(self, work: Sequence[Work]) -> Iterator[EpisodeProof]:
        """The proofs, in the order of `work`. Chunks that were held when a worker died are done again, each apart."""
        size = max(1, min(CHUNK, len(work) // (4 * self._count)))
        chunks = [work[start : start + size] for start in range(0, len(work), size)]
        waiting = deque(range(len(chunks)))
        while waiting:
            for number in self._until_one_dies(chunks, waiting):
                self._proofs[number] = self._apart(chunks[number])
        for number in range(len(chunks)):
            yield from self._proofs[number]

    def _until_one_dies(self, chunks: Sequence[Sequence[Work]], waiting: deque[int]) -> list[int]:
        """Works off `waiting`; gives the chunks that were being worked on when a worker died."""
        running: dict[Future[list[EpisodeProof]], int] = {}
        with self._pool(self._count) as pool:
            while waiting or running:
                try:
                    while waiting and len(running) < 2 * self._count:
                        running[pool.submit(_chunk, chunks[waiting[0]])] = waiting[0]
                        waiting.popleft()
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._proofs[running[future]] = future.result()
                        del running[future]
                except BrokenProcessPool:
                    return sorted(running.values())
                self._progress(sum(map(len, self._proofs.values())))
        return []

    def _apart(self, chunk: Sequence[Work]) -> list[EpisodeProof]:
        """A chunk in a process of its own; where that dies too, its halves, down to the episode that makes it die."""
        try:
            with self._pool(1) as pool:
                return pool.submit(_chunk, chunk).result()
        except BrokenProcessPool:
            if len(chunk) > 1:
                half = len(chunk) // 2
                return [*self._apart(chunk[:half]), *self._apart(chunk[half:])]
        why = "its content made the process that examined it end"
        ledger = Ledger()
        ledger.fails("folder", why)
        return [EpisodeProof(folder=printable(chunk[0][0].shown), outcome=Outcome.FAILED, checks=ledger.close(why))]

    def _pool(self, count: int) -> ProcessPoolExecutor:
        # Not forked: the caller may hold threads and locks that a copy of it would wait for.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, mp_context=context, initializer=partial(_begin, self._asked))


_standard: Standard | None = None
"""Of this worker process."""


def _begin(asked: Asked) -> None:
    global _standard  # noqa: PLW0603 - what a worker is told at its start
    _keep_memory()
    gc.freeze()  # what is imported stays
    gc.set_threshold(GARBAGE)
    _standard = Standard(asked)


def _keep_memory() -> None:
    """Lets the C library keep what one episode freed for the next one, where it can be told to (glibc).

    By default it returns every large column to the kernel, which hands it back page by page, zeroed: a tenth of the
    time of an episode of 100 kB.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(parameter, KEPT_BYTES)


def _chunk(work: Sequence[Work]) -> list[EpisodeProof]:
    if _standard is None:
        raise RuntimeError("a worker was started without being told what to hold episodes against")
    return [prove_episode(place, _standard, rows) for place, rows in work]
