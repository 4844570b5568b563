"""The chain: one signed, hash-linked row for every event of every episode, append-only, in `chain.jsonl`.

A row is one line of canonical JSON::

    {"at": {"boot": id, "ns": since boot}, "body": {...}, "episode": id or null, "event": "judged", "key_id": ...,
     "n": 17, "prev": digest of the line before, "sig": Ed25519 over the row without `sig`}

It is appended and fsynced before the step that it records becomes visible, under a lock that the whole step holds, so
rows of two processes never interleave. Wall time is not in it: a rig cannot prove it.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.durable import disk_errors, fsync_folder
from firsthand_edge.spec.canonical import canonical_bytes, digest_bytes
from firsthand_edge.spec.keys import key_id, verify
from firsthand_edge.spec.signing import read_document
from firsthand_edge.spool.identity import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.spec.keys import KeyPair

__all__ = ["Chain", "ChainReport", "Event", "Finding", "Row", "read_rows", "verify_chain"]

FIELDS: Final = frozenset({"at", "body", "episode", "event", "key_id", "n", "prev", "sig"})
TAIL_BYTES: Final = 1 << 16


class Event(StrEnum):
    """What a row records."""

    KEY = "key"
    SPEC = "spec"
    SEALED = "sealed"
    JUDGED = "judged"
    REJUDGED = "rejudged"
    UPLOADED = "uploaded"
    DAMAGED = "damaged"
    WITHDRAWN = "withdrawn"
    DISCARDED = "discarded"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it stands in the file."""

    n: int
    prev: str | None
    event: str
    episode: str | None
    body: Mapping[str, Any]
    key_id: str
    line: bytes
    """Without the line feed."""

    @property
    def digest(self) -> str:
        """What the next row's `prev` must be."""
        return digest_bytes(self.line)

    def signed_by(self, public_key: bytes) -> bool:
        """Whether the row is as the holder of `public_key` (32 raw bytes) signed it."""
        document = read_document(self.line + b"\n")
        signature = str(document.pop("sig"))
        return self.key_id == key_id(public_key) and verify(public_key, canonical_bytes(document), signature)


class Chain:
    """The chain file of one spool. Instances of several processes may share the file."""

    def __init__(self, path: Path, key: KeyPair) -> None:
        self.path: Final = path
        self._key: Final = key

    @contextmanager
    def locked(self) -> Iterator[Appender]:
        """Holds the chain for one whole step. A torn last line left by a power cut is dealt with first.

        Raises:
            DiskFull, DiskError: the file cannot be opened or repaired.
        """
        existed = self.path.exists()
        with exclusive(self.path) as descriptor:
            with disk_errors("the chain cannot be repaired"):
                if not existed:
                    fsync_folder(self.path.parent)
                torn = _cut_torn_tail(descriptor, self.path)
            appender = Appender(descriptor, self.path, self._key, torn=torn)
            if appender.empty:
                appender.append(Event.KEY, None, {"public_key": self._key.public.hex()})
            yield appender

    def signer(self) -> str | None:
        """Name of the key that began the chain; None where there is no row yet, or the first one proves nothing."""
        with disk_errors("the chain cannot be read"):
            if not self.path.exists():
                return None
            with self.path.open("rb") as file:
                line = file.readline()
        row = _read_row(line.removesuffix(b"\n")) if line.endswith(b"\n") else None
        if row is None or row.event != Event.KEY:
            return None
        try:
            public = bytes.fromhex(str(row.body.get("public_key")))
        except ValueError:
            return None
        return row.key_id if row.signed_by(public) else None

    def rows(self, episode: str | None = None) -> list[Row]:
        """All readable rows, in order, or those of one episode. Raises DiskError when the file cannot be read."""
        with disk_errors("the chain cannot be read"):
            data = self.path.read_bytes() if self.path.exists() else b""
        if episode is None:
            return read_rows(data)
        named = (line for line in data.split(b"\n")[:-1] if episode.encode() in line)
        return [row for line in named if (row := _read_row(line)) is not None and row.episode == episode]


