"""How samples cross from a worker to the recorder: one bounded ZeroMQ socket a stream, every drop counted.

A message has two frames. The first is a msgpack array `[stream, incarnation, epoch, flags, n, records]`; the second
holds payload then metadata of each of its n samples, in order. A record is 56 bytes, little-endian, without gaps:
sequence i64, trigger_index i64, device_ticks i64, arrival_ns i64, exposure_ns i64, payload_len u32, metadata_len u32,
domain u8, 7 bytes of padding.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgpack
import numpy as np
import zmq

from firsthand_edge.errors import DeviceError, DiskError
from firsthand_edge.model import Domain, Sample, StreamInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from firsthand_edge.sensors.page import CountersPage

__all__ = [
    "BATCH_MAX",
    "FLAG_END",
    "RECORD",
    "Header",
    "Message",
    "StreamSender",
    "bind",
    "decode",
    "decode_samples",
    "encode",
    "endpoint",
    "high_water",
]

FLAG_END: Final = 1
"""Everything of this epoch has been sent for this stream."""
BATCH_MAX: Final = 64
"""Samples in one message at most."""

_RECORD = struct.Struct("<qqqqqIIB7x")
RECORD: Final = np.dtype(
    {
        "names": [
            "sequence",
            "trigger_index",
            "device_ticks",
            "arrival_ns",
            "exposure_ns",
            "payload_len",
            "metadata_len",
            "domain",
        ],
        "formats": ["<i8", "<i8", "<i8", "<i8", "<i8", "<u4", "<u4", "u1"],
        "offsets": [0, 8, 16, 24, 32, 40, 44, 48],
        "itemsize": _RECORD.size,
    }
)
"""The records of a message as a numpy dtype: `np.frombuffer(header.records, RECORD)`, shape (n,)."""

_BATCH_BYTES: Final = 64 * 1024
"""A batch is not grown beyond this; larger samples travel alone."""
_IPC_PATH_MAX: Final = 107
"""Bytes of a Unix socket's path (sun_path without its final NUL, unix(7))."""
_MESSAGE_BYTES: Final = {"picture": 400_000, "video": 200_000, "imu": 16_384, "poses": 16_384, "event": 1_024}
_FAST_HZ: Final = 200
_WAIT_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Header:
    """The first frame of a message, taken apart."""

    stream: str
    incarnation: int
    """How often the device's worker had been started before this one."""
    epoch: int
    """Number of the arming."""
    flags: int
    count: int
    records: bytes
    """`count` records of 56 bytes."""

    @property
    def end(self) -> bool:
        """Whether this is the last message of its epoch and stream."""
        return bool(self.flags & FLAG_END)


Message = tuple[bytes, bytes]
"""The two frames."""


def encode(samples: Sequence[Sample], *, stream: str, incarnation: int, epoch: int, flags: int = 0) -> Message:
    """Packs samples of one stream into the two frames of a message. `samples` may be empty (an end marker)."""
    records = bytearray()
    body: list[bytes | memoryview] = []
    for s in samples:
        records += _RECORD.pack(
            s.sequence,
            s.trigger_index,
            s.device_ticks,
            s.arrival_ns,
            s.exposure_ns,
            len(s.payload),
            len(s.metadata),
            s.domain,
        )
        body.append(s.payload)
        if s.metadata:
            body.append(s.metadata)
    header: bytes = msgpack.packb([stream, incarnation, epoch, flags, len(samples), bytes(records)])
    return header, b"".join(body)


def decode(frame: bytes) -> Header:
    """Takes the first frame apart.

    Raises:
        DeviceError: It is not of this form: a foreign process sends to our socket.
    """
    try:
        stream, incarnation, epoch, flags, count, records = msgpack.unpackb(frame)
        fits = len(records) == count * _RECORD.size
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DeviceError(f"a message of a foreign form came over a sample socket ({error})") from None
    if not fits:
        raise DeviceError(
            f"a message of stream {stream} says {count} samples and holds {len(records)} bytes of records"
        )
    return Header(stream, incarnation, epoch, flags, count, records)


def decode_samples(header: Header, body: bytes) -> Iterator[Sample]:
    """The samples of a message. For tests and tools: the recorder leaves them packed."""
    at = 0
    for sequence, index, ticks, arrival, exposure, payload_len, metadata_len, domain in _RECORD.iter_unpack(
        header.records
    ):
        split, end = at + payload_len, at + payload_len + metadata_len
        yield Sample(
            stream=header.stream,
            sequence=sequence,
            device_ticks=ticks,
            domain=Domain(domain),
            arrival_ns=arrival,
            payload=body[at:split],
            trigger_index=index,
            exposure_ns=exposure,
            metadata=body[split:end],
        )
        at = end


