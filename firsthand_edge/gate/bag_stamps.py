"""A ROS 1 bag's stamps, with the public `rosbags` package.

Log times come from the bag's index alone. For stamps in messages every chunk is decompressed once, as the package gives
the messages: in the order in which they were received.
"""

from __future__ import annotations

import bz2
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge import _core
from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.channels import Channel, Recording, kind_of, within_int64
from firsthand_edge.gate.mcap_stamps import GRADES, no_stamp_in, unset_headers
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from firsthand_edge.gate.channels import Progress, StampSource
    from firsthand_edge.gate.figures import Int64

__all__ = ["read_bag"]

LARGEST_CHUNK = 1 << 30
"""Bytes that a chunk may decompress to; a bag's own limit is 4 GiB, recorders write less than one MiB by default."""
TOLD_EVERY_S = 0.05


def read_bag(path: Path, stamps: StampSource | None, progress: Progress | None = None) -> Recording:
    """Reads the stamps of every topic.

    Args:
        path: A bag of version 2.0.
        stamps: `header` or `log`; None for the header where the messages begin with one, else the log time.
        progress: Told how far the file is read.

    Raises:
        RecordingUnreadable: when the bag is truncated, damaged, encrypted or was never indexed.
        UsageError: when the package is not installed, or `stamps` asks for what a bag does not have.
    """
    try:
        from rosbags.rosbag1 import Reader
    except ImportError as exc:
        raise UsageError(f"{path} is a ROS 1 bag; install the package `rosbags` to read it") from exc
    if stamps == "publish":
        raise UsageError("a ROS 1 bag keeps no publish times; choose --stamps header or --stamps log")
    try:
        with Reader(path) as reader:
            _bound_chunks(reader)
            topics = _Topics(reader, stamps, progress, path.stat().st_size)
            return topics.recording()
    except (UsageError, RecordingUnreadable):
        raise
    except Exception as exc:
        # Damaged lengths and payloads end the package and the decompressors in as many ways as there are bytes.
        why = " ".join(str(exc).split()) or type(exc).__name__
        raise RecordingUnreadable(
            f"{path} is truncated or damaged ({why}); mend it with `rosbag reindex` and audit the result"
        ) from exc


def _bound_chunks(reader: Any) -> None:
    """Lets no chunk decompress to more than is believed."""
    from lz4.frame import LZ4FrameDecompressor
    from rosbags.rosbag1.reader import decompressors

    makers: dict[Any, Callable[[], Any]] = {
        decompressors["bz2"]: bz2.BZ2Decompressor,
        decompressors["lz4"]: LZ4FrameDecompressor,
    }
    for position, chunk in reader.chunks.items():
        maker = makers.get(chunk.decompressor)
        if maker is not None:
            reader.chunks[position] = chunk._replace(decompressor=_bounded(maker))


def _bounded(maker: Callable[[], Any]) -> Callable[[bytes], bytes]:
    def decompress(data: bytes) -> bytes:
        found: bytes = maker().decompress(data, max_length=LARGEST_CHUNK + 1)
        if len(found) > LARGEST_CHUNK:
            raise ValueError(f"a chunk holds more than {LARGEST_CHUNK} bytes")
        return found

    return decompress


class _Topics:
    """What is gathered of a bag. Several connections may publish one topic; they are one channel."""

    def __init__(self, reader: Any, stamps: StampSource | None, progress: Progress | None, size: int) -> None:
        self._reader = reader
        self._stamps = stamps
        self._progress = progress
        self._size = size
        self._notes: list[str] = []
        self._by_topic: dict[str, list[Any]] = {}
        for connection in reader.connections:
            self._by_topic.setdefault(connection.topic, []).append(connection)

    def recording(self) -> Recording:
        self._compare_counts()
        headers = self._headers() if self._stamps != "log" else {}
        there = [topic for topic, connections in sorted(self._by_topic.items()) if self._entries(connections)]
        channels = tuple(self._channel(topic, headers.get(topic)) for topic in there)
        unread = "Log times are those of the bag's index; no chunk was read, and a bag holds no checksums."
        notes = [*self._notes, unread] if not headers and channels else self._notes
        return Recording("bag", channels, tuple(notes))

    def _entries(self, connections: Sequence[Any]) -> list[Any]:
        return [entry for connection in connections for entry in self._reader.indexes.get(connection.id, ())]

    def _compare_counts(self) -> None:
        """Holds the entries of the index against what the chunk infos count."""
        for connection in self._reader.connections:
            stated = sum(info.connection_counts.get(connection.id, 0) for info in self._reader.chunk_infos)
            there = len(self._reader.indexes.get(connection.id, ()))
            if stated != there:
                raise RecordingUnreadable(
                    f"{self._reader.path} is truncated or damaged (its chunk infos count "
                    f"{count(stated, 'message')} of {connection.topic} and its index {there}); mend it with `rosbag "
                    "reindex` and audit the result"
                )

    def _channel(self, topic: str, header: Sequence[int] | None) -> Channel:
        connections = self._by_topic[topic]
        entries = self._entries(connections)
        used: StampSource = "header" if header else "log"
        times = within_int64(topic, np.array(header, np.int64) if header else _log_times(entries))
        kind = kind_of(connections[0].msgtype, "", times)
        if used == "log" and self._stamps == "header" and kind in (Kind.TRIGGERED, Kind.SAMPLED):
            raise no_stamp_in(topic)
        if header is not None and not header:
            self._notes.append(unset_headers(topic))
        return Channel(topic, kind, times, used, unstamped=len(entries) - times.size, grade=GRADES[used])

    def _headers(self) -> dict[str, list[int]]:
        """Stamps in messages by topic, of those topics whose messages begin with one."""
        readers: dict[int, Callable[[bytes], int | None]] = {}
        stamps: dict[str, list[int]] = {}
        for connection in self._reader.connections:
            place = _core.StampPlace.find(
                encoding="ros1",
                schema_encoding="ros1msg",
                schema_name=connection.msgtype,
                schema=connection.msgdef.data.encode(),
            )
            if place is not None:
                readers[connection.id] = place.read
                stamps.setdefault(connection.topic, [])
        wanted = [connection for connection in self._reader.connections if connection.id in readers]
        if not wanted:
            return {}
        told = time.monotonic()
        for number, (connection, _, data) in enumerate(self._reader.messages(wanted)):
            stamp = readers[connection.id](data[:16])
            if stamp is not None:
                stamps[connection.topic].append(stamp)
            if self._progress is not None and number % 1024 == 0 and time.monotonic() - told > TOLD_EVERY_S:
                told = time.monotonic()
                self._progress(min(self._reader.current_chunk[0], self._size), self._size)
        return stamps


def _log_times(entries: Sequence[Any]) -> Int64:
    """(n,) int64 of the index's entries, in the order in which their messages lie in the file."""
    table = np.array([(entry.time, entry.chunk_pos, entry.offset) for entry in entries], dtype=np.int64).reshape(-1, 3)
    times: Int64 = table[np.lexsort((table[:, 2], table[:, 1])), 0]
    return times
