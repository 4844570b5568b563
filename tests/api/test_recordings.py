"""A recording through the library is a recording through the command."""

import json

import pytest

import firsthand_edge as fe
from firsthand_edge.cli import run
from tests.gate import foreign
from tests.gate.foreign import Bag
from tests.gate.making import MS, START, P


@pytest.fixture
def recording(tmp_path):
    made = Bag(tmp_path / "take.mcap")
    for name, schema in (("/head", "Image"), ("/wrist", "Image"), ("/imu", "Imu")):
        made.topic(name, f"sensor_msgs/msg/{schema}", foreign.IMU_ROS2 if schema == "Imu" else foreign.IMAGE_ROS2)
    for i in range(60):
        for name, late in (("/head", 0), ("/wrist", 3 * MS), ("/imu", MS)):
            stamp = START + i * P + late
            made.add(name, stamp + 20 * MS, foreign.cdr(stamp), publish_ns=stamp + 5 * MS)
    return made.write()


def printed(capsys, *arguments):
    assert run(["audit", *map(str, arguments), "--json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("stamps", [None, "header", "log", "publish"])
def test_the_report_is_what_the_command_prints(recording, capsys, stamps):
    report = fe.audit_recording(recording, reference="/head", stamps=stamps)
    more = [] if stamps is None else ["--stamps", stamps]
    assert report.to_json() == printed(capsys, recording, "--reference", "/head", *more)
    assert report.residual.max_ns == 3 * MS


def test_channels_are_named_or_told_how(recording, capsys):
    report = fe.audit_recording(str(recording), streams=["/head", "/imu"], reference="/head")
    assert report.accepted
    named = ["--stream", "/head", "--stream", "/imu", "--reference", "/head"]
    assert report.to_json() == printed(capsys, recording, *named)
    how = {"/head": fe.Channel(), "/imu": fe.Channel(kind="sampled", rate_hz=60.0, offset_ns=-MS)}
    report = fe.audit_recording(recording, streams=how, reference="/head")
    assert report.residual.max_ns == 0
    named = ["--stream", "/head", "--stream", f"/imu,kind=sampled,rate=60,offset_ns={-MS}", "--reference", "/head"]
    assert report.to_json() == printed(capsys, recording, *named)


def test_its_picture_bears_its_name(recording, tmp_path):
    fe.audit_recording(recording, reference="/head").plot(tmp_path / "a.html")
    assert "<h2>take.mcap</h2>" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"streams": "/head"}, fe.UsageError, "pass a list of channels"),
        ({"streams": {"/head": "triggered"}}, fe.UsageError, "pass a Channel"),
        ({"streams": ["/nobody"]}, fe.UsageError, "/nobody"),
        ({"reference": "/nobody"}, fe.UsageError, "/nobody"),
        ({"reference": "/head", "statistic": "p50"}, fe.UsageError, "not one of max"),
    ],
)
def test_mistakes(recording, arguments, error, said):
    with pytest.raises(error, match=said):
        fe.audit_recording(recording, **arguments)


def test_a_recording_that_is_not_there(tmp_path):
    with pytest.raises(fe.CannotJudge):
        fe.audit_recording(tmp_path / "nothing.mcap")
