"""ROS 1 bags, written by the public `rosbags` package."""

import bz2

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_typestore

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate import bag_stamps
from firsthand_edge.gate.audit import audit
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.recordings import read_recording
from firsthand_edge.model import Kind

START = 1_764_537_600_000_000_000
P = 16_666_667
MS = 1_000_000
STORE = get_typestore(Stores.ROS1_NOETIC)
TYPES = STORE.types


def header(stamp_ns):
    time = TYPES["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    return TYPES["std_msgs/msg/Header"](seq=7, stamp=time, frame_id="rig")


def image(stamp_ns):
    message = TYPES["sensor_msgs/msg/CompressedImage"](header(stamp_ns), "jpeg", np.arange(200, dtype=np.uint8))
    return STORE.serialize_ros1(message, "sensor_msgs/msg/CompressedImage")


def imu(stamp_ns):
    vector = TYPES["geometry_msgs/msg/Vector3"](0.0, 0.0, 9.81)
    none = np.zeros(9)
    quaternion = TYPES["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0)
    message = TYPES["sensor_msgs/msg/Imu"](header(stamp_ns), quaternion, none, vector, none, vector, none)
    return STORE.serialize_ros1(message, "sensor_msgs/msg/Imu")


def text(_):
    return STORE.serialize_ros1(TYPES["std_msgs/msg/String"]("x"), "std_msgs/msg/String")


def write(path, messages, *, compression=None):
    """A bag of (topic, type, log time, payload), written in that order."""
    path.unlink(missing_ok=True)
    writer = Writer(path)
    writer.chunk_threshold = 4096
    if compression is not None:
        writer.set_compression(compression)
    writer.open()
    connections = {}
    for topic, kind, log, payload in messages:
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
        writer.write(connections[topic], log, payload)
    writer.close()
    return path


def rig(count=60, *, stamp=lambda i: START + i * P):
    out = []
    for i in range(count):
        log = START + i * P + 20 * MS
        out.append(("/head", "sensor_msgs/msg/CompressedImage", log, image(stamp(i))))
        out.append(("/wrist", "sensor_msgs/msg/CompressedImage", log + (i % 5) * MS, image(START + i * P + MS)))
        out.append(("/imu", "sensor_msgs/msg/Imu", log, imu(START + i * P)))
        out.append(("/chatter", "std_msgs/msg/String", log, text(i)))
    return out


@pytest.mark.parametrize("compression", [None, Writer.CompressionFormat.BZ2, Writer.CompressionFormat.LZ4])
def test_stamps_of_headers_and_of_the_log(tmp_path, compression):
    path = write(tmp_path / "a.bag", rig(), compression=compression)
    found = read_recording(path)
    assert {c.name: (c.kind, c.stamps, c.grade) for c in found.channels} == {
        "/chatter": (Kind.INTERPOLATED, "log", Grade.RECEIVED),
        "/head": (Kind.TRIGGERED, "header", Grade.DECLARED),
        "/imu": (Kind.SAMPLED, "header", Grade.DECLARED),
        "/wrist": (Kind.TRIGGERED, "header", Grade.DECLARED),
    }
    assert found.format == "bag"
    assert found.channel("head").times_ns.tolist() == [START + i * P for i in range(60)]
    log = read_recording(path, stamps="log")
    assert log.channel("head").times_ns.tolist() == [START + i * P + 20 * MS for i in range(60)]
    assert log.channel("head").grade is Grade.RECEIVED
    assert log.notes == ("Log times are those of the bag's index; no chunk was read, and a bag holds no checksums.",)


def test_a_bag_is_judged(tmp_path):
    path = write(tmp_path / "a.bag", rig())
    found = audit(path, reference="head")
    assert found.verdict.accepted, found.verdict.reasons
    assert found.report["recording"] == "bag"
    assert found.report["residual_ns"]["max"] == MS
    assert found.report["streams"]["/head"]["grade"] == "declared"
    log = audit(path, reference="/head", stamps="log")
    assert [r.code for r in log.verdict.reasons] == ["sync.ceiling"]
    assert log.report["streams"]["/head"]["grade"] == "received"
    assert any("when the recorder received a sample, not when it was taken" in note for note in log.report["notes"])


def test_log_times_are_in_the_order_of_the_file(tmp_path):
    messages = [("/head", "sensor_msgs/msg/CompressedImage", START + t, image(START)) for t in (5, 3, 9, 1)]
    found = read_recording(write(tmp_path / "a.bag", messages), stamps="log")
    assert (found.channel("head").times_ns - START).tolist() == [5, 3, 9, 1]


def test_headers_that_are_unset(tmp_path):
    found = read_recording(write(tmp_path / "a.bag", rig(stamp=lambda i: 0 if i == 5 else START + i * P)))
    assert (found.channel("head").times_ns.size, found.channel("head").unstamped) == (59, 1)
    path = write(tmp_path / "a.bag", rig(stamp=lambda i: 0))
    found = read_recording(path)
    assert found.channel("head").stamps == "log"
    assert found.notes == ("/head: no message's header carries a stamp, so its log times are used",)
    with pytest.raises(UsageError, match="`/head` has no stamp in its messages"):
        read_recording(path, stamps="header")


def test_a_topic_of_two_connections_is_one_channel(tmp_path):
    path = tmp_path / "a.bag"
    with Writer(path) as writer:
        kind = "sensor_msgs/msg/CompressedImage"
        connections = [writer.add_connection("/cam", kind, typestore=STORE, callerid=name) for name in ("a", "b")]
        for i in range(20):
            writer.write(connections[i % 2], START + i * P, bytes(image(START + i * P)))
    for stamps in ("header", "log"):
        found = read_recording(path, stamps=stamps)
        assert found.channel("cam").times_ns.tolist() == [START + i * P for i in range(20)]


def test_a_bag_has_no_publish_times(tmp_path):
    with pytest.raises(UsageError, match="keeps no publish times"):
        read_recording(write(tmp_path / "a.bag", rig(2)), stamps="publish")


def test_progress_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_stamps, "TOLD_EVERY_S", -1.0)
    path = write(tmp_path / "a.bag", rig(600))
    told = []
    read_recording(path, progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(done <= total == path.stat().st_size for done, total in told)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.95])
