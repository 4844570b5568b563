"""Reads VRS files (facebookresearch/vrs) as one device of many streams: every record is a sample.

The payload is the bytes of a record's image blocks (of audio and custom blocks where there is no image), as stored:
an encoded picture stays encoded. The metadata is msgpack of `{"vrs": {...}, "metadata": [...], "blocks": [...]}`: the
record's own header (stream, type, index, float64 time stamp in seconds, format version), its metadata blocks with
their exact values, and kind and length of the blocks that the payload is made of.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import msgpack
import numpy as np

from firsthand_edge.errors import RecordingUnreadable
from firsthand_edge.model import ABSENT, Counter, DeviceInfo, Domain, Sample, StreamInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from firsthand_edge.sensors.configuration import ReplayDevice, ReplayStream

__all__ = ["VrsRecording", "check_whole", "silenced"]

_NS_PER_S: Final = 1_000_000_000
_MAGIC: Final = b"VisionRe"
_HEADER: Final = struct.Struct("<8sQIIqqq")
"""FileHeader of vrs/FileFormat.h: magic, creation id, header sizes, offsets of index, description, first record."""
_SIZE: Final = struct.Struct("<I")
_STAMP_FIELDS: Final = ("capture_timestamp_ns", "monotonic_timestamp_ns")
"""Where a record carries its stamp as an integer, in this order; else its header's float64 seconds are taken."""


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Sends what C++ code prints, on either standard stream, nowhere: the VRS reader logs when it opens a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for fd in (null, *kept):
            os.close(fd)


