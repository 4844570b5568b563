import math
import os
import struct
import tomllib
from collections import Counter
from decimal import Decimal
from pathlib import Path

import msgpack
import pytest
from pydantic import TypeAdapter

from firsthand_edge.errors import RecordingUnreadable
from firsthand_edge.model import ABSENT, Domain
from firsthand_edge.sensors.configuration import DeviceConfig, ReplayDevice
from firsthand_edge.sensors.replay import ReplaySensor, make_replay
from firsthand_edge.sensors.replay_vrs import VrsRecording, check_whole, silenced
from firsthand_edge.sensors.seam import DeviceEnded, SensorSilent
from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.testing.sensors import check_sensor
from firsthand_edge.trigger.replayed import ReplayedTrigger

from .recording import Recorder

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FIRSTHAND_DATA", ROOT / "../shared/data"))
ARIA = DATA / "aria" / "aria_unit_test_timecode_sequence_calib.vrs"
PERIOD_NS = 33_333_333


def aria_config(**change):
    table = tomllib.loads((ROOT / "configs" / "replay-aria.toml").read_text(), parse_float=Decimal)["device"][0]
    return TypeAdapter(DeviceConfig).validate_python({**table, "path": ARIA, **change})


def raw_records():
    """The file as the public reader gives it, straight."""
    with silenced():
        from pyvrs import SyncVRSReader

        reader = SyncVRSReader(ARIA)
        records = [
            {
                "stream": r.stream_id,
                "type": r.record_type,
                "timestamp": r.timestamp,
                "metadata": [dict(b) for b in r.metadata_blocks],
                "image": b"".join(b.tobytes() for b in r.image_blocks),
            }
            for r in reader
        ]
        reader.close()
    return records


