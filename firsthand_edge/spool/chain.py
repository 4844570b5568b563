"""The chain: one signed, hash-linked row for every event of every episode, append-only, in `chain.jsonl`.

A row (`row.py`) is appended and fsynced before the step that it records becomes visible, under a lock that the whole
step holds, so rows of two processes never interleave. Wall time is not in it: a rig cannot prove it.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.durable import disk_errors, fsync_folder
from firsthand_edge.errors import ChainBroken, ConfigInvalid, KeyRotated
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spool.chain_index import ChainIndex
from firsthand_edge.spool.identity import exclusive
from firsthand_edge.spool.keyring import KeyRing, ring_of, rotation_body
from firsthand_edge.spool.row import Event, Row, read_row, read_rows, sign_row, whole_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.spec.keys import KeyPair
    from firsthand_edge.spool.soundness import Break

__all__ = ["CHAIN_NAME", "TORN_NAME", "Appender", "Chain", "Event", "Row", "held_chain", "read_rows"]

CHAIN_NAME: Final = "chain.jsonl"
TORN_NAME: Final = "chain.torn"
"""Keeps last lines that were cut off a chain because they were torn."""
TAIL_BYTES: Final = 1 << 16


@contextmanager
def held_chain(path: Path) -> Iterator[tuple[int, str | None]]:
    """Holds a chain file, made when absent, for this thread of this process alone.

    A torn last line left by a power cut is dealt with first. Yields the file's descriptor, and what was found of a torn
    line as a sentence.

    Raises:
        DiskFull, DiskError: the file cannot be opened or repaired.
    """
    existed = path.exists()
    with exclusive(path) as descriptor:
        with disk_errors("the chain cannot be repaired"):
            if not existed:
                fsync_folder(path.parent)
            torn = _cut_torn_tail(descriptor, path)
        yield descriptor, torn


class Chain:
    """The chain file of one spool. Instances of several processes may share the file; an instance is one thread's."""

    def __init__(self, path: Path, key: KeyPair) -> None:
        self.path: Final = path
        self._key: Final = key
        self._index: Final = ChainIndex()

    @contextmanager
    def locked(self) -> Iterator[Appender]:
        """Holds the chain for one whole step. A torn last line left by a power cut is dealt with first.

        Raises:
            KeyRotated: the key of this process is not the rig's any more; nothing was appended.
            ConfigInvalid: the chain does not prove which key is the rig's.
            DiskFull, DiskError: the file cannot be opened or repaired.
        """
        with held_chain(self.path) as (descriptor, torn):
            with disk_errors("the chain cannot be read"):
                self._index.follow(descriptor)
            self._require_current()
            appender = Appender(descriptor, self.path, self._key, torn=torn)
            if appender.empty:
                appender.append(Event.KEY, None, {"public_key": self._key.public.hex()})
            yield appender

    def require_key(self) -> str | None:
        """Whether the key at hand may append the next row.

        Returns:
            What was mended for that, as a sentence: a last row that lacked its line feed may be the one of this key.

        Raises:
            KeyRotated, ConfigInvalid, DiskError: as `locked`.
        """
        try:
            with self._followed():
                self._require_current()
        except (ConfigInvalid, KeyRotated):
            with held_chain(self.path) as (descriptor, torn):
                with disk_errors("the chain cannot be read"):
                    self._index.follow(descriptor)
                self._require_current()
            return torn
        return None

    def _require_current(self) -> None:
        ring = self._ring()
        if ring.current == self._key.public:
            return
        before = ring.find(self._key.public)
        if before is None:
            ours, theirs = self._key.key_id, ring.keys[-1].key_id
            raise ConfigInvalid(
                str(self.path), [f"is signed by key {theirs} and the key at hand is {ours}; restore the rig's key"]
            )
        last = ring.keys[ring.keys.index(before) + 1].since - 1
        raise KeyRotated(
            f"the key at hand, {before.key_id}, was the rig's until row {last} of {self.path}; since then it is "
            f"{ring.keys[-1].key_id}: start this process again, or restore the key that is in force"
        )

    def _ring(self) -> KeyRing:
        """The ring in the index; where no row proves a key, the chain is taken to be by the key at hand alone."""
        if self._index.ring is not None:
            return self._index.ring
        if self._index.rotations:
            why = "has a first row that proves no key, and later rows that make others the rig's"
            raise ConfigInvalid(
                str(self.path),
                [f"{why}; run `firsthand-edge chain verify` and restore the chain from the store's copy"],
            )
        return KeyRing.of(self._key.public)

    def keyring(self) -> KeyRing:
        """The keys of this chain. Where no row proves one, it is taken to be by the key at hand alone.

        Raises:
            ConfigInvalid: its first row proves no key, and later rows say that there were others.
            DiskError: the file cannot be read.
        """
        with self._followed():
            return self._ring()

    @property
    def name(self) -> str:
        """What copies of this chain are called: the short name of the key that began it. Raises as `keyring`."""
        return self.keyring().name

    def rows(self, episode: str | None = None) -> list[Row]:
        """All readable rows, in order, or those of one episode. Raises DiskError when the file cannot be read."""
        if episode is None:
            with disk_errors("the chain cannot be read"):
                return read_rows(self.path.read_bytes()) if self.path.exists() else []
        with self._followed() as descriptor:
            return [] if descriptor is None else self._index.rows(descriptor, episode)

    def names(self) -> list[str]:
        """Every episode that the chain speaks of, proved or not. Raises DiskError when the file cannot be read."""
        with self._followed():
            return self._index.names()

    def count(self, episode: str) -> int:
        """How many rows speak of `episode`, proved or not: a number that tells whether anything was said since."""
        with self._followed():
            return self._index.count(episode)

    def broken(self, *, anew: bool = False) -> Break | None:
        """Where the chain is not whole; None where it is. The first call of a process checks every signature.

        Args:
            anew: Check every row again, also what was found to be good before.

        Raises:
            DiskError: the file cannot be read.
        """
        with self._followed() as descriptor:
            return None if descriptor is None else self._index.broken(descriptor, anew=anew)

    def require_whole(self) -> None:
        """Whether anything may be accepted or leave by what the chain says. Raises ChainBroken, DiskError."""
        found = self.broken()
        if found is not None:
            raise ChainBroken(f"{self.path}: {found.sentence}")

    def last_spec(self) -> Row | None:
        """The last row `spec` that is signed as it should be; None before the first. Raises as `keyring`."""
        with self._followed() as descriptor:
            found = [] if descriptor is None else self._index.specs(descriptor)
            ring = self._ring()
        return next((row for row in found if row.signed_by(ring.at(row.n))), None)

    @contextmanager
    def _followed(self) -> Iterator[int | None]:
        """The file, open to be read, with the index brought up to it; None where there is no file."""
        with disk_errors("the chain cannot be read"):
            descriptor: int | None
            try:
                descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self._index.forget()
                descriptor = None
            try:
                if descriptor is not None:
                    self._index.follow(descriptor)
                yield descriptor
            finally:
                if descriptor is not None:
                    os.close(descriptor)


