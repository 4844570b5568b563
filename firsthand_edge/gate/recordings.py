"""Anybody's recording as channels of stamps: MCAP with the public `mcap` package, VRS with the public `vrs` package."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.header_stamps import stamp_reader
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.gate.figures import Int64

__all__ = ["Channel", "Recording", "StampSource", "classify", "read_recording"]

StampSource = Literal["header", "log", "publish"]

IMAGE_SCHEMAS = frozenset({"Image", "CompressedImage", "RawImage", "CompressedVideo"})
IMU_SCHEMAS = frozenset({"Imu", "IMU", "IMUMeasurement"})
PICTURE_MEDIA = ("picture/", "video/", "raw/")
FEWEST_PERIODIC = 5
COARSE_NS = 64
"""A float of seconds that resolves no better than this has lost digits of the device's stamp."""
MCAP_MAGIC = b"\x89MCAP0\r\n"
VRS_MAGIC = b"VisionRe"


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """One channel of a recording."""

    name: str
    kind: Kind
    """By what it is: pictures are triggered, IMUs sampled, other periodic ones interpolated, the rest events."""
    times_ns: Int64
    """(n,) int64 in the order of the file; taken as mid-exposure times."""
    stamps: str
    """Which times these are: `header`, `log`, `publish`, `capture`, `record`."""
    unstamped: int = 0
    grade: Grade = Grade.DECLARED


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording's channels, in the order of their names, and what a reader of the report should know."""

    format: str
    channels: tuple[Channel, ...]
    notes: tuple[str, ...] = ()

    def channel(self, name: str) -> Channel:
        """The channel of that name; a leading `/` may be left out.

        Raises:
            UsageError: listing the channels, when there is none.
        """
        for wanted in (name, f"/{name}"):
            for channel in self.channels:
                if channel.name == wanted:
                    return channel
        raise UsageError(f"the recording has no channel `{name}`; name one of: {self.described()}")

    def has(self, name: str) -> bool:
        """Whether there is a channel of that name; a leading `/` may be left out."""
        return any(channel.name in (name, f"/{name}") for channel in self.channels)

    def described(self) -> str:
        """Every channel with its kind and its number of samples, in one line."""
        rows = (f"{c.name} ({c.kind.value}, {count(c.times_ns.size, 'sample')})" for c in self.channels)
        return ", ".join(rows) or "none, it is empty"


