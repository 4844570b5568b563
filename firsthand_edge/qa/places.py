"""Where episodes and their chains lie: a folder of one, a state of a spool, a side of a store, or a whole root."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from firsthand_edge.errors import UsageError
from firsthand_edge.qa.reading import NotReadable, names_in, read_document_file, regular_file
from firsthand_edge.spool.episode import EVIDENCE_SIDE, FOOTAGE_SIDE
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Found", "Place", "Source", "find", "is_spool", "is_store", "sources"]

CHAIN_NAME: Final = "chain.jsonl"
CHAINS_NAME: Final = "chains"
SIDES: Final = (FOOTAGE_SIDE, EVIDENCE_SIDE)
STATES: Final = tuple(state for state in State if state is not State.RECORDING)


@dataclass(frozen=True, slots=True)
class Source:
    """Chain files that may speak of an episode."""

    files: tuple[Path, ...] = ()
    own: bool = False
    """The rig's own chain, which is ahead of every folder; a copy may lag behind."""


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one episode."""

    folder: Path
    shown: str
    """As the command line named it, or below what it named."""
    side: str | None = None
    """State of a spool or side of a store, by the folder that it lies in."""
    source: Source = Source()

    @property
    def name(self) -> str | None:
        """The episode's id, as its folder or, for a copy under another name, its manifest says. Proves nothing."""
        if EpisodeId.parse(self.folder.name) is not None:
            return self.folder.name
        try:
            document = json.loads(read_document_file(self.folder / MANIFEST_NAME))
        except (NotReadable, ValueError, RecursionError):
            return None
        name = document.get("episode") if isinstance(document, dict) else None
        return name if isinstance(name, str) else None


@dataclass(slots=True)
class Found:
    """Episodes in the order of their paths, and what else lies there."""

    places: list[Place] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_spool(path: Path) -> bool:
    """Whether `path` is the root of a spool: states beside a chain; copies are known to lose empty folders."""
    if all((path / state).is_dir() for state in (State.RECORDING, State.SEALED, State.ACCEPTED)):
        return True
    return _is_file(path / CHAIN_NAME) and any((path / state).is_dir() for state in STATES)


def is_store(path: Path) -> bool:
    """Whether `path` is the root of a store that is a directory."""
    return (path / FOOTAGE_SIDE).is_dir() or ((path / EVIDENCE_SIDE).is_dir() and not is_spool(path))


def find(paths: Iterable[Path], *, chain: Path | None = None) -> Found:
    """All episodes at `paths`.

    Args:
        paths: Each an episode's folder, a folder of episodes, or the root of a spool, of a rig's state or of a store.
        chain: A chain file to be used for all of them, in the place of what lies at the usual places.

    Raises:
        UsageError: one is not there, is no folder, or nothing of this kind.
    """
    found = Found()
    seen: set[Path] = set()
    for path in paths:
        root = _folder(path)
        for place in _below(root, str(path), found.notes):
            if place.folder not in seen:
                seen.add(place.folder)
                found.places.append(place if chain is None else _held_against(place, chain.resolve()))
    return found


def sources(path: Path) -> Source:
    """Chain files at the usual places for an episode that lies in the folder `path`.

    `chain.jsonl` or `chains/*.jsonl` in that folder, or one above it where it is a state of a spool or a side of a
    store.
    """
    above = (path, path.parent) if path.name in {*STATES, *SIDES} else (path,)
    for root in above:
        if _is_file(root / CHAIN_NAME):
            return Source((root / CHAIN_NAME,), own=True)
        if files := tuple(sorted(p for p in (root / CHAINS_NAME).glob("*.jsonl") if _is_file(p))):
            return Source(files)
    return Source()


def _held_against(place: Place, chain: Path) -> Place:
    """The place with a chain that a person named; the rig's own one stays that."""
    return replace(place, source=Source((chain,), own=place.source == Source((chain,), own=True)))


def _folder(path: Path) -> Path:
    try:
        root = path.resolve(strict=True)
    except (OSError, RuntimeError) as exc:
        raise UsageError(f"{path} is not there; name an episode's folder, or a folder of episodes") from exc
    if not root.is_dir():
        raise UsageError(f"{path} is no folder; name an episode's folder, or a folder of episodes")
    return root


def _below(root: Path, shown: str, notes: list[str]) -> list[Place]:
    if is_spool(root):
        return _spool(root, shown, notes)
    if is_spool(root / "spool"):
        return _spool(root / "spool", os.path.join(shown, "spool"), notes)  # noqa: PTH118 - a text to be shown
    if is_store(root):
        return [
            place for side in SIDES if (root / side).is_dir() for place in _children(root / side, shown, notes, side)
        ]
    if os.path.lexists(root / MANIFEST_NAME) or EpisodeId.parse(root.name) is not None:
        return [Place(root, shown, root.parent.name, sources(root.parent))]
    places = _children(root, shown, notes, root.name, below=False)
    if not places and root.name not in {*STATES, *SIDES}:
        raise UsageError(
            f"{shown} holds no episode; name an episode's folder, a folder of episodes, or the root of a spool or store"
        )
    return places


def _spool(root: Path, shown: str, notes: list[str]) -> list[Place]:
    recording = names_in(root / State.RECORDING) if (root / State.RECORDING).is_dir() else {}
    waiting = sum(1 for name in recording if EpisodeId.parse(name) is not None)
    if waiting:
        notes.append(f"{shown}: {waiting} in recording, not sealed yet and not looked at")
    return [
        place for state in STATES if (root / state).is_dir() for place in _children(root / state, shown, notes, state)
    ]


def _children(folder: Path, shown: str, notes: list[str], side: str, *, below: bool = True) -> list[Place]:
    """The episodes in a folder; whatever else lies there is told, because nobody vouches for it."""
    try:
        names = names_in(folder)
    except NotReadable as exc:
        raise UsageError(f"{exc}; make it readable and try again") from exc
    source = sources(folder)
    places: list[Place] = []
    others = 0
    for name, is_file in names.items():
        parts = (shown, side, name) if below else (shown, name)
        path = folder / name
        if not is_file and (EpisodeId.parse(name) is not None or os.path.lexists(path / MANIFEST_NAME)):
            places.append(Place(path, os.path.join(*parts), side, source))  # noqa: PTH118 - a text to be shown
        elif name not in {CHAIN_NAME, CHAINS_NAME}:
            others += 1
    if others:
        here = os.path.join(shown, side) if below else shown  # noqa: PTH118 - as above
        notes.append(f"{here}: {others} {'other name' if others == 1 else 'other names'}, no episodes, not looked at")
    return places


def _is_file(path: Path) -> bool:
    try:
        regular_file(path)
    except NotReadable:
        return False
    return True
