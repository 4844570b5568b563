"""Recordings of others: figures that are known, and a brute-force reading of sync.md that agrees in every one."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from firsthand_edge.errors import RecordingUnreadable
from firsthand_edge.gate.audit import audit
from firsthand_edge.gate.recordings import read_recording
from firsthand_edge.gate.stamp_lists import read_stamps
from firsthand_edge.model import ABSENT
from firsthand_edge.spec.document import load_spec
from tests.sync import brute

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FIRSTHAND_DATA", ROOT / ".." / "shared" / "data"))

PAIRS = {
    "MH01": {"mono": "euroc_MH01_mono.txt", "stereo": "euroc_MH01_stereo.txt"},
    "V203": {"mono": "euroc_V203_mono.txt", "stereo": "euroc_V203_stereo.txt"},
    "fr1_desk": {"rgb": "tum_fr1_desk_rgb.txt", "depth": "tum_fr1_desk_depth.txt"},
    "fr3_office": {"rgb": "tum_fr3_office_rgb.txt", "depth": "tum_fr3_office_depth.txt"},
}


def audited(name):
    files = PAIRS[name]
    return audit(streams=[f"{s}={DATA / 'stamps' / file}" for s, file in files.items()], reference=next(iter(files)))


def reasons(found):
    return [(reason.code, reason.stream) for reason in found.verdict.reasons]


def test_euroc_mh01_is_accepted():
    found = audited("MH01")
    assert found.verdict.accepted
    assert found.report["residual_ns"]["max"] == 0
    assert [(w.code, w.measured) for w in found.verdict.warnings] == [("stamp.float64", 256)] * 2


def test_euroc_v203_lacks_frames_of_the_reference():
    found = audited("V203")
    assert reasons(found) == [("sync.missing", "mono")]
    mono = found.report["streams"]["mono"]
    assert (mono["missing"], mono["expected"]) == (414, 2335)
    assert (found.report["span"]["absent"], found.report["span"]["trimmed_start"]) == (414, 1)
    assert ("trigger.first_missed", "stereo", 1) in [(w.code, w.stream, w.measured) for w in found.verdict.warnings]


def test_tum_fr1_desk_is_over_the_ceiling_nearly_always():
    found = audited("fr1_desk")
    residual = found.report["residual_ns"]
    assert (residual["over_ceiling"], residual["ticks"], residual["max"]) == (527, 528, 16_009_000)
    assert found.report["streams"]["depth"]["missing"] == 45
    assert {"sync.ceiling", "sync.missing"} <= {code for code, _ in reasons(found)}
    assert found.report["sources"]["rgb"]["unit"] == "s"


def test_tum_fr3_office_is_over_the_ceiling_at_times():
    found = audited("fr3_office")
    residual = found.report["residual_ns"]
    assert (residual["over_ceiling"], residual["ticks"]) == (13, 2488)
    assert (residual["max"], residual["median"]) == (8_241_000, 26_000)
    assert "sync.ceiling" in {code for code, _ in reasons(found)}


@pytest.mark.parametrize("name", PAIRS)
def test_a_brute_force_reading_agrees_in_every_figure(name):
    sync = audited(name).figures.sync
    streams = [
        {"name": s, "kind": "triggered", "times_ns": read_stamps(DATA / "stamps" / file).times_ns.tolist()}
        for s, file in PAIRS[name].items()
    ]
    wanted = brute.measure(streams, reference=streams[0]["name"])
    for key, value in wanted.items():
        if key in ("residual", "guarded"):
            assert {k: getattr(getattr(sync, key), k) for k in value} == value
        elif key == "streams":
            for stream, row in value.items():
                assert {k: getattr(sync.streams[stream], k) for k in row} == row
        elif key == "offset_ns":
            for stream, series in value.items():
                assert sync.offset_ns(stream).tolist() == [ABSENT if v is None else v for v in series]
        elif isinstance(value, list):
            assert getattr(sync, key).tolist() == [ABSENT if v is None else v for v in value]
        else:
            assert getattr(sync, key) == value


def test_a_head_worn_rig_in_vrs():
    path = DATA / "aria" / "aria_unit_test_timecode_sequence_calib.vrs"
    found = audit(path, spec=load_spec(ROOT / "configs" / "replay-aria-spec.toml"))
    assert found.verdict.accepted, found.verdict.reasons
    assert found.report["residual_ns"]["ticks"] == 4
    assert {source["stamps"] for source in found.report["sources"].values()} == {"capture"}


def test_a_vrs_of_floats_is_read_to_the_nearest_nanosecond():
    found = audit(DATA / "vrs" / "sample_file.vrs", reference="200-1")
    assert found.report["sources"]["200-1"]["stamps"] == "record"
    assert found.report["streams"]["200-1"]["first_ns"] == 1_493_865_291_049_316


def test_others_mcap_recordings_are_read():
    found = audit(
        DATA / "rosbag2" / "talker" / "talker.mcap", ["/rosout,kind=triggered", "/topic"], reference="/rosout"
    )
    assert found.report["sources"] == {
        "/rosout": {"stamps": "header", "taken_as": "mid-exposure"},
        "/topic": {"stamps": "log", "taken_as": "mid-exposure"},
    }
    assert found.report["streams"]["/rosout"]["samples"] == 10


def test_a_truncated_vrs_is_not_judged(tmp_path):
    whole = (DATA / "aria" / "aria_unit_test_timecode_sequence_calib.vrs").read_bytes()
    for size in (40, 5_000, 200_000, len(whole) - 10):
        cut = tmp_path / "cut.vrs"
        cut.write_bytes(whole[:size])
        with pytest.raises(RecordingUnreadable, match="truncated or damaged"):
            audit(cut, reference="214-1")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_real_files_that_were_damaged_are_read_as_they_were_or_not_at_all(tmp_path, data):
    path = data.draw(st.sampled_from(sorted((DATA / "rosbag2").glob("*/*.mcap"))))
    whole = path.read_bytes()
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    other = tmp_path / "damaged.mcap"
    other.write_bytes(damaged)
    for stamps in (None, "log", "publish"):
        try:
            found = read_recording(other, stamps=stamps)
        except RecordingUnreadable:
            continue
        intact = read_recording(path, stamps=stamps)
        assert sum(c.times_ns.size + c.unstamped for c in found.channels) == sum(
            c.times_ns.size + c.unstamped for c in intact.channels
        )


@pytest.mark.parametrize("path", sorted((DATA / "rosbag2").glob("*/*.mcap")), ids=lambda path: path.stem)
def test_real_files_are_read_as_the_public_package_reads_them(path):
    wanted = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file, validate_crcs=True).iter_messages(log_time_order=False):
            wanted.setdefault(channel.topic, []).append((message.log_time, message.publish_time))
    for place, stamps in enumerate(("log", "publish")):
        found = {c.name: c.times_ns.tolist() for c in read_recording(path, stamps=stamps).channels}
        assert found == {topic: [times[place] for times in rows] for topic, rows in wanted.items()}