def read_recording(path: Path, *, stamps: StampSource | None = None) -> Recording:
    """Reads the stamps of every channel.

    Args:
        path: An MCAP or a VRS file.
        stamps: Which times of an MCAP to take; None for the header where the schema has one, else the log time.

    Raises:
        RecordingUnreadable: when the file is not there, is neither, or is truncated or damaged.
        UsageError: when `stamps` asks for what the recording does not have.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(8)
    except OSError as exc:
        raise RecordingUnreadable(f"{path} cannot be read ({exc.strerror or exc}); name an MCAP or a VRS file") from exc
    if magic == MCAP_MAGIC:
        return _read_mcap(path, stamps)
    if magic == VRS_MAGIC:
        if stamps is not None:
            raise UsageError(
                "--stamps chooses among the times of an MCAP; a VRS recording has capture times, so leave it out"
            )
        return _read_vrs(path)
    raise RecordingUnreadable(
        f"{path} is neither MCAP nor VRS; name such a recording, or plain lists of stamps with --stream NAME=FILE"
    )


def classify(times_ns: Int64) -> Kind:
    """The kind of a channel that is neither pictures nor an IMU: interpolated when it is periodic, else events.

    Periodic: at least five samples, and four of five steps within a factor of two of the median step.
    """
    if times_ns.size < FEWEST_PERIODIC:
        return Kind.EVENT
    steps = np.diff(np.sort(times_ns))
    median = int(np.sort(steps)[(steps.size + 1) // 2 - 1])
    near = int(((2 * steps >= median) & (steps <= 2 * median)).sum())
    return Kind.INTERPOLATED if median > 0 and 5 * near >= 4 * steps.size else Kind.EVENT


@dataclass(slots=True)
class _Topic:
    """What is gathered of one topic while an MCAP is read."""

    image: bool
    imu: bool
    read: Any
    header: list[int | None]
    log: list[int]
    publish: list[int]


def _read_mcap(path: Path, stamps: StampSource | None) -> Recording:
    try:
        from mcap.records import Channel as McapChannel
        from mcap.records import Message, Schema, Statistics
    except ImportError as exc:
        raise UsageError(f"{path} is an MCAP recording; install the package `mcap` to read it") from exc

    schemas: dict[int, Any] = {}
    channels: dict[int, Any] = {}
    topics: dict[str, _Topic] = {}
    found: Counter[int] = Counter()
    for record in _mcap_records(path):
        if isinstance(record, Schema):
            schemas[record.id] = record
        elif isinstance(record, McapChannel):
            channels[record.id] = record
        elif isinstance(record, Message):
            channel = channels.get(record.channel_id)
            if channel is None or (channel.schema_id and channel.schema_id not in schemas):
                raise _damaged(path, f"a message of channel {record.channel_id}, which it does not describe")
            topic = topics.get(channel.topic)
            if topic is None:
                topic = topics[channel.topic] = _topic(schemas.get(channel.schema_id), channel)
            found[record.channel_id] += 1
            topic.log.append(record.log_time)
            topic.publish.append(record.publish_time)
            if topic.read is not None and stamps in (None, "header"):
                topic.header.append(topic.read(record.data))
        elif isinstance(record, Statistics):
            _check_counts(path, found, total=record.message_count, by_channel=record.channel_message_counts)
    notes: list[str] = []
    return Recording(
        "mcap", tuple(_channel(name, topics[name], stamps, notes) for name in sorted(topics)), tuple(notes)
    )


def _mcap_records(path: Path) -> Iterator[Any]:
    """Every record of an MCAP from its first byte to its last, each checksum compared.

    An index is not asked: one that lost a chunk would hide its messages, and only whoever reads the whole file can
    compare the checksum of the data section.

    Raises:
        RecordingUnreadable: when the file is truncated or damaged.
    """
    from mcap.stream_reader import StreamReader

    try:
        with path.open("rb") as file:
            yield from StreamReader(file, validate_crcs=True).records
    except Exception as exc:
        # Damaged lengths and payloads end the reader and the decompressors in as many ways as there are bytes.
        raise _damaged(path, f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__) from exc


def _damaged(path: Path, why: str) -> RecordingUnreadable:
    return RecordingUnreadable(
        f"{path} is truncated or damaged ({why}); recover it with an MCAP tool and audit the result"
    )


def _check_counts(path: Path, found: Counter[int], *, total: int, by_channel: Mapping[int, int]) -> None:
    """Holds the messages that were read against the summary's statistics; counts by channel are optional there."""
    if found.total() != total:
        raise _damaged(path, f"its summary counts {count(total, 'message')} and {found.total()} are there")
    if by_channel and {number: n for number, n in by_channel.items() if n} != found:
        raise _damaged(path, "its summary counts other messages of its channels than are there")


def _topic(schema: Any, channel: Any) -> _Topic:
    name = schema.name if schema is not None else ""
    last = name.replace(".", "/").rsplit("/", 1)[-1]
    media = channel.metadata.get("media", "")
    reader = None
    if schema is not None:
        reader = stamp_reader(
            encoding=channel.message_encoding, schema_encoding=schema.encoding, schema_name=name, schema=schema.data
        )
    return _Topic(
        image=last in IMAGE_SCHEMAS or media.startswith(PICTURE_MEDIA),
        imu=last in IMU_SCHEMAS or media == "imu",
        read=reader,
        header=[],
        log=[],
        publish=[],
    )


