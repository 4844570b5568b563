"""One episode at several places is one episode: it counts at one that is proved, and fails at all others."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from firsthand_edge.qa.proof import ONCE, Check, Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.qa.proof import EpisodeProof

__all__ = ["counted_once"]

WHAT: Final = "It is counted once, however often it was copied"
RANK: Final = {Outcome.TAKEN_BACK: 0, Outcome.UNKNOWN: 2, Outcome.FAILED: 3}
"""Which of several places counts, the least of them; 1 for what is proved. A chain that takes it back knows more."""


def counted_once(episodes: Sequence[EpisodeProof]) -> tuple[EpisodeProof, ...]:
    """The proofs in their order, each with the check `once`.

    Two folders hold one episode when their manifests are of one id and equal byte for byte.
    """
    places: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for number, proof in enumerate(episodes):
        if proof.manifest is not None:
            places[proof.episode, proof.manifest].append(number)
    first = {
        number: min(numbers, key=lambda n: (RANK.get(episodes[n].outcome, 1), n))
        for numbers in places.values()
        for number in numbers
    }
    out = []
    for number, proof in enumerate(episodes):
        if number not in first:
            out.append(_with(proof, Result.NOT_CHECKED, "no manifest tells which episode it is", excused=True))
        elif first[number] != number:
            at = episodes[first[number]].folder
            failing = _with(proof, Result.FAILS, f"lies here twice: also at {at}, where it counts")
            out.append(failing.model_copy(update={"outcome": Outcome.FAILED}))
        else:
            copies = len(places[proof.episode, str(proof.manifest)]) - 1
            more = f"; copies of it that do not count: {copies}" if copies else ""
            out.append(_with(proof, Result.HOLDS, f"among {len(episodes)} looked at{more}"))
    return tuple(out)


def _with(proof: EpisodeProof, result: Result, found: str, *, excused: bool = False) -> EpisodeProof:
    check = Check(id=ONCE, result=result, what=WHAT, found=found, excused=excused)
    return proof.model_copy(update={"checks": (*proof.checks, check)})
