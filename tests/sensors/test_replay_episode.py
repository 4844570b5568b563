import json
import shutil

import numpy as np
import pytest
from blake3 import blake3

from firsthand_edge._core import Intake, read_evidence
from firsthand_edge.errors import DeviceAbsent, RecordingUnreadable
from firsthand_edge.model import DeviceInfo
from firsthand_edge.sensors.configuration import ReplayDevice, SimDevice
from firsthand_edge.sensors.replay import make_replay
from firsthand_edge.sensors.replay_episode import EpisodeRecording
from firsthand_edge.sensors.seam import DeviceEnded, SensorSilent
from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.testing.sensors import check_sensor
from firsthand_edge.testing.simulated_time import SimulatedRig, record_simulated
from firsthand_edge.trigger.replayed import ReplayedTrigger

from .recording import Recorder, plan_of
from .rigs import PERIOD_NS, S, camera, events, imu

COLUMNS = ("warmup", "sequence", "trigger_index", "device_ticks", "arrival_ns", "exposure_ns", "domain", "rig_ns")


def stereo():
    eye = {"content": "picture", "rate_hz": 60, "exposure_us": 4000, "trigger_delay_us": 1000}
    return SimDevice.model_validate(
        {
            "driver": "sim",
            "name": "stereo",
            "seed": 8,
            "min_delay_us": 6000,
            "drift_ppm": -40,
            "wrap_after_s": 4,
            "stream": [{"name": "left", **eye}, {"name": "right", **eye}],
        }
    )


def depth():
    return camera("depth", with_stream={"content": "depth"}, seed=9, drift_ppm=70)


def poses():
    stream = {"content": "poses", "rate_hz": 60, "triggered": False, "stamp_point": "instant", "exposure_us": 0}
    return camera("hand_pose", with_stream=stream, seed=10)


@pytest.fixture(scope="module")
def episode(tmp_path_factory):
    """Four seconds of six devices, every medium, with warm-up pairs; counters wrap in it."""
    base = tmp_path_factory.mktemp("recorded")
    lossy = camera(
        "head", drift_ppm=50, wrap_after_s="4.5", faults=[{"kind": "drop", "at_s": 1, "for_s": 1, "every": 3}]
    )
    rig = SimulatedRig([lossy, stereo(), depth(), imu(), poses(), events()], base / "run")
    intake = Intake(json.dumps([i.to_json() for i in rig.infos]), plan=plan_of(rig.infos), live=base / "live")
    (base / "episode").mkdir()
    record_simulated(rig, intake, directory=base / "episode", seconds=4.0, period_ns=PERIOD_NS, take={"id": "t"})
    rig.close()
    return base / "episode"


def config(episode, name, **more):
    return ReplayDevice.model_validate({"driver": "replay", "name": name, "path": episode, **more})


def device_names(episode):
    return [d["name"] for d in json.loads(read_evidence(episode / "evidence.mcap")["devices"])]


@pytest.mark.parametrize("device", ["head", "stereo", "depth", "imu", "hand_pose", "contact"])
def test_every_payload_and_every_raw_value_is_the_recorded_one(episode, device):
    recorded = read_evidence(episode / "evidence.mcap")["samples"]
    recording = EpisodeRecording(config(episode, device))
    info = recording.open()
    samples = list(recording.samples())
    warm_up = list(recording.warm_up())
    for stream in info.streams:
        columns = recorded[stream.name]
        taken = columns["warmup"] == 0
        mine = [s for s in samples if s.stream == stream.name]
        assert len(mine) == int(taken.sum()) > 15
        for name in ("sequence", "trigger_index", "device_ticks", "arrival_ns", "exposure_ns", "domain"):
            assert [int(getattr(s, name)) for s in mine] == columns[name][taken].tolist()
            assert [int(getattr(s, name)) for s in warm_up if s.stream == stream.name] == columns[name][~taken].tolist()
        digests = [int.from_bytes(blake3(s.payload).digest()[:8], "little", signed=True) for s in mine]
        assert digests == columns["digest"][taken].tolist()
    assert all(s.payload == b"" for s in warm_up)
    recording.close()
    recording.close()


def test_streams_of_one_clock_keep_their_order_of_receipt(episode):
    recorded = read_evidence(episode / "evidence.mcap")["samples"]
    order = sorted((r, name) for name in ("left", "right") for r in recorded[name]["received"].tolist())
    recording = EpisodeRecording(config(episode, "stereo"))
    recording.open()
    assert [s.stream for s in (*recording.warm_up(), *recording.samples())] == [name for _, name in order]
    recording.close()


def test_the_device_says_of_itself_what_it_said_when_it_was_recorded(episode):
    recorded = {
        d["name"]: DeviceInfo.from_json(d) for d in json.loads(read_evidence(episode / "evidence.mcap")["devices"])
    }
    recording = EpisodeRecording(config(episode, "eyes", device="stereo"))
    info = recording.open()
    assert info.name == "eyes"
    assert info.driver == "replay"
    assert (info.counter, info.streams, info.serial) == (
        recorded["stereo"].counter,
        recorded["stereo"].streams,
        recorded["stereo"].serial,
    )
    recording.close()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def trigger(tmp_path, clock):
    trigger = ReplayedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    yield trigger
    trigger.close()


