"""Where other people's messages keep their capture time."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.gate.header_stamps import stamp_reader
from tests.gate import foreign

STAMP = 1_764_537_600_123_456_789


def reader(schema, *, name="sensor_msgs/msg/Image", encoding="cdr", schema_encoding="ros2msg"):
    return stamp_reader(encoding=encoding, schema_encoding=schema_encoding, schema_name=name, schema=schema)


@pytest.mark.parametrize("schema", [foreign.IMAGE_ROS2, foreign.IMU_ROS2, foreign.LOG_ROS2])
@pytest.mark.parametrize("order", ["<", ">"])
def test_ros2_header_or_time_first(schema, order):
    assert reader(schema)(foreign.cdr(STAMP, order=order)) == STAMP


@pytest.mark.parametrize("schema", [foreign.STRING_ROS2, b"", b"uint8 KIND=1\n====\nstd_msgs/Header header\n"])
def test_ros2_without_a_leading_header_has_none(schema):
    assert reader(schema) is None


def test_ros1():
    read = reader(foreign.IMAGE_ROS1, encoding="ros1", schema_encoding="ros1msg")
    assert read(foreign.ros1(STAMP)) == STAMP
    time_first = reader(b"time stamp\n", encoding="ros1", schema_encoding="ros1msg")
    assert time_first(struct.pack("<II", STAMP // 10**9, STAMP % 10**9)) == STAMP
    assert reader(b"string data\n", encoding="ros1", schema_encoding="ros1msg") is None


def test_foxglove_protobuf():
    schema = foreign.protobuf_schema()
    read = reader(schema, name="foxglove.CompressedImage", encoding="protobuf", schema_encoding="protobuf")
    assert read(foreign.protobuf_image(STAMP)) == STAMP
    assert read(b"") is None  # no timestamp field
    assert read(b"\xff\xff") is None
    assert reader(schema, name="foxglove.Absent", encoding="protobuf", schema_encoding="protobuf") is None
    assert reader(b"\x01\x02", name="x", encoding="protobuf", schema_encoding="protobuf") is None
    assert reader(schema, name="google.protobuf.Timestamp", encoding="protobuf", schema_encoding="protobuf") is None


@pytest.mark.parametrize(
    ("message", "stamp"),
    [
        ({"timestamp": {"sec": 5, "nsec": 7}}, 5_000_000_007),
        ({"header": {"stamp": {"sec": 5, "nanosec": 7}}}, 5_000_000_007),
        ({"header": {"stamp": {"secs": 5, "nsecs": 7}}}, 5_000_000_007),
        ({"timestamp": {"sec": 0, "nsec": 0}}, None),
        ({"timestamp": 5.5}, None),
        ({"timestamp": {"sec": 5.5, "nsec": 0}}, None),
        ([], None),
    ],
)
def test_json(message, stamp):
    assert reader(b"{}", encoding="json", schema_encoding="jsonschema")(json.dumps(message).encode()) == stamp


@pytest.mark.parametrize("data", [b"", b"\x00\x01", foreign.cdr(0), b"\x00\x01\x00\x00" + b"\xff" * 8])
def test_unset_or_short_or_impossible_stamps_are_none(data):
    assert reader(foreign.IMAGE_ROS2)(data) is None


def test_unknown_encodings_have_none():
    assert reader(b"", encoding="flatbuffer", schema_encoding="flatbuffer") is None
    assert reader(foreign.IMAGE_ROS2, schema_encoding="ros2idl") is None


@given(st.binary(max_size=64))
def test_any_bytes_give_a_stamp_or_none(data):
    schema = foreign.protobuf_schema()
    for read in (
        reader(foreign.IMAGE_ROS2),
        reader(foreign.IMAGE_ROS1, encoding="ros1", schema_encoding="ros1msg"),
        reader(schema, name="foxglove.CompressedImage", encoding="protobuf", schema_encoding="protobuf"),
        reader(b"", encoding="json", schema_encoding=""),
    ):
        found = read(data)
        assert found is None or isinstance(found, int)


def test_json_that_is_nested_too_deep_has_no_stamp():
    reader = stamp_reader(encoding="json", schema_encoding="jsonschema", schema_name="x", schema=b"{}")
    assert reader(b"[" * 100_000) is None
