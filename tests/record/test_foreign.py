"""Anybody's MCAP through the core, held against the public `mcap` package; damage, hostile lengths, bounded memory."""

import random
import resource
import signal
import struct
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.records import Attachment, Message, Statistics
from mcap.records import Channel as McapChannel
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, IndexType

from firsthand_edge import _core
from firsthand_edge.errors import DiskError, RecordingUnreadable
from tests.gate import foreign
from tests.gate.foreign import Bag
from tests.interrupts import interrupts_reach_children

START = 1_764_537_600_000_000_000
P = 50_000_000
MAGIC = b"\x89MCAP0\r\n"


def read(path, stamps="header"):
    """The topics by name."""
    return {topic["name"]: topic for topic in _core.read_stamps(path, stamps=stamps)["topics"]}


def columns(path, stamps="header"):
    return {name: topic["times_ns"].tolist() for name, topic in read(path, stamps).items()}


TOPICS = {
    "/ros2": ("sensor_msgs/msg/Image", foreign.IMAGE_ROS2, "cdr", "ros2msg", foreign.cdr),
    "/big_endian": ("a/msg/B", foreign.IMU_ROS2, "cdr", "ros2msg", lambda t: foreign.cdr(t, order=">")),
    "/idl": ("sensor_msgs/msg/Image", foreign.IMAGE_IDL, "cdr", "ros2idl", foreign.cdr),
    "/ros1": ("sensor_msgs/Image", foreign.IMAGE_ROS1, "ros1", "ros1msg", foreign.ros1),
    "/protobuf": (
        "foxglove.CompressedImage",
        foreign.protobuf_schema(),
        "protobuf",
        "protobuf",
        foreign.protobuf_image,
    ),
    "/flatbuffer": (
        "foxglove.CompressedImage",
        foreign.flatbuffer_schema("CompressedImage"),
        "flatbuffer",
        "flatbuffer",
        foreign.flatbuffer_image,
    ),
    "/json": ("a", b"{}", "json", "jsonschema", foreign.text_json),
    "/text": ("std_msgs/msg/String", foreign.STRING_ROS2, "cdr", "ros2msg", lambda _: b"\x00\x01\x00\x00"),
    "/no_schema": ("", b"", "cbor", "", lambda _: b""),
}


def publicly(path):
    """What the public package reads: by topic log and publish times, in the order of the file."""
    found = {}
    names = {}
    with path.open("rb") as file:
        for record in StreamReader(file, validate_crcs=True).records:
            if isinstance(record, McapChannel):
                names[record.id] = record.topic
            elif isinstance(record, Message):
                log, publish = found.setdefault(names[record.channel_id], ([], []))
                log.append(record.log_time)
                publish.append(record.publish_time)
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    messages=st.integers(1, 80),
    in_order=st.booleans(),
    layout=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(CompressionType),
            "use_chunking": st.booleans(),
            "index_types": st.sampled_from([IndexType.ALL, IndexType.ALL, IndexType.NONE, IndexType.MESSAGE]),
            "use_statistics": st.booleans(),
            "repeat_channels": st.booleans(),
            "repeat_schemas": st.booleans(),
            "enable_crcs": st.booleans(),
            "enable_data_crcs": st.booleans(),
            "chunk_size": st.sampled_from([60, 700, 10**6]),
        }
    ),
)
def test_every_layout_is_read_as_the_public_package_reads_it(tmp_path, seed, messages, in_order, layout):
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    made = Bag(tmp_path / "a.mcap")
    for name, (schema_name, schema, encoding, schema_encoding, _) in TOPICS.items():
        made.topic(name, schema_name, schema, encoding=encoding, schema_encoding=schema_encoding)
    stamps = {}
    for _ in range(messages):
        name = rng.choice(list(TOPICS))
        stamp = 0 if rng.random() < 0.1 else START + rng.randrange(10**10)
        log = START + rng.randrange(10**9)
        made.add(name, log, TOPICS[name][-1](stamp), publish_ns=START + rng.randrange(10**9))
        stamps.setdefault(name, []).append((log, stamp))
    path = made.write(in_order=in_order, **layout)
    wanted = publicly(path)
    assert columns(path, "log") == {name: log for name, (log, _) in wanted.items()}
    assert columns(path, "publish") == {name: publish for name, (_, publish) in wanted.items()}
    found = read(path, "header")
    for name, (log, _) in wanted.items():
        order = sorted(stamps[name], key=lambda pair: pair[0]) if in_order else stamps[name]
        set_ = [stamp for _, stamp in order if stamp and name not in ("/text", "/no_schema")]
        assert found[name]["times_ns"].tolist() == (set_ or log)
        assert (found[name]["from_header"], found[name]["samples"]) == (bool(set_), len(log))


