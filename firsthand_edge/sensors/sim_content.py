"""What simulated devices deliver. Every payload follows from its number alone, and no two pictures are equal."""

from __future__ import annotations

import json
import math
import struct
import zlib
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from firsthand_edge.sensors.configuration import SimStream

__all__ = ["Content", "DepthContent", "EventContent", "ImuContent", "PictureContent", "PoseContent", "content_of"]

_MARK_ROWS: Final = 8
_MARK_BITS: Final = 64
_JOINTS: Final = 21
_GRAVITY: Final = 9.80665


class Content(Protocol):
    """Makes payloads."""

    media: str
    """As in `StreamInfo.media`."""

    def payload(self, number: int) -> bytes:
        """The payload with this number, 0 and up."""
        ...


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class PictureContent:
    """Gray 8-bit PNG: a textured ramp under a strip that shows the number as 64 black and white squares.

    The strip is a stored block of the deflate stream (RFC 1951, 3.2.4), the rest one that was compressed once: a new
    picture costs a few check sums.
    """

    media = "picture/png"

    def __init__(self, width: int, height: int) -> None:
        self._square = width // _MARK_BITS
        self._width = width
        below = b"".join(
            b"\0" + bytes((x * 255 // width + (x * y) % 7 * 4) & 0xFF for x in range(width))
            for y in range(height - _MARK_ROWS)
        )
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        self._below_packed = packer.compress(below) + packer.flush()
        self._below = below
        head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        self._begin = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head)
        self._end = _chunk(b"IEND", b"")

    def payload(self, number: int) -> bytes:
        """A whole PNG file."""
        bits = format(number & (2**_MARK_BITS - 1), f"0{_MARK_BITS}b")
        row = b"".join((b"\xff" if bit == "1" else b"\0") * self._square for bit in bits)
        strip = (b"\0" + row.ljust(self._width, b"\x80")) * _MARK_ROWS
        stored = struct.pack("<BHH", 0, len(strip), len(strip) ^ 0xFFFF) + strip
        total = struct.pack(">I", zlib.adler32(self._below, zlib.adler32(strip)))
        return self._begin + _chunk(b"IDAT", b"\x78\x01" + stored + self._below_packed + total) + self._end


class DepthContent:
    """16-bit depth, mm, row by row, little-endian: a slope whose first four pixels hold the number."""

    def __init__(self, width: int, height: int) -> None:
        self.media = f"raw/16UC1;{width}x{height}"
        self._slope = struct.pack(f"<{width * height}H", *(400 + (i // width) * 8 for i in range(width * height)))

    def payload(self, number: int) -> bytes:
        """`width * height * 2` bytes."""
        return number.to_bytes(8, "little") + self._slope[8:]


class ImuContent:
    """6 float64 LE: acceleration m/s^2, angular rate rad/s, of a head that nods."""

    media = "imu"

    def payload(self, number: int) -> bytes:
        """48 bytes."""
        swing = math.sin(number * 0.006)
        return struct.pack("<6d", swing, 0.1 * swing, -_GRAVITY, 0.02 * swing, 0.3 * swing, number * 1e-9)


class PoseContent:
    """21 joints of a hand, each 7 float64 LE: position m, quaternion xyzw."""

    media = "poses"

    def __init__(self) -> None:
        self._hand = b"".join(
            struct.pack("<7d", 0.02 * (j % 4), 0.03 * (j // 4), 0.4, 0.0, 0.0, 0.0, 1.0) for j in range(1, _JOINTS)
        )

    def payload(self, number: int) -> bytes:
        """21 * 56 bytes; the wrist moves on a circle."""
        angle = number * 0.01
        return struct.pack("<7d", math.cos(angle), math.sin(angle), 0.4, 0.0, 0.0, 0.0, 1.0) + self._hand


class EventContent:
    """UTF-8 JSON objects: contacts of a finger, or the beginning of action segments."""

    media = "event"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def payload(self, number: int) -> bytes:
        """One JSON object."""
        if self._kind == "contact":
            fingers = ("thumb", "index", "middle", "ring", "little")
            event = {
                "type": "contact",
                "hand": "left" if number // 2 % 2 else "right",
                "finger": fingers[number // 4 % len(fingers)],
                "phase": "release" if number % 2 else "touch",
                "number": number,
            }
        else:
            labels = ("reach", "grasp", "move", "place", "release")
            event = {"type": "action", "label": labels[number % len(labels)], "segment": number}
        return json.dumps(event, separators=(",", ":")).encode()


def content_of(stream: SimStream) -> Content:
    """What a configured stream shows."""
    match stream.content:
        case "picture":
            return PictureContent(stream.width, stream.height)
        case "depth":
            return DepthContent(stream.width, stream.height)
        case "imu":
            return ImuContent()
        case "poses":
            return PoseContent()
        case kind:
            return EventContent(kind)
