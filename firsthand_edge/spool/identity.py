"""Who an episode is: rig, counter, 64 random bits. No wall time, so no clock can make two episodes one."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from firsthand_edge.durable import PART, disk_errors, replace
from firsthand_edge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["EpisodeId", "exclusive", "next_counter"]

RANDOM_BYTES: Final = 8
_FORM: Final = re.compile(r"(?P<rig>[a-z0-9][a-z0-9_-]{0,31})-(?P<counter>[0-9]{8,19})-(?P<random>[0-9a-f]{16})")
_RIG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class EpisodeId:
    """`<rig>-<counter, at least 8 digits>-<16 hex digits>`; also the name of the episode's folder."""

    rig: str
    counter: int
    random: str

    @classmethod
    def new(cls, rig: str, counter: int) -> EpisodeId:
        """An id that nothing else has. Raises UsageError for a rig id that cannot stand in a file name."""
        if not _RIG.fullmatch(rig):
            raise UsageError(f"the rig id {rig!r} must be 1 to 32 of a-z, 0-9, _ and -; correct it in the rig file")
        return cls(rig, counter, secrets.token_hex(RANDOM_BYTES))

    @classmethod
    def parse(cls, text: str) -> EpisodeId | None:
        """The id that `text` spells, None when it spells none."""
        match = _FORM.fullmatch(text)
        if match is None:
            return None
        episode = cls(match["rig"], int(match["counter"]), match["random"])
        return episode if str(episode) == text else None

    def __str__(self) -> str:
        """The folder's name."""
        return f"{self.rig}-{self.counter:08d}-{self.random}"


@contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Holds the file at `path`, made when absent, for this thread of this process alone (flock). Yields its descriptor.

    The kernel lets go of the lock when its holder dies, however it dies. Raises DiskFull or DiskError.
    """
    with disk_errors(f"{path} cannot be opened for writing"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def next_counter(path: Path, *, seen: int) -> int:
    """Takes the next number from the counter file, durably, before anybody uses it.

    Args:
        path: The counter file; made when absent, believed only as far as it can be read.
        seen: The highest counter among the episodes that are there. The episodes count, not the file: a counter file
            that was lost or set back cannot number an episode twice.

    Raises:
        DiskFull, DiskError: the number cannot be made durable, so no episode may begin.
    """
    with disk_errors("the episode counter cannot be advanced"), exclusive(path.with_name(f".{path.name}.lock")):
        for left in path.parent.glob(f".{path.name}.*{PART}"):  # of a process that died; the lock is held
            left.unlink()
        try:
            text = path.read_text("ascii")
        except (FileNotFoundError, UnicodeDecodeError):
            text = ""
        stored = int(text) if text.strip().isdecimal() and text.isascii() else 0
        counter = max(stored, seen) + 1
        replace(path, f"{counter}\n".encode("ascii"))
    return counter
