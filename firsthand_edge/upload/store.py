"""The seam for stores. A store keeps what it is given under a name, never replaces it, and proves what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from firsthand_edge.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Receipt", "SourceChanged", "Store", "StoreFile", "UploadStopped"]


class SourceChanged(StoreError):
    """The local file is not what its manifest says, so it was not sent."""

    code = "upload.source_changed"


class UploadStopped(StoreError):
    """The sender was asked to stop. What the store holds so far stays; the next pass goes on."""

    code = "upload.stopped"


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One file to keep: its name within the episode, where it is, and what it must be."""

    name: str
    path: Path
    bytes: int
    blake3: str
    """64 hex digits."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a store has proved to hold of one episode. Equal for equal bytes, however often they were sent."""

    store: str
    side: str
    episode: str
    files: tuple[StoreFile, ...]

    def to_json(self) -> dict[str, Any]:
        """The document of `receipt.json`, without a signature."""
        return {
            "schema": "firsthand.receipt/1",
            "store": self.store,
            "side": self.side,
            "episode": self.episode,
            "files": {file.name: {"bytes": file.bytes, "blake3": file.blake3} for file in self.files},
        }


class Store(Protocol):
    """Where episodes go. Every implementation passes `firsthand_edge.testing.stores.check_store`."""

    @property
    def name(self) -> str:
        """What receipts call it."""
        ...

    def put(
        self, episode: str, files: Sequence[StoreFile], *, side: str, stopping: Callable[[], bool] = ...
    ) -> Receipt:
        """Keeps `files`, in their order, under `side` and `episode`; returns when every byte is proved to be there.

        The last file is the one whose presence says that all are there. Calling again with the same bytes does nothing
        and gives the same receipt; after an interruption it goes on.

        Args:
            episode: The episode's id.
            files: With what each must be; a source of other bytes is not kept under its name.
            side: `episodes` or `rejected`.
            stopping: Asked before each file and between blocks; true ends the call with UploadStopped. So the last file
                never appears once it has said so.

        Raises:
            StoreRefused: the store holds other bytes under one of the names.
            StoreError: it cannot be reached or written; nothing is lost, call again later.
            SourceChanged: a local file is not what `files` says.
            DiskError: a local file cannot be read.
            UploadStopped: as asked.
        """
        ...

    def holds(self, episode: str, files: Sequence[StoreFile], *, side: str) -> bool:
        """Whether the store has every byte of `files`, proved by checksum. Raises StoreError when it cannot tell."""
        ...

    def retract(self, episode: str, *, side: str) -> bool:
        """Removes what is kept under `side` and `episode`, whole or in part, for good: it was taken back.

        What says that all is there goes first, so that nobody takes a rest for the whole. Calling again does nothing;
        what is put again afterwards is kept.

        Returns:
            Whether anything was there.

        Raises:
            StoreError: it cannot be reached or written; call again.
        """
        ...

    def sweep(self, episode: str) -> None:
        """Removes what a sender that died left unfinished of `episode`, on every side. Nobody sends it meanwhile.

        Raises:
            StoreError: it cannot be reached or written; call again.
        """
        ...

    def mirror_chain(self, name: str, data: bytes) -> None:
        """Keeps a copy of a rig's chain. It only ever grows: what the store saw once cannot be cut off unnoticed.

        Args:
            name: Names the key that began the chain.
            data: All rows, whole lines.

        Raises:
            StoreRefused: the copy there is no beginning of `data`.
            StoreError: it cannot be reached or written.
        """
        ...
