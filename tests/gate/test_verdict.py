"""An episode that the recorder wrote is judged from its evidence file, and again in a fresh process."""

import json
import struct
import subprocess
import sys

import numpy as np
import pytest

from firsthand_edge import _core
from firsthand_edge.errors import CannotJudge, RecordingUnreadable
from firsthand_edge.gate.audit import audit
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import SCHEMA, report_bytes
from firsthand_edge.gate.verdict import examine, judge
from firsthand_edge.model import Kind
from firsthand_edge.spec.document import parse_spec
from tests.gate.recorded import MS, SPEC, Camera, P, devices_of

RECORD = struct.Struct("<5q2IB7x")


def plan(spec):
    streams = [
        {"name": s.name, "kind": s.kind.value, "period_ns": s.period_ns, "decimate": 1, "phase": None, "required": True}
        for s in spec.streams
        if s.kind is not Kind.EVENT
    ]
    head = {"reference": "head", "period_ns": P, "ceiling_ns": 2 * MS, "latency_ns": 150 * MS}
    return json.dumps({**head, "streams": streams})


def record(directory, *cameras, spec=SPEC, events=(), close=None):
    """Records a take with the real recorder core and returns its evidence."""
    contract = parse_spec(spec.encode(), place="a test")
    devices = json.dumps([device.to_json() for device in devices_of(cameras)])
    intake = _core.Intake(devices, plan=plan(contract), live=directory / "live.page")
    messages = []
    for camera in cameras:
        rows = camera.rows()
        for i in range(rows["arrival_ns"].size):
            values = [
                int(rows[key][i]) for key in ("sequence", "trigger_index", "device_ticks", "arrival_ns", "exposure_ns")
            ]
            payload = f"picture {camera.name} {int(rows['digest'][i])}".encode()
            packed = RECORD.pack(*values, len(payload), 0, int(rows["domain"][i]))
            where = (camera.name, int(rows["incarnation"][i]), int(rows["epoch"][i]))
            messages.append((int(rows["warmup"][i]) == 0, values[3], where, packed, payload))
    messages.sort(key=lambda message: message[:2])
    episode = directory / "episode"
    episode.mkdir()
    started = False
    for taken, _, (name, incarnation, epoch), packed, payload in messages:
        if taken and not started:
            started = True
            intake.start_take(
                episode,
                epoch=1,
                take=json.dumps({"episode": "test-1", "clock": {"timebase": "arb"}, "period_ns": P}),
                attachments=[("spec.toml", "application/toml", spec.encode()), ("rig.toml", "application/toml", b"")],
            )
            for event in events:
                intake.event(json.dumps(event))
        intake.push(name, incarnation, epoch, 0, 1, packed, payload)
    balance = {camera.name: {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0} for camera in cameras}
    intake.stop_take(json.dumps({"balance": balance} if close is None else close))
    return episode / "evidence.mcap"


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A clean take; a counter wraps in it."""
    directory = tmp_path_factory.mktemp("clean")
    return record(directory, Camera("head", ppm=31, start_ticks=2**32 - 900_000), Camera("wrist", ppm=-47, seed=2))


def codes(document):
    return [reason["code"] for reason in document["reasons"]]


def test_a_clean_take_is_accepted(clean):
    document = judge(clean)
    assert document["verdict"] == "accepted", document["reasons"]
    assert document["schema"] == SCHEMA
    assert document["span"]["ticks"] == 120
    assert document["streams"]["head"]["wraps"] == 1
    assert document["take"]["episode"] == "test-1"
    assert document["spec"]["digest"] == parse_spec(SPEC.encode(), place="a test").digest


def test_a_fresh_process_says_the_same_bit_for_bit_without_footage(clean, tmp_path):
    alone = tmp_path / "evidence.mcap"
    alone.write_bytes(clean.read_bytes())
    program = (
        "import sys; from pathlib import Path; from firsthand_edge.gate.verdict import judge;"
        "from firsthand_edge.gate.report import report_bytes; "
        "sys.stdout.buffer.write(report_bytes(judge(Path(sys.argv[1]))))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program, str(alone)], check=True, capture_output=True, timeout=60).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1] == report_bytes(judge(clean))


def test_bypassing_the_clock_map_rejects_the_same_take(clean):
    """What the demo's first take would be without its maps: counters of two devices have nothing in common."""
    raw = _core.read_evidence(clean)
    times = {}
    for name in ("head", "wrist"):
        rows = raw["samples"][name]
        times[name] = rows["device_ticks"][rows["warmup"] == 0] * 1000
    streams = [_core.Stream(name, "triggered", stamps) for name, stamps in times.items()]
    found = _core.measure(streams, reference="head", period_ns=P)
    assert found.ticks < 30


