"""One look tells what is wrong: each fault leaves its own mark, and a clean take leaves none."""

import re

import numpy as np
import pytest

from firsthand_edge.gate.drawing.take import LABEL, PLOT
from firsthand_edge.gate.figures import Frozen
from firsthand_edge.gate.limits import Limits
from firsthand_edge.model import Kind
from tests.gate.drawing.panels import bad, drawn, panel, paths, rects, texts
from tests.gate.making import MS, START, P, stream, ticks

FAULTS = ("over", "flag", "gone", "bar bad")


def marks(svg):
    return {kind for kind in FAULTS if paths(svg, kind)} | {k for k in ("silent", "frozen", "begin") if rects(svg, k)}


def test_a_clean_take_has_no_mark_of_a_fault():
    svg = drawn(panel(stream("head", ticks(600)), stream("wrist", ticks(600) + MS)))
    assert marks(svg) == set()
    assert paths(svg, "trace")
    assert paths(svg, "bar")


def test_one_bad_tick_among_36000_is_drawn_in_every_part():
    svg = drawn(panel(stream("head", ticks(36_000)), bad(36_000, at=[12_345])))
    residual, wrist = paths(svg, "over")
    assert re.fullmatch(r"M\d+ [\d.]+V[\d.]+", residual)
    assert re.fullmatch(r"M\d+ -?[\d.]+V-?[\d.]+", wrist)
    (flag,) = paths(svg, "flag")
    assert flag.count("M") == 1
    (bar,) = paths(svg, "bar bad")
    assert bar.count("M") == 1
    assert float(re.search(r"v-([\d.]+)", bar)[1]) >= 4
    said = texts(svg)
    assert any(words.endswith("at tick 12345") for words in said)
    assert "sync.ceiling from tick 12345" in said
    assert "1 / 36000" in said


def test_the_ceiling_itself_is_not_over():
    svg = drawn(panel(stream("head", ticks(60)), bad(60, at=[30], by=2 * MS)))
    assert marks(svg) == set()
    assert any(words.endswith("worst: 2.0 ms") for words in texts(svg))


def test_the_line_of_a_beginning_stands_at_its_tick():
    svg = drawn(panel(stream("head", ticks(601)), bad(601, at=range(300, 601), by=-3 * MS)))
    lines = {line.get("x1") for line in svg.iter("line") if line.get("class") == "begin"}
    assert lines == {f"{LABEL + PLOT / 2:.1f}"}


def test_a_diagnosis_says_when_it_began_and_who_it_was():
    shown = panel(stream("head", ticks(601)), bad(601, at=range(300, 601)), bad(601, at=[2], by=MS, name="glove"))
    shown.report["reasons"][0]["diagnosis"] = [
        {"kind": "step", "stream": "glove", "began_tick": 150, "sentence": "So."}
    ]
    svg = drawn(shown)
    assert "sync.ceiling from tick 150" in texts(svg)
    accused = {
        "".join(t.itertext())[5:]
        for t in svg.iter("text")
        if t.get("class") == "name bad" and t.find("title") is not None
    }
    assert any("glove" in name for name in accused)


def test_missing_and_absent_ticks_are_gaps_in_their_lanes():
    svg = drawn(
        panel(stream("head", np.delete(ticks(100), [20])), stream("wrist", np.delete(ticks(100), [50, 51, 80])))
    )
    counts = sorted(path.count("M") for path in paths(svg, "gone"))
    assert counts == [1, 2]
    said = texts(svg)
    assert "1 of 100 absent" in said
    assert "3 of 99 missing, run of 2" in said


def test_what_a_decimated_stream_is_not_expected_at_is_no_gap():
    svg = drawn(panel(stream("head", ticks(60)), stream("depth", ticks(60)[::2], decimate=2)))
    assert paths(svg, "gone") == []
    assert "every 2 ticks" in texts(svg)


def test_an_interpolated_stream_has_a_lane_and_no_offsets():
    glove = stream("glove", ticks(80, period=14 * MS, start=START - 14 * MS), kind=Kind.INTERPOLATED)
    svg = drawn(panel(stream("head", ticks(60)), stream("wrist", ticks(60)), glove))
    assert "0 of 60 missing" in texts(svg)
    assert len(paths(svg, "trace")) == 2


def test_with_a_guard_band_interpolated_streams_are_in_the_pairs():
    glove = stream("glove", ticks(80, period=14 * MS, start=START - 14 * MS), kind=Kind.INTERPOLATED, uncertainty_ns=MS)
    shown = panel(
        stream("head", ticks(60), uncertainty_ns=2 * MS, device="a"), glove, limits=Limits(guard_band=True, min_ticks=1)
    )
    said = texts(drawn(shown))
    assert "60 / 60" in said
    assert "worst pair at each tick, guarded" in said


