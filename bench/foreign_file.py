"""A take as somebody else's MCAP: ROS 2 messages, one chunk a second, indexes and statistics, as recorders write them.

Seven topics of `sensor_msgs/msg/Image` and one of `sensor_msgs/msg/Imu`; a message is 76 bytes, of which 40 are noise.
The log time is 2.0 to 2.4 ms after the stamp in the header. Records are laid out by numpy and framed by the public
`mcap` package, because its writer would take half an hour for ten hours of them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import Channel, ChunkIndex, DataEnd, Footer, Header, Schema, Statistics

from bench.dataset import EPOCH_NS

if TYPE_CHECKING:
    from pathlib import Path

    from bench.dataset import Take

MAGIC = b"\x89MCAP0\r\n"
IMAGE = b"std_msgs/Header header\nuint32 height\nuint8[] data\n"
IMU = b"std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n"
NOISE = 40
MESSAGE = np.dtype(
    [
        ("opcode", "u1"),
        ("length", "<u8"),
        ("channel", "<u2"),
        ("sequence", "<u4"),
        ("log", "<u8"),
        ("publish", "<u8"),
        ("kind", "S4"),
        ("sec", "<i4"),
        ("nsec", "<u4"),
        ("frame_id", "S24"),
        ("noise", "u1", (NOISE,)),
    ]
)
ENTRY = np.dtype([("time", "<u8"), ("offset", "<u8")])
SECOND = 1_000_000_000


def topics(take: Take) -> dict[str, np.ndarray[Any, Any]]:
    """The stamps of each topic, as the headers hold them."""
    names = ["/head", *(f"/camera{number}" for number in range(1, len(take.pictures)))]
    return {**dict(zip(names, take.pictures, strict=True)), "/imu": take.imu}


def write(path: Path, take: Take, *, compression: str) -> int:
    """Writes the file and gives its number of messages. `compression`: `zstd` or empty."""
    rng = np.random.default_rng(1)
    compressor = zstandard.ZstdCompressor(level=1)
    streams = list(topics(take).items())
    logs = [times + rng.integers(2_000_000, 2_400_000, times.size) for _, times in streams]
    logs = [np.maximum.accumulate(log) for log in logs]
    schemas = [Schema(1, IMAGE, "ros2msg", "sensor_msgs/msg/Image"), Schema(2, IMU, "ros2msg", "sensor_msgs/msg/Imu")]
    channels = [Channel(n, name, "cdr", {}, 2 if name == "/imu" else 1) for n, (name, _) in enumerate(streams, start=1)]
    counts: dict[int, int] = defaultdict(int)
    indexes: list[ChunkIndex] = []
    cuts = EPOCH_NS + SECOND * np.arange(take.seconds + 3)
    bounds = [np.searchsorted(log, cuts) for log in logs]
    with path.open("wb") as file:
        file.write(MAGIC + _records(Header("ros2", "bench")))
        for second in range(cuts.size - 1):
            rows = _rows(streams, logs, [bound[second : second + 2] for bound in bounds], rng)
            if not rows.size:
                continue
            content = b"" if indexes else _records(*schemas, *channels)
            indexes.append(_chunk(file, rows, content, compression, compressor))
            for channel, count in zip(*np.unique(rows["channel"], return_counts=True), strict=True):
                counts[int(channel)] += int(count)
        file.write(_records(DataEnd(0)))
        start = file.tell()
        first, last = min(int(log[0]) for log in logs), max(int(log[-1]) for log in logs)
        stated = Statistics(
            attachment_count=0,
            channel_count=len(channels),
            channel_message_counts=dict(counts),
            chunk_count=len(indexes),
            message_count=sum(counts.values()),
            message_end_time=last,
            message_start_time=first,
            metadata_count=0,
            schema_count=2,
        )
        summary = _records(*schemas, *channels, *indexes, stated)
        file.write(summary)
        footer = _records(Footer(start, 0, 0))[:-4]
        file.write(footer + crc32(footer, crc32(summary)).to_bytes(4, "little") + MAGIC)
    return sum(counts.values())


def _rows(streams: Any, logs: Any, bounds: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The messages of one second, in the order in which they were received."""
    parts = []
    for number, ((_, times), log, (begin, end)) in enumerate(zip(streams, logs, bounds, strict=True), start=1):
        rows = np.zeros(end - begin, MESSAGE)
        rows["channel"], rows["sequence"], rows["log"] = number, np.arange(begin, end), log[begin:end]
        rows["publish"] = times[begin:end] + 1_000_000
        rows["sec"], rows["nsec"] = np.divmod(times[begin:end], SECOND)
        parts.append(rows)
    whole = np.concatenate(parts)
    whole["opcode"], whole["length"], whole["kind"] = Opcode.MESSAGE, MESSAGE.itemsize - 9, b"\x00\x01"
    whole["frame_id"] = b"\x09\x00\x00\x00rig_link"
    whole["noise"] = rng.integers(0, 256, (whole.size, NOISE), np.uint8)
    return whole[np.argsort(whole["log"], kind="stable")]


def _chunk(file: Any, rows: np.ndarray[Any, Any], definitions: bytes, compression: str, compressor: Any) -> ChunkIndex:
    """Writes a chunk and its message indexes."""
    content = definitions + rows.tobytes()
    data = compressor.compress(content) if compression else content
    start, end = int(rows["log"].min()), int(rows["log"].max())
    head = b"".join(
        value.to_bytes(size, "little")
        for value, size in ((start, 8), (end, 8), (len(content), 8), (crc32(content), 4), (len(compression), 4))
    )
    body = head + compression.encode() + len(data).to_bytes(8, "little")
    at = file.tell()
    file.write(bytes([Opcode.CHUNK]) + (len(body) + len(data)).to_bytes(8, "little") + body + data)
    length = file.tell() - at
    offsets = {}
    for channel in np.unique(rows["channel"]).tolist():
        (mine,) = np.nonzero(rows["channel"] == channel)
        entries = np.empty(mine.size, ENTRY)
        entries["time"], entries["offset"] = rows["log"][mine], len(definitions) + mine * MESSAGE.itemsize
        index = channel.to_bytes(2, "little") + entries.nbytes.to_bytes(4, "little") + entries.tobytes()
        offsets[channel] = file.tell()
        file.write(bytes([Opcode.MESSAGE_INDEX]) + len(index).to_bytes(8, "little") + index)
    return ChunkIndex(
        chunk_length=length,
        chunk_start_offset=at,
        compression=compression,
        compressed_size=len(data),
        message_end_time=end,
        message_index_length=file.tell() - at - length,
        message_index_offsets=offsets,
        message_start_time=start,
        uncompressed_size=len(content),
    )


def _records(*records: Any) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return builder.end()