def check_whole(path: Path) -> None:
    """Walks the records of a VRS file from header to header. The library reads a truncated file without a word.

    Raises:
        RecordingUnreadable: It is missing, no VRS file, never closed, or ends in the middle of a record.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _walk(path, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is empty"
        raise RecordingUnreadable(f"the recording {path} cannot be read: {reason}; name a VRS file") from None


def _walk(path: Path, data: mmap.mmap) -> None:
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        raise RecordingUnreadable(f"the recording {path} is no VRS file; name one, or an episode folder")
    _, _, header_size, _, index_at, description_at, first_at = _HEADER.unpack_from(data)
    if index_at == 0:
        raise RecordingUnreadable(
            f"the recording {path} was never closed (it has no index); repair it with `vrs fix-index`"
        )
    first_at = first_at or description_at or header_size
    # The index may come before the records (so that the file can be streamed) or after them.
    at, end = (first_at, len(data)) if index_at < first_at else (first_at, index_at)
    count = 0
    while at < end:
        at += _record_size(path, data, at, f"record {count}")
        count += 1
    _record_size(path, data, index_at, "the index")


def _record_size(path: Path, data: mmap.mmap, at: int, what: str) -> int:
    """Size of the record at this offset, header included, which lies wholly in the file."""
    size: int = _SIZE.unpack_from(data, at)[0] if at + _SIZE.size <= len(data) else 0
    if size < _SIZE.size or at + size > len(data):
        raise RecordingUnreadable(
            f"the recording {path} is truncated: {what} at byte {at} ends beyond the file's {len(data)} bytes; "
            "copy it again from where it came"
        )
    return size


class VrsRecording:
    """A VRS file."""

    def __init__(self, config: ReplayDevice) -> None:
        self._config = config
        self._streams: dict[str, ReplayStream] = {s.source: s for s in config.stream}
        self._reader: Any = None

    @property
    def start_ns(self) -> int | None:
        """None: the pace is taken from the first sample."""
        return None

    def open(self) -> DeviceInfo:
        """Opens and checks it. See `Recording.open`."""
        self.close()
        path = self._config.path
        check_whole(path)
        with silenced():
            try:
                from pyvrs import SyncVRSReader

                self._reader = SyncVRSReader(path)
            except ImportError:
                raise RecordingUnreadable("VRS files need the `vrs` package; install firsthand-edge[replay]") from None
            except (RuntimeError, ValueError, OSError) as error:
                raise RecordingUnreadable(f"the recording {path} cannot be read: {error}") from None
            first = self._device_metadata()
        unknown = sorted(set(self._reader.stream_ids) ^ set(self._streams))
        if unknown:
            here = ", ".join(sorted(self._reader.stream_ids))
            raise RecordingUnreadable(
                f"the recording {path} has the streams {here}; the rig file must list exactly these (it differs in "
                f"{', '.join(unknown)})"
            )
        return DeviceInfo(
            name=self._config.name,
            driver="replay",
            model=str(first.get("device_type", "VRS recording")),
            serial=str(first.get("device_serial", path.name)),
            firmware=str(first.get("device_version", "")),
            domain=Domain.PTP,
            counter=Counter(),
            streams=tuple(
                StreamInfo(
                    name=s.name,
                    media=s.media,
                    triggered=s.triggered,
                    stamp_point=s.stamp_point,
                    period_ns=s.period_ns,
                    offset_ns=s.offset_ns,
                )
                for s in self._config.stream
            ),
            identity_map=True,
            min_delay_bound_ns=0,
        )

    def warm_up(self) -> Iterator[Sample]:
        """None: a foreign recording is mapped by identity."""
        return iter(())

    def samples(self) -> Iterator[Sample]:
        """Every record, in the order of the file."""
        for index in range(self._reader.n_records):
            try:
                sample = self._sample(self._reader[index])
            except (RuntimeError, ValueError, OSError, IndexError) as error:
                raise RecordingUnreadable(
                    f"record {index} of {self._config.path} cannot be read: {error}; copy the file again"
                ) from None
            yield sample

    def close(self) -> None:
        """Closes the file."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with silenced():
                reader.close()

    def _device_metadata(self) -> Mapping[str, Any]:
        """What the first configuration record that names a device says."""
        for index in range(min(self._reader.n_records, 4 * len(self._streams) + 4)):
            record = self._reader[index]
            for block in record.metadata_blocks:
                if record.record_type == "configuration" and "device_serial" in block:
                    return dict(block)
        return {}

    def _sample(self, record: Any) -> Sample:
        stream = self._streams[record.stream_id]
        metadata = [{str(k): _plain(v) for k, v in block.items()} for block in record.metadata_blocks]
        blocks = [("image", b) for b in record.image_blocks]
        if not blocks:
            blocks = [("audio", b) for b in record.audio_blocks] + [("custom", b) for b in record.custom_blocks]
        parts = [(kind, np.ascontiguousarray(b).tobytes()) for kind, b in blocks]
        fields: dict[str, Any] = {}
        for block in metadata:
            fields = {**block, **fields}
        arrival_ns = fields.get("arrival_timestamp_ns", -1)
        return Sample(
            stream=stream.name,
            sequence=int(fields.get("frame_number", ABSENT)) if record.record_type == "data" else ABSENT,
            device_ticks=_stamp_ns(record, fields),
            domain=Domain.PTP,
            # Where the device did not note the arrival the file holds -1.
            arrival_ns=ABSENT if arrival_ns < 0 else arrival_ns,
            payload=b"".join(data for _, data in parts),
            exposure_ns=_ns(fields.get("exposure_duration_s", 0.0)),
            metadata=msgpack.packb(
                {
                    "vrs": {
                        "stream_id": record.stream_id,
                        "record_type": record.record_type,
                        "record_index": record.record_index,
                        "timestamp": record.timestamp,
                        "format_version": record.format_version,
                    },
                    "metadata": metadata,
                    "blocks": [[kind, len(data)] for kind, data in parts],
                }
            ),
        )


def _ns(seconds: float) -> int:
    """Nanoseconds of float64 seconds, rounded once, exactly."""
    return round(Fraction(seconds) * _NS_PER_S)


def _stamp_ns(record: Any, fields: Mapping[str, Any]) -> int:
    """The stamp of a data record, ns; ABSENT of configuration and state, which nothing timed."""
    if record.record_type != "data":
        return ABSENT
    for name in _STAMP_FIELDS:
        if name in fields:
            return int(fields[name])
    return _ns(record.timestamp)


def _plain(value: Any) -> Any:
    """A metadata value as msgpack keeps it exactly: numpy scalars and arrays become numbers and lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(v) for v in value]
    return value
