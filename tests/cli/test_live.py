"""The live view: what is wrong is said at once, and nothing is said of what is well."""

import copy

import pytest

from firsthand_edge.cli.live import LiveView, live_lines, wrongs
from firsthand_edge.model import ABSENT

STREAM = {
    "received": 600, "written": 600, "durable": 590, "lost_queue": 0, "lost_disk": 0, "missing": 0, "splits": 0,
    "rate_mhz": 60_000, "offset_ns": 12_000, "last_ns": 9_900_000_000, "frozen_run": 1,
}  # fmt: skip
PAGE = {
    "take": "{}", "recording": True, "tick": 599, "residual_ns": 41_000, "max_ns": 62_000, "over": 0, "late": 0,
    "updated_ns": 10_000_000_000, "final_ns": 9_900_000_000, "streams": {"head": STREAM, "contact": dict(STREAM)},
}  # fmt: skip


def page(**stream):
    out = copy.deepcopy(PAGE)
    out["streams"]["head"].update(stream)
    return out


def test_a_good_take_has_nothing_wrong():
    assert wrongs(PAGE, ceiling_ns=2_000_000) == []


@pytest.mark.parametrize(
    ("reading", "says"),
    [
        (page(frozen_run=4), "head repeats its last picture (4 frames)"),
        (page(splits=1), "the clock of head stepped (once in this take)"),
        (page(missing=7), "head has no sample at some ticks (7 so far)"),
        (page(last_ns=9_000_000_000), "head is silent for 1.0 s"),
        (page(lost_queue=3, lost_disk=2), "head lost 5 samples on this rig (queue 3, disk 2)"),
        ({**PAGE, "over": 2, "max_ns": 2_500_000}, "2 ticks over the ceiling of 2 ms, largest 2.500 ms"),
    ],
)
def test_each_fault_is_a_sentence(reading, says):
    assert wrongs(reading, ceiling_ns=2_000_000) == [says]


def test_events_may_be_silent_and_so_may_a_stream_that_never_came():
    reading = copy.deepcopy(PAGE)
    reading["streams"]["contact"] = {**STREAM, "last_ns": 0}
    assert wrongs(reading, ceiling_ns=2_000_000, sparse={"contact"}) == []
    assert wrongs(page(last_ns=ABSENT), ceiling_ns=2_000_000) == []


def test_the_lines_show_take_rate_offset_and_faults():
    lines = live_lines(page(frozen_run=9), title="take 2", seconds=3.25, ceiling_ns=2_000_000)
    assert lines[0].startswith("take 2   3.2 s  tick 599  residual 0.041 ms")
    assert "60.0 Hz" in lines[1]
    assert "+0.012 ms" in lines[1]
    assert lines[-1] == "  ! head repeats its last picture (9 frames)"


def test_without_a_terminal_a_fault_is_said_once_and_a_line_comes_once_a_second(capsys):
    now = [0.0]
    view = LiveView(ceiling_ns=2_000_000, clock=lambda: now[0])
    for frame in range(4, 24):
        view.show(page(frozen_run=frame), title="take 2", seconds=now[0])
        now[0] += 0.25
    out = capsys.readouterr().out.splitlines()
    assert sum("repeats its last picture" in line for line in out) == 1
    assert sum(line.startswith("take 2") for line in out) == 5
