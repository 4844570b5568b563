"""Anybody's MCAP as channels of stamps."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.records import Statistics
from mcap.writer import CompressionType, IndexType

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.channels import classify
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.recordings import read_recording
from firsthand_edge.model import Kind
from tests.gate import foreign
from tests.gate.foreign import Bag

START = 1_764_537_600_000_000_000
P = 50_000_000


def bag(path, *, header=lambda i: START + i * P, count=40):
    made = Bag(path).topic("/cam/image", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
    made.topic("/imu", "sensor_msgs/msg/Imu", foreign.IMU_ROS2)
    made.topic("/chatter", "std_msgs/msg/String", foreign.STRING_ROS2)
    made.topic("/button", "std_msgs/msg/String", foreign.STRING_ROS2)
    for i in range(count):
        log = START + i * P + 47_000_000 + (i * 17 % 41) * 1_000_000  # on receipt, late and jittered
        made.add("/cam/image", log, foreign.cdr(header(i)), publish_ns=START + i * P + 1)
        made.add("/imu", START + i * P + 9, foreign.cdr(START + i * P))
        made.add("/chatter", START + i * P + 11, b"\x00\x01\x00\x00")
    return made.add("/button", START + 3, b"").add("/button", START + 7, b"").write()


def kinds(found):
    return {channel.name: channel.kind for channel in found.channels}


def test_channels_are_what_they_hold(tmp_path):
    found = read_recording(bag(tmp_path / "a.mcap"))
    assert kinds(found) == {
        "/cam/image": Kind.TRIGGERED,
        "/imu": Kind.SAMPLED,
        "/chatter": Kind.INTERPOLATED,
        "/button": Kind.EVENT,
    }
    assert {c.name: c.stamps for c in found.channels} == {
        "/cam/image": "header",
        "/imu": "header",
        "/chatter": "log",
        "/button": "log",
    }


@pytest.mark.parametrize(("stamps", "offset"), [(None, 0), ("header", 0), ("log", 47_000_000), ("publish", 1)])
def test_which_times_are_taken(tmp_path, stamps, offset):
    found = read_recording(bag(tmp_path / "a.mcap"), stamps=stamps)
    image = found.channel("cam/image")
    assert image.times_ns[0] == START + offset
    assert image.stamps == (stamps or "header")
    grades = {"header": Grade.DECLARED, "log": Grade.RECEIVED, "publish": Grade.SENT}
    assert image.grade is grades[stamps or "header"]
    assert any("its checksums are not checked" in n or "their checksums" in n for n in found.notes) == (stamps == "log")


def test_k52_capture_times_are_the_same_in_any_order_of_the_file(tmp_path):
    topic = ("/cam", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
    files = []
    for name, in_order in (("log.mcap", True), ("file.mcap", False)):
        made = Bag(tmp_path / name).topic(*topic)
        for i in range(30):
            log = START + i * P + (i * 17 % 41) * 1_000_000
            made.add("/cam", log, foreign.cdr(START + i * P), publish_ns=START + i * P)
        files.append(made.write(in_order=in_order))
    one, two = (np.sort(read_recording(file).channel("cam").times_ns) for file in files)
    assert (one == two).all()


def test_headers_that_are_never_set_give_way_to_log_times(tmp_path):
    found = read_recording(bag(tmp_path / "a.mcap", header=lambda i: 0))
    assert found.channel("/cam/image").stamps == "log"
    assert found.notes == ("/cam/image: no message's header carries a stamp, so its log times are used",)


def test_a_header_that_is_asked_for_and_not_there_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="choose --stamps log"):
        read_recording(bag(tmp_path / "a.mcap", header=lambda i: 0), stamps="header")


def test_single_unset_headers_are_counted(tmp_path):
    found = read_recording(bag(tmp_path / "a.mcap", header=lambda i: 0 if i == 5 else START + i * P))
    image = found.channel("/cam/image")
    assert (image.times_ns.size, image.unstamped) == (39, 1)


def test_foxglove_and_our_own_schemas(tmp_path):
    made = Bag(tmp_path / "a.mcap")
    made.topic(
        "/head", "foxglove.CompressedImage", foreign.protobuf_schema(), encoding="protobuf", schema_encoding="protobuf"
    )
    made.topic("/json", "foxglove.CompressedImage", b"{}", encoding="json", schema_encoding="jsonschema")
    made.topic(
        "/raw", "firsthand.Record", b"", encoding="protobuf", schema_encoding="protobuf", metadata={"media": "raw/8"}
    )
    made.topic("/none", "", b"", encoding="json")
    for i in range(9):
        made.add("/head", START + i * P + 5, foreign.protobuf_image(START + i * P))
        made.add("/json", START + i * P + 6, foreign.text_json(START + i * P))
        made.add("/raw", START + i * P + 7, b"")
        made.add("/none", START + i * P + 8, b"{}")
    found = read_recording(made.write())
    assert kinds(found) == {
        "/head": Kind.TRIGGERED,
        "/json": Kind.TRIGGERED,
        "/raw": Kind.TRIGGERED,
        "/none": Kind.INTERPOLATED,
    }
    assert found.channel("head").times_ns[0] == found.channel("json").times_ns[0] == START


def test_a_channel_that_is_not_there_lists_those_that_are(tmp_path):
    with pytest.raises(UsageError, match=r"no channel `cam`; name one of: /button \(event, 2 samples\), /cam/image"):
        read_recording(bag(tmp_path / "a.mcap")).channel("cam")


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    whole = bag(tmp_path / "a.mcap").read_bytes()
    for size in (9, 100, len(whole) // 2, len(whole) - 9):
        cut = tmp_path / "cut.mcap"
        cut.write_bytes(whole[:size])
        with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
            read_recording(cut)
    (tmp_path / "text.txt").write_text("1\n2\n")
    with pytest.raises(RecordingUnreadable, match="neither MCAP nor VRS"):
        read_recording(tmp_path / "text.txt")
    with pytest.raises(RecordingUnreadable, match="cannot be read"):
        read_recording(tmp_path / "absent.mcap")
    (tmp_path / "broken.vrs").write_bytes(b"VisionRe" + b"\x00" * 200)
    with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
        read_recording(tmp_path / "broken.vrs")


def test_a_pipe_or_a_device_is_no_recording_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.mcap")
    for path in (tmp_path / "pipe.mcap", Path("/dev/zero")):
        with pytest.raises(RecordingUnreadable, match="is a pipe or a device"):
            read_recording(path)


def test_a_rosbag2_recording_in_sqlite_says_how_to_convert_it(tmp_path):
    path = tmp_path / "ros2" / "ros2_0.db3"
    path.parent.mkdir()
    path.write_bytes(b"SQLite format 3\x00" + bytes(4080))
    for named in (path, path.parent):
        with pytest.raises(
            RecordingUnreadable, match="in SQLite, which is not read; convert it with `ros2 bag convert`"
        ):
            read_recording(named)


def test_a_vrs_library_that_dies_of_a_damaged_file_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "pyvrs.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a.vrs").write_bytes(b"VisionRe" + bytes(200))
    with pytest.raises(
        RecordingUnreadable, match=r"truncated or damaged \(its reader ended with signal 11 \(SIGSEGV\)\)"
    ):
        read_recording(tmp_path / "a.vrs")


def test_damaged_bytes_within_a_chunk(tmp_path):
    path = bag(tmp_path / "a.mcap")
    data = bytearray(path.read_bytes())
    data[300:340] = b"\xaa" * 40
    path.write_bytes(data)
    with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
        read_recording(path)


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        (START + P * np.arange(50), Kind.INTERPOLATED),
        (START + P * np.delete(np.arange(50), [7, 8, 20]), Kind.INTERPOLATED),
        (START + P * np.arange(4), Kind.EVENT),
        (START + (P * 1.6 ** np.arange(20)).astype(np.int64), Kind.EVENT),
        (np.full(50, START), Kind.EVENT),
        (np.empty(0, np.int64), Kind.EVENT),
    ],
)
def test_periodic_or_not(times, kind):
    assert classify(times.astype(np.int64)) is kind


def one_late_frame(path, **options):
    """Two cameras, one frame of the wrist 4.3 ms late; gives the file and where that frame's stamp is in it."""
    made = Bag(path)
    late = START + 20 * P + 4_294_304
    for name in ("/head", "/wrist"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for i in range(40):
            stamp = late if (name, i) == ("/wrist", 20) else START + i * P
            made.add(name, START + i * P, foreign.cdr(stamp))
    data = bytearray(made.write(**options).read_bytes())
    return data, data.find(foreign.cdr(late)[4:12]) + 6


@pytest.mark.parametrize(
    "layout", [{}, {"use_chunking": False, "enable_data_crcs": True}, {"index_types": IndexType.NONE}]
)
def test_one_flipped_bit_is_damage_however_the_file_is_laid_out(tmp_path, layout):
    path = tmp_path / "a.mcap"
    data, place = one_late_frame(path, compression=CompressionType.NONE, **layout)
    assert read_recording(path).channel("wrist").times_ns.size == 40
    data[place] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(RecordingUnreadable, match=r"truncated or damaged .*crc"):
        read_recording(path)


def test_a_flipped_bit_of_a_file_without_checksums_is_no_crash(tmp_path):
    path = tmp_path / "a.mcap"
    data, place = one_late_frame(path, compression=CompressionType.NONE, enable_crcs=False, enable_data_crcs=False)
    data[place] ^= 0x40
    path.write_bytes(data)
    assert read_recording(path).channel("wrist").times_ns.size == 40  # nothing in the file can tell


@pytest.mark.parametrize("layout", [{}, {"use_chunking": False}])
def test_messages_that_the_summary_counts_and_the_file_lacks(tmp_path, layout, monkeypatch):
    counted = Statistics.write

    def one_more(self, stream):
        self.message_count += 1
        counted(self, stream)

    def swapped(self, stream):
        first, second, *_ = self.channel_message_counts
        self.channel_message_counts[first] -= 1
        self.channel_message_counts[second] += 1
        counted(self, stream)

    for write, said in ((one_more, "counts 81 messages and 80 are there"), (swapped, "other messages of its channels")):
        monkeypatch.setattr(Statistics, "write", write)
        one_late_frame(tmp_path / "a.mcap", **layout)
        with pytest.raises(RecordingUnreadable, match=said):
            read_recording(tmp_path / "a.mcap")


def test_statistics_are_optional(tmp_path):
    one_late_frame(tmp_path / "a.mcap", use_statistics=False)
    assert read_recording(tmp_path / "a.mcap").channel("head").times_ns.size == 40


def test_absurd_lengths_within_a_chunk(tmp_path):
    path = tmp_path / "a.mcap"
    data, place = one_late_frame(path, compression=CompressionType.NONE, enable_crcs=False, enable_data_crcs=False)
    data[place - 6 - 4 - 22 - 8 : place - 6 - 4 - 22] = b"\xff" * 8  # the message's length, before its header
    path.write_bytes(data)
    with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
        read_recording(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_is_read_as_it_was_or_not_at_all(tmp_path, data):
    path = tmp_path / "whole.mcap"
    if not path.exists():
        one_late_frame(path, enable_data_crcs=True)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    other = tmp_path / "damaged.mcap"
    other.write_bytes(damaged)
    try:
        found = read_recording(other)
    except RecordingUnreadable:
        return
    intact = read_recording(path)
    for name in ("/head", "/wrist"):
        assert found.channel(name).times_ns.tolist() == intact.channel(name).times_ns.tolist()
