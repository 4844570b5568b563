"""Proofs of many episodes, side by side in worker processes: one bad episode, or one dead worker, stops no other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from firsthand_edge import _core
from firsthand_edge.qa.chains import Chains
from firsthand_edge.qa.once import counted_once
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import EpisodeProof, GivenSpec, Proof, exit_status, summary_of
from firsthand_edge.qa.prove import prove_episode
from firsthand_edge.qa.standard import Standard
from firsthand_edge.qa.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from firsthand_edge.qa.places import Found
    from firsthand_edge.qa.standard import Asked
    from firsthand_edge.qa.workers import Work

__all__ = ["prove"]

ALONE: Final = 64
"""Fewer episodes are done in this process: starting workers would take longer."""
ALONE_WITH_FOOTAGE: Final = 4
"""As `ALONE`, where footage is read: an episode then takes seconds."""


def prove(
    found: Found, asked: Asked, *, jobs: int | None = None, progress: Callable[[int], None] = lambda _done: None
) -> Proof:
    """Proves every episode that was found.

    Args:
        found: The episodes, in the order in which they are told.
        asked: What they are held against.
        jobs: Processes; by default as many as there are processors.
        progress: Called with the number of episodes that are done.

    Raises:
        SpecInvalid: the given spec is none.
    """
    standard = Standard(asked)
    spec = standard.spec
    given = GivenSpec(id=spec.id, version=spec.version, title=spec.title, digest=standard.digest)
    chains = Chains(asked.keys)
    work: list[Work] = [(place, chains.about(place.source, place.name)) for place in found.places]
    count = jobs or os.cpu_count() or 1
    if count == 1 or len(work) < (ALONE_WITH_FOOTAGE if asked.footage else ALONE):
        episodes = counted_once(list(_one_by_one(work, standard, progress)))
    else:
        episodes = counted_once(list(Workers(asked, count, progress).prove(work)))
    summary = summary_of(episodes)
    return Proof(
        core=_core.__version__,
        keys=tuple(key.hex() for key in asked.keys),
        spec=given,
        chains=tuple(chain.record for chain in chains.opened),
        footage=asked.footage,
        episodes=episodes,
        notes=tuple(map(printable, (*found.notes, *chains.notes))),
        summary=summary,
        exit_status=exit_status(summary),
    )


def _one_by_one(work: Sequence[Work], standard: Standard, progress: Callable[[int], None]) -> Iterator[EpisodeProof]:
    for number, (place, rows) in enumerate(work, start=1):
        yield prove_episode(place, standard, rows)
        progress(number)