def same(a, b):
    """Equality that takes two NaNs for equal and tells 1 from 1.0."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@pytest.mark.real
def test_all_323_records_are_delivered_byte_for_byte_with_their_stamps():
    recording = VrsRecording(aria_config())
    info = recording.open()
    samples = list(recording.samples())
    recording.close()
    records = raw_records()
    assert len(records) == len(samples) == 323
    for record, sample in zip(records, samples, strict=True):
        said = msgpack.unpackb(sample.metadata)
        assert sample.stream == record["stream"] == said["vrs"]["stream_id"]
        assert said["vrs"]["record_type"] == record["type"]
        assert same(said["vrs"]["timestamp"], record["timestamp"])
        assert same(said["metadata"], record["metadata"])
        assert sample.payload == record["image"]
        assert sample.domain is Domain.PTP
        fields = record["metadata"][0] if record["metadata"] else {}
        if record["type"] == "data":
            stamp = fields.get("capture_timestamp_ns", fields.get("monotonic_timestamp_ns"))
            assert sample.device_ticks == stamp
            arrival = fields.get("arrival_timestamp_ns", -1)
            assert sample.arrival_ns == (ABSENT if arrival == -1 else arrival)
            assert sample.sequence == fields.get("frame_number", ABSENT)
            assert abs(sample.exposure_ns - fields.get("exposure_duration_s", 0) * 1e9) < 1
        else:
            assert (sample.device_ticks, sample.arrival_ns, sample.sequence) == (ABSENT, ABSENT, ABSENT)
    assert (info.serial, info.model, info.identity_map) == ("1WM09380041283", "Aria", True)
    assert sum(s.arrival_ns == ABSENT and s.device_ticks != ABSENT for s in samples) > 0
    assert Counter(s.stream for s in samples)["1202-1"] == 152


@pytest.mark.real
@pytest.mark.parametrize("pace", ["fast", "recorded"])
def test_keeps_the_contract_of_every_sensor(tmp_path, pace):
    clock = FakeClock()
    trigger = ReplayedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)

    def make():
        config = aria_config(pace=pace)
        return ReplaySensor(config, VrsRecording(config), tmp_path, monotonic_ns=clock.monotonic_ns, sleep=clock.sleep)

    check_sensor(
        make,
        timeout_s=20,
        start=lambda: trigger.start(1, period_ns=PERIOD_NS),
        stop=lambda: (trigger.stop(), clock.sleep(0.1)),
        samples=323,
    )
    trigger.close()


@pytest.mark.real
def test_at_its_own_pace_it_takes_as_long_as_the_recording(tmp_path):
    clock = FakeClock()
    trigger = ReplayedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    config = aria_config(pace="recorded")
    sensor = ReplaySensor(config, VrsRecording(config), tmp_path, monotonic_ns=clock.monotonic_ns, sleep=clock.sleep)
    sensor.open()
    sensor.arm()
    start_ns = trigger.start(1, period_ns=PERIOD_NS)
    count = 0
    while True:
        try:
            count += len(sensor.read(timeout_s=0.05))
        except SensorSilent:
            continue
        except DeviceEnded:
            break
    assert count == 323
    assert 0.14e9 < clock.monotonic_ns() - start_ns < 0.2e9
    sensor.close()
    trigger.close()


@pytest.mark.real
def test_a_worker_process_plays_it_and_all_of_it_is_recorded(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "episode").mkdir()
    recorder = Recorder([aria_config()], ReplayedTrigger(tmp_path / "run"), tmp_path / "run", tmp_path)
    try:
        recorder.open()
        counts = recorder.record(tmp_path / "episode")["counts"]
    finally:
        recorder.close()
    assert {name: c["durable"] for name, c in counts.items()} == Counter(r["stream"] for r in raw_records())
    from mcap.reader import make_reader

    with (tmp_path / "episode" / "episode.mcap").open("rb") as file:
        topics = Counter(channel.topic for _, channel, _ in make_reader(file).iter_messages())
    assert sum(n for topic, n in topics.items() if topic.endswith("/metadata")) == 323


@pytest.mark.real
def test_a_foreign_recording_has_no_warm_up(tmp_path):
    trigger = ReplayedTrigger(tmp_path)
    sensor = make_replay(aria_config(), tmp_path)
    sensor.open()
    sensor.arm()
    trigger.start(0, period_ns=PERIOD_NS)
    with pytest.raises(DeviceEnded, match="warm-up"):
        sensor.read(timeout_s=0.05)
    sensor.close()
    trigger.close()


@pytest.mark.real
def test_a_rig_file_that_lists_other_streams_is_told():
    config = aria_config(stream=aria_config().stream[1:])
    with pytest.raises(RecordingUnreadable, match=r"must list exactly these \(it differs in 214-1\)"):
        VrsRecording(config).open()


@pytest.mark.real
@pytest.mark.parametrize("cut", [1, 100, 20_000, 800_000, 1_999_000])
def test_a_truncated_recording_is_told_and_not_played_short(tmp_path, cut):
    copy = tmp_path / "cut.vrs"
    copy.write_bytes(ARIA.read_bytes()[:-cut])
    with pytest.raises(RecordingUnreadable, match=r"cut.vrs is (truncated|no VRS file)"):
        VrsRecording(aria_config(path=copy)).open()


@pytest.mark.real
@pytest.mark.parametrize("cut", [1, 500])
def test_an_index_at_the_end_that_is_cut_is_told(tmp_path, cut):
    sample = DATA / "vrs" / "sample_file.vrs"
    check_whole(sample)
    copy = tmp_path / "cut.vrs"
    copy.write_bytes(sample.read_bytes()[:-cut])
    with pytest.raises(RecordingUnreadable, match="truncated"):
        check_whole(copy)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "cannot be read: it is empty"),
        (b"hello", "is no VRS file"),
        (b"VisionRe" + bytes(72), "was never closed"),
    ],
)
def test_what_is_no_recording_is_told(tmp_path, content, said):
    path = tmp_path / "x.vrs"
    if content is not None:
        path.write_bytes(content)
    config = ReplayDevice.model_validate({"driver": "replay", "name": "r", "path": path, "stream": [{"source": "1-1"}]})
    with pytest.raises(RecordingUnreadable, match=said):
        VrsRecording(config).open()


def test_silence_holds_for_both_streams_and_ends(capfd):
    with silenced():
        os.write(1, b"out")
        os.write(2, b"err")
    os.write(1, b"heard")
    assert capfd.readouterr() == ("heard", "")
