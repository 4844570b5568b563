import tomllib
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from firsthand_edge.sensors.configuration import DeviceConfig, ReplayDevice, SimDevice, period_of
from firsthand_edge.sensors.faults import Fault
from firsthand_edge.testing.scripts import SCRIPTS

from .rigs import camera, imu

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ADAPTER = TypeAdapter(DeviceConfig)


def devices(name):
    table = tomllib.loads((CONFIGS / name).read_text(), parse_float=Decimal)
    return [ADAPTER.validate_python(d, context={"directory": CONFIGS}) for d in table["device"]]


def test_every_device_of_the_shipped_rigs_survives_json():
    for config in devices("sim.toml") + devices("replay-aria.toml"):
        assert ADAPTER.validate_json(config.model_dump_json()) == config


def test_the_simulated_rig_is_the_one_of_the_demo():
    rig = {d.name: d for d in devices("sim.toml")}
    rates = {s.name: (s.rate_hz, s.triggered) for d in rig.values() for s in d.stream}
    assert rates == {
        "head": (60, True),
        "wrist_left": (60, True),
        "wrist_right": (60, True),
        "stereo_left": (60, True),
        "stereo_right": (60, True),
        "depth": (30, True),
        "imu": (1000, False),
        "hand_pose": (60, False),
        "contact": (8, False),
        "action": (5, False),
    }
    assert len(rig["stereo"].stream) == 2
    assert all(d.drift_ppm != 0 for d in rig.values())
    wraps = [d.wrap_after_s for d in rig.values()]
    assert len(set(wraps)) == len(wraps)
    assert all(7 <= w <= 9 for w in wraps)  # after the warm-up, and before take 1 of the demo ends
    assert all(1000 <= d.min_delay_us <= 12_000 and d.min_delay_bound_us == 200 for d in rig.values())
    assert all(abs(d.delay_error_us) <= d.min_delay_bound_us for d in rig.values())
    middles = {s.trigger_delay_us * 2 + s.exposure_us for d in rig.values() for s in d.stream if s.triggered}
    assert middles == {10_000}
    faults = {(d.name, f.kind, f.take) for d in rig.values() for f in d.fault}
    assert faults == {("wrist_left", "stall", 2), ("stereo", "miss_first", 3), ("wrist_right", "jump", 4)}


def test_the_replayed_recording_lies_beside_the_rig_file():
    (aria,) = devices("replay-aria.toml")
    assert isinstance(aria, ReplayDevice)
    assert aria.path == CONFIGS / "../../shared/data/aria/aria_unit_test_timecode_sequence_calib.vrs"
    assert [s.name for s in aria.stream if s.triggered] == ["214-1", "1201-1", "1201-2", "211-1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a/b"}, "letters, digits"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"stream": []}, "at least 1"),
        ({"colour": "red"}, "Extra inputs"),
        ({"min_delay_us": 1000}, "before its exposure ends 2000 us after it; raise min_delay_us"),
        ({"counter_bits": 16, "counter_start": 2**16}, "does not fit 16 bits"),
        (
            {"check_edges": True, "stream": imu().model_dump()["stream"]},
            "no edge causes its samples; take out check_edges",
        ),
        ({"fault": [{"kind": "wrap", "bits": 32}]}, "a wrap at 32 bits is none: the counter has 32"),
        ({"fault": [{"kind": "explode"}]}, "explode"),
        ({"fault": [{"kind": "start_late", "for_s": 1}]}, "start_late has no for_s"),
    ],
)
def test_mistakes_in_a_simulated_device_are_told(change, said):
    table = {**camera().model_dump(), **change}
    with pytest.raises(ValidationError, match=said):
        SimDevice.model_validate(table)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate_hz": None}, "has no rate_hz"),
        ({"content": "contact"}, "which no pulse triggers; set triggered = false"),
        ({"triggered": False, "decimate": 2}, "is not triggered; take out decimate"),
        ({"decimate": 2, "phase": 2}, "phase 2 of stream head is not below decimate 2"),
        ({"stamp_point": "instant"}, "stamps an instant and exposes"),
        ({"batch": 2}, "batch is for free-running streams"),
        ({"rate_hz": 0}, "greater than 0"),
        ({"width": 32}, "greater than or equal to 64"),
    ],
)
def test_mistakes_in_a_simulated_stream_are_told(change, said):
    with pytest.raises(ValidationError, match=said):
        camera(with_stream=change)


def test_two_streams_of_one_name_are_told():
    table = camera().model_dump()
    table["stream"] = [table["stream"][0], table["stream"][0]]
    with pytest.raises(ValidationError, match="two streams of one name"):
        SimDevice.model_validate(table)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "miss_first"},
        {"kind": "jitter", "amount_us": 1},
        {"kind": "offset", "amount_us": 1},
        {"kind": "free_run", "ppm": 1},
        {"kind": "slip", "ticks": 1},
        {"kind": "exposure", "to_us": 1},
    ],
)
def test_faults_of_triggers_need_a_triggered_stream(fault):
    with pytest.raises(ValidationError, match=f"the fault {fault['kind']} needs a triggered stream; imu has none"):
        imu(faults=[fault])


