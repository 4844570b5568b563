"""The states of an episode. Each is a folder of the spool; a move between two of them is a step with a chain row."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["LEGAL", "State", "may_move"]


class State(StrEnum):
    """Where an episode is. The value is the folder's name."""

    RECORDING = "recording"
    """Being written."""
    TORN = "torn"
    """Left by a crash; recovered, waiting for judgement."""
    SEALED = "sealed"
    """Closed, durable, bound by its manifest; waiting for judgement."""
    ACCEPTED = "accepted"
    """Judged good; waiting for upload."""
    REJECTED = "rejected"
    """Judged bad, with reasons; kept until its retention ends. Its footage never leaves."""
    UPLOADED = "uploaded"
    """The store has proved that it holds the bytes."""
    GONE = "gone"
    """Removed: manifest and verdict are left, and the evidence unless consent was withdrawn; never footage."""
    ASIDE = "aside"
    """Its files are not what the chain says they are. Nothing reads it again; a person decides."""


LEGAL: Final[dict[State, frozenset[State]]] = {
    State.RECORDING: frozenset({State.SEALED, State.TORN, State.GONE}),
    State.TORN: frozenset({State.REJECTED, State.GONE, State.ASIDE}),
    State.SEALED: frozenset({State.ACCEPTED, State.REJECTED, State.GONE, State.ASIDE}),
    State.ACCEPTED: frozenset({State.UPLOADED, State.REJECTED, State.GONE, State.ASIDE}),
    State.REJECTED: frozenset({State.ACCEPTED, State.GONE, State.ASIDE}),
    State.UPLOADED: frozenset({State.GONE, State.ASIDE}),
    State.GONE: frozenset(),
    State.ASIDE: frozenset({State.GONE}),
}
"""Moves that exist. A torn episode is never accepted; an accepted one may be judged again and rejected, and the other
way round."""


def may_move(source: State, target: State) -> bool:
    """Whether an episode may go from `source` to `target`."""
    return target in LEGAL[source]