def high_water(info: StreamInfo, *, seconds: float = 2.0, limit_bytes: int = 64 * 1024 * 1024) -> int:
    """How many messages a socket of this stream may hold: `seconds` of them, but no more than `limit_bytes`.

    Both ends set it, so twice as much can be under way. ZeroMQ counts messages, hence the estimate of their size.
    """
    family = info.media.split("/", 1)[0]
    size = _MESSAGE_BYTES.get(family, 100_000)
    if family == "raw":
        _, _, shape = info.media.partition(";")
        width, _, height = shape.partition("x")
        size = int(width) * int(height) * 2 if width.isdigit() and height.isdigit() else 1_000_000
    rate_hz = 1e9 / info.period_ns if info.period_ns else 10.0
    return max(8, min(int(min(rate_hz, _FAST_HZ) * seconds), limit_bytes // size))


def endpoint(run_dir: Path, stream: str) -> str:
    """The address of a stream's socket.

    Raises:
        DeviceError: The path is longer than a Unix socket's may be.
    """
    path = run_dir / f"{stream}.samples"
    if len(str(path).encode()) > _IPC_PATH_MAX:
        raise DeviceError(f"the socket path {path} is longer than {_IPC_PATH_MAX} bytes; use a shorter state directory")
    return f"ipc://{path}"


def bind(context: zmq.Context[zmq.Socket[bytes]], run_dir: Path, info: StreamInfo) -> zmq.Socket[bytes]:
    """The receiving end of a stream, made before any worker starts. Receive with `recv_multipart` and `decode`.

    Raises:
        DiskError: The socket cannot be made in the run directory.
    """
    socket = context.socket(zmq.PULL)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, high_water(info))
    address = endpoint(run_dir, info.name)
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        socket.close()
        raise DiskError(f"cannot receive stream {info.name} at {address}: {error}") from None
    return socket


class StreamSender:
    """The sending end of a stream, in its worker.

    Live it never waits: what the full socket refuses is dropped, and counted in the page. With `patience_s` it waits
    that long for room instead (replay loses nothing), and a recorder that makes none is a fault.

    Sockets keep no order among each other. Where the order of receipt across streams matters (a replay must map the
    clock that they share as it was mapped), senders `share` the socket of one of them: a message says what stream it
    is of.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        run_dir: Path,
        info: StreamInfo,
        *,
        incarnation: int,
        page: CountersPage,
        patience_s: float | None = None,
        share: StreamSender | None = None,
    ) -> None:
        self._info = info
        self._incarnation = incarnation
        self._page = page
        self._patience_s = patience_s
        self._owns_socket = share is None
        if share is not None:
            self._socket: zmq.Socket[bytes] = share._socket  # noqa: SLF001 - another of this class
            return
        self._socket = context.socket(zmq.PUSH)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, high_water(info))
        # A message waits for the connection instead of being lost before it is up.
        self._socket.setsockopt(zmq.IMMEDIATE, 0)
        self._socket.connect(endpoint(run_dir, info.name))

    def send(self, epoch: int, samples: Sequence[Sample]) -> None:
        """Sends samples of this stream, in batches.

        Raises:
            DeviceError: There was no room for `patience_s`.
        """
        for batch in _batches(samples):
            message = encode(batch, stream=self._info.name, incarnation=self._incarnation, epoch=epoch)
            if self._send(message, self._patience_s):
                self._page.add(self._info.name, sent=len(batch))
            else:
                self._page.add(self._info.name, dropped_socket=len(batch))
                if self._patience_s is not None:
                    raise DeviceError(
                        f"the recorder took nothing of stream {self._info.name} for {self._patience_s:g} s; "
                        "see its log, then start the replay again"
                    )

    def end(self, epoch: int, *, timeout_s: float = 1.0) -> bool:
        """Says that everything of the epoch was sent. False when there was no room for it within `timeout_s`."""
        message = encode((), stream=self._info.name, incarnation=self._incarnation, epoch=epoch, flags=FLAG_END)
        return self._send(message, timeout_s)

    def close(self, *, linger_s: float = 0.0) -> None:
        """Closes; waits up to `linger_s` (when the context ends) for what is still to be handed over."""
        if self._owns_socket:
            self._socket.close(linger=int(linger_s * 1000))

    def _send(self, message: Message, patience_s: float | None) -> bool:
        deadline = time.monotonic() + (patience_s or 0.0)
        while True:
            try:
                self._socket.send_multipart(message, zmq.NOBLOCK)
            except zmq.Again:
                if patience_s is None or time.monotonic() >= deadline:
                    return False
                self._socket.poll(_WAIT_MS, zmq.POLLOUT)
                self._page.beat(time.monotonic_ns())
            else:
                return True


def _batches(samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    if len(samples) == 1:
        yield samples
        return
    begin = size = 0
    for i, sample in enumerate(samples):
        grown = size + len(sample.payload) + len(sample.metadata)
        if i > begin and (i - begin == BATCH_MAX or grown > _BATCH_BYTES):
            yield samples[begin:i]
            begin, grown = i, len(sample.payload) + len(sample.metadata)
        size = grown
    if begin < len(samples):
        yield samples[begin:]