@pytest.mark.parametrize(
    ("faults", "more", "said"),
    [
        ([{"kind": "offset", "amount_us": 0}], {}, "an offset of 0 us is none"),
        ([{"kind": "offset", "amount_us": -1}], {}, "would begin exposures of stream head before their pulses"),
        ([{"kind": "slip", "ticks": 0}], {}, "a slip of 0 ticks is none"),
        ([{"kind": "slip", "ticks": 1}], {}, "needs a stream that counts pulses; head has none"),
        ([{"kind": "slip", "ticks": 1, "for_s": 1}], {}, "slip has no for_s: a count that slipped stays off"),
        ([{"kind": "free_run", "ppm": 1, "for_s": 1}], {}, "free_run has no for_s: a cable that came off stays off"),
        ([{"kind": "free_run", "ppm": 100_001}], {}, "less than or equal to 100000"),
        ([{"kind": "unit", "counts": "us"}], {}, "off by no power of ten"),
        (
            [{"kind": "unit", "counts": "ms"}],
            {"tick_num": 80, "tick_den": 3},
            "claims ticks of 80 / 3 ns and counts ms",
        ),
        ([{"kind": "unit", "counts": "ms", "at_s": 1}], {}, "unit has no at_s: a driver gets its unit wrong"),
        ([{"kind": "unit", "counts": "ms", "take": 1}], {}, "unit has no take"),
        ([{"kind": "stamp_point", "stamps": "start"}], {}, "claims another stamp point than start"),
        ([{"kind": "stamp_point", "stamps": "instant"}], {}, "Input should be"),
        ([{"kind": "stamp_point", "stamps": "end", "at_s": 1}], {}, "stamp_point has no at_s"),
        ([{"kind": "exposure", "to_us": 20_000}], {}, "exposures of 20000 us do not fit 60 Hz of stream head"),
        ([{"kind": "exposure", "to_us": 3001}], {}, "would arrive 3000 us after its stamp, before its exposure ends"),
        ([{"kind": "exposure", "to_us": 9, "for_s": 1}], {}, "exposure has no for_s: say with over_s how long"),
        (
            [{"kind": "exposure", "to_us": 3000, "compensated": True}],
            {},
            "compensated exposures of 3000 us would begin exposures of stream head before their pulses",
        ),
        ([{"kind": "exposure", "to_us": 9}] * 2, {}, "the fault exposure befalls one take twice; keep one"),
        (
            [{"kind": "free_run", "ppm": 1}, {"kind": "miss_first", "take": 2}],
            {},
            "free_run follows no pulses, so miss_first cannot befall it",
        ),
        (
            [{"kind": "slip", "ticks": 1}, {"kind": "free_run", "ppm": 1}],
            {"with_stream": {"has_trigger_index": True}},
            "free_run follows no pulses, so slip cannot befall it",
        ),
    ],
)
def test_faults_that_cannot_be_are_refused(faults, more, said):
    with pytest.raises(ValidationError, match=said):
        camera(faults=faults, **more)


def test_faults_of_different_takes_may_contradict_each_other():
    camera(faults=[{"kind": "free_run", "ppm": 1, "take": 1}, {"kind": "miss_first", "take": 2}])


def test_a_wrong_stamp_point_needs_its_exposures_to_end_before_they_arrive():
    faults = [{"kind": "stamp_point", "stamps": "start"}, {"kind": "exposure", "to_us": 5000}]
    stream = {"stamp_point": "end"}
    with pytest.raises(ValidationError, match="before its exposure ends 5000 us after it"):
        camera(faults=faults, with_stream=stream)
    camera(faults=faults, with_stream=stream, min_delay_us=5000)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"path": "a.vrs"}, r"list its streams as \[\[device.stream\]\]"),
        ({"path": "a.vrs", "device": "head", "stream": [{"source": "1-1"}]}, "which has no devices"),
        ({"path": "episode", "stream": [{"source": "1-1"}]}, "which knows its streams"),
        ({"path": "a.vrs", "stream": [{"source": "1-1"}, {"source": "1-1", "name": "b"}]}, "plays a stream twice"),
        ({"path": "a.vrs", "pace": "slow", "stream": [{"source": "1-1"}]}, "recorded"),
    ],
)
def test_mistakes_in_a_replayed_device_are_told(table, said):
    with pytest.raises(ValidationError, match=said):
        ReplayDevice.model_validate({"driver": "replay", "name": "r", **table})


def test_a_replayed_stream_is_called_as_in_its_recording_unless_named():
    table = {
        "driver": "replay",
        "name": "r",
        "path": "a.vrs",
        "stream": [{"source": "1-1"}, {"source": "1-2", "name": "b"}],
    }
    assert [s.name for s in ReplayDevice.model_validate(table).stream] == ["1-1", "b"]


@pytest.mark.parametrize(
    ("rate", "period"), [(60, 16_666_667), (30, 33_333_333), (1000, 1_000_000), ("29.97", 33_366_700)]
)
def test_a_period_is_rounded(rate, period):
    assert period_of(Decimal(rate)) == period


def test_there_is_a_ready_script_for_every_kind_of_fault():
    kinds = {fault.kind for script in SCRIPTS.values() for fault in script}
    assert kinds == {
        "drop", "stall", "repeat", "jitter", "drift", "wrap", "jump", "start_late", "miss_first", "die", "come_back",
        "offset", "free_run", "slip", "unit", "stamp_point", "exposure",
    }  # fmt: skip


def test_every_fault_and_each_of_its_fields_is_documented():
    rows = {
        kind: fields
        for line in (Path(__file__).parents[2] / "docs" / "simulator.md").read_text().splitlines()
        if line.startswith("| `") and not line.startswith("| `kind`")
        for kind, fields in [line.split("|")[1:3]]
    }
    members = get_args(get_args(Fault)[0])
    assert {kind.strip(" `") for kind in rows} == {m.model_fields["kind"].annotation.__args__[0] for m in members}
    common = {"kind", "take", "at_s", "for_s"}
    for member in members:
        kind = member.model_fields["kind"].annotation.__args__[0]
        for field in set(member.model_fields) - common:
            assert f"`{field}`" in rows[f" `{kind}` "], (kind, field)
