"""The live page, read from other processes, while the writer lives and after it was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from firsthand_edge import _core
from firsthand_edge.errors import DiskError, RecordingUnreadable
from firsthand_edge.model import ABSENT
from tests.record.wire import SECOND, START, Wire, device, plan, push, recorder, required, start, stream

if TYPE_CHECKING:
    from pathlib import Path

PERIOD = 16_666_667


def test_the_page_shows_ticks_offsets_and_what_is_wrong(tmp_path: Path) -> None:
    intake = recorder(
        tmp_path, device("cam", stream("head"), stream("wrist")), plan=plan(required("head"), required("wrist"))
    )
    page = _core.LivePage(tmp_path / "live")
    empty = page.read()
    assert (empty["take"], empty["recording"], empty["tick"], empty["final_ns"]) == ("", False, -1, ABSENT)
    assert empty["streams"]["head"]["last_ns"] == ABSENT

    start(intake, tmp_path / "take", take='{"id": "x"}')
    for k in range(120):
        t = START + k * PERIOD
        late = 3_000_000 if k == 10 else 1000
        push(intake, "head", [Wire(b"%d" % k, k, t, t)])
        if k != 119:
            push(intake, "wrist", [Wire(b"frozen", k + (k > 50), t + late, t)])
    read = page.read()  # no advance yet: samples alone made these ticks final
    assert read["recording"] is True
    assert read["take"] == '{"id": "x"}'
    assert read["tick"] == 117  # nobody has passed the middle after tick 118 but head
    assert read["final_ns"] == START + 117 * PERIOD
    assert (read["residual_ns"], read["max_ns"], read["recent_max_ns"], read["over"]) == (1000, 3_000_000, 1000, 1)
    assert read["streams"]["wrist"]["offset_ns"] == 1000
    assert read["streams"]["wrist"]["sequence_gaps"] == 1
    intake.advance(START + 121 * PERIOD + SECOND)
    read = page.read()
    assert read["tick"] == 119
    assert read["updated_ns"] == START + 121 * PERIOD + SECOND
    assert (read["residual_ns"], read["streams"]["wrist"]["offset_ns"]) == (None, None)
    push(intake, "wrist", [Wire(b"too late", 200, START + 119 * PERIOD, START)])
    intake.advance(START + 121 * PERIOD + SECOND)
    assert page.read()["late"] == 1

    intake.stop_take("{}")
    read = page.read()
    assert read["recording"] is False
    assert read["streams"]["wrist"]["durable"] == 120
    assert read["streams"]["head"]["frozen_run"] == 1
    assert read["streams"]["wrist"]["frozen_run"] == 1
    # The next take begins with a clean page.
    start(intake, tmp_path / "next")
    assert page.read()["tick"] == -1


def test_a_slip_by_trigger_index_is_seen_until_the_worker_starts_anew(tmp_path: Path) -> None:
    indexed = [device(name, stream(name, has_trigger_index=True)) for name in ("head", "wrist")]
    intake = recorder(tmp_path, *indexed, plan=plan(required("head"), required("wrist"), latency_ns=SECOND))
    page = _core.LivePage(tmp_path / "live")
    start(intake, tmp_path / "take")
    for k in range(40):
        t = START + k * PERIOD
        push(intake, "head", [Wire(b"", k, t, t, trigger_index=k)])
        restarted = k >= 20  # sync.md section 3.6: it rejoins by time
        push(intake, "wrist", [Wire(b"", k, t + 1000, t, trigger_index=k - 1)], incarnation=int(restarted))
        read = page.read()
        if k == 15:
            assert (read["tick"], read["residual_ns"], read["over"]) == (14, PERIOD + 1000, 15)
    assert (read["tick"], read["residual_ns"], read["recent_max_ns"]) == (38, 1000, PERIOD + 1000)
    assert read["over"] < 25
    intake.stop_take("{}")


def test_a_frozen_picture_is_seen(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("head")))
    start(intake, tmp_path / "take")
    for k, payload in enumerate([b"1", b"2", b"2", b"2", b"2"]):
        push(intake, "head", [Wire(payload, k, START + k, START)])
    intake.stop_take("{}")
    assert _core.LivePage(tmp_path / "live").read()["streams"]["head"]["frozen_run"] == 4


def test_rates_are_those_of_the_last_second(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("head")))
    page = _core.LivePage(tmp_path / "live")
    for tenth in range(50):
        for _ in range(6 if tenth < 30 else 3):
            push(intake, "head", [Wire()], epoch=0)  # previews count
        intake.advance(START + (tenth + 1) * SECOND // 10)
        if tenth == 29:
            assert page.read()["streams"]["head"]["rate_mhz"] == 60_000
    assert page.read()["streams"]["head"]["rate_mhz"] == 30_000
    for tenth in range(50, 70):
        intake.advance(START + (tenth + 1) * SECOND // 10)
    assert page.read()["streams"]["head"]["rate_mhz"] == 0


def test_malformed_messages_are_seen(tmp_path: Path) -> None:
    intake = recorder(tmp_path, device("cam", stream("head")))
    with pytest.raises(ValueError, match="malformed"):
        intake.push("head", 0, 0, 0, 1, b"", b"")
    intake.advance(1)
    assert _core.LivePage(tmp_path / "live").read()["malformed"] == 1


def test_streams_without_live_ticks_are_watched_all_the_same(tmp_path: Path) -> None:
    """No period of the rig, a sampled stream without one, a stream that no device has: no ticks, and no refusal."""
    no_rate = required("imu", "sampled", period_ns=None)
    for text in (plan(required("head"), period_ns=None), plan(required("head"), no_rate, required("gone"))):
        intake = recorder(tmp_path, device("cam", stream("head"), stream("imu", "imu")), plan=text)
        start(intake, tmp_path / str(len(text)))
        push(intake, "head", [Wire(b"", 0, START, START)])
        push(intake, "imu", [Wire(bytes(48), 0, START + 5, START)])
        intake.advance(START + SECOND)
        page = _core.LivePage(tmp_path / "live").read()
        assert page["streams"]["imu"]["last_ns"] == START + 5
        intake.stop_take("{}")


def test_what_is_no_page_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingUnreadable, match="is the recorder running"):
        _core.LivePage(tmp_path / "live").read()
    (tmp_path / "live").write_bytes(os.urandom(10_000))
    with pytest.raises(RecordingUnreadable, match="not a live page"):
        _core.LivePage(tmp_path / "live").read()
    with pytest.raises(DiskError):
        _core.Intake("[]", plan=plan(), live=tmp_path / "no" / "folder")


def test_a_recorder_that_was_restarted_is_followed(tmp_path: Path) -> None:
    recorder(tmp_path, device("cam", stream("head"))).advance(1)
    page = _core.LivePage(tmp_path / "live")
    assert page.read()["updated_ns"] == 1
    recorder(tmp_path, device("cam", stream("wrist"))).advance(2)
    assert (page.read()["updated_ns"], list(page.read()["streams"])) == (2, ["wrist"])


WRITER = """
    import sys
    from pathlib import Path
    from tests.record.wire import device, recorder, stream
    intake = recorder(Path(sys.argv[1]), device("cam", *[stream(f"s{i}") for i in range(20)]))
    print("ready", flush=True)
    now = 0
    while True:
        now += 1
        intake.advance(now)
"""


def test_a_page_is_whole_while_it_is_written_and_after_a_kill(tmp_path: Path) -> None:
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path)], stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            page, last = _core.LivePage(tmp_path / "live"), 0
            while last < 2000:
                read = page.read()
                assert read["updated_ns"] >= last
                assert len(read["streams"]) == 20
                last = read["updated_ns"]
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        assert page.read()["updated_ns"] >= last
        assert json.dumps(page.read())
