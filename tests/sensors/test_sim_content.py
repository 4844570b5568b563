import json
import struct
import zlib

import pytest

from firsthand_edge.sensors.sim_content import DepthContent, EventContent, ImuContent, PictureContent, PoseContent


def decode_png(data):
    """A strict reader of the gray 8-bit PNGs that need no filter (RFC 2083): rows of pixels."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        chunk = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + chunk)
        if kind == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunk)
            assert (depth, colour, rest) == (8, 0, [0, 0, 0])
            size = width, height
        elif kind == b"IDAT":
            body += chunk
        at += 12 + length
    assert kind == b"IEND"
    width, height = size
    raw = zlib.decompress(body)  # checks the Adler-32 of all of it
    rows = [raw[i * (width + 1) : (i + 1) * (width + 1)] for i in range(height)]
    assert len(raw) == height * (width + 1)
    assert all(row[0] == 0 for row in rows)
    return [row[1:] for row in rows]


@pytest.mark.parametrize(("width", "height"), [(64, 48), (128, 96), (200, 17), (640, 480)])
@pytest.mark.parametrize("number", [0, 1, (4 << 32) + 12345, 2**64 - 1])
def test_a_picture_is_a_png_that_shows_its_number(width, height, number):
    rows = decode_png(PictureContent(width, height).payload(number))
    assert (len(rows), len(rows[0])) == (height, width)
    square = width // 64
    shown = int("".join("1" if rows[0][i * square] == 255 else "0" for i in range(64)), 2)
    assert shown == number
    assert len(set(rows[-1])) > 10


def test_depth_has_the_size_that_its_media_name_says():
    depth = DepthContent(32, 24)
    assert depth.media == "raw/16UC1;32x24"
    assert len(depth.payload(7)) == 32 * 24 * 2
    assert depth.payload(7) != depth.payload(8)
    assert struct.unpack_from("<H", depth.payload(7), 2 * 32 * 23)[0] == 400 + 23 * 8


def test_imu_and_poses_have_their_sizes_and_change():
    assert len(ImuContent().payload(3)) == 48
    assert ImuContent().payload(3) != ImuContent().payload(4)
    assert len(PoseContent().payload(3)) == 21 * 56
    assert PoseContent().payload(3) != PoseContent().payload(4)
    assert struct.unpack("<7d", PoseContent().payload(3)[-56:])[6] == 1.0


@pytest.mark.parametrize("kind", ["contact", "action"])
def test_events_are_json_objects(kind):
    seen = [json.loads(EventContent(kind).payload(n)) for n in range(20)]
    assert {e["type"] for e in seen} == {kind}
    assert len({json.dumps(e) for e in seen}) == 20


def test_each_touch_is_followed_by_its_release():
    seen = [json.loads(EventContent("contact").payload(n)) for n in range(40)]
    for touch, release in zip(seen[::2], seen[1::2], strict=True):
        assert (touch["phase"], release["phase"]) == ("touch", "release")
        assert (touch["hand"], touch["finger"]) == (release["hand"], release["finger"])
