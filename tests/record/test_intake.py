"""Takes through the intake, read back by the public packages."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge import _core
from firsthand_edge.errors import DiskFull
from firsthand_edge.model import ABSENT, Counter, Domain, StampPoint
from tests.record.wire import (
    END,
    RECORD,
    SECOND,
    START,
    Wire,
    counts,
    device,
    frames,
    plan,
    push,
    read_episode,
    recorder,
    required,
    start,
    stream,
)

if TYPE_CHECKING:
    from pathlib import Path

PERIOD = 16_666_667


def ticks(n: int, *, payload: int = 0) -> list[Wire]:
    """Samples at 60 Hz, stamped 1 ms before they arrived."""
    return [
        Wire(os.urandom(payload), k, START + k * PERIOD, START + k * PERIOD + 1_000_000, trigger_index=k)
        for k in range(n)
    ]


def test_payloads_and_stamps_come_back_as_they_were_delivered(tmp_path: Path) -> None:
    imu = struct.pack("<6d", 0.1, -0.0, 9.81, 0.0, 1e-300, -3.5)
    poses = struct.pack("<14d", *(k / 3 for k in range(14)))
    event = b'{ "kind": "contact", "n": 3, "deep": {"a": [1]} }'
    payloads = {
        "head": ("picture/png", b"\x89PNG not really"),
        "film": ("video/h264", b"\0\0\0\1x"),
        "depth": ("raw/16UC1;3x2", bytes(range(12))),
        "imu": ("imu", imu),
        "hand": ("poses", poses),
        "touch": ("event", event),
        "foreign": ("record", b""),
    }
    devices = [device(name + "_device", stream(name, media)) for name, (media, _) in payloads.items()]
    intake = recorder(tmp_path, *devices)
    folder = start(intake, tmp_path / "take")
    for k in range(3):
        for name, (_, payload) in payloads.items():
            t = START + k * PERIOD
            push(intake, name, [Wire(payload, 7 + k, t, t + 5, metadata=b"\x81\xa1a\x01")])
    end = intake.stop_take("{}")

    messages = read_episode(folder / "episode.mcap")
    for name, (_, payload) in payloads.items():
        own = [m for m in messages if m.topic == f"/{name}"]
        assert [m.sequence for m in own] == [7, 8, 9]
        assert [m.publish_time for m in own] == [START + k * PERIOD for k in range(3)]
        assert [m.log_time for m in own] == [START + k * PERIOD + 5 for k in range(3)]
        assert [original(m.schema, m.message) for m in own] == [payload] * 3
        kept = [m for m in messages if m.topic == f"/{name}/metadata"]
        assert [(m.schema, m.message.metadata, m.message.data) for m in kept] == [
            ("firsthand.Record", b"\x81\xa1a\x01", b"")
        ] * 3
        assert end["counts"][name] == {
            "received": 3,
            "written": 3,
            "durable": 3,
            "lost_queue": 0,
            "lost_disk": 0,
            "bytes": 3 * (len(payload) + 4),
            "sequence_gaps": 0,
            "unparsed": 0,
        }
    schemas = {m.topic: m.schema for m in messages}
    assert schemas["/head"] == "foxglove.CompressedImage"
    assert schemas["/film"] == "foxglove.CompressedVideo"
    assert schemas["/depth"] == "foxglove.RawImage"
    assert schemas["/imu"] == "firsthand.Imu"
    assert schemas["/hand"] == "foxglove.PosesInFrame"
    assert schemas["/touch"] == "foxglove.Event"
    stamped = next(m for m in messages if m.topic == "/imu").message.timestamp
    assert (stamped.seconds, stamped.nanos) == divmod(START, SECOND)


def original(schema: str, message: object) -> bytes:
    """The payload again, from the decoded message."""
    m: object = message
    match schema:
        case "firsthand.Imu":
            a, w = m.linear_acceleration, m.angular_velocity  # type: ignore[attr-defined]
            return struct.pack("<6d", a.x, a.y, a.z, w.x, w.y, w.z)
        case "foxglove.PosesInFrame":
            return b"".join(
                struct.pack(
                    "<7d",
                    *(p.position.x, p.position.y, p.position.z),
                    *(p.orientation.x, p.orientation.y, p.orientation.z, p.orientation.w),
                )
                for p in m.poses  # type: ignore[attr-defined]
            )
        case "foxglove.Event":
            pairs = {p.key: p.value for p in m.metadata}  # type: ignore[attr-defined]
            text: str = pairs["json"]
            return text.encode()
        case _:
            data: bytes = m.data  # type: ignore[attr-defined]
            return data


def test_channels_say_whose_stream_they_are(tmp_path: Path) -> None:
    from mcap.reader import make_reader

    intake = recorder(
        tmp_path, device("cam", stream("head", "picture/png", stamp_point=StampPoint.START), stream("depth"))
    )
    folder = start(intake, tmp_path / "take")
    intake.stop_take("{}")
    with (folder / "episode.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    assert {c.topic: dict(c.metadata) for c in summary.channels.values()} == {
        "/head": {"stream": "head", "device": "cam", "media": "picture/png", "stamp_point": "start"},
        "/depth": {"stream": "depth", "device": "cam", "media": "record", "stamp_point": "instant"},
    }


def test_the_returned_digests_are_those_of_the_files(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("head")))
    folder = start(intake, tmp_path / "take", flush_ns=1_000_000)
    push(intake, "head", ticks(64, payload=200_000))
    files = intake.stop_take("{}")["files"]
    assert set(files) == {"episode.mcap", "evidence.mcap"}
    for name, digests in files.items():
        data = (folder / name).read_bytes()
        assert digests == _core.digest_file(folder / name)
        assert digests["bytes"] == len(data)
        assert digests["blake3"] == blake3(data).hexdigest()


def test_mid_exposure_by_stamp_point_exposure_and_offset(tmp_path: Path) -> None:
    points = {StampPoint.START: 4, StampPoint.MIDDLE: 0, StampPoint.END: -4, StampPoint.READOUT_START: -4}
    streams = [stream(p.value, stamp_point=p, offset_ns=100) for p in points]
    intake = recorder(tmp_path, device("cam", *streams))
    folder = start(intake, tmp_path / "take")
    for point in points:
        push(intake, point.value, [Wire(b"x", 0, START, START, exposure_ns=9)])
    intake.stop_take("{}")
    found = {m.topic[1:]: m.publish_time - START for m in read_episode(folder / "episode.mcap")}
    assert found == {p.value: shift + 100 for p, shift in points.items()}


def test_a_sample_without_a_stamp_takes_that_of_the_message_before(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a"), stream("b")))
    intake.advance(START - 5)
    folder = start(intake, tmp_path / "take")
    push(intake, "a", [Wire(b"0")])
    push(intake, "a", [Wire(b"1", 1, START, START + 3)])
    push(intake, "b", [Wire(b"2", 2)])
    push(intake, "b", [Wire(b"3", 3, -7, ABSENT)])
    intake.stop_take("{}")
    read = read_episode(folder / "episode.mcap")
    assert [(m.message.data, m.publish_time, m.log_time) for m in read] == [
        (b"0", START - 5, START - 5),
        (b"1", START, START + 3),
        (b"2", START, START + 3),
        (b"3", START, START + 3),
    ]
    assert [m.message.HasField("timestamp") for m in read] == [False, True, False, True]
    samples = _core.read_evidence(folder / "evidence.mcap")["samples"]
    assert samples["a"]["rig_ns"].tolist() == [ABSENT, START]
    assert samples["b"]["rig_ns"].tolist() == [ABSENT, -7]


def test_k51_log_time_zero(tmp_path: Path) -> None:
    """foxglove/mcap#1458: a first message of time 0, then normal ones. No message of ours has time 0."""
    times = [0] + [1659409665222474798 + i * 100000000 for i in range(99)]
    intake = recorder(tmp_path, device("cam", stream("head")))
    folder = start(intake, tmp_path / "take")
    for k, t in enumerate(times):
        push(intake, "head", [Wire(b"x", k, t, t)])
    intake.stop_take("{}")
    read = read_episode(folder / "episode.mcap")
    assert len(read) == 100
    assert min(m.log_time for m in read) > 0
    assert min(m.publish_time for m in read) > 0
    assert counts(folder / "episode.mcap") == {"/head": 100}  # and statistics agree with the messages' times
    assert _core.read_evidence(folder / "evidence.mcap")["samples"]["head"]["device_ticks"].tolist() == times


