"""How an episode's footage is removed, when it may be, and what stays.

Removed means: the row is durable, the folder is in `gone`, and only documents are left in it. Manifest, verdicts and
receipts always stay: coverage and history count from here too. Evidence stays, unless consent was withdrawn.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final

from firsthand_edge.durable import disk_errors, fsync_folder
from firsthand_edge.errors import UsageError
from firsthand_edge.spool.episode import EVIDENCE_NAME, Standing
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.row import Event
from firsthand_edge.spool.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["REMOVABLE", "left_over", "purge", "require_removable"]

REMOVABLE: Final[dict[Event, frozenset[State]]] = {
    Event.WITHDRAWN: frozenset(State),
    Event.DISCARDED: frozenset(
        {State.RECORDING, State.TORN, State.SEALED, State.ACCEPTED, State.REJECTED, State.ASIDE}
    ),
    Event.EXPIRED: frozenset({State.REJECTED, State.UPLOADED}),
}
"""From which states each event removes. Consent is withdrawn from anything, also from what is removed already, whose
evidence then goes too. A person discards what has not left the rig. Retention ends for what was judged bad, and for
what the store has proved to hold; never for an accepted episode that waits for the store."""

INSTEAD: Final[dict[Event, str]] = {
    Event.WITHDRAWN: "withdrawn",
    Event.DISCARDED: "discarded: only what has not left this rig can be",
    Event.EXPIRED: "expired: only rejected and uploaded episodes can be",
}
DOCUMENTS: Final = re.compile(r"(verdict|receipt)(-[0-9]+)?\.json")


def require_removable(episode: str, state: State, standing: Standing, event: Event) -> None:
    """Whether `event` may remove an episode that is in `state`. Raises UsageError with the sentence why not."""
    if event not in REMOVABLE:
        raise UsageError(f"an episode is removed by withdrawn, discarded or expired, and not by {event}")
    if event is Event.WITHDRAWN and standing.withdrawn:
        raise UsageError(f"episode {episode} was withdrawn before; nothing of its recording is left here")
    if state not in REMOVABLE[event]:
        raise UsageError(f"episode {episode} is {state} and cannot be {INSTEAD[event]}")


def purge(root: Path, episode: str, *, withdrawn: bool) -> list[str]:
    """Removes from disk what a removed episode may not keep: in its folder in `gone`, and copies that were set aside.

    Args:
        root: The spool.
        episode: Its id; its folder is in `gone`.
        withdrawn: Remove the evidence too.

    Returns:
        Names of what was removed; empty when nothing was left to do.

    Raises:
        DiskFull, DiskError: the disk refuses; call again.
    """
    removed = []
    with disk_errors(f"what is left of the removed episode {episode} cannot be deleted"):
        for path in left_over(root, episode, withdrawn=withdrawn):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            fsync_folder(path.parent)
            removed.append(path.name)
    return removed


def left_over(root: Path, episode: str, *, withdrawn: bool) -> Iterator[Path]:
    """What a removed episode still holds and may not keep, copies in other states among it. Raises OSError."""
    folder = root / State.GONE / episode
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if not _stays(path, withdrawn=withdrawn):
                yield path
        yield from (path for state in State if state is not State.GONE and (path := root / state / episode).is_dir())
    for state in State:
        yield from sorted((root / state).glob(f"{episode}.aside*"))


def _stays(path: Path, *, withdrawn: bool) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    if path.name == EVIDENCE_NAME:
        return not withdrawn
    return path.name == MANIFEST_NAME or DOCUMENTS.fullmatch(path.name) is not None
