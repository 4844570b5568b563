"""Plays one device of an episode of ours: raw stamps, arrivals and sequences from the evidence, payloads from the MCAP.

Both files list a stream's samples in order of receipt, so they are walked side by side; a sample whose footage is not
there was lost while recording and is not played. Message indexes lead to the messages of this device alone, because
each device is played by a process of its own and should not read the others' footage. A worker that was restarted while
it recorded is played as one: its counter is then seen to step where it began anew.
"""

from __future__ import annotations

import heapq
import json
import mmap
import struct
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from firsthand_edge.errors import DeviceAbsent, RecordingUnreadable
from firsthand_edge.model import ABSENT, DeviceInfo, Domain, Sample, StreamInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.sensors.configuration import ReplayDevice

__all__ = ["EpisodeRecording"]

_CHUNK_HEAD: Final = struct.Struct("<BQQQQII")
"""Chunk record (MCAP specification): opcode, length, start, end, uncompressed size, CRC, length of `compression`."""
_INDEX_HEAD: Final = struct.Struct("<BQHI")
"""Message index record: opcode, length, channel id, bytes of the array."""
_MESSAGE_HEAD: Final = struct.Struct("<BQHIQQ")
"""Message record: opcode, length, channel id, sequence, log time, publish time; then the data."""
_ENTRY: Final = np.dtype([("time", "<u8"), ("offset", "<u8")])
_IMU: Final = struct.Struct("<6d")
_POSE: Final = struct.Struct("<7d")
_COLUMNS: Final = ("received", "sequence", "trigger_index", "device_ticks", "arrival_ns", "exposure_ns", "domain")

Int64 = npt.NDArray[np.int64]


class _Message(NamedTuple):
    sequence: int
    log_ns: int
    publish_ns: int
    data: bytes


class _Row(NamedTuple):
    received: int
    sequence: int
    trigger_index: int
    device_ticks: int
    arrival_ns: int
    exposure_ns: int
    domain: int


def _of_image(message: Any) -> bytes:
    data: bytes = message.data
    return data


def _of_imu(message: Any) -> bytes:
    a, w = message.linear_acceleration, message.angular_velocity
    return _IMU.pack(a.x, a.y, a.z, w.x, w.y, w.z)


def _of_poses(message: Any) -> bytes:
    return b"".join(
        _POSE.pack(p.x, p.y, p.z, q.x, q.y, q.z, q.w)
        for p, q in ((pose.position, pose.orientation) for pose in message.poses)
    )


def _of_event(message: Any) -> bytes:
    """The recorder keeps the event's own text under the key `json`."""
    text: str = next(pair.value for pair in message.metadata if pair.key == "json")
    return text.encode()


_PAYLOAD_OF: Final[dict[str, Callable[[Any], bytes]]] = {
    "foxglove.CompressedImage": _of_image,
    "foxglove.CompressedVideo": _of_image,
    "foxglove.RawImage": _of_image,
    "foxglove.PosesInFrame": _of_poses,
    "foxglove.Event": _of_event,
    "firsthand.Imu": _of_imu,
    "firsthand.Record": _of_image,
}