class Appender:
    """Appends rows while the chain is held."""

    def __init__(self, descriptor: int, path: Path, key: KeyPair, *, torn: str | None) -> None:
        self._descriptor = descriptor
        self._path = path
        self._key = key
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
            DiskFull, DiskError: the row is not there, also not in part, as far as the disk still obeys.
        """
        held = dict(body)
        row = {
            "at": {"boot": _boot_id(), "ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME)},
            "body": held,
            "episode": episode,
            "event": event,
            "key_id": self._key.key_id,
            "n": self._n,
            "prev": self._prev,
        }
        line = canonical_bytes({**row, "sig": self._key.sign(canonical_bytes(row))})
        with disk_errors(f"the chain row `{event}` cannot be written to {self._path}"):
            end = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                _write_all(self._descriptor, line + b"\n")
                os.fsync(self._descriptor)
            except OSError:
                os.ftruncate(self._descriptor, end)
                raise
        written = Row(self._n, self._prev, str(event), episode, held, self._key.key_id, line)
        self._n, self._prev = self._n + 1, written.digest
        return written


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
    row = _read_row(line.rstrip(b"\n"))
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
    its line feed is completed. Nothing that any step relied on is touched: steps become visible after the fsync.
    """
    start, line = _last_line(descriptor)
    if not line or (line.endswith(b"\n") and b"\x00" not in line):
        return None
    if _read_row(line) is not None:
        os.lseek(descriptor, 0, os.SEEK_END)
        _write_all(descriptor, b"\n")
        os.fsync(descriptor)
        return "the last row of the chain lacked its line feed; completed"
    side = path.with_name("chain.torn")
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


def _read_row(line: bytes) -> Row | None:
    try:
        row = read_document(line + b"\n")
    except ValueError:
        return None
    plain = (
        row.keys() == FIELDS
        and type(row["n"]) is int
        and row["n"] >= 0
        and isinstance(row["prev"], str | None)
        and isinstance(row["event"], str)
        and isinstance(row["episode"], str | None)
        and isinstance(row["body"], dict)
        and isinstance(row["key_id"], str)
        and isinstance(row["sig"], str)
    )
    if not plain:
        return None
    return Row(row["n"], row["prev"], row["event"], row["episode"], row["body"], row["key_id"], line)


def read_rows(data: bytes) -> list[Row]:
    """The readable rows of a chain's bytes, in order. Says nothing about signatures: see `verify_chain`."""
    return [row for line in data.split(b"\n")[:-1] if (row := _read_row(line)) is not None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a chain."""

    line: int
    """Counted from 1."""
    sentence: str


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a chain file proves, and what it cannot."""

    rows: int
    head: str | None
    """Digest of the last line: who saw this head can later tell whether the tail was cut."""
    findings: tuple[Finding, ...]
    cannot_know: tuple[str, ...] = field(
        default=(
            "whether rows were cut off the end before anybody else saw them: compare the head with the store's copy",
            "when a row was written, by the clock on the wall: rows prove their order only",
            "whether the holder of the private key kept a second history: compare with the store's copy",
        )
    )

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify_chain(path: Path, public_key: bytes) -> ChainReport:
    """Checks every row: form, number, link, key, signature. Finds edits, reordering and removal.

    Args:
        path: The chain file.
        public_key: 32 raw bytes of the key that must have signed every row.

    Raises:
        DiskError: the file cannot be read.
    """
    with disk_errors("the chain cannot be read"):
        data = path.read_bytes()
    *lines, tail = data.split(b"\n")
    findings: list[Finding] = []
    expected, prev = 0, None
    for number, line in enumerate(lines, start=1):
        row = _read_row(line)
        if row is None:
            findings.append(Finding(number, "is damaged: not a row of this chain's form"))
            expected, prev = expected + 1, digest_bytes(line)
            continue
        findings += (Finding(number, sentence) for sentence in _faults(row, expected, prev, public_key))
        expected, prev = row.n + 1, row.digest
    if tail:
        findings.append(Finding(len(lines) + 1, f"is torn: {len(tail)} bytes without a line feed"))
    return ChainReport(rows=len(lines), head=prev, findings=tuple(findings))


def _faults(row: Row, expected: int, prev: str | None, public_key: bytes) -> Iterator[str]:
    if row.n > expected:
        yield f"is row {row.n} where row {expected} belongs: {row.n - expected} rows before it are missing"
    elif row.n < expected:
        yield f"is row {row.n} where row {expected} belongs: rows are out of order or doubled"
    elif row.prev != prev:
        yield f"row {row.n} does not continue the row before it, which was changed or replaced"
    if row.key_id != key_id(public_key):
        yield f"row {row.n} is signed by key {row.key_id}, not by {key_id(public_key)}"
    elif not row.signed_by(public_key):
        yield f"row {row.n} was changed after it was signed"