def test_a_payload_that_is_not_what_it_promises_is_kept(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("imu", stream("imu", "imu")))
    folder = start(intake, tmp_path / "take")
    push(intake, "imu", [Wire(b"short", 0, START, START), Wire(bytes(48), 1, START, START), Wire(b"", 2, START, START)])
    end = intake.stop_take("{}")
    assert counts(folder / "episode.mcap") == {"/imu": 1, "/imu/unparsed": 2}
    assert end["counts"]["imu"]["unparsed"] == 2
    events = [json.loads(e) for e in _core.read_evidence(folder / "evidence.mcap")["events"]]
    assert events == [{"kind": "payload_unparsed", "stream": "imu", "sequence": 0, "bytes": 5}]


def test_only_samples_of_the_takes_epoch_are_in_the_episode(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("head"), identity_map=False, counter=Counter(32, 1000, 1)))

    def sample(k: int) -> Wire:
        return Wire(b"%d" % k, k, (4_294_000_000 + k * 10_000) % 2**32, START + k * 10_000_000 + k % 3 * 1000)

    for k in range(300):
        push(intake, "head", [sample(k)], epoch=1)
    assert intake.settled() == {"cam": True}
    folder = start(intake, tmp_path / "take", epoch=2)
    push(intake, "head", [sample(300)], epoch=1)  # a preview that was still on its way
    for k in range(301, 320):
        push(intake, "head", [sample(k)], epoch=2)
    push(intake, "head", [sample(320)], epoch=3)
    push(intake, "head", [], epoch=1, flags=END)
    assert intake.ended() == {"head": False}
    push(intake, "head", [], epoch=2, flags=END)
    assert intake.ended() == {"head": True}
    intake.stop_take("{}")

    assert [m.message.data for m in read_episode(folder / "episode.mcap")] == [b"%d" % k for k in range(301, 320)]
    head = _core.read_evidence(folder / "evidence.mcap")["samples"]["head"]
    assert head["sequence"].tolist() == list(range(321))
    assert head["received"].tolist() == list(range(321))
    assert head["warmup"].tolist() == [1] * 301 + [0] * 19 + [1]
    assert head["epoch"].tolist() == [1] * 301 + [2] * 19 + [3]
    assert (head["digest"] != ABSENT).tolist() == (head["warmup"] == 0).tolist()
    # The times follow from the evidence alone.
    mapped = _core.map_clock(head["device_ticks"], head["arrival_ns"], bits=32, tick_num=1000)
    assert mapped.wraps == 1
    np.testing.assert_array_equal(mapped.rig_ns, head["rig_ns"])


