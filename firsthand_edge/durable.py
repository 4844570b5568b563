"""What survives a power cut: write to a temporary name, fsync, rename, fsync the folder. Each step is here, once.

A name that readers look for never stands for half a file: it appears complete or not at all, and nothing that is there
is replaced unless the caller says so.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from firsthand_edge.errors import DiskError, DiskFull

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["PART", "disk_errors", "fsync_folder", "make_folder", "move_new", "rename_new", "replace", "write_new"]

PART: Final = ".part"
"""Ending of names that are not finished; whoever finds one after a crash may remove it."""

AT_FDCWD: Final = -100
RENAME_NOREPLACE: Final = 1
NOT_OFFERED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
WHAT_TO_DO: Final = {
    errno.ENOSPC: "free some space or attach a larger disk",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EROFS: "the file system is read-only; look for disk errors with dmesg and mount it writable again",
    errno.EIO: "the disk reports an input/output error; look with dmesg and replace the disk if it goes on",
    errno.EACCES: "give this user the right to read and write there",
    errno.EPERM: "give this user the right to read and write there",
    errno.ENOENT: "make the folder, or mount the disk that holds it",
}


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Maps what the operating system says about a disk to DiskFull or DiskError, with path and next step.

    Args:
        what: What was being done, as in "chain row cannot be written".

    Raises:
        DiskFull: no space or quota left.
        DiskError: anything else the operating system refuses, except FileExistsError, which callers decide on.
    """
    try:
        yield
    except FileExistsError:
        raise
    except OSError as exc:
        kind = DiskFull if exc.errno in FULL else DiskError
        where = f": {os.fsdecode(exc.filename)}" if exc.filename else ""
        advice = WHAT_TO_DO.get(exc.errno or 0, "mend that and try again")
        raise kind(f"{what} ({exc.strerror or exc}{where}); {advice}") from exc


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Writes a file that was not there before: complete and durable when this returns, absent when it does not.

    Raises:
        FileExistsError: something of that name is there; it is left alone.
        OSError: from the operating system; `disk_errors` turns it into a sentence.
    """
    part = _write_part(path, data, mode)
    try:
        rename_new(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def replace(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """As `write_new`, but takes the place of an older file: after a power cut either is there, whole."""
    part = _write_part(path, data, mode)
    try:
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def _write_part(path: Path, data: bytes, mode: int) -> Path:
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    return part


def rename_new(source: Path, target: Path) -> None:
    """Renames a file or folder, never onto something that is there (FileExistsError). Does not fsync."""
    if _libc.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), RENAME_NOREPLACE) == 0:
        return
    code = ctypes.get_errno()
    if code not in NOT_OFFERED:
        raise OSError(code, os.strerror(code), os.fspath(source), None, os.fspath(target))
    if source.is_dir():
        # A folder that holds something is never renamed over by rename(2) itself; an empty one is refused here.
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
        source.rename(target)
    else:
        os.link(source, target)
        source.unlink()


def move_new(source: Path, target: Path) -> None:
    """`rename_new`, made durable: fsyncs the folder it came to, then the one it left."""
    rename_new(source, target)
    fsync_folder(target.parent)
    if source.parent != target.parent:
        fsync_folder(source.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and its parents where they are not there, each durable."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(exist_ok=True)  # another process may have been first
    except FileExistsError as exc:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path)) from exc
    fsync_folder(path.parent)


def fsync_folder(path: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
_libc.renameat2.restype = ctypes.c_int
