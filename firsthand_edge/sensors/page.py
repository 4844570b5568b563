"""Counters of one device in a page of shared memory: they survive the worker that kept them.

Layout, all unsigned 64-bit little-endian: magic, incarnation, epoch, beat_ns, number of streams, then per stream
exposures, sent, dropped_socket, then the streams' names, NUL-padded to 64 bytes each. One writer, any reader.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from firsthand_edge.errors import DeviceAbsent, DeviceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["CountersPage", "StreamCounters", "page_path"]

_MAGIC: Final = 0x4547415045445246  # "FRDEPAGE"
_HEAD: Final = 5
_PER_STREAM: Final = 3
_NAME_BYTES: Final = 64
_INCARNATION, _EPOCH, _BEAT, _COUNT = 1, 2, 3, 4
_EXPOSURES, _SENT, _DROPPED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class StreamCounters:
    """Counts of one stream within one epoch, over all incarnations of its worker."""

    exposures: int
    """By the device's own count, including what it made and never delivered."""
    sent: int
    dropped_socket: int
    """Samples that the full socket refused: the recorder did not keep up."""


def page_path(run_dir: Path, device: str) -> Path:
    """Where the page of a device is."""
    return run_dir / f"{device}.page"


class CountersPage:
    """The page of a device. The worker makes one with `create`, its owner reads with `open`."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._view = memoryview(memory).cast("Q")
        if self._view[0] != _MAGIC:
            self.close()
            raise DeviceError("a counters page holds something else; remove it from the run directory and start again")
        count = self._view[_COUNT]
        names_at = 8 * (_HEAD + _PER_STREAM * count)
        self.streams = tuple(
            bytes(memory[at : at + _NAME_BYTES]).rstrip(b"\0").decode()
            for at in range(names_at, names_at + count * _NAME_BYTES, _NAME_BYTES)
        )
        self._at = {name: _HEAD + _PER_STREAM * i for i, name in enumerate(self.streams)}

    @classmethod
    def create(cls, run_dir: Path, device: str, streams: Sequence[str], *, incarnation: int) -> Self:
        """Opens the page for writing. A page that an earlier incarnation left goes on counting where it stopped.

        Raises:
            UsageError: A name is longer than 64 bytes.
        """
        for name in streams:
            if len(name.encode()) > _NAME_BYTES:
                raise UsageError(f"the stream name {name} is longer than {_NAME_BYTES} bytes; shorten it")
        size = 8 * (_HEAD + _PER_STREAM * len(streams)) + _NAME_BYTES * len(streams)
        path = page_path(run_dir, device)
        kept = None
        if incarnation > 0 and path.exists():
            kept = cls.open(run_dir, device, writable=True)
            if kept.streams != tuple(streams):
                kept.close()
                kept = None
        if kept is None:
            path.unlink(missing_ok=True)
            with path.open("x+b") as file:
                file.truncate(size)
                memory = mmap.mmap(file.fileno(), size)
            names_at = 8 * (_HEAD + _PER_STREAM * len(streams))
            memory[names_at:] = b"".join(name.encode().ljust(_NAME_BYTES, b"\0") for name in streams)
            memory[8 * _COUNT : 8 * _COUNT + 8] = len(streams).to_bytes(8, "little")
            memory[:8] = _MAGIC.to_bytes(8, "little")
            kept = cls(memory)
        kept._view[_INCARNATION] = incarnation
        return kept

    @classmethod
    def open(cls, run_dir: Path, device: str, *, writable: bool = False) -> Self:
        """Opens the page of a device, whose worker may be dead.

        Raises:
            DeviceAbsent: There is none.
        """
        path = page_path(run_dir, device)
        try:
            with path.open("r+b" if writable else "rb") as file:
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                return cls(mmap.mmap(file.fileno(), 0, access=access))
        except (OSError, ValueError) as error:
            raise DeviceAbsent(f"no counters of device {device} at {path} ({error}); its worker never opened") from None

    @property
    def incarnation(self) -> int:
        """How often the worker was started before this one."""
        return self._view[_INCARNATION]

    @property
    def epoch(self) -> int:
        """The arming that the counts belong to."""
        return self._view[_EPOCH]

    @property
    def beat_ns(self) -> int:
        """CLOCK_MONOTONIC of the worker's last sign of life, ns; 0 before the first."""
        return self._view[_BEAT]

    def beat(self, now_ns: int) -> None:
        """A sign of life."""
        self._view[_BEAT] = now_ns

    def begin(self, epoch: int) -> None:
        """Counts from zero, unless this epoch is already being counted: then its worker was restarted in it."""
        if self._view[_EPOCH] != epoch:
            for at in range(_HEAD, _HEAD + _PER_STREAM * len(self.streams)):
                self._view[at] = 0
            self._view[_EPOCH] = epoch

    def add(self, stream: str, *, exposures: int = 0, sent: int = 0, dropped_socket: int = 0) -> None:
        """Counts on."""
        at, view = self._at[stream], self._view
        view[at + _EXPOSURES] += exposures
        view[at + _SENT] += sent
        view[at + _DROPPED] += dropped_socket

    def counters(self, stream: str) -> StreamCounters:
        """Counts of a stream in the present epoch."""
        at = self._at[stream]
        return StreamCounters(self._view[at + _EXPOSURES], self._view[at + _SENT], self._view[at + _DROPPED])

    def close(self) -> None:
        """Unmaps the page; the file stays. Safe twice."""
        self._view.release()
        self._memory.close()
