"""Reading what a stranger handed over: regular files within one folder, of bounded size, and no links."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "DOCUMENT_BYTES",
    "NotReadable",
    "Withheld",
    "document_fault",
    "names_in",
    "read_document_file",
    "regular_file",
]

DOCUMENT_BYTES: Final = 4 << 20
"""A manifest or verdict is some ten kilobytes; a bound keeps a hostile one from filling the memory once parsed."""


class NotReadable(Exception):
    """What stands in the place of a file is none, or cannot be read. The text is a sentence about it."""


class Withheld(NotReadable):
    """The operating system does not give it to this user, or not now: that says nothing of what it holds."""


REFUSALS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE})


def _refused(what: str, exc: OSError) -> NotReadable:
    kind = Withheld if exc.errno in REFUSALS else NotReadable
    return kind(f"{what} ({exc.strerror or exc})")


def names_in(folder: Path) -> dict[str, bool]:
    """Names in `folder`, sorted; true for regular files, false for everything else, links included.

    Raises:
        NotReadable: it is no folder, a link to one, or cannot be listed; Withheld where this user may not.
    """
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise NotReadable(f"{folder.name} is {_kind(status.st_mode)} and no folder")
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_file(follow_symlinks=False) for entry in sorted(entries, key=lambda e: e.name)}
    except OSError as exc:
        raise _refused(f"{folder.name} cannot be listed", exc) from exc


def regular_file(path: Path) -> int:
    """The size of the regular file at `path`, in bytes. Raises NotReadable when it is anything else."""
    try:
        status = path.lstat()
    except FileNotFoundError as exc:
        raise NotReadable(f"{path.name} is not there") from exc
    except OSError as exc:
        raise _refused(f"{path.name} cannot be read", exc) from exc
    if not stat.S_ISREG(status.st_mode):
        raise NotReadable(f"{path.name} is {_kind(status.st_mode)} and no file; it was not read")
    return status.st_size


def read_document_file(path: Path, *, most: int = DOCUMENT_BYTES) -> bytes:
    """The bytes of a document.

    Args:
        path: A regular file; links are not followed, pipes and devices not opened.
        most: Bytes; a larger file is not read.

    Raises:
        NotReadable: it is not that, or cannot be read; Withheld where this user may not.
    """
    size = regular_file(path)
    if size > most:
        raise NotReadable(f"{path.name} has {size} bytes and was not read; such a document has {most} at most")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotReadable(f"{path.name} was replaced while it was looked at")
            data = file.read(most + 1)
    except OSError as exc:
        raise _refused(f"{path.name} cannot be read", exc) from exc
    if len(data) > most:
        raise NotReadable(f"{path.name} grew while it was read")
    return data


def document_fault(name: str, exc: Exception) -> str:
    """What reading or parsing a document ended with, as a sentence that names it."""
    if isinstance(exc, NotReadable):
        return str(exc)
    return f"{name} is nested too deeply" if isinstance(exc, RecursionError) else f"{name} {exc}"


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a pipe, socket or device" if not stat.S_ISREG(mode) else "a file"