def player(config, tmp_path, clock):
    sensor = make_replay(config, tmp_path)
    sensor._now_ns, sensor._sleep = clock.monotonic_ns, clock.sleep
    return sensor


@pytest.mark.parametrize("pace", ["fast", "recorded"])
def test_keeps_the_contract_of_every_sensor(episode, tmp_path, clock, trigger, pace):
    info = check_sensor(
        lambda: player(config(episode, "stereo", pace=pace), tmp_path, clock),
        timeout_s=20,
        start=lambda: trigger.start(1, period_ns=PERIOD_NS),
        stop=lambda: (trigger.stop(), clock.sleep(0.1)),
        samples=100,
    )
    assert [s.name for s in info.streams] == ["left", "right"]


def read_all(sensor, clock):
    out = []
    while True:
        try:
            out += [(clock.monotonic_ns(), s) for s in sensor.read(timeout_s=0.05)]
        except SensorSilent:
            continue
        except DeviceEnded:
            return out


def test_at_its_own_pace_samples_come_when_they_came(episode, tmp_path, clock, trigger):
    arrivals = [c["arrival_ns"][c["warmup"] == 0] for c in read_evidence(episode / "evidence.mcap")["samples"].values()]
    first_ns = int(min(a.min() for a in arrivals))
    sensor = player(config(episode, "head", pace="recorded"), tmp_path, clock)
    sensor.open()
    sensor.arm()
    start_ns = trigger.start(1, period_ns=PERIOD_NS)
    got = read_all(sensor, clock)
    # All devices of a rig are paced from the one earliest arrival, so they stay together.
    late = [now - start_ns - (s.arrival_ns - first_ns) for now, s in got]
    assert min(late) >= 0
    assert max(late) < 1_000_000
    assert got[-1][0] - start_ns > 3.9 * S
    sensor.close()


def test_a_preview_plays_the_warm_up_pairs_and_ends(episode, tmp_path, clock, trigger):
    sensor = player(config(episode, "head", pace="fast"), tmp_path, clock)
    sensor.open()
    sensor.arm()
    trigger.start(0, period_ns=PERIOD_NS)
    got = []
    with pytest.raises(DeviceEnded, match="warm-up of device head"):  # noqa: PT012 - it ends after many reads
        while True:
            got += sensor.read(timeout_s=0.01)
    assert len(got) == 180
    trigger.stop()
    sensor.disarm()
    sensor.arm()
    trigger.start(1, period_ns=PERIOD_NS)
    assert len(read_all(sensor, clock)) > 200
    sensor.close()


def test_a_player_that_is_started_in_mid_take_plays_nothing(episode, tmp_path, clock, trigger):
    sensor = player(config(episode, "head", pace="fast"), tmp_path, clock)
    sensor.open()
    trigger.start(2, period_ns=PERIOD_NS)
    clock.sleep(1)
    sensor.arm()
    with pytest.raises(DeviceEnded, match="device head was started in the middle of take 2"):
        sensor.read(timeout_s=0.1)
    sensor.close()


def test_replayed_through_real_processes_the_evidence_is_the_same(episode, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "again").mkdir()
    trigger = ReplayedTrigger(tmp_path / "run", recording=episode)
    recorder = Recorder(
        [config(episode, name, pace="fast") for name in device_names(episode)], trigger, tmp_path / "run", tmp_path
    )
    try:
        recorder.open()
        recorder.record(tmp_path / "again", preview=True)
    finally:
        recorder.close()
    before, after = read_evidence(episode / "evidence.mcap"), read_evidence(tmp_path / "again" / "evidence.mcap")
    assert np.array_equal(before["edges"]["time_ns"], after["edges"]["time_ns"])
    assert before["samples"].keys() == after["samples"].keys()
    for stream, columns in before["samples"].items():
        for name in COLUMNS:
            # Mapped times too: the maps saw the same pairs in the same order.
            assert np.array_equal(columns[name], after["samples"][stream][name]), (stream, name)
        taken = columns["warmup"] == 0
        assert np.array_equal(columns["digest"][taken], after["samples"][stream]["digest"][taken])


# ---- bad input


def test_a_device_that_the_episode_does_not_have_is_told(episode):
    with pytest.raises(DeviceAbsent, match="has no device nose; it has head, stereo, depth"):
        EpisodeRecording(config(episode, "nose")).open()


def test_a_missing_episode_is_told(tmp_path):
    with pytest.raises(RecordingUnreadable, match=r"evidence\.mcap"):
        EpisodeRecording(config(tmp_path, "head")).open()


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("file", ["evidence.mcap", "episode.mcap"])
def test_a_truncated_episode_is_told(episode, tmp_path, file, share):
    copy = tmp_path / "copy"
    shutil.copytree(episode, copy)
    data = (copy / file).read_bytes()
    (copy / file).write_bytes(data[: int(len(data) * share)])
    recording = EpisodeRecording(config(copy, "head"))
    with pytest.raises(RecordingUnreadable, match=file):
        recording.open()
    recording.close()


def test_footage_that_is_gone_is_told(episode, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(episode / "evidence.mcap", copy)
    with pytest.raises(RecordingUnreadable, match=r"the footage .*episode.mcap cannot be read: No such file"):
        EpisodeRecording(config(copy, "head")).open()
