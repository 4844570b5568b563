"""Where other people's messages keep their capture time."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge._core import StampPlace
from tests.gate import foreign

STAMP = 1_764_537_600_123_456_789


def reader(schema, *, name="sensor_msgs/msg/Image", encoding="cdr", schema_encoding="ros2msg"):
    place = StampPlace.find(encoding=encoding, schema_encoding=schema_encoding, schema_name=name, schema=schema)
    return None if place is None else place.read


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
    assert reader(b"", encoding="cbor", schema_encoding="") is None
    assert reader(foreign.IMAGE_ROS2, encoding="cdr", schema_encoding="omgidl") is None
    assert reader(foreign.IMAGE_ROS2, encoding="ros1") is None


def test_ros2_defined_by_idl():
    read = reader(foreign.IMAGE_IDL, schema_encoding="ros2idl")
    assert read(foreign.cdr(STAMP)) == STAMP
    assert reader(foreign.IMAGE_IDL, schema_encoding="ros2idl", name="std_msgs/msg/Header") is not None
    assert reader(foreign.IMAGE_IDL, schema_encoding="ros2idl", name="sensor_msgs/msg/Imu") is None


def test_foxglove_flatbuffers():
    schema = foreign.flatbuffer_schema("CompressedImage")
    names = {"encoding": "flatbuffer", "schema_encoding": "flatbuffer"}
    read = reader(schema, name="foxglove.CompressedImage", **names)
    assert read(foreign.flatbuffer_image(STAMP)) == STAMP
    assert read(foreign.flatbuffer_image(None)) is None
    assert read(b"") is None
    assert reader(schema, name="foxglove.Time", **names) is None
    assert reader(schema, name="foxglove.Absent", **names) is None
    assert reader(foreign.flatbuffer_schema("Vector3"), name="foxglove.Vector3", **names) is None


@pytest.mark.parametrize("count", [1, 1_000, 100_000])
def test_a_protobuf_stamp_behind_other_fields(count):
    schema = foreign.protobuf_schema()
    read = reader(schema, name="foxglove.CompressedImage", encoding="protobuf", schema_encoding="protobuf")
    whole = foreign.protobuf_image(STAMP)
    unknown = b"\xfa\x7f" + b"\x05" + b"12345"  # field 2047, of five bytes
    assert read(unknown * count + whole) == STAMP
    assert read(whole + unknown * count) == STAMP
    assert read(whole + unknown[:-1]) is None


@given(seconds=st.integers(-(2**63), 2**63 - 1), nanos=st.integers(-(2**31), 2**31 - 1))
def test_any_protobuf_timestamp_is_read_as_the_public_package_reads_it(seconds, nanos):
    from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
    from google.protobuf.timestamp_pb2 import Timestamp

    schema = foreign.protobuf_schema()
    read = reader(schema, name="foxglove.CompressedImage", encoding="protobuf", schema_encoding="protobuf")
    data = CompressedImage(timestamp=Timestamp(seconds=seconds, nanos=nanos)).SerializeToString()
    ns = seconds * 10**9 + nanos
    wanted = None if not 0 <= nanos < 10**9 or ns == 0 else max(-(2**63), min(2**63 - 1, ns))
    assert read(data) == wanted


@given(st.binary(max_size=64))
def test_any_bytes_give_a_stamp_or_none(data):
    schema = foreign.protobuf_schema()
    for read in (
        reader(foreign.IMAGE_ROS2),
        reader(foreign.IMAGE_ROS1, encoding="ros1", schema_encoding="ros1msg"),
        reader(schema, name="foxglove.CompressedImage", encoding="protobuf", schema_encoding="protobuf"),
        reader(b"", encoding="json", schema_encoding=""),
        reader(
            foreign.flatbuffer_schema("CompressedImage"),
            name="foxglove.CompressedImage",
            encoding="flatbuffer",
            schema_encoding="flatbuffer",
        ),
    ):
        found = read(data)
        assert found is None or isinstance(found, int)


def test_json_that_is_nested_too_deep_has_no_stamp():
    assert reader(b"{}", encoding="json", schema_encoding="jsonschema")(b"[" * 100_000) is None


@given(st.data())
def test_a_damaged_schema_is_a_place_or_none(data):
    encoding, schema_encoding, name, schema = data.draw(
        st.sampled_from(
            [
                ("protobuf", "protobuf", "foxglove.CompressedImage", foreign.protobuf_schema()),
                (
                    "flatbuffer",
                    "flatbuffer",
                    "foxglove.CompressedImage",
                    foreign.flatbuffer_schema("CompressedImage"),
                ),
                ("cdr", "ros2idl", "sensor_msgs/msg/Image", foreign.IMAGE_IDL),
                ("cdr", "ros2msg", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2),
            ]
        )
    )
    damaged = bytearray(schema)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(schema) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    for bytes_ in (bytes(damaged), bytes(damaged[:cut])):
        read = reader(bytes_, name=name, encoding=encoding, schema_encoding=schema_encoding)
        assert read is None or isinstance(read(foreign.cdr(STAMP)), (int, type(None)))
