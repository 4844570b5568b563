"""Judging what anybody recorded."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from firsthand_edge.errors import CannotJudge, RecordingUnreadable, UsageError
from firsthand_edge.gate.audit import StreamChoice, audit, evidence_of, parse_stream
from firsthand_edge.gate.stamp_lists import Unit
from firsthand_edge.model import Kind
from firsthand_edge.spec.document import parse_spec
from tests.gate import foreign
from tests.gate.foreign import Bag
from tests.gate.making import MS, START, P, ticks
from tests.gate.recorded import SPEC


@pytest.fixture
def listed(tmp_path):
    """Writes lists of stamps and gives their `--stream` arguments."""

    def write(**streams):
        arguments = []
        for name, value in streams.items():
            times, keys = value if isinstance(value, tuple) else (value, "")
            path = tmp_path / f"{name}.txt"
            path.write_text("".join(f"{t}\n" for t in np.asarray(times).tolist()))
            arguments.append(f"{name}={path}{keys}")
        return arguments

    return write


def codes(found):
    return [reason.code for reason in found.verdict.reasons]


class TestParseStream:
    def test_name_and_file(self):
        assert parse_stream("head=a,b.txt", is_file=True) == StreamChoice("head", Path("a,b.txt"))

    def test_all_keys(self):
        text = "imu=x=1.csv,unit=us,kind=sampled,rate=997.5,offset_ns=-40"
        assert parse_stream(text, is_file=True) == StreamChoice(
            "imu", Path("x=1.csv"), Unit.US, Kind.SAMPLED, Decimal("997.5"), None, -40
        )

    def test_a_channel(self):
        assert parse_stream("/cam/image,decimate=2", is_file=False) == StreamChoice("/cam/image", decimate=2)

    def test_a_rate_is_a_period(self):
        assert parse_stream("a=b,rate=60", is_file=True).period_ns == 16_666_667
        assert parse_stream("a=b", is_file=True).period_ns is None

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("head", "write NAME=FILE"),
            ("=file", "write NAME=FILE"),
            ("head=", "write NAME=FILE"),
            ("a=b,colour=red", "unknown key `colour`; keys are unit, kind, rate"),
            ("a=b,unit=h", "`unit=h` is not one of auto, ns"),
            ("a=b,kind=video", "`kind=video` is not one of triggered"),
            ("a=b,rate=fast", "`rate=fast` is not a rate in Hz"),
            ("a=b,rate=0", "`rate=0` is not a rate in Hz"),
            ("a=b,rate=nan", "`rate=nan` is not a rate in Hz"),
            ("a=b,decimate=0", "`decimate=0` is not a whole number"),
            ("a=b,decimate=1.5", "`decimate=1.5` is not a whole number"),
            ("a=b,offset_ns=99999999999999", "within an hour"),
            ("a=b,rate=1,rate=2", "`rate` is there twice"),
            ("a=b,kind=sampled,decimate=2", "`decimate` is for triggered streams"),
        ],
    )
    def test_mistakes_are_wrong_usage(self, text, said):
        with pytest.raises(UsageError) as caught:
            parse_stream(text, is_file=True)
        assert said in str(caught.value)

    def test_a_unit_is_for_lists(self):
        with pytest.raises(UsageError, match="is for lists of stamps"):
            parse_stream("/cam,unit=ns", is_file=False)


class TestLists:
    def test_two_lists_that_agree(self, listed):
        found = audit(streams=listed(head=ticks(60), wrist=ticks(60) + MS))
        assert found.verdict.accepted
        report = found.report
        assert (report["reference"], report["period_ns"], report["verdict"]) == ("head", P, "accepted")
        assert report["residual_ns"]["max"] == MS
        assert report["sources"]["head"]["unit"] == "ns"
        assert report["notes"][:2] == [
            "Stamps are taken as declared mid-exposure times.",
            "Times used: ns in head and wrist.",
        ]
        assert "clock.*" in report["not_judged"]

    def test_the_reference_must_be_there_or_named(self, listed):
        streams = listed(rgb=ticks(60), depth=ticks(60))
        with pytest.raises(UsageError, match=r"no stream `head` .*: rgb \(triggered, 60 samples\), depth"):
            audit(streams=streams)
        assert audit(streams=streams, reference="depth").report["reference"] == "depth"

    def test_the_reference_is_triggered_and_not_decimated(self, listed):
        with pytest.raises(UsageError, match="only a triggered stream numbers ticks"):
            audit(streams=listed(head=(ticks(60), ",kind=sampled"), wrist=ticks(60)))
        with pytest.raises(UsageError, match="leave `decimate` out"):
            audit(streams=listed(head=(ticks(60), ",decimate=2"), wrist=ticks(60)))

    def test_offset_rate_and_decimation(self, listed):
        found = audit(
            streams=listed(
                head=(ticks(120), ",rate=60"),
                depth=(ticks(120)[::2] + 3 * MS, ",decimate=2,rate=30,offset_ns=-3000000"),
            )
        )
        assert found.verdict.accepted, codes(found)
        assert found.report["streams"]["depth"]["expected"] == 60
        assert "stream.rate" not in found.report["not_judged"]

    def test_a_rate_that_does_not_hold(self, listed):
        assert "stream.rate" in codes(audit(streams=listed(head=(ticks(60), ",rate=30"), wrist=ticks(60))))

    def test_ceiling_and_statistic(self, listed):
        times = ticks(200)
        times[7] += 3 * MS
        streams = listed(head=ticks(200), wrist=times)
        assert codes(audit(streams=streams)) == ["sync.ceiling"]
        assert audit(streams=streams, ceiling_ns=3 * MS).verdict.accepted
        assert audit(streams=streams, statistic="p99").verdict.accepted

    def test_an_empty_list_is_an_absent_stream(self, listed):
        assert codes(audit(streams=listed(head=ticks(60), wrist=[]))) == ["sync.no_ticks"]

    def test_an_imu_is_sampled_and_a_glove_interpolated(self, listed):
        found = audit(
            streams=listed(
                head=ticks(60),
                imu=(ticks(1000, period=MS) - 5, ",kind=sampled,rate=1000"),
                glove=(ticks(80, period=14 * MS, start=START - 14 * MS), ",kind=interpolated"),
            )
        )
        assert found.verdict.accepted, found.verdict.reasons
        assert found.report["streams"]["glove"]["missing"] == 0
        assert found.report["residual_ns"]["max"] <= MS

    def test_without_a_list_or_with_twins(self, listed):
        with pytest.raises(UsageError, match="name a recording, or lists"):
            audit()
        one = listed(head=ticks(60))
        with pytest.raises(UsageError, match="named twice"):
            audit(streams=one * 2)
        with pytest.raises(UsageError, match="lists of stamps have one"):
            audit(streams=one, stamps="log")

    def test_a_spec_states_limits_kinds_and_what_is_required(self, listed):
        spec = parse_spec((SPEC + "\n[sync]\nceiling_ms = 0.5\n").encode(), place="a test")
        found = audit(streams=listed(head=ticks(60), wrist=ticks(60) + MS), spec=spec)
        assert codes(found) == ["sync.ceiling"]
        assert found.report["spec"]["digest"] == spec.digest
        assert "stream.rate" not in found.report["not_judged"]
        absent = audit(streams=listed(head=ticks(60)), spec=spec)
        assert [(r.code, r.stream) for r in absent.verdict.reasons] == [("sync.no_ticks", "wrist")]

    def test_one_list_alone_has_nothing_to_be_compared_with(self, listed):
        assert codes(audit(streams=listed(head=ticks(60)))) == ["sync.no_ticks"]

    def test_a_list_of_absurd_stamps_gives_a_verdict_or_one_error(self, listed):
        for times in ([-(2**61), 2**61], [START] * 50, [START], [0, 1, 2]):
            try:
                found = audit(streams=listed(head=(times, ",unit=ns"), wrist=ticks(60)))
            except CannotJudge:
                continue
            assert not found.verdict.accepted


class TestMcap:
    def bag(self, path):
        made = Bag(path).topic("/head/image", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        made.topic("/wrist/image", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        made.topic("/imu", "sensor_msgs/msg/Imu", foreign.IMU_ROS2)
        made.topic("/button", "std_msgs/msg/String", foreign.STRING_ROS2)
        for i, stamp in enumerate(ticks(60).tolist()):
            made.add("/head/image", stamp + 20 * MS, foreign.cdr(stamp))
            made.add("/wrist/image", stamp + (20 + i % 7) * MS, foreign.cdr(stamp + MS))
        for stamp in ticks(1000, period=MS).tolist():
            made.add("/imu", stamp, foreign.cdr(stamp))
        return made.add("/button", START + 5, b"").write()

    def test_all_but_events_are_required(self, tmp_path):
        found = audit(self.bag(tmp_path / "a.mcap"), reference="head/image")
        assert found.verdict.accepted, found.verdict.reasons
        assert found.report["reference"] == "/head/image"
        assert found.report["sources"]["/head/image"]["stamps"] == "header"
        assert found.report["notes"][1] == "Times used: header of /head/image, /imu and /wrist/image; log of /button."
        assert found.report["streams"]["/button"]["required"] is False
        assert found.report["streams"]["/imu"]["kind"] == "sampled"

    def test_log_times_are_other_times(self, tmp_path):
        found = audit(self.bag(tmp_path / "a.mcap"), reference="/head/image", stamps="log")
        assert "sync.ceiling" in codes(found)
        assert found.report["sources"]["/head/image"]["stamps"] == "log"

    def test_channels_that_are_named(self, tmp_path):
        path = self.bag(tmp_path / "a.mcap")
        found = audit(path, ["head/image", "/wrist/image,rate=60"], reference="head/image")
        assert set(found.report["streams"]) == {"head/image", "/wrist/image"}
        with pytest.raises(UsageError, match="no channel `/left`"):
            audit(path, ["/left"])

    def test_a_reference_that_is_not_there_lists_the_channels(self, tmp_path):
        with pytest.raises(UsageError, match=r"no stream `head` .*/button \(event, 1 sample\), /head/image"):
            audit(self.bag(tmp_path / "a.mcap"))

    @pytest.mark.parametrize("streams", [[], ["wrist/image"]])
    def test_all_of_them_whatever_was_named(self, tmp_path, streams):
        path = self.bag(tmp_path / "a.mcap")
        every = "/button (event, 1 sample), /head/image (triggered, 60 samples), /imu (sampled, 1000 samples), /wrist"
        with pytest.raises(UsageError) as caught:
            audit(path, streams, reference="nope")
        assert f"no stream `nope` to be the reference; name one with --reference: {every}" in str(caught.value)
        with pytest.raises(UsageError) as caught:
            audit(path, streams, spec=parse_spec(SPEC.encode(), place="a test"))
        assert every in str(caught.value)

    def test_a_reference_that_is_there_and_was_not_named(self, tmp_path):
        with pytest.raises(UsageError, match=r"not among the streams that are judged; add it with --stream.*/button"):
            audit(self.bag(tmp_path / "a.mcap"), ["wrist/image"], reference="head/image")

    def test_a_spec_names_the_channels(self, tmp_path):
        text = SPEC.replace('"head"', '"head_image"').replace(
            "[[streams]]", '[sync]\nreference = "head_image"\n[[streams]]', 1
        )
        spec = parse_spec(text.encode(), place="a test")
        made = Bag(tmp_path / "a.mcap")
        for name in ("/head_image", "/wrist", "/other"):
            made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
            for stamp in ticks(60).tolist():
                made.add(name, stamp, foreign.cdr(stamp))
        found = audit(made.write(), spec=spec)
        assert found.verdict.accepted, found.verdict.reasons
        assert set(found.report["streams"]) == {"head_image", "wrist"}

    def test_a_folder_without_an_episode(self, tmp_path):
        with pytest.raises(RecordingUnreadable, match=r"episode\.mcap cannot be read"):
            audit(tmp_path)


def test_our_own_episodes_are_found_by_folder_and_by_file(tmp_path):
    assert evidence_of(tmp_path / "episode.mcap") is None
    evidence = tmp_path / "evidence.mcap"
    evidence.write_bytes(b"")
    for named in (tmp_path, tmp_path / "episode.mcap", evidence):
        assert evidence_of(named) == evidence
    assert evidence_of(tmp_path / "other.mcap") is None
    with pytest.raises(UsageError, match="leave --stream, --reference and --stamps out"):
        audit(evidence, reference="head")


def test_a_name_that_is_no_utf8_is_written_as_an_escape(listed):
    head, wrist = listed(head=ticks(60), wrist=ticks(60))
    found = audit(streams=[head.replace("head=", "h\udcff="), wrist], reference="h\udcff")
    assert found.verdict.accepted
    assert found.report["reference"] == "h\\udcff"


def test_headers_of_joined_files_are_told(tmp_path, listed):
    path = tmp_path / "joined.csv"
    half = "stamp,frame\n" + "".join(f"{t},x.png\n" for t in ticks(30).tolist())
    path.write_text(half * 2)
    found = audit(streams=[f"head={path}", *listed(wrist=ticks(60))])
    assert found.report["sources"]["head"]["repeated_headers"] == 1
    assert any(note.startswith("head: 1 line repeats a header") for note in found.report["notes"])


def test_stamps_that_headers_lack_are_told(tmp_path):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/wrist"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for i, stamp in enumerate(ticks(60).tolist()):
            made.add(name, stamp, foreign.cdr(0 if name == "/wrist" and i in (4, 9) else stamp))
    found = audit(made.write())
    assert found.report["streams"]["/wrist"]["unstamped"] == 2
    assert found.report["notes"][-1] == "/wrist: 2 samples carry no stamp and cannot be judged; 58 do."


def test_headers_held_against_log_times_are_told(tmp_path):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/wrist"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp, foreign.cdr(stamp if name == "/head" else 0))
    path = made.write()
    told = "Stamps in messages of /head are held against log times of /wrist, so transport counts as disagreement"
    assert any(note.startswith(told) for note in audit(path).report["notes"])
    assert not any("held against" in note for note in audit(path, stamps="log").report["notes"])


def test_streams_that_count_from_different_beginnings_are_told(listed):
    found = audit(streams=listed(head=ticks(60), wrist=(ticks(60) - START, ",unit=ns")))
    assert not found.verdict.accepted
    (note,) = [note for note in found.report["notes"] if "different beginnings" in note]
    assert note.startswith("wrist: all of it lies 17")
    assert " s before head;" in note
    assert not any("beginnings" in n for n in audit(streams=listed(head=ticks(60), wrist=ticks(60))).report["notes"])


def test_a_camera_of_half_the_rate_is_told_how_to_state_it(listed):
    half = audit(streams=listed(head=ticks(120), wrist=ticks(120)[::2]))
    assert codes(half) == ["sync.missing"]
    (note,) = [note for note in half.report["notes"] if "decimate" in note]
    assert note == "wrist: its samples come at every 2 ticks of head; if they are meant to, state decimate=2."
    told = audit(streams=listed(head=ticks(120), wrist=(ticks(120)[::2], ",decimate=2")))
    assert told.verdict.accepted
    assert not any("decimate" in note for note in told.report["notes"])


def test_a_recording_without_a_sample_cannot_be_judged(tmp_path):
    path = Bag(tmp_path / "a.mcap").topic("/head", "sensor_msgs/msg/Image", foreign.IMAGE_ROS2).write()
    with pytest.raises(CannotJudge, match="holds no samples, so there is nothing to judge"):
        audit(path)


def test_a_blank_reference_leaves_the_match_unjudged(listed):
    found = audit(streams=listed(head=[], wrist=ticks(60)))
    assert codes(found) == ["sync.no_ticks"]
    assert {"sync.ceiling", "sync.missing"} <= set(found.report["not_judged"])
