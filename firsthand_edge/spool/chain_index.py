"""What a process remembers of a chain that only grows: its keys, and which lines speak of which episode.

Each look reads what was appended since the last one. A file that is shorter, another, written without growing, or in
which another line stands where the last one stood is read anew from its start. Only places are remembered: a row that
is used is read from the disk and its signature is checked again. Whether the whole of it holds together is looked at
when somebody asks (`soundness.py`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from firsthand_edge.spool.keyring import KEY_EVENT, KeyRing
from firsthand_edge.spool.row import Event, read_row
from firsthand_edge.spool.soundness import Soundness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spool.row import Row
    from firsthand_edge.spool.soundness import Break

__all__ = ["ChainIndex"]

EPISODE = b'"episode":"'
"""Before an episode's id, in its last occurrence in a line: what follows it there holds no text of our own."""
SPEC_EVENT = b'"event":"spec"'

Place = tuple[int, int]
"""Offset and length of a line, without its line feed."""


class ChainIndex:
    """The index of one chain file, for one thread."""

    def __init__(self) -> None:
        self._soundness = Soundness()
        self.forget()

    def forget(self) -> None:
        """Begins anew, as when the file is gone."""
        self.ring: KeyRing | None = None
        """The chain's keys; None where there is no row, or where the first one proves no key."""
        self.rotations = False
        """Whether a row after the first says that it makes another key the rig's, proved or not."""
        self._episodes: dict[bytes, list[Place]] = {}
        self._specs: list[Place] = []
        self._scanned = 0
        self._seen = (0, 0, 0)
        self._last: tuple[int, bytes] = (0, b"")
        self._soundness.forget()

    def follow(self, descriptor: int) -> None:
        """Takes in what was appended since the last call. Raises OSError."""
        status = os.fstat(descriptor)
        inode, size, changed = self._seen
        start, last = self._last
        same_file = status.st_ino == inode and status.st_size >= size and os.pread(descriptor, len(last), start) == last
        if not same_file or (status.st_size == size and status.st_mtime_ns != changed):
            self.forget()
        data = os.pread(descriptor, status.st_size - self._scanned, self._scanned)
        for start, end in _lines(data):
            self._take(data[start:end], (self._scanned + start, end - start))
        end = data.rfind(b"\n") + 1
        if end:
            begin = data.rfind(b"\n", 0, end - 1) + 1
            self._last = (self._scanned + begin, data[begin:end])
        self._scanned += end
        self._seen = (status.st_ino, status.st_size, status.st_mtime_ns)

    def _take(self, line: bytes, place: Place) -> None:
        at = line.rfind(EPISODE)
        if at >= 0:
            name = line[at + len(EPISODE) : line.find(b'"', at + len(EPISODE))]
            self._episodes.setdefault(name, []).append(place)
        elif SPEC_EVENT in line:
            self._specs.append(place)
        if KEY_EVENT not in line and place[0]:
            return
        row = read_row(line)
        if place[0] == 0:
            self.ring = None if row is None else KeyRing.begun_by(row)
        elif row is not None and row.event == Event.KEY:
            self.rotations = True
            if self.ring is not None:
                self.ring = self.ring.after(row)

    def rows(self, descriptor: int, episode: str) -> list[Row]:
        """The readable rows of `episode`, in order, read from the file. Call `follow` first. Raises OSError."""
        found = self._read(descriptor, self._episodes.get(episode.encode(), []))
        return [row for row in found if row.episode == episode]

    def count(self, episode: str) -> int:
        """How many lines speak of `episode`, proved or not. Call `follow` first."""
        return len(self._episodes.get(episode.encode(), ()))

    def broken(self, descriptor: int, *, anew: bool) -> Break | None:
        """Where the file is not whole. Call `follow` first. Raises OSError."""
        if anew:
            self._soundness.forget()
        return self._soundness.follow(descriptor, self._scanned, self.ring)

    def names(self) -> list[str]:
        """What the lines call their episodes, proved or not. Call `follow` first."""
        return [name.decode("ascii", "replace") for name in self._episodes]

    def specs(self, descriptor: int) -> list[Row]:
        """The readable rows `spec`, the last one first. Call `follow` first. Raises OSError."""
        return [row for row in self._read(descriptor, self._specs[::-1]) if row.event == Event.SPEC]

    def _read(self, descriptor: int, places: list[Place]) -> list[Row]:
        lines = [os.pread(descriptor, length, offset) for offset, length in places]
        return [row for line in lines if (row := read_row(line)) is not None]


def _lines(data: bytes) -> Iterator[Place]:
    """Start and end of every whole line."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield start, end
        start = end + 1