def test_a_bag_that_breaks_off(tmp_path, at):
    whole = write(tmp_path / "a.bag", rig()).read_bytes()
    (tmp_path / "cut.bag").write_bytes(whole[: int(len(whole) * at)])
    with pytest.raises(RecordingUnreadable, match=r"cut\.bag is truncated or damaged"):
        read_recording(tmp_path / "cut.bag")


def test_a_bag_of_another_version(tmp_path):
    (tmp_path / "a.bag").write_bytes(b"#ROSBAG V1.2\n" + bytes(99))
    with pytest.raises(RecordingUnreadable, match="Bag version 102 is not supported"):
        read_recording(tmp_path / "a.bag")


def test_an_index_that_lacks_messages(tmp_path):
    path = write(tmp_path / "a.bag", rig(1))
    data = path.read_bytes()
    # The one chunk info counts the messages of each connection: one more of connection 0 than there are.
    pairs = b"".join(connection.to_bytes(4, "little") + b"\x01\x00\x00\x00" for connection in range(4))
    place = data.rindex(pairs)
    path.write_bytes(data[: place + 4] + b"\x02" + data[place + 5 :])
    with pytest.raises(RecordingUnreadable, match="chunk infos count 2 messages of /head and its index 1"):
        read_recording(path)


def test_a_chunk_that_decompresses_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bag_stamps, "LARGEST_CHUNK", 3000)
    for compression in (Writer.CompressionFormat.BZ2, Writer.CompressionFormat.LZ4):
        path = write(tmp_path / "a.bag", rig(), compression=compression)
        with pytest.raises(RecordingUnreadable, match="more than 3000 bytes"):
            read_recording(path)
        assert read_recording(path, stamps="log").channel("head").times_ns.size == 60
    assert bag_stamps._bounded(bz2.BZ2Decompressor)(bz2.compress(b"x" * 3000)) == b"x" * 3000


@pytest.mark.parametrize("compression", [None, *Writer.CompressionFormat])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_bag_is_figures_or_one_sentence(tmp_path, compression, data):
    path = tmp_path / "whole.bag"
    if not path.exists():
        write(path, rig(20), compression=compression)
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    other = tmp_path / "damaged.bag"
    other.write_bytes(b"#ROSBAG V" + damaged[9:])
    for stamps in (None, "log"):
        try:
            found = read_recording(other, stamps=stamps)
        except RecordingUnreadable as exc:
            said = str(exc)
            assert said.startswith(str(other))
            continue
        assert all(channel.times_ns.size <= 20 for channel in found.channels)