class _Footage:
    """An `episode.mcap`, read channel by channel."""

    def __init__(self, path: Path) -> None:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader

        try:
            self._file = path.open("rb")
        except OSError as error:
            raise RecordingUnreadable(
                f"the footage {path} cannot be read: {error.strerror}; replay an episode whose footage is here"
            ) from None
        try:
            summary = make_reader(self._file).get_summary()
            self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except (McapError, ValueError, struct.error) as error:
            self._file.close()
            raise RecordingUnreadable(
                f"the footage {path} is truncated or damaged ({error}); recover it first"
            ) from None
        if summary is None:
            self.close()
            raise RecordingUnreadable(f"the footage {path} was never closed; recover it first")
        self._path = path
        self._summary = summary
        self._chunks = sorted(summary.chunk_indexes, key=lambda c: int(c.chunk_start_offset))
        self._last_chunk: tuple[int, bytes] = (-1, b"")

    def close(self) -> None:
        """Closes the file. Safe twice."""
        if hasattr(self, "_data"):
            self._data.close()
        self._file.close()

    def payloads(self, topic: str) -> Iterator[tuple[_Message, bytes]]:
        """The messages of a topic in the order of writing, each with the payload that it was made of."""
        from mcap_protobuf.decoder import DecoderFactory

        for channel in self._summary.channels.values():
            if channel.topic != topic:
                continue
            schema = self._summary.schemas[channel.schema_id]
            parse = DecoderFactory().decoder_for(channel.message_encoding, schema)
            payload_of = _PAYLOAD_OF.get(schema.name)
            if parse is None or payload_of is None:
                raise RecordingUnreadable(f"topic {topic} of {self._path} holds {schema.name}, which is none of ours")
            for message in self._messages(channel.id):
                yield message, payload_of(parse(message.data))

    def metadata(self, topic: str) -> Iterator[tuple[_Message, bytes]]:
        """The messages of a metadata topic, each with the device's metadata."""
        from mcap_protobuf.decoder import DecoderFactory

        for channel in self._summary.channels.values():
            if channel.topic == topic:
                schema = self._summary.schemas[channel.schema_id]
                parse = DecoderFactory().decoder_for(channel.message_encoding, schema)
                if parse is not None:
                    for message in self._messages(channel.id):
                        yield message, parse(message.data).metadata

    def _messages(self, channel: int) -> Iterator[_Message]:
        head, size = _MESSAGE_HEAD, _MESSAGE_HEAD.size
        for chunk in self._chunks:
            at = chunk.message_index_offsets.get(channel)
            if at is None:
                continue
            data, base = self._records(chunk)
            length = _INDEX_HEAD.unpack_from(self._data, at)[3]
            entries = np.frombuffer(self._data, _ENTRY, length // _ENTRY.itemsize, at + _INDEX_HEAD.size)
            # Offsets, not times, say in which order messages were written.
            offsets = np.sort(entries["offset"]).tolist()
            del entries
            for offset in offsets:
                begin = base + offset
                _, length, _, sequence, log_ns, publish_ns = head.unpack_from(data, begin)
                yield _Message(sequence, log_ns, publish_ns, data[begin + size : begin + 9 + length])

    def _records(self, chunk: Any) -> tuple[bytes | mmap.mmap, int]:
        """Where a chunk's records are: in the file itself, or decompressed."""
        at = chunk.chunk_start_offset
        name_length = _CHUNK_HEAD.unpack_from(self._data, at)[6]
        if name_length == 0:
            return self._data, at + _CHUNK_HEAD.size + 8
        if self._last_chunk[0] != at:
            from mcap.data_stream import ReadDataStream
            from mcap.records import Chunk
            from mcap.stream_reader import get_chunk_data_stream

            self._file.seek(at + 9)
            stream, _ = get_chunk_data_stream(Chunk.read(ReadDataStream(self._file)), validate_crc=True)
            self._last_chunk = (at, stream.read(chunk.uncompressed_size))
        return self._last_chunk[1], 0


class EpisodeRecording:
    """One device of an episode folder."""

    def __init__(self, config: ReplayDevice) -> None:
        self._config = config
        self._name = config.device or config.name
        self._columns: dict[str, dict[str, Int64]] = {}
        self._streams: tuple[StreamInfo, ...] = ()
        self._footage: _Footage | None = None
        self._start_ns: int | None = None

    @property
    def start_ns(self) -> int | None:
        """Earliest arrival of the take over all devices of the episode, ns."""
        return self._start_ns

    def open(self) -> DeviceInfo:
        """Opens both files. See `Recording.open`.

        Raises:
            DeviceAbsent: The episode has no such device.
        """
        from firsthand_edge._core import read_evidence

        self.close()
        folder = self._config.path
        try:
            evidence = read_evidence(folder / "evidence.mcap")
        except OSError as error:
            raise RecordingUnreadable(
                f"the recording {folder} cannot be read: {error.strerror}; name an episode"
            ) from None
        devices = [DeviceInfo.from_json(d) for d in json.loads(evidence["devices"])]
        info = next((d for d in devices if d.name == self._name), None)
        if info is None:
            here = ", ".join(d.name for d in devices)
            raise DeviceAbsent(f"the episode {folder} has no device {self._name}; it has {here}")
        samples = evidence["samples"]
        starts = [
            int(arrivals.min())
            for columns in samples.values()
            if len(arrivals := columns["arrival_ns"][(columns["warmup"] == 0) & (columns["arrival_ns"] != ABSENT)])
        ]
        self._start_ns = min(starts, default=None)
        self._streams = info.streams
        self._columns = {s.name: samples[s.name] for s in info.streams if s.name in samples}
        self._footage = _Footage(folder / "episode.mcap")
        return replace(info, name=self._config.name, driver="replay")

    def warm_up(self) -> Iterator[Sample]:
        """The pairs that settled the maps, in order of receipt."""
        parts = [_warmed_up(name, columns) for name, columns in self._columns.items()]
        return (sample for _, sample in heapq.merge(*parts, key=itemgetter(0)))

    def samples(self) -> Iterator[Sample]:
        """The take with its payloads, in order of receipt."""
        parts = [self._played(name, columns) for name, columns in self._columns.items()]
        if len(parts) == 1:
            return (sample for _, sample in parts[0])
        return (sample for _, sample in heapq.merge(*parts, key=itemgetter(0)))

    def close(self) -> None:
        """Closes both files."""
        footage, self._footage = self._footage, None
        self._columns = {}
        if footage is not None:
            footage.close()

    def _played(self, stream: str, columns: Mapping[str, Int64]) -> Iterator[tuple[int, Sample]]:
        if self._footage is None:
            return
        unparsed = _Side(self._footage.payloads(f"/{stream}/unparsed"))
        plain = _Side(self._footage.payloads(f"/{stream}"))
        said = _Side(self._footage.metadata(f"/{stream}/metadata"))
        for row in _rows(columns, warm_up=False):
            payload = plain.take(row)
            if payload is None:
                payload = unparsed.take(row)
            metadata = said.take(row)
            if payload is not None or metadata is not None:  # metadata alone: a sample without a payload
                yield row.received, _sample(stream, row, payload or b"", metadata or b"")


class _Side:
    """Messages of one topic, taken one by one as the evidence comes to them."""

    def __init__(self, messages: Iterator[tuple[_Message, bytes]]) -> None:
        self._messages = messages
        self._next = next(messages, None)

    def take(self, row: _Row) -> bytes | None:
        """The content that belongs to this row, or None when the next message is of another one."""
        if self._next is None:
            return None
        message, content = self._next
        if message.sequence != row.sequence & 0xFFFFFFFF:
            return None
        if row.arrival_ns not in (ABSENT, message.log_ns):
            return None
        self._next = next(self._messages, None)
        return content


def _warmed_up(stream: str, columns: Mapping[str, Int64]) -> Iterator[tuple[int, Sample]]:
    for row in _rows(columns, warm_up=True):
        yield row.received, _sample(stream, row, b"", b"")


def _rows(columns: Mapping[str, Int64], *, warm_up: bool) -> Iterator[_Row]:
    chosen = columns["warmup"] != 0 if warm_up else columns["warmup"] == 0
    picked: Sequence[list[int]] = [columns[name][chosen].tolist() for name in _COLUMNS]
    return map(_Row._make, zip(*picked, strict=True))


def _sample(stream: str, row: _Row, payload: bytes, metadata: bytes) -> Sample:
    return Sample(
        stream=stream,
        sequence=row.sequence,
        device_ticks=row.device_ticks,
        domain=Domain(row.domain),
        arrival_ns=row.arrival_ns,
        payload=payload,
        trigger_index=row.trigger_index,
        exposure_ns=row.exposure_ns,
        metadata=metadata,
    )