def test_two_streams_share_the_clock_of_their_device(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    intake = recorder(
        tmp_path, device("cam", stream("a"), stream("b"), identity_map=False, counter=Counter(32, 1000, 1))
    )
    for take in range(2):
        folder = start(intake, tmp_path / f"take{take}", epoch=take)
        for k in range(500):
            ticks_us = 4_290_000_000 + take * 5_000_000 + k * 10_000
            sample = Wire(b"", k, ticks_us % 2**32, ticks_us * 1000 + int(rng.exponential(300_000)))
            push(intake, "ab"[k % 2], [sample], epoch=take)
        intake.stop_take("{}")
        samples = _core.read_evidence(folder / "evidence.mcap")["samples"]
        both = {c: np.concatenate([samples["a"][c], samples["b"][c]]) for c in samples["a"]}
        order = np.argsort(both["received"])
        both = {c: v[order] for c, v in both.items()}
        assert np.all(np.diff(both["received"]) == 1)
        assert both["warmup"].sum() == (0 if take == 0 else 500)
        mapped = _core.map_clock(both["device_ticks"], both["arrival_ns"], bits=32, tick_num=1000)
        np.testing.assert_array_equal(mapped.rig_ns, both["rig_ns"])


def test_a_restarted_worker_gets_a_new_map(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a"), counter=Counter(16)))
    folder = start(intake, tmp_path / "take")
    push(intake, "a", [Wire(b"", 0, 65_000)])
    push(intake, "a", [Wire(b"", 0, 10)], incarnation=1)
    push(intake, "a", [Wire(b"", 1, 10)])  # of the dead worker, late
    intake.stop_take("{}")
    rows = _core.read_evidence(folder / "evidence.mcap")["samples"]["a"]
    assert rows["rig_ns"].tolist() == [65_000, 10, 65_546]
    assert rows["incarnation"].tolist() == [0, 1, 0]


def test_a_stamp_of_another_domain_is_kept_and_not_mapped(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    folder = start(intake, tmp_path / "take")
    push(intake, "a", [Wire(b"", 0, START), Wire(b"", 1, START + 1, domain=Domain.UTC)])
    intake.stop_take("{}")
    rows = _core.read_evidence(folder / "evidence.mcap")["samples"]["a"]
    assert rows["domain"].tolist() == [1, 3]
    assert rows["rig_ns"].tolist() == [START, ABSENT]


def test_malformed_messages_are_refused_counted_and_harmless(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    folder = start(intake, tmp_path / "take")
    count, records, payload = frames([Wire(b"abc", 0, START, START)])
    for bad in (
        ("b", 0, 1, 0, count, records, payload),
        ("a", 0, 1, 0, 2, records, payload),
        ("a", 0, 1, 0, -1, records, payload),
        ("a", 0, 1, 0, count, records[:-1], payload),
        ("a", 0, 1, 0, count, records, payload + b"x"),
        ("a", 0, 1, 0, count, records, b""),
    ):
        with pytest.raises(ValueError, match=r"malformed|no device has"):
            intake.push(*bad)
    push(intake, "a", [Wire(b"good", 1, START, START)])
    end = intake.stop_take("{}")
    assert end["malformed"] == 6
    assert end["counts"]["a"]["received"] == 1
    assert counts(folder / "episode.mcap") == {"/a": 1}


def sound(count: int, records: bytes, payload: bytes) -> bool:
    """Whether a message is as the wire format says."""
    if len(records) != count * RECORD.size:
        return False
    rows = [RECORD.unpack_from(records, RECORD.size * k) for k in range(count)]
    return sum(row[5] + row[6] for row in rows) == len(payload) and all(row[7] < len(Domain) for row in rows)


@settings(max_examples=200, deadline=None)
@given(
    count=st.one_of(st.integers(-1, 3), st.integers(-(2**63), 2**63 - 1)),
    records=st.one_of(
        st.binary(max_size=200),
        st.lists(st.binary(min_size=40, max_size=40), max_size=3).map(
            lambda rows: b"".join(r + bytes(16) for r in rows)
        ),
    ),
    payload=st.binary(max_size=3),
)
def test_arbitrary_messages_are_refused_or_taken_in(
    tmp_path_factory: pytest.TempPathFactory, count: int, records: bytes, payload: bytes
) -> None:
    intake = recorder(tmp_path_factory.mktemp("x"), device("cam", stream("a")))
    if sound(count, records, payload):
        intake.push("a", 0, 1, 0, count, records, payload)
    else:
        with pytest.raises(ValueError, match="malformed"):
            intake.push("a", 0, 1, 0, count, records, payload)


columns = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(
            Wire,
            payload=st.binary(max_size=60),
            sequence=columns,
            device_ticks=columns,
            arrival_ns=columns,
            exposure_ns=columns,
            trigger_index=columns,
            metadata=st.binary(max_size=9),
            domain=st.sampled_from(Domain),
        ),
        max_size=20,
    ),
    st.booleans(),
)
def test_whatever_a_device_says_is_recorded(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Wire], identity: bool
) -> None:
    tmp = tmp_path_factory.mktemp("x")
    intake = recorder(tmp, device("cam", stream("a"), identity_map=identity), plan=plan(required("a")))
    folder = start(intake, tmp / "take")
    push(intake, "a", samples)
    intake.advance(START)
    intake.stop_take("{}")
    read = read_episode(folder / "episode.mcap")
    rows = _core.read_evidence(folder / "evidence.mcap")["samples"]["a"]
    # Metadata without payload or stamp, as a configuration record is, is no picture: it stands on its own topic alone.
    pictures = [
        s.payload
        for s, rig_ns in zip(samples, rows["rig_ns"].tolist(), strict=True)
        if s.payload or not s.metadata or rig_ns != ABSENT
    ]
    assert [m.message.data for m in read if m.topic == "/a"] == pictures
    assert [m.message.metadata for m in read if m.topic == "/a/metadata"] == [s.metadata for s in samples if s.metadata]
    for column in ("sequence", "device_ticks", "arrival_ns", "exposure_ns", "trigger_index", "domain"):
        assert rows[column].tolist() == [getattr(s, column) for s in samples]
    digests = [int.from_bytes(blake3(s.payload).digest()[:8], "little", signed=True) for s in samples]
    assert rows["digest"].tolist() == digests


def test_sequence_gaps_count_what_did_not_come(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    start(intake, tmp_path / "take")
    for sequence in (5, 6, 9, 8, 10):  # 7 is missing, 8 came late
        push(intake, "a", [Wire(b"", sequence)])
    push(intake, "a", [Wire(b"", 1000), Wire(b"", 1001)], incarnation=1)  # a new worker counts anew
    push(intake, "a", [Wire(b"", ABSENT)], incarnation=1)
    assert intake.stop_take("{}")["counts"]["a"]["sequence_gaps"] == 1


def test_a_full_queue_is_counted_and_its_stamps_are_kept(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a"), identity_map=False))
    folder = start(intake, tmp_path / "take", queue_bytes=400_000)
    n = 400
    for k in range(n):
        push(intake, "a", [Wire(bytes(100_000), k, START + k * 1000, START + k * 1000 + 9)])
    end = intake.stop_take("{}")["counts"]["a"]
    assert end["lost_queue"] > 0
    assert end["received"] == n == end["durable"] + end["lost_queue"]
    rows = _core.read_evidence(folder / "evidence.mcap")["samples"]["a"]
    kept, lost = rows["warmup"] == 0, rows["warmup"] == 2
    assert int(kept.sum()) == end["durable"] == counts(folder / "episode.mcap")["/a"]
    assert int(lost.sum()) <= end["lost_queue"]
    # What taught the map is in the evidence, lost or not.
    mapped = _core.map_clock(rows["device_ticks"], rows["arrival_ns"])
    np.testing.assert_array_equal(mapped.rig_ns, rows["rig_ns"])


def test_a_source_that_can_wait_loses_nothing(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")), plan=plan(lossless=True))
    folder = start(intake, tmp_path / "take", queue_bytes=400_000)
    for k in range(400):
        push(intake, "a", [Wire(bytes(100_000), k, START + k, START + k)])
    end = intake.stop_take("{}")["counts"]["a"]
    assert (end["durable"], end["lost_queue"]) == (400, 0)
    assert counts(folder / "episode.mcap") == {"/a": 400}


FULL_DISK = """
    import json, resource, sys
    from pathlib import Path
    from firsthand_edge import _core
    from firsthand_edge.errors import DiskFull
    from tests.record.wire import START, Wire, device, push, recorder, start, stream
    tmp = Path(sys.argv[1])
    intake = recorder(tmp, device("cam", stream("a"), stream("b")))
    folder = start(intake, tmp / "take", flush_ns=1_000_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
    pushed = 0
    while not _core.LivePage(tmp / "live").read()["disk"]:
        push(intake, "a", [Wire(bytes(100_000), pushed, START + pushed, START + pushed)])
        push(intake, "b", [Wire(b"x", pushed, START + pushed, START + pushed)])
        pushed += 1
        intake.advance(START + pushed)
    push(intake, "a", [Wire(b"late", pushed, START, START)])  # after the disk has refused
    try:
        intake.stop_take("{}")
    except DiskFull as error:
        page = _core.LivePage(tmp / "live").read()
        print(json.dumps({"pushed": pushed, "error": str(error), "counts": error.counts, "page": page}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    start(intake, tmp / "next")  # the recorder lives on
    push(intake, "a", [Wire(b"x", 0, START, START)])
    assert intake.stop_take("{}")["counts"]["a"]["durable"] == 1
"""


def test_a_full_disk_ends_in_a_named_state(tmp_path: Path) -> None:
    """The size limit of a process stands for a full disk: writes beyond it fail in the middle of a chunk."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "episode.mcap" in said["error"]
    assert "no room" in said["error"]
    for name, extra in (("a", 1), ("b", 0)):
        c = said["counts"][name]
        assert c["received"] == said["pushed"] + extra
        assert c["lost_disk"] > 0
        assert c["received"] == c["durable"] + c["lost_queue"] + c["lost_disk"]
        assert {k: said["page"]["streams"][name][k] for k in ("received", "durable", "lost_disk")} == {
            k: c[k] for k in ("received", "durable", "lost_disk")
        }
    # What was durable is there.
    note = _core.recover(tmp_path / "take")
    assert note["torn"]
    found = counts(tmp_path / "take" / "episode.mcap")
    assert found["/a"] >= said["counts"]["a"]["durable"] > 0


def test_a_disk_without_room_refuses_the_start(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, old[1]))
    try:
        with pytest.raises(DiskFull, match="free space"):
            start(intake, tmp_path / "take")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    start(intake, tmp_path / "next")
    intake.stop_take("{}")


def test_calls_that_make_no_sense_are_told(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    with pytest.raises(ValueError, match="no take is running"):
        intake.stop_take("{}")
    with pytest.raises(ValueError, match="no take is running"):
        intake.event("{}")
    with pytest.raises(ValueError, match="flush_ns is 5000000000"):
        start(intake, tmp_path / "slow", flush_ns=5_000_000_000)
    with pytest.raises(ValueError, match="take is not JSON"):
        start(intake, tmp_path / "text", take="a take")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "x").touch()
    with pytest.raises(ValueError, match="not empty"):
        intake.start_take(tmp_path / "used", epoch=1, take="{}", attachments=[])
    start(intake, tmp_path / "take")
    with pytest.raises(ValueError, match="a take is running"):
        start(intake, tmp_path / "second")
    with pytest.raises(ValueError, match="close is not JSON"):
        intake.stop_take("")
    with pytest.raises(ValueError, match="not a JSON object"):
        intake.event("[]")
    intake.stop_take("{}")  # the take went on through all of it
    intake.abort_take()
    with pytest.raises(ValueError, match="devices are not"):
        _core.Intake("{}", plan=plan(), live=tmp_path / "live")
    with pytest.raises(ValueError, match="is there twice"):
        recorder(tmp_path, device("x", stream("a")), device("y", stream("a")))
    with pytest.raises(ValueError, match="media"):
        recorder(tmp_path, device("x", stream("a", "smell/ripe")))
    with pytest.raises(ValueError, match="bits"):
        recorder(tmp_path, replace(device("x", stream("a")), counter=Counter(65)))


def test_an_aborted_take_is_on_the_disk_and_needs_recovery(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a")))
    folder = start(intake, tmp_path / "take")
    push(intake, "a", ticks(50, payload=1000))
    intake.abort_take()
    assert _core.recover(folder)["torn"]
    assert counts(folder / "episode.mcap") == {"/a": 50}
    assert len(_core.read_evidence(folder / "evidence.mcap")["samples"]["a"]["sequence"]) == 50


def test_edges_ticks_and_events_are_in_the_evidence(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("a"), stream("b")), plan=plan(required("a"), required("b")))
    folder = start(
        intake, tmp_path / "take", attachments=[("spec.toml", "text/plain", b"s"), ("rig.toml", "text/plain", b"r")]
    )
    intake.edges(np.arange(3, dtype=np.int64), np.array([5, 6, 7], dtype=np.int64))
    with pytest.raises(ValueError, match="one of each per edge"):
        intake.edges(np.arange(3, dtype=np.int64), np.arange(2, dtype=np.int64))
    for k in range(5):
        push(intake, "a", [Wire(b"a", k, START + k * PERIOD, START)])
        push(intake, "b", [Wire(b"b", k, START + k * PERIOD + 1000 * k, START)])
    intake.event('{"kind": "button"}')
    intake.stop_take('{"ended": "button"}')
    evidence = _core.read_evidence(folder / "evidence.mcap")
    assert evidence["take"] == '{"id": "t"}'
    assert evidence["close"] == '{"ended": "button"}'
    assert evidence["recovery"] is None
    assert evidence["attachments"] == {"spec.toml": b"s", "rig.toml": b"r"}
    assert evidence["events"] == ['{"kind": "button"}']
    assert evidence["edges"]["time_ns"].tolist() == [5, 6, 7]
    assert evidence["ticks"]["tick"].tolist() == [0, 1, 2, 3, 4]
    assert evidence["ticks"]["residual_ns"].tolist() == [0, 1000, 2000, 3000, 4000]
