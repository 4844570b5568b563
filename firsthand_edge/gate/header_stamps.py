"""Capture times inside other people's messages: where a schema keeps its stamp, and how to read it from the bytes.

ROS 2 (CDR), ROS 1, foxglove's protobuf and JSON. A schema whose stamp cannot be found has none, and its log time is
used.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    StampReader: TypeAlias = Callable[[bytes], int | None]

__all__ = ["stamp_reader"]

NS_PER_S = 1_000_000_000
HEADER_TYPES = frozenset({"Header", "std_msgs/Header", "std_msgs/msg/Header"})
TIME_TYPES = frozenset({"builtin_interfaces/Time", "builtin_interfaces/msg/Time", "time"})
CDR_ENCAPSULATION = 4
"""Bytes before a CDR message; the lowest bit of the second tells little endian (OMG DDSI-RTPS, section 10.2)."""


def stamp_reader(*, encoding: str, schema_encoding: str, schema_name: str, schema: bytes) -> StampReader | None:
    """A function from a message's bytes to its stamp in ns (None where it is unset), or None for a schema without one.

    Args:
        encoding: The channel's message encoding: `cdr`, `ros1`, `protobuf`, `json`.
        schema_encoding: `ros2msg`, `ros1msg`, `protobuf`, `jsonschema` or other.
        schema_name: Full name of the message type.
        schema: The schema as the recording holds it.
    """
    if encoding == "cdr" and schema_encoding == "ros2msg":
        first = _first_field(schema)
        return _read_cdr if first in HEADER_TYPES | TIME_TYPES else None
    if encoding == "ros1" and schema_encoding == "ros1msg":
        first = _first_field(schema)
        if first in HEADER_TYPES:
            return lambda data: _ros1(data, 4)  # after `seq`
        return (lambda data: _ros1(data, 0)) if first == "time" else None
    if encoding == "protobuf" and schema_encoding == "protobuf":
        return _protobuf_reader(schema, schema_name)
    if encoding == "json":
        return _read_json
    return None


def _first_field(schema: bytes) -> str | None:
    """Type of the first field of a ROS message definition; constants and comments are skipped."""
    for raw in schema.decode("utf-8", "replace").splitlines():
        line = raw.split("#", 1)[0].strip()
        if line.startswith("==="):
            return None
        words = line.split()
        if len(words) < 2 or "=" in line:
            continue
        return words[0]
    return None


def _whole(sec: int, nsec: int) -> int | None:
    if not 0 <= nsec < NS_PER_S:
        return None
    return sec * NS_PER_S + nsec or None


def _read_cdr(data: bytes) -> int | None:
    """`sec` int32 and `nanosec` uint32 lead both a Header and a Time."""
    if len(data) < CDR_ENCAPSULATION + 8:
        return None
    order = "<" if data[1] & 1 else ">"
    sec, nsec = struct.unpack_from(f"{order}iI", data, CDR_ENCAPSULATION)
    return _whole(sec, nsec)


def _ros1(data: bytes, offset: int) -> int | None:
    if len(data) < offset + 8:
        return None
    sec, nsec = struct.unpack_from("<II", data, offset)
    return _whole(sec, nsec)


def _read_json(data: bytes) -> int | None:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    for path in (("timestamp",), ("header", "stamp"), ("stamp",)):
        found: Any = message
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict):
            return _json_time(found)
    return None


def _json_time(found: Mapping[str, Any]) -> int | None:
    sec = found.get("sec", found.get("secs", found.get("seconds")))
    nsec = found.get("nsec", found.get("nanosec", found.get("nsecs", found.get("nanos"))))
    if type(sec) is not int or type(nsec) is not int:
        return None
    return _whole(sec, nsec)


def _protobuf_reader(schema: bytes, name: str) -> StampReader | None:
    """Foxglove's convention: a field `timestamp` of type google.protobuf.Timestamp at the top of the message."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(schema)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(name)
    except (DecodeError, KeyError, TypeError):
        return None
    field = descriptor.fields_by_name.get("timestamp")
    if field is None or field.message_type is None or field.message_type.full_name != "google.protobuf.Timestamp":
        return None
    message_class = message_factory.GetMessageClass(descriptor)

    def read(data: bytes) -> int | None:
        try:
            message = message_class.FromString(data)
        except DecodeError:
            return None
        if not message.HasField("timestamp"):
            return None
        return _whole(message.timestamp.seconds, message.timestamp.nanos)

    return read