def two_cameras(path, count=40, **layout):
    made = Bag(path)
    for name in ("/head", "/wrist"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for i in range(count):
            made.add(name, START + i * P + (name == "/wrist"), foreign.cdr(START + i * P, rest=bytes(200)))
    return made.write(**layout)


def test_log_times_leave_chunks_unread(tmp_path):
    path = two_cameras(tmp_path / "a.mcap", chunk_size=1000, compression=CompressionType.NONE)
    found = _core.read_stamps(path, stamps="log")
    assert found["chunks_read"] == 0
    assert found["chunks_indexed"] > 10
    assert found["counted"]
    data = bytearray(path.read_bytes())
    place = data.find(foreign.cdr(START + 20 * P)[4:12])
    data[place] ^= 1
    path.write_bytes(data)  # content is damaged: nobody looks at it
    assert columns(path, "log")["/head"] == [START + i * P for i in range(40)]
    with pytest.raises(RecordingUnreadable, match="crc of its content"):
        read(path, "publish")


def test_a_chunk_without_indexes_is_read(tmp_path):
    path = two_cameras(tmp_path / "a.mcap", chunk_size=1000, index_types=IndexType.NONE)
    found = _core.read_stamps(path, stamps="log")
    assert (found["chunks_indexed"], found["chunks_read"] > 10) == (0, True)
    assert columns(path, "log")["/head"] == [START + i * P for i in range(40)]


def test_a_summary_that_lost_a_chunk_hides_nothing(tmp_path, monkeypatch):
    from mcap.writer import Writer

    finish = Writer.finish

    def loses_one(self):
        del self._Writer__chunk_indices[3]
        finish(self)

    monkeypatch.setattr(Writer, "finish", loses_one)
    path = two_cameras(tmp_path / "a.mcap", chunk_size=1000)
    for stamps in ("log", "header"):
        assert columns(path, stamps)["/head"] == [START + i * P for i in range(40)]


def test_a_schema_in_a_chunk_that_was_passed_over(tmp_path):
    made = Bag(tmp_path / "a.mcap").topic("/plain", "", b"", encoding="cbor")
    made.topic("/head", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
    for i in range(40):
        made.add("/plain" if i < 20 else "/head", START + i, foreign.cdr(START))
    path = made.write(chunk_size=60, repeat_schemas=False)
    assert columns(path, "log") == {
        "/plain": [START + i for i in range(20)],
        "/head": [START + i for i in range(20, 40)],
    }


def test_indexes_that_count_other_messages_than_the_summary(tmp_path, monkeypatch):
    from mcap.records import MessageIndex

    write = MessageIndex.write

    def loses_one(self, stream):
        if self.records and self.records[0][0] == START + 20 * P:
            self.records = self.records[1:]
        write(self, stream)

    monkeypatch.setattr(MessageIndex, "write", loses_one)
    path = two_cameras(tmp_path / "a.mcap", chunk_size=600)
    assert len(read(path, "header")["/head"]["times_ns"]) == 40
    with pytest.raises(RecordingUnreadable, match="counts 80 messages and 79 are there"):
        read(path, "log")


def test_indexes_that_are_sorted_by_time_and_topics_of_two_channels(tmp_path, monkeypatch):
    from mcap.records import MessageIndex
    from mcap.writer import Writer

    path = tmp_path / "a.mcap"
    rng = random.Random(5)  # noqa: S311 - repeatable, not secret
    times = [START + rng.randrange(10**9) for _ in range(60)]
    write = MessageIndex.write

    def sorts(self, stream):
        self.records = sorted(self.records)
        write(self, stream)

    monkeypatch.setattr(MessageIndex, "write", sorts)
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=2000)
        writer.start()
        schema = writer.register_schema("sensor_msgs/msg/Image", "ros2msg", foreign.IMAGE_ROS2)
        left = [writer.register_channel("/cam", "cdr", schema, {"publisher": str(n)}) for n in range(2)]
        other = writer.register_channel("/other", "cdr", schema)
        for time in times:
            writer.add_message(rng.choice([*left, other]), time, foreign.cdr(time, rest=bytes(100)), time)
        writer.finish()
    wanted = {name: log for name, (log, _) in publicly(path).items()}
    assert columns(path, "log") == columns(path, "header") == wanted


# ---- files made by hand


def record(opcode, body):
    return bytes([opcode]) + struct.pack("<Q", len(body)) + body


def text(value):
    return struct.pack("<I", len(value)) + value


def message(channel, time, data=b""):
    return record(5, struct.pack("<HIQQ", channel, 0, time, time) + data)


HEADER = record(1, text(b"") + text(b""))
SCHEMA = record(3, struct.pack("<H", 1) + text(b"sensor_msgs/msg/Image") + text(b"ros2msg") + text(foreign.IMAGE_ROS2))
CHANNEL = record(4, struct.pack("<HH", 1, 1) + text(b"/cam") + text(b"cdr") + text(b""))


def chunk(content, *, compression=b"", data=None, size=None, crc=None):
    data = content if data is None else data
    crc = crc32(content) if crc is None else crc
    size = len(content) if size is None else size
    return record(6, struct.pack("<QQQI", 1, 2, size, crc) + text(compression) + struct.pack("<Q", len(data)) + data)


def whole(*records):
    return MAGIC + HEADER + b"".join(records) + record(15, bytes(4)) + record(2, bytes(20)) + MAGIC


def written(path, *records):
    path.write_bytes(whole(*records))
    return path


def stamped(n):
    return b"".join(message(1, k + 1, foreign.cdr(START + k)) for k in range(n))


def test_made_by_hand(tmp_path):
    content = SCHEMA + CHANNEL + stamped(3)
    for path in (
        written(tmp_path / "plain", content),
        written(tmp_path / "chunk", chunk(content)),
        written(tmp_path / "zstd", chunk(content, compression=b"zstd", data=zstandard.compress(content))),
        written(tmp_path / "private", record(0x80, bytes(9)) + chunk(record(0x90, b"x") + content)),
        written(tmp_path / "schema 0", record(3, bytes(14)) + content),
    ):
        assert columns(path) == {"/cam": [START, START + 1, START + 2]}
        assert columns(path, "log") == {"/cam": [1, 2, 3]}


BROKEN = {
    "no record": (record(0, b""), "no record begins at byte"),
    "a channel that is not described": (message(7, 1), "a message of channel 7, which it does not describe"),
    "a schema that is not described": (CHANNEL + message(1, 1), "a message of channel 1, which it does not describe"),
    "a message without a head": (record(5, bytes(21)), "shorter than its head"),
    "a schema of nothing": (record(3, b"\x01\x00"), "a schema in it is malformed"),
    "a channel of nothing": (record(4, b""), "a channel in it is malformed"),
    "an unknown compression": (chunk(b"xx", compression=b"brotli"), "compressed as `brotli`"),
    "a head that is too long": (record(6, bytes(28) + b"\xff\xff\xff\xff" + bytes(60)), "damaged header"),
    "another size than it says": (chunk(SCHEMA, size=len(SCHEMA) + 1), "instead of"),
    "another size, compressed": (
        chunk(SCHEMA, compression=b"zstd", data=zstandard.compress(SCHEMA), size=9),
        "a record breaks off",
    ),
    "no zstd": (chunk(SCHEMA, compression=b"zstd"), "does not decompress"),
    "no lz4": (chunk(SCHEMA, compression=b"lz4"), "does not decompress"),
    "another checksum": (chunk(SCHEMA, crc=5), "the crc of its content is"),
    "a record that breaks off in a chunk": (chunk(SCHEMA[:-1]), "a record breaks off at byte 0"),
    "statistics of nothing": (record(11, b""), "its statistics are malformed"),
    "a footer too early": (record(2, bytes(20)), "ends it before its last byte"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_said(tmp_path, what):
    content, said = BROKEN[what]
    for stamps in ("header", "log"):
        with pytest.raises(RecordingUnreadable) as caught:
            read(written(tmp_path / "a.mcap", content), stamps)
        assert f"a.mcap is truncated or damaged ({said}" in str(caught.value) or said in str(caught.value)
        assert str(caught.value).endswith("recover it with an MCAP tool and audit the result")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40, 10**6])
@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 9, 11, 15, 0x80])
def test_absurd_lengths_of_any_record(tmp_path, opcode, length):
    head = bytes([opcode]) + struct.pack("<Q", length)
    for content in (head, chunk(head)):
        for stamps in ("header", "log"):
            with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
                read(written(tmp_path / "a.mcap", content), stamps)