def test_a_stream_that_comes_late_and_one_that_ends_early_say_by_how_much():
    svg = drawn(panel(stream("head", ticks(600)), stream("left", ticks(600)[120:]), stream("right", ticks(600)[:-150])))
    assert len(rects(svg, "silent")) == 2
    assert any(said.startswith("late by 2.000 s") for said in texts(svg))
    assert any(said.startswith("ends 2.500 s early") for said in texts(svg))


def test_a_silence_and_pictures_that_stood_still_are_marked():
    still = Frozen(9, 10, 18, START + 10 * P, START + 18 * P)
    silent = stream("wrist", np.delete(ticks(200), np.r_[100:150]), frozen=still, media="picture/png")
    svg = drawn(panel(stream("head", ticks(200)), silent))
    assert len(rects(svg, "silent")) == 1
    assert len(rects(svg, "frozen")) == 1
    assert any("frozen, 9 pictures" in said for said in texts(svg))
    moving = Frozen(1, 0, 0, START, START)
    svg = drawn(panel(stream("head", ticks(60)), stream("wrist", ticks(60), frozen=moving, media="picture/png")))
    assert rects(svg, "frozen") == []


def test_what_is_trimmed_lies_in_the_shade():
    svg = drawn(panel(stream("head", ticks(600)), stream("wrist", ticks(600)[30:])))
    (shade,) = rects(svg, "trimmed")
    assert float(shade.get("x")) == LABEL
    assert float(shade.get("width")) == pytest.approx(PLOT * 30 / 599, abs=0.1)


def test_streams_on_two_time_scales_are_drawn_apart():
    svg = drawn(panel(stream("head", ticks(600)), stream("wrist", ticks(600) + 37 * 10**9)))
    head, wrist = sorted(float(rect.get("x")) for rect in rects(svg, "cover"))
    assert wrist - head == pytest.approx(PLOT * 37 / (37 + 599 * P / 1e9), abs=0.1)
    assert paths(svg, "trace") == []


def test_trigger_edges_have_a_lane_of_their_own():
    edges = np.delete(ticks(100), [40])
    svg = drawn(panel(stream("head", ticks(100)), stream("wrist", ticks(100)), ticks_ns=edges))
    assert "reference, 1 absent" in texts(svg)
    assert any("Offset to trigger" in said for said in texts(svg))
    assert len(paths(svg, "trace")) == 3


def test_from_four_streams_on_there_is_a_matrix_of_all_pairs():
    four = [stream(name, ticks(60)) for name in ("head", "a", "b")]
    assert len([t for t in drawn(panel(*four)).iter("rect") if "cell" in t.get("class")]) == 0
    svg = drawn(panel(*four, bad(60, at=[20], name="c")))
    assert len(rects(svg, "cell bad")) == 3
    assert len(rects(svg, "cell")) == 3


def test_a_hundred_streams_stay_a_picture_of_bounded_size():
    shown = panel(*(stream("head" if n == 0 else f"s{n:03}", ticks(60) + n * 1000) for n in range(100)))
    svg = drawn(shown)
    said = texts(svg)
    assert "40 further streams; together 0 missing" in said
    assert "69 further streams, none further off than 0.069 ms" in said
    assert any(words.startswith("4914 further pairs, none further apart than") for words in said)


def test_a_stretch_of_a_year_draws_one_gap():
    times = np.concatenate((ticks(40), ticks(40, start=START + 10**9 * 86_400 * 365)))
    svg = drawn(panel(stream("head", times), stream("wrist", times)))
    assert all(path.count("M") == 1 for path in paths(svg, "gone"))
    assert any(said.endswith(" d") for said in texts(svg))


@pytest.mark.parametrize("count", [1, 2, 31])
def test_short_takes_can_be_drawn(count):
    assert drawn(panel(stream("head", ticks(count)), stream("wrist", ticks(count)))) is not None


def test_where_there_is_no_sample_there_is_no_drawing():
    assert drawn(panel(stream("head", ticks(0)), stream("wrist", ticks(0)))) is None


def test_disagreements_of_many_ceilings_are_drawn():
    shown = panel(stream("head", ticks(60)), stream("wrist", ticks(60) + 8 * MS), limits=Limits(ceiling_ns=10))
    svg = drawn(shown)
    assert paths(svg, "bar bad")
    assert not paths(svg, "bar")


def test_names_of_anything_leave_the_document_whole():
    names = ["head", "<&>\"'", "\x00\x1b\ufffe", "x" * 300]
    assert drawn(panel(*(stream(name, ticks(60)) for name in names))) is not None


def test_what_a_stream_says_against_itself_has_its_place_on_the_axis():
    times = ticks(601)
    times[300:] -= 600 * MS
    svg = drawn(panel(stream("head", ticks(601)), stream("wrist", times)))
    (reason,) = [words for words in texts(svg) if "stamp.backwards" in words and "from" in words]
    assert reason == "stamp.backwards from sample 300 of wrist"
    lines = [line.get("x1") for line in svg.iter("line") if line.get("class") == "begin"]
    assert f"{LABEL + PLOT * (300 * 16_666_667 - 600 * MS) / (600 * 16_666_667):.1f}" in lines