class Appender:
    """Appends rows while the chain is held."""

    def __init__(self, descriptor: int, path: Path, key: KeyPair, *, torn: str | None) -> None:
        self._descriptor = descriptor
        self._path = path
        self._key: KeyPair | None = key
        self.torn: Final = torn
        """What was found of a torn last line, as a sentence; None when there was none."""
        self._n, self._prev = _head(descriptor)

    @property
    def empty(self) -> bool:
        """Whether there is no row yet."""
        return self._n == 0

    def append(self, event: Event, episode: str | None, body: Mapping[str, Any]) -> Row:
        """Appends one row; durable when this returns.

        Raises:
            KeyRotated: a row before it made another key the rig's.
            DiskFull, DiskError: the row is not there, also not in part, as far as the disk still obeys.
        """
        key = self._key
        if key is None:
            raise KeyRotated(f"the rig's key was rotated in {self._path}; open the spool again")
        held = dict(body)
        line = sign_row(
            {
                "at": {"boot": _boot_id(), "ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME)},
                "body": held,
                "episode": episode,
                "event": event,
                "key_id": key.key_id,
                "n": self._n,
                "prev": self._prev,
            },
            key,
        )
        with disk_errors(f"the chain row `{event}` cannot be written to {self._path}"):
            end = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                _write_all(self._descriptor, line + b"\n")
                os.fsync(self._descriptor)
            except OSError:
                os.ftruncate(self._descriptor, end)
                raise
        written = Row(self._n, self._prev, str(event), episode, held, key.key_id, line)
        self._n, self._prev = self._n + 1, written.digest
        return written

    def append_rotation(self, new: KeyPair) -> Row:
        """Makes `new` the rig's key: the last row of the old one, countersigned by the new. Raises as `append`."""
        row = self.append(Event.KEY, None, rotation_body(self._n, self._prev, new))
        self._key = None
        return row


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _boot_id() -> str:
    """Names this boot, so that times since boot of two boots are never compared. Empty where the kernel has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _last_line(descriptor: int) -> tuple[int, bytes]:
    """Offset and bytes of what follows the last line feed but one: the last line, with its line feed if it has one."""
    size = os.fstat(descriptor).st_size
    start, tail = size, b""
    while start > 0:
        step = min(TAIL_BYTES, start)
        start -= step
        tail = os.pread(descriptor, step, start) + tail
        feed = tail.rfind(b"\n", 0, -1)
        if feed >= 0:
            return start + feed + 1, tail[feed + 1 :]
    return 0, tail


def _head(descriptor: int) -> tuple[int, str | None]:
    """Number and link of the next row. A last line that is damaged is still counted and linked to, never hidden."""
    start, line = _last_line(descriptor)
    if not line:
        return 0, None
    row = read_row(line.rstrip(b"\n"))
    if row is not None:
        return row.n + 1, row.digest
    lines, offset = 1, 0
    while offset < start:
        block = os.pread(descriptor, min(1 << 20, start - offset), offset)
        lines += block.count(b"\n")
        offset += len(block)
    return lines, digest_bytes(line.rstrip(b"\n"))


def _cut_torn_tail(descriptor: int, path: Path) -> str | None:
    """Cuts off a last line that a power cut left unfinished and keeps its bytes in `chain.torn`.

    Unfinished means: no line feed, or blocks that never reached the disk and read as zeros. A row that is whole but for
    its line feed is completed, also where other bytes stand in its place and the row is signed by the key in force and
    continues the chain. Nothing that any step relied on is touched: steps become visible after the fsync.
    """
    start, line = _last_line(descriptor)
    if not line or (line.endswith(b"\n") and b"\x00" not in line):
        return None
    if read_row(line) is not None:
        os.lseek(descriptor, 0, os.SEEK_END)
        _write_all(descriptor, b"\n")
        os.fsync(descriptor)
        return "the last row of the chain lacked its line feed; completed"
    if (row := _proved_row(descriptor, start, line)) is not None:
        os.pwrite(descriptor, b"\n", start + len(row.line))
        os.ftruncate(descriptor, start + len(row.line) + 1)
        os.fsync(descriptor)
        return "the last row of the chain ended in other bytes instead of its line feed; completed"
    side = path.with_name(TORN_NAME)
    kept = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        _write_all(kept, line if line.endswith(b"\n") else line + b"\n")
        os.fsync(kept)
    finally:
        os.close(kept)
    fsync_folder(path.parent)
    os.ftruncate(descriptor, start)
    os.fsync(descriptor)
    return f"the last line of the chain was torn ({len(line)} bytes); cut off and kept in {side}"


def _proved_row(descriptor: int, start: int, line: bytes) -> Row | None:
    """The row that a last line would be without its end, where the key in force signed it as the next one.

    Bytes change in the middle of a disk too: a row that a step relied on is not cut off for want of its line feed.
    """
    rows = whole_rows(line)
    if not rows:
        return None
    before = os.pread(descriptor, start, 0)
    link = digest_bytes(before[before.rfind(b"\n", 0, -1) + 1 : -1]) if start else None
    number = before.count(b"\n")
    for row in rows:
        ring = ring_of(before) if start else KeyRing.begun_by(row)
        if ring is not None and (row.n, row.prev) == (number, link) and row.signed_by(ring.at(row.n)):
            return row
    return None
