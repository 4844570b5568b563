import msgpack
import numpy as np
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import DeviceError, DiskError
from firsthand_edge.model import ABSENT, Domain, Sample, StampPoint, StreamInfo
from firsthand_edge.sensors.page import CountersPage
from firsthand_edge.sensors.transport import (
    BATCH_MAX,
    RECORD,
    StreamSender,
    bind,
    decode,
    decode_samples,
    encode,
    endpoint,
    high_water,
)

int64 = st.integers(-(2**63), 2**63 - 1)
sample = st.builds(
    Sample,
    stream=st.just("head"),
    sequence=int64,
    device_ticks=int64,
    domain=st.sampled_from(Domain),
    arrival_ns=int64,
    payload=st.binary(max_size=50),
    trigger_index=int64,
    exposure_ns=int64,
    metadata=st.binary(max_size=20),
)


def info(media="picture/png", period_ns=16_666_667, name="head"):
    return StreamInfo(name, media, triggered=True, stamp_point=StampPoint.START, period_ns=period_ns)


def plain(n, size=10):
    return [Sample("head", i, i * 10, Domain.DEVICE, i * 100, payload=bytes(size)) for i in range(n)]


@given(st.lists(sample, max_size=64), st.integers(0, 2**31), st.integers(0, 2**31), st.integers(0, 255))
def test_samples_cross_the_wire_unchanged(samples, incarnation, epoch, flags):
    frame, body = encode(samples, stream="head", incarnation=incarnation, epoch=epoch, flags=flags)
    header = decode(frame)
    assert (header.stream, header.incarnation, header.epoch, header.flags) == ("head", incarnation, epoch, flags)
    assert list(decode_samples(header, body)) == samples
    assert header.end is bool(flags & 1)


@given(st.lists(sample, min_size=1, max_size=10))
def test_numpy_reads_the_same_records(samples):
    header = decode(encode(samples, stream="head", incarnation=0, epoch=0)[0])
    records = np.frombuffer(header.records, RECORD)
    for row, s in zip(records, samples, strict=True):
        assert row["device_ticks"] == s.device_ticks
        assert row["trigger_index"] == s.trigger_index
        assert (row["payload_len"], row["metadata_len"]) == (len(s.payload), len(s.metadata))
        assert row["domain"] == s.domain


def test_the_layout_is_the_one_that_is_written_down():
    s = Sample("s", 1, 3, Domain.UTC, 4, payload=b"pp", trigger_index=2, exposure_ns=5, metadata=b"m")
    frame, body = encode([s], stream="s", incarnation=7, epoch=8)
    words = msgpack.unpackb(frame)
    assert words[:5] == ["s", 7, 8, 0, 1]
    numbers = b"".join(i.to_bytes(8, "little") for i in (1, 2, 3, 4, 5))
    assert words[5] == numbers + b"\x02\0\0\0" + b"\x01\0\0\0" + b"\x03" + bytes(7)
    assert body == b"ppm"


@pytest.mark.parametrize(
    "frame",
    [b"", b"\xc1", msgpack.packb(1), msgpack.packb(["s", 0, 0, 0, 1]), msgpack.packb(["s", 0, 0, 0, 2, b"x" * 56])],
)
def test_foreign_messages_are_refused(frame):
    with pytest.raises(DeviceError, match=r"sample socket|bytes of records"):
        decode(frame)


def test_high_water_follows_rate_and_size():
    assert high_water(info()) == 119
    assert high_water(info("raw/16UC1;4096x2160")) == 8
    assert high_water(info("raw/16UC1;640x480", 33_333_333)) == 60
    assert high_water(info("imu", 1_000_000)) == 400
    assert high_water(info("event", None)) == 20
    assert high_water(info("record", None)) >= 8


def test_a_path_too_long_for_a_socket_is_told(tmp_path):
    with pytest.raises(DeviceError, match=r"longer than 107 bytes; use a shorter state directory"):
        endpoint(tmp_path / ("x" * 100), "head")


@pytest.fixture
def context():
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def page(tmp_path):
    page = CountersPage.create(tmp_path, "dev", ["head"], incarnation=0)
    yield page
    page.close()


def receive(socket, timeout_ms=5000):
    out = []
    while socket.poll(timeout_ms):
        frame, body = socket.recv_multipart()
        header = decode(frame)
        out.append((header, list(decode_samples(header, body))))
        if header.end:
            break
    return out


def test_batches_hold_64_samples_or_64_kilobytes_and_large_samples_travel_alone(tmp_path, context, page):
    socket = bind(context, tmp_path, info())
    sender = StreamSender(context, tmp_path, info(), incarnation=2, page=page)
    sender.send(5, plain(150))
    sender.send(5, plain(3, size=40_000))
    sender.send(5, plain(2, size=200_000))
    sender.send(5, plain(1))
    assert sender.end(5)
    got = receive(socket)
    assert [h.count for h, _ in got] == [64, 64, 22, 1, 1, 1, 1, 1, 1, 0]
    assert BATCH_MAX == 64
    assert {(h.incarnation, h.epoch) for h, _ in got} == {(2, 5)}
    assert [s for _, part in got[:3] for s in part] == plain(150)
    assert got[-1][0].end
    assert page.counters("head").sent == 156
    sender.close()
    socket.close()


def test_a_live_sender_never_waits_and_counts_what_it_drops(tmp_path, context, page):
    sender = StreamSender(context, tmp_path, info("raw/16UC1;4096x2160"), incarnation=0, page=page)
    for _ in range(100):
        sender.send(1, plain(1))
    counters = page.counters("head")
    assert counters.dropped_socket > 0
    assert counters.sent + counters.dropped_socket == 100
    sender.close()


def test_a_lossless_sender_waits_and_a_recorder_that_takes_nothing_is_a_fault(tmp_path, context, page):
    sender = StreamSender(context, tmp_path, info("raw/16UC1;4096x2160"), incarnation=0, page=page, patience_s=0.2)
    with pytest.raises(DeviceError, match=r"took nothing of stream head for 0.2 s"):
        sender.send(1, plain(100, size=100_000))
    assert page.counters("head").dropped_socket == 1
    assert page.beat_ns > 0
    sender.close()


def test_a_message_sent_before_the_recorder_is_there_arrives(tmp_path, context, page):
    sender = StreamSender(context, tmp_path, info(), incarnation=0, page=page)
    sender.send(1, plain(3))
    assert sender.end(1)
    socket = bind(context, tmp_path, info())
    assert [h.count for h, _ in receive(socket)] == [3, 0]
    sender.close()
    socket.close()


def test_a_socket_that_cannot_be_made_is_told(tmp_path, context):
    with pytest.raises(DiskError, match="cannot receive stream head at ipc://"):
        bind(context, tmp_path / "not-there", info())


def test_absent_is_the_least_int64():
    assert np.iinfo(np.int64).min == ABSENT