def test_the_audit_judges_our_own_episodes_by_their_evidence(clean):
    document = judge(clean)
    for named in (clean.parent, clean, clean.parent / "episode.mcap"):
        assert audit(named).report == document
    assert codes(audit(clean, ceiling_ns=1).report) == ["sync.ceiling"]
    strict = parse_spec((SPEC + "\n[sync]\nmin_ticks = 121\n").encode(), place="a test")
    assert codes(audit(clean, spec=strict).report) == ["sync.no_ticks"]


def test_the_audit_reads_the_footage_as_anybodys_when_channels_are_named(clean):
    found = audit(clean.parent, ["head,rate=60", "wrist,rate=60"])
    assert found.verdict.accepted, found.verdict.reasons
    assert found.report["recording"] == "mcap"
    # Footage carries the same mid-exposure times as the evidence.
    assert found.report["residual_ns"] == judge(clean)["residual_ns"]


def test_frozen_and_jumping_takes(tmp_path):
    digests = list(range(120))
    digests[40:60] = [40] * 20
    (tmp_path / "a").mkdir()
    frozen = judge(record(tmp_path / "a", Camera("head"), Camera("wrist", digests=digests)))
    assert codes(frozen) == ["picture.frozen"]
    assert frozen["reasons"][0]["measured"] == 20
    (tmp_path / "b").mkdir()
    jumped = judge(record(tmp_path / "b", Camera("head"), Camera("wrist", step_at=60, step_ns=37 * 10**9, bits=64)))
    assert codes(jumped) == ["stamp.tai_utc"]
    assert jumped["residual_ns"]["ticks"] == 0


def test_a_change_of_domain_and_a_sample_without_a_stamp(tmp_path):
    domains = [1] * 100 + [3] * 20
    document = judge(record(tmp_path, Camera("head", unstamped=[7]), Camera("wrist", domains=domains)))
    assert "stamp.domain" in codes(document)
    assert document["reasons"][0]["first_sample"] == 100
    assert document["streams"]["head"]["unstamped"] == 1


def test_a_worker_that_died(tmp_path):
    document = judge(
        record(
            tmp_path,
            Camera("head"),
            Camera("wrist", restart_at=60, gone=list(range(55, 62))),
            events=[
                {"kind": "worker_died", "device": "wrist_device", "cause": "its worker ended with signal 11 (SIGSEGV)"}
            ],
        )
    )
    assert {"stream.lost", "sync.missing"} <= set(codes(document))
    assert all("SIGSEGV" in r["cause"] for r in document["reasons"] if r["code"] in ("stream.lost", "sync.missing"))


def test_streams_of_one_device(tmp_path):
    cameras = (Camera("head", device="stereo", ppm=80), Camera("wrist", device="stereo", ppm=80, seed=9))
    assert judge(record(tmp_path, *cameras))["verdict"] == "accepted"


def test_a_torn_take_is_recovered_and_rejected(tmp_path, clean):
    torn = tmp_path / "torn"
    torn.mkdir()
    for file in ("episode.mcap", "evidence.mcap"):
        data = (clean.parent / file).read_bytes()
        (torn / file).write_bytes(data[: len(data) * 3 // 5])
    _core.recover(torn)
    document = judge(torn / "evidence.mcap")
    assert "record.torn" in codes(document)


def test_limits_may_be_other_than_the_specs(clean):
    assert examine(clean, limits=Limits(min_ticks=500)).verdict.reasons[0].code == "sync.no_ticks"


def test_what_cannot_be_judged(tmp_path, clean):
    broken = tmp_path / "evidence.mcap"
    broken.write_bytes(clean.read_bytes()[:200])
    with pytest.raises(RecordingUnreadable):
        judge(broken)
    with pytest.raises(RecordingUnreadable):
        judge(tmp_path / "absent.mcap")
    (tmp_path / "c").mkdir()
    without = record(tmp_path / "c", Camera("head", count=40), Camera("wrist", count=40), spec=SPEC)
    raw = _core.read_evidence(without)
    raw["attachments"].pop("spec.toml")
    from firsthand_edge.gate.evidence import Evidence
    from firsthand_edge.gate.verdict import spec_of

    with pytest.raises(CannotJudge, match=r"carries no spec\.toml"):
        spec_of(Evidence.parse(raw, place="a test"))


def test_int64_columns(clean):
    for columns in _core.read_evidence(clean)["samples"].values():
        assert {columns[name].dtype for name in columns} == {np.dtype(np.int64)}
