"""The store that is a directory: a disk array, a network mount, or a folder in a test.

Layout: `episodes/<id>/`, `rejected/<id>/`, `chains/<key id>.jsonl`. Every file comes by temporary name, fsync,
re-reading from the disk with its checksum, rename without replacing, fsync of the folder.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from firsthand_edge.durable import PART, WHAT_TO_DO, disk_errors, fsync_folder, make_folder, rename_new, replace
from firsthand_edge.errors import StoreError, StoreRefused
from firsthand_edge.spool.episode import EVIDENCE_SIDE, FOOTAGE_SIDE
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.upload.store import Receipt, SourceChanged, UploadStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from firsthand_edge.upload.store import StoreFile

__all__ = ["DirectoryStore"]

BLOCK_BYTES: Final = 1 << 20
SIDES: Final = (FOOTAGE_SIDE, EVIDENCE_SIDE)
PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,200}")


class DirectoryStore:
    """A `Store` in one directory, which must be there: an absent one is a disk that is not mounted."""

    def __init__(self, root: Path, *, name: str | None = None) -> None:
        """Does not touch the disk.

        Args:
            root: The directory.
            name: What receipts call the store; its path without.
        """
        self.root: Final = root
        self._name: Final = name or f"directory:{root}"

    @property
    def name(self) -> str:
        """What receipts call it."""
        return self._name

    def put(
        self, episode: str, files: Sequence[StoreFile], *, side: str, stopping: Callable[[], bool] = lambda: False
    ) -> Receipt:
        """See `Store.put`."""
        folder = self._folder(side, episode)
        with self._errors(f"{side}/{episode} cannot be kept"):
            make_folder(folder)
            _sweep(folder, "*")
        for file in files:
            _go_on(stopping, file)
            self._put(folder, file, stopping)
        return Receipt(self.name, side, episode, tuple(files))

    def holds(self, episode: str, files: Sequence[StoreFile], *, side: str) -> bool:
        """See `Store.holds`."""
        folder = self._folder(side, episode)
        with self._errors(f"{side}/{episode} cannot be read"):
            return all(_is(folder / _plain(file.name), file) for file in files)

    def retract(self, episode: str, *, side: str) -> bool:
        """See `Store.retract`."""
        folder = self._folder(side, episode)
        with self._errors(f"{side}/{episode} cannot be removed"):
            if not folder.is_dir():
                return False
            (folder / MANIFEST_NAME).unlink(missing_ok=True)
            fsync_folder(folder)
            for left in folder.iterdir():
                left.unlink()
            folder.rmdir()
            fsync_folder(folder.parent)
        return True

    def sweep(self, episode: str) -> None:
        """See `Store.sweep`."""
        for side in SIDES:
            folder = self._folder(side, episode)
            with self._errors(f"{side}/{episode} cannot be swept"):
                _sweep(folder, "*")

    def mirror_chain(self, name: str, data: bytes) -> None:
        """See `Store.mirror_chain`."""
        self._there()
        path = self.root / "chains" / f"{_plain(name)}.jsonl"
        with self._errors("the copy of the chain cannot be kept"):
            make_folder(path.parent)
            _sweep(path.parent, path.name)
            held = path.read_bytes() if path.exists() else None
            if held == data:
                return
            if held is not None and not data.startswith(held):
                raise StoreRefused(
                    f"the store's copy of the chain ({path}) is no beginning of this rig's chain: rows it saw were "
                    "cut off or changed; run the chain's verification and compare"
                )
            replace(path, data)

    def _put(self, folder: Path, file: StoreFile, stopping: Callable[[], bool]) -> None:
        target = folder / _plain(file.name)
        with self._errors(f"{target} cannot be kept"):
            if target.exists():
                if not _is(target, file):
                    raise StoreRefused(
                        f"the store holds other bytes under {target}; nothing was replaced, compare them"
                    )
                return
            part = folder / f".{file.name}.{secrets.token_hex(4)}{PART}"
            try:
                with disk_errors(f"{file.path} cannot be read to be sent"):
                    source = file.path.open("rb", buffering=0)
                with source:
                    self._copy(source, part, file, stopping)
                if not _is(part, file):
                    raise StoreError(f"{part} does not read back as it was written; check the store's disk")
                rename_new(part, target)
            except FileExistsError:
                raise StoreRefused(f"somebody else put {target} just now; send again to compare") from None
            finally:
                part.unlink(missing_ok=True)
            fsync_folder(folder)

    def _copy(self, source: BinaryIO, part: Path, file: StoreFile, stopping: Callable[[], bool]) -> None:
        hasher = blake3()
        size = 0
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            while True:
                _go_on(stopping, file)
                with disk_errors(f"{file.path} cannot be read to be sent"):
                    block = source.read(BLOCK_BYTES)
                if not block or size > file.bytes:
                    break
                hasher.update(block)
                size += len(block)
                left = memoryview(block)
                while left:
                    left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
            # Reading back must ask the disk, not the cache that the bytes were just put into.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        if (size, hasher.hexdigest()) != (file.bytes, file.blake3):
            found = f"{size} bytes, blake3:{hasher.hexdigest()}"
            raise SourceChanged(f"{file.path} is not what its manifest says ({found}); it was not sent")

    def _there(self) -> None:
        if not self.root.is_dir():
            raise StoreError(f"the store {self.root} is not there; mount it, or make the directory")

    def _folder(self, side: str, episode: str) -> Path:
        self._there()
        return self.root / _plain(side) / _plain(episode)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            advice = WHAT_TO_DO.get(exc.errno or 0, "mend that; the episode stays on the rig and is sent again")
            if exc.errno == errno.EROFS:
                advice = "the store is read-only; mount it writable, the episode stays on the rig"
            raise StoreError(f"{what} in the store {self.root} ({exc.strerror or exc}); {advice}") from exc


def _go_on(stopping: Callable[[], bool], file: StoreFile) -> None:
    if stopping():
        raise UploadStopped(f"stopped while {file.path} was being sent; the next pass goes on")


def _sweep(folder: Path, name: str) -> None:
    """Removes what a sender that died left unfinished. One process sends for a rig, so nobody is writing it now."""
    for left in folder.glob(f".{name}.*{PART}"):
        left.unlink()


def _plain(name: str) -> str:
    """A name that cannot leave its folder. Raises StoreRefused."""
    if not PLAIN_NAME.fullmatch(name):
        raise StoreRefused(f"{name!r} cannot be the name of a file in a store")
    return name


def _is(path: Path, file: StoreFile) -> bool:
    """Whether `path` holds exactly the bytes that `file` states."""
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    hasher = blake3()
    with path.open("rb", buffering=0) as held:
        while block := held.read(BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest() == file.blake3
