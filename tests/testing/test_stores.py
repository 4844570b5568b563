"""The conformance suite itself: stores that break one promise each are found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from firsthand_edge.testing.stores import StoreFailed, check_store
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.store import Receipt, StoreFile, UploadStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class Believes(DirectoryStore):
    """Believes its own directory listing."""

    def holds(self, episode: str, files: Sequence[StoreFile], *, side: str) -> bool:
        return all((self.root / side / episode / file.name).exists() for file in files)


class Replaces(DirectoryStore):
    """The last one wins."""

    def put(self, episode: str, files: Sequence[StoreFile], **named: Any) -> Receipt:
        for file in files:
            (self.root / named["side"] / episode / file.name).unlink(missing_ok=True)
        return super().put(episode, files, **named)


class NeverStops(DirectoryStore):
    """Does not ask."""

    def put(self, episode: str, files: Sequence[StoreFile], **named: Any) -> Receipt:
        named.pop("stopping", None)
        return super().put(episode, files, **named)


class AlwaysStops(DirectoryStore):
    """Starts from the beginning each time and never gets anywhere."""

    def put(self, episode: str, files: Sequence[StoreFile], **named: Any) -> Receipt:
        if named.get("stopping", bool)():
            raise UploadStopped("stopped")
        return super().put(episode, [], **named)


class CopiesUnread(DirectoryStore):
    """Copies whatever is there."""

    def put(self, episode: str, files: Sequence[StoreFile], **named: Any) -> Receipt:
        folder = self.root / named["side"] / episode
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file.name).write_bytes(file.path.read_bytes())
        return Receipt(self.name, named["side"], episode, tuple(files))


class ForgetsChain(DirectoryStore):
    """Takes any chain."""

    def mirror_chain(self, name: str, data: bytes) -> None:
        (self.root / name).write_bytes(data)


class OneSide(DirectoryStore):
    """Mixes the sides."""

    def put(self, episode: str, files: Sequence[StoreFile], **named: Any) -> Receipt:
        made = super().put(episode, files, **{**named, "side": "one"})
        return Receipt(made.store, named["side"], made.episode, made.files)

    def holds(self, episode: str, files: Sequence[StoreFile], *, side: str) -> bool:
        return super().holds(episode, files, side="one")


class KeepsWhatWasTakenBack(DirectoryStore):
    """Removes what says that all is there, and nothing else."""

    def retract(self, episode: str, *, side: str) -> bool:
        path = self.root / side / episode / "m.json"
        there = path.exists()
        path.unlink(missing_ok=True)
        return there


class TakesBackTooMuch(DirectoryStore):
    """Removes the episode on every side."""

    def retract(self, episode: str, *, side: str) -> bool:
        there = super().retract(episode, side=side)
        super().retract(episode, side="rejected")
        return there


class SweepsAll(DirectoryStore):
    """Takes what has no manifest yet for a leftover."""

    def sweep(self, episode: str) -> None:
        super().retract(episode, side="episodes")


KINDS = [
    Believes,
    Replaces,
    NeverStops,
    AlwaysStops,
    CopiesUnread,
    ForgetsChain,
    OneSide,
    KeepsWhatWasTakenBack,
    TakesBackTooMuch,
    SweepsAll,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_breaks_a_promise_fails(tmp_path: Path, kind: Callable[[Path], DirectoryStore]) -> None:
    made = 0

    def make_store() -> DirectoryStore:
        nonlocal made
        made += 1
        (tmp_path / f"store-{made}").mkdir()
        return kind(tmp_path / f"store-{made}")

    (tmp_path / "scratch").mkdir()
    with pytest.raises(StoreFailed):
        check_store(make_store, tmp_path / "scratch")
