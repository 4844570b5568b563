"""`firsthand-edge audit` as people run it: which files, what is printed, the bar and who sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.gate import foreign, lerobot
from tests.gate.foreign import Bag
from tests.gate.making import MS, ticks
from tests.gate.test_bag_stamps import rig
from tests.gate.test_bag_stamps import write as write_bag

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "firsthand_edge.cli", "audit"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/wrist"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp + 20 * MS, foreign.cdr(stamp + (name == "/wrist") * MS))
    return made.write()


def run(*arguments: object, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], check=False, timeout=60, **({"capture_output": True} | options)
    )


def seen_on_a_terminal(*arguments: object, **options) -> tuple[bytes, int]:
    """What comes on a standard error that is a terminal, and the exit status."""
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    done = run(*arguments, capture_output=False, stdout=subprocess.PIPE, stderr=theirs, env=environment, **options)
    os.close(theirs)
    return read_all(ours), done.returncode


def read_all(terminal: int) -> bytes:
    """What was written to the other side of a terminal, which is closed by now."""
    found = b""
    try:
        while block := os.read(terminal, 65_536):
            found += block
    except OSError:  # how such a terminal ends
        pass
    os.close(terminal)
    return found


def test_a_bar_is_for_people_at_a_terminal(recording):
    shown, status = seen_on_a_terminal(recording)
    assert status == 0
    assert b"reading" in shown
    quiet, status = seen_on_a_terminal(recording, "--json")
    assert (quiet, status) == (b"", 0)
    piped = run(recording)
    assert (piped.stderr, piped.returncode) == (b"", 0)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_figure_is_cut_off_however_narrow_the_terminal_is(tmp_path, columns):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/wrist_left/image_raw"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp, foreign.cdr(stamp + (name != "/head") * 123_456))
    path = made.write()
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "dumb", "COLUMNS": str(columns)}
    assert run(path, capture_output=False, stdout=theirs, stderr=subprocess.PIPE, env=environment).returncode == 0
    os.close(theirs)
    shown = read_all(ours).decode().split()
    assert shown.count("0.123456") + shown.count("0.123456,") >= 3
    assert "60" in shown or "60," in shown
    assert not any("\u2026" in word for word in shown)


def test_no_figure_is_cut_off_in_a_pipe(tmp_path):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", f"/{'long/' * 30}image"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp, foreign.cdr(stamp))
    assert b"\xe2\x80\xa6" not in run(made.write()).stdout


def test_a_list_from_a_pipe_under_a_bar(tmp_path):
    (tmp_path / "head.txt").write_text("".join(f"{t}\n" for t in ticks(60).tolist()))
    with (tmp_path / "head.txt").open() as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
        shown, status = seen_on_a_terminal(
            "--stream", f"head={tmp_path / 'head.txt'}", "--stream", "wrist=/dev/stdin", stdin=cat.stdout
        )
    assert status == 0, shown


def test_a_bar_of_every_format_goes_away_when_there_is_an_error(tmp_path, recording):
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(recording.read_bytes()[:-20])
    shown, status = seen_on_a_terminal(cut)
    assert status == 3
    assert b"cut.mcap is truncated or damaged" in shown.replace(b"\r\n", b" ")


def test_what_each_stamp_is_worth_is_in_the_report(recording):
    for stamps, grade in (("header", "declared"), ("log", "received"), ("publish", "sent")):
        report = json.loads(run(recording, "--stamps", stamps, "--json").stdout)
        assert {row["grade"] for row in report["streams"].values()} == {grade}
        assert {source["stamps"] for source in report["sources"].values()} == {stamps}


def test_a_bag_and_a_data_set(tmp_path):
    done = run(write_bag(tmp_path / "a.bag", rig()))
    assert (done.returncode, done.stdout.split()[0]) == (0, b"ACCEPTED")
    folder = lerobot.write(tmp_path / "set")
    done = run(folder, "--reference", "timestamp")
    assert done.returncode == 2
    assert b"name one with --episode N" in done.stderr
    done = run(folder, "--reference", "timestamp", "--episode", 1, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["episode"], report["verdict"]) == (1, 1, "rejected")


@pytest.mark.parametrize("stamps", ["log", "header"])
def test_a_file_that_may_not_be_read(tmp_path, stamps):
    done = run(tmp_path / "absent.mcap", "--stamps", stamps)
    assert done.returncode == 3
    assert b"absent.mcap cannot be read (No such file or directory)" in done.stderr