def _channel(name: str, topic: _Topic, stamps: StampSource | None, notes: list[str]) -> Channel:
    source: StampSource = stamps or "header"
    header = [stamp for stamp in topic.header if stamp is not None]
    if source == "header" and not header:
        if stamps == "header" and (topic.image or topic.imu):
            raise UsageError(
                f"`{name}` has no stamp in its messages; leave --stamps out, or choose --stamps log or --stamps publish"
            )
        if topic.read is not None:
            notes.append(f"{name}: no message's header carries a stamp, so its log times are used")
        source = "log"
    values = {"header": header, "log": topic.log, "publish": topic.publish}[source]
    times = _column(name, values)
    return Channel(
        name,
        Kind.TRIGGERED if topic.image else Kind.SAMPLED if topic.imu else classify(times),
        times,
        source,
        unstamped=len(topic.log) - times.size,
    )


def _column(name: str, values: Sequence[int]) -> Int64:
    if any(abs(value) >= 1 << 62 for value in values):
        raise RecordingUnreadable(
            f"`{name}` holds a time after the year 2116; its stamps are not nanoseconds of any clock"
        )
    return np.array(values, dtype=np.int64)


def _read_vrs(path: Path) -> Recording:
    try:
        import pyvrs
    except ImportError as exc:
        raise UsageError(f"{path} is a VRS recording; install the package `vrs` to read it") from exc

    with _native_chatter() as said:
        try:
            reader = pyvrs.SyncVRSReader(str(path))
            channels = [_vrs_channel(reader, name) for name in sorted(reader.stream_ids)]
        except RecordingUnreadable:
            raise
        except Exception as exc:  # damaged bytes end the library in as many ways as there are
            why = str(exc) or type(exc).__name__
            raise RecordingUnreadable(f"{path} is truncated or damaged ({why}); name a whole VRS file") from exc
        # The library drops what an index promises and the file lacks, and tells only its log.
        complaint = _complaint(said())
    if complaint is not None:
        raise RecordingUnreadable(f"{path} is truncated or damaged ({complaint}); name a whole VRS file")
    coarse = [channel.name for channel in channels if channel.grade is Grade.FLOAT64]
    notes = [f"{name}: its records hold floats of seconds too coarse for a device's stamp" for name in coarse]
    return Recording("vrs", tuple(channels), tuple(notes))


def _vrs_channel(reader: Any, name: str) -> Channel:
    records = reader.filtered_by_fields(stream_ids={name}, record_types={"data"})
    device = str(reader.get_stream_info(name).get("device_name", ""))
    captured: list[int] = []
    floats: list[float] = []
    image = False
    for record in records:
        image = image or record.n_image_blocks > 0
        floats.append(float(record.timestamp))
        blocks = record.metadata_blocks if record.n_metadata_blocks else ()
        stamp = blocks[0].get("capture_timestamp_ns") if blocks else None
        if isinstance(stamp, int):
            captured.append(stamp)
    whole = bool(floats) and len(captured) == len(floats)
    times = _column(name, captured if whole else [_float_ns(value) for value in floats])
    coarse = not whole and any(math.ulp(value) * 1e9 >= COARSE_NS for value in floats)
    return Channel(
        name,
        Kind.TRIGGERED if image else Kind.SAMPLED if "imu" in device.lower() else classify(times),
        times,
        "capture" if whole else "record",
        grade=Grade.FLOAT64 if coarse else Grade.DECLARED,
    )


def _float_ns(value: float) -> int:
    """The nearest nanosecond to a float of seconds, exactly, halves up."""
    exact = Fraction(value) * 10**9
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


@contextmanager
def _native_chatter() -> Iterator[Callable[[], str]]:
    """Keeps what the VRS library writes to the standard streams' descriptors off the terminal.

    Yields a function that gives what it said so far.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(said.fileno(), number)
            yield lambda: os.pread(said.fileno(), 65_536, 0).decode("utf-8", "replace")
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def _complaint(said: str) -> str | None:
    """The first warning or error in the VRS library's log, without colours and origin."""
    for line in said.splitlines():
        found = re.search(r"\[(?:WARNING|ERROR)\]: (.*)", re.sub(r"\x1b\[[0-9;]*m", "", line))
        if found is not None:
            return found[1].strip().rstrip(".")
    return None
