"""Holding a rig's folders against its chain, without changing either: what `restart` would have to mend, and more.

The rig may be at work meanwhile. So everything is looked at once without holding anything up, and what seems wrong is
looked at again while the chain is held, when no step is half done.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firsthand_edge.durable import disk_errors
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spool.episode import Standing, receipt_name
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.keyring import KEY_EVENT
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.removal import left_over
from firsthand_edge.spool.row import Event, read_rows
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import verdict_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.spool.keyring import KeyRing
    from firsthand_edge.spool.row import Row

__all__ = ["FolderFinding", "FolderReport", "check_folders"]


@dataclass(frozen=True, slots=True)
class FolderFinding:
    """One thing in which folders and chain do not agree."""

    episode: str
    sentence: str


@dataclass(frozen=True, slots=True)
class FolderReport:
    """What the folders hold, and where they do not agree with the chain."""

    episodes: int
    """Folders of episodes."""
    unbound: int
    """Among them those that no row needs to name yet: being recorded, or waiting to be recovered."""
    findings: tuple[FolderFinding, ...]


def check_folders(root: Path, chain_path: Path, rows: Mapping[str, Sequence[Row]], keyring: KeyRing) -> FolderReport:
    """Holds every episode's folder against what the chain says of it.

    Args:
        root: The spool.
        chain_path: Its chain.
        rows: Of each episode, in order, those that count (`check_chain`).
        keyring: The keys of the chain.

    Raises:
        DiskError: a folder or a document cannot be read.
    """
    with disk_errors(f"the folders of {root} cannot be read"):
        places = _places(root)
        doubtful = {found.episode for found in _everything(root, places, rows)}
        findings: list[FolderFinding] = []
        if doubtful:
            with _still(chain_path) as data:
                held = _held(data, keyring, doubtful)
                there = _places(root)
                seen = {name: there[name] for name in doubtful if name in there}
                findings = list(_everything(root, seen, held))
    unbound = sum(1 for name in places if name not in rows)
    return FolderReport(len(places), unbound, tuple(findings))


def _everything(
    root: Path, places: Mapping[str, Sequence[State]], rows: Mapping[str, Sequence[Row]]
) -> Iterator[FolderFinding]:
    for name in sorted({*places, *rows}):
        for sentence in _episode(root, name, places.get(name, ()), rows.get(name, ())):
            yield FolderFinding(name, sentence)


def _episode(root: Path, name: str, states: Sequence[State], rows: Sequence[Row]) -> Iterator[str]:
    standing = Standing.of(rows)
    belongs = standing.state
    if len(states) > 1:
        yield f"lies in {' and in '.join(states)}"
    if belongs is None:
        for state in states:
            yield from _unnamed(root / state / name, state)
        return
    if not states:
        yield f"is {belongs} by row {rows[-1].n}, and its folder is nowhere"
        return
    state = belongs if belongs in states else states[0]
    if state is not belongs:
        yield f"is in {state}, and row {rows[-1].n} says {belongs}"
    if standing.removed:
        kept = [path.name for path in left_over(root, name, withdrawn=standing.withdrawn)]
        if kept:
            yield f"was removed by row {rows[-1].n}, and {', '.join(kept)} is still here"
    if state is not State.ASIDE:  # its documents are known not to be the chain's: that is why it is there
        yield from _documents(root / state / name, rows)


def _unnamed(folder: Path, state: State) -> Iterator[str]:
    if state not in {State.RECORDING, State.TORN}:
        yield f"is in {state}, and no row of the chain names it"
    elif (folder / MANIFEST_NAME).is_file():
        yield f"has a manifest in {state}, and no row of the chain names it; the next start seals it or moves it aside"


def _documents(folder: Path, rows: Sequence[Row]) -> Iterator[str]:
    """Every document that a row names must be there, byte for byte."""
    judgement = receipts = 0
    for row in rows:
        if row.event == Event.SEALED:
            yield from _document(folder / MANIFEST_NAME, row, "manifest")
        elif row.event in {Event.JUDGED, Event.REJUDGED}:
            judgement += 1
            yield from _document(folder / verdict_name(judgement), row, "document")
        elif row.event == Event.UPLOADED:
            receipts += 1
            if not _replaced(folder, row):
                yield from _document(folder / receipt_name(receipts), row, "receipt")


def _replaced(folder: Path, row: Row) -> bool:
    """Whether an earlier version of this software moved that receipt aside when the store gave the next one."""
    held = (*folder.glob("receipt.json.aside*"), folder / "receipt.json")
    return any(path.is_file() and digest_bytes(path.read_bytes()) == row.body.get("receipt") for path in held)


def _document(path: Path, row: Row, field: str) -> Iterator[str]:
    try:
        found = digest_bytes(path.read_bytes())
    except FileNotFoundError:
        yield f"{path.name} is not there, and row {row.n} names it"
        return
    if found != row.body.get(field):
        yield f"{path.name} has digest {found}, and row {row.n} names {row.body.get(field)}"


def _places(root: Path) -> dict[str, list[State]]:
    """The states whose folder each episode is in."""
    places: dict[str, list[State]] = {}
    for state in State:
        folder = root / state
        for entry in os.scandir(folder) if folder.is_dir() else ():
            if EpisodeId.parse(entry.name) is not None and entry.is_dir(follow_symlinks=False):
                places.setdefault(entry.name, []).append(state)
    return places


def _held(data: bytes, keyring: KeyRing, episodes: set[str]) -> dict[str, list[Row]]:
    """What the chain says now of some episodes."""
    ring = keyring.grown(read_rows(_about(data, KEY_EVENT)))
    held: dict[str, list[Row]] = {}
    for name in episodes:
        mine = (row for row in read_rows(_about(data, name.encode())) if row.episode == name)
        if found := [row for row in mine if row.signed_by(ring.at(row.n))]:
            held[name] = found
    return held


def _about(data: bytes, word: bytes) -> bytes:
    return b"".join(line + b"\n" for line in data.split(b"\n")[:-1] if word in line)


@contextmanager
def _still(chain_path: Path) -> Iterator[bytes]:
    """The chain's bytes, with no step under way: those that take one hold the same lock."""
    descriptor = os.open(chain_path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)