def test_attachments_are_checked(tmp_path):
    from mcap.data_stream import RecordBuilder

    builder = RecordBuilder()
    Attachment(1, 2, "a", "text/plain", b"x" * 1000).write(builder)
    good = builder.end()
    assert columns(written(tmp_path / "a.mcap", SCHEMA + CHANNEL + good + stamped(1))) == {"/cam": [START]}
    damaged = good.replace(b"x" * 9, b"x" * 8 + b"y", 1)
    with pytest.raises(RecordingUnreadable, match="the crc of an attachment"):
        read(written(tmp_path / "a.mcap", damaged))


def test_what_follows_the_end_is_no_part_of_the_file(tmp_path):
    one = whole(SCHEMA + CHANNEL + stamped(3))
    path = tmp_path / "a.mcap"
    for rest in (b"\x00", one):
        path.write_bytes(one + rest)
        with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
            read(path)


def test_a_file_that_is_none(tmp_path):
    for name, content in (("empty", b""), ("short", MAGIC), ("magic", MAGIC * 2), ("zeros", bytes(9000))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
            read(tmp_path / name)
    with pytest.raises(RecordingUnreadable, match="it is not a file"):
        read(tmp_path)
    with pytest.raises(DiskError):
        read(tmp_path / "absent")
    with pytest.raises(ValueError, match="header, log or publish"):
        read(tmp_path / "zeros", "arrival")


def test_statistics_are_compared_by_channel(tmp_path):
    path = two_cameras(tmp_path / "a.mcap")
    with path.open("rb") as file:
        stated = next(r for r in StreamReader(file).records if isinstance(r, Statistics))
    assert Counter(stated.channel_message_counts) == Counter({1: 40, 2: 40})
    data = path.read_bytes()
    pair = struct.pack("<HQHQ", 1, 40, 2, 40)
    assert data.count(pair) == 1
    swapped = data.replace(pair, struct.pack("<HQHQ", 1, 39, 2, 41))
    footer = swapped.rindex(MAGIC) - 4
    path.write_bytes(swapped[:footer] + bytes(4) + MAGIC)  # no checksum of the summary
    for stamps in ("header", "log"):
        with pytest.raises(RecordingUnreadable, match="other messages of its channels"):
            read(path, stamps)
    path.write_bytes(swapped)
    with pytest.raises(RecordingUnreadable, match=r"other messages of its channels|crc of its summary"):
        read(path)


def test_a_summary_with_another_checksum(tmp_path):
    path = two_cameras(tmp_path / "a.mcap")
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    for stamps in ("header", "log"):
        with pytest.raises(RecordingUnreadable, match="the crc of its summary"):
            read(path, stamps)


# ---- whatever the bytes


def some_file():
    content = SCHEMA + CHANNEL + stamped(4)
    index = record(7, struct.pack("<HI", 1, 64) + b"".join(struct.pack("<QQ", k + 1, 200 + 60 * k) for k in range(4)))
    compressed = chunk(content, compression=b"zstd", data=zstandard.compress(content))
    return whole(chunk(content), index, compressed, SCHEMA, CHANNEL, stamped(2), chunk(content), index)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_read_or_refused(tmp_path, data):
    _hostile(tmp_path, data)


@pytest.mark.soak
@settings(max_examples=200_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_read_or_refused_at_length(tmp_path, data):
    _hostile(tmp_path, data)


def _hostile(tmp_path, data):
    path = tmp_path / "a.mcap"
    content = bytearray(some_file())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(st.binary(min_size=1, max_size=9) | st.sampled_from([b"\xff" * 8, bytes(8), MAGIC]))
        content[at : at + len(new)] = new
    if data.draw(st.booleans()):
        begin = data.draw(st.integers(0, len(content)))
        del content[begin : begin + data.draw(st.integers(0, 300))]
    path.write_bytes(content)
    for stamps in ("header", "log", "publish"):
        try:
            found = read(path, stamps)
        except RecordingUnreadable as exc:
            said = str(exc)
            assert said.startswith(f"{path} is truncated or damaged (")
            continue
        for topic in found.values():
            assert topic["times_ns"].size <= topic["samples"] < len(content)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_arbitrary_records_between_whole_ends(tmp_path, body):
    path = written(tmp_path / "a.mcap", SCHEMA, CHANNEL, body)
    for stamps in ("header", "log"):
        try:
            read(path, stamps)
        except RecordingUnreadable as exc:
            assert "truncated or damaged" in str(exc)  # noqa: PT017 - reading it is as good


LIMIT = 400 << 20


def bounded(code, path):
    """Runs code on a file in a process that may not take more than 400 MB."""
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from firsthand_edge import _core
        from firsthand_edge.errors import RecordingUnreadable
        path = Path(sys.argv[1])
        """
    ) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
    )


BOTH = """
for stamps in ("header", "log"):
    try:
        print(sum(t["times_ns"].size for t in _core.read_stamps(path, stamps=stamps)["topics"]))
    except RecordingUnreadable as exc:
        print(exc)
"""


def sparse_message(path, schema, channel, size, head):
    """A file with one message of `size` bytes that is a hole in the disk."""
    before = MAGIC + HEADER + schema + channel
    body = b"\x05" + struct.pack("<Q", size + 22) + struct.pack("<HIQQ", 1, 0, 5, 5) + head
    with path.open("wb") as file:
        file.write(before + body)
        file.seek(len(before) + 9 + 22 + size)
        file.write(record(15, bytes(4)) + record(2, bytes(20)) + MAGIC)
    return path


def test_a_message_larger_than_memory_is_passed_over(tmp_path):
    path = sparse_message(tmp_path / "a.mcap", SCHEMA, CHANNEL, 2 << 30, foreign.cdr(START))
    done = bounded(BOTH + "print(_core.read_stamps(path, stamps='header')['topics'][0]['times_ns'].tolist())", path)
    assert (done.stdout, done.stderr) == (f"1\n1\n[{START}]\n", "")


def test_a_protobuf_message_larger_than_memory_gives_the_stamp_at_its_head(tmp_path):
    kind = text(b"foxglove.CompressedImage") + text(b"protobuf") + text(foreign.protobuf_schema())
    schema = record(3, struct.pack("<H", 1) + kind)
    channel = record(4, struct.pack("<HH", 1, 1) + text(b"/cam") + text(b"protobuf") + text(b""))
    stamp = foreign.protobuf_image(START)
    long = b"\x12" + b"\x80\x80\x80\x80\x10"  # data of 4 GiB
    path = sparse_message(tmp_path / "a.mcap", schema, channel, 2 << 30, stamp + long)
    done = bounded("print(_core.read_stamps(path, stamps='header')['topics'][0]['times_ns'].tolist())", path)
    assert (done.stdout, done.stderr) == (f"[{START}]\n", "")


@pytest.mark.parametrize("kind", ["definitions", "messages", "one record", "index"])
def test_a_bomb_is_refused_or_read_in_little_memory(tmp_path, kind):
    compressor = zstandard.ZstdCompressor(level=1)
    if kind == "definitions":
        content = b"".join(
            record(3, struct.pack("<H", n) + text(b"a") + text(b"b") + text(bytes(1 << 20))) for n in range(1, 400)
        )
    elif kind == "messages":
        content = SCHEMA + CHANNEL + message(1, 5) * 4_000_000
    elif kind == "one record":
        content = record(3, bytes(300 << 20))
    else:
        content = SCHEMA + CHANNEL + message(1, 5)
    bomb = chunk(content, compression=b"zstd", data=compressor.compress(content))
    if kind == "index":
        bomb += record(7, struct.pack("<HI", 1, 0xFFFFFFF0) + bytes(64))
    path = written(tmp_path / "a.mcap", SCHEMA, CHANNEL, bomb)
    del content, bomb
    done = bounded(BOTH, path)
    first, second = done.stdout.splitlines()
    if kind == "messages":
        assert (first, second) == ("4000000", "4000000")
    else:
        assert "truncated or damaged" in second
        assert ("truncated or damaged" in first) == (kind != "index")
    assert done.stderr == ""


def test_progress_is_told_and_ends_the_reading(tmp_path):
    path = sparse_message(tmp_path / "a.mcap", SCHEMA, CHANNEL, 64 << 20, foreign.cdr(START))
    size = path.stat().st_size
    # A data section checksum is asked for, so that every byte is read.
    with path.open("r+b") as file:
        file.seek(size - 37 - 4)
        file.write(b"\x01\x00\x00\x00")
    told = []
    with pytest.raises(RecordingUnreadable, match="crc of its data section"):
        _core.read_stamps(path, stamps="header", progress=lambda done, total: told.append((done, total)))
    assert told
    assert told == sorted(told)
    assert all(done <= total == size for done, total in told)

    class Enough(Exception):
        pass

    def enough(_done, _total):
        raise Enough

    with pytest.raises(Enough):
        _core.read_stamps(path, stamps="header", progress=enough)


def bytes_read(pid):
    """What a process has read so far."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def test_ctrl_c_ends_the_reading(tmp_path):
    path = sparse_message(tmp_path / "a.mcap", SCHEMA, CHANNEL, 64 << 30, foreign.cdr(START))
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 37 - 4)
        file.write(b"\x01\x00\x00\x00")
    # As at a terminal, also where these tests were started with SIGINT ignored.
    command = [
        "env",
        "--default-signal=INT",
        sys.executable,
        "-m",
        "firsthand_edge.cli",
        "audit",
        str(path),
        "--reference",
        "/cam",
    ]
    with interrupts_reach_children():
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        while bytes_read(process.pid) < 100 << 20:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
