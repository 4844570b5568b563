"""The main job, end to end: `make demo` as a test, and what its table is checked against."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.cli.demo import TAKES, shortfalls
from firsthand_edge.spool.spool import open_spool

ROOT = Path(__file__).parents[2]


def report(verdict="accepted", reasons=(), warnings=(), trimmed_start=0, wraps=1):
    return {
        "report": {
            "verdict": verdict,
            "reasons": [{"code": code} for code in reasons],
            "warnings": [{"code": code} for code in warnings],
            "span": {"trimmed_start": trimmed_start},
            "streams": {"head": {"wraps": wraps}},
        }
    }


GOOD = {
    1: report(),
    2: report("rejected", ["picture.frozen"]),
    3: report(warnings=["trigger.first_missed"], trimmed_start=1),
    4: report("rejected", ["stamp.tai_utc"]),
    5: report("rejected", ["record.torn"]),
}


@pytest.mark.parametrize("take", TAKES, ids=lambda take: str(take.number))
def test_the_table_is_met_by_its_own_outcome_and_by_no_other(take):
    assert shortfalls(take, GOOD[take.number]) == []
    for number, other in GOOD.items():
        if number != take.number:
            assert shortfalls(take, other), number


def test_a_counter_that_did_not_wrap_is_told():
    assert shortfalls(TAKES[0], report(wraps=0)) == ["the counter behind head did not wrap"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    state = tmp_path_factory.mktemp("d") / "s"
    done = subprocess.run(
        [sys.executable, "-m", "firsthand_edge.cli", "demo", "--rig", "configs/sim.toml", "--state", str(state)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        check=False,
    )
    return state, done


def test_every_outcome_is_the_tables(demo):
    _, done = demo
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every outcome is as the table says" in done.stdout


def test_the_terminal_shows_rates_residual_and_what_is_wrong_as_it_happens(demo):
    _, done = demo
    assert "imu 1" in done.stdout
    assert "residual 0." in done.stdout
    before_verdict = done.stdout.split("picture.frozen")[0]
    assert "wrist_left repeats its last picture" in before_verdict


def test_each_fault_is_said_while_its_take_runs_and_in_no_other_take(demo):
    """What a busy machine delivers late is rightly said to be missing or silent: only scripted faults are held."""
    _, done = demo
    takes = done.stdout.split("\ntake ")
    said = {number: [line for line in takes_of(takes, number) if line.startswith("  ! ")] for number in range(1, 6)}
    takes_with = {
        sentence: [number for number, lines in said.items() if any(sentence in line for line in lines)]
        for sentence in ("repeats its last picture", "stepped")
    }
    assert takes_with == {"repeats its last picture": [2], "stepped": [4]}
    assert any("wrist_left repeats its last picture" in line for line in said[2])
    assert any("the clock of wrist_right stepped" in line for line in said[4])
    for stream in ("stereo_left", "stereo_right"):
        assert any(f"{stream} has no sample at some ticks" in line for line in said[3])


def takes_of(parts, number):
    """The lines of a take up to its verdict, from the output cut at its headings and progress lines."""
    return [line for part in parts if part.startswith((f"{number}: ", f"{number}   ")) for line in part.splitlines()]


def test_each_take_says_what_it_captured_and_the_third_stands_in_the_place_of_the_second(demo):
    state, done = demo
    spool = open_spool(state, create=False)
    manifests = [spool.committed(episode).manifest for episode in spool.episodes()]
    captures = [manifest.capture for manifest in manifests]
    assert None not in captures
    assert [(c.task, c.cell, c.outcome.value, c.attempt) for c in captures] == [
        ("pick-cup", "daylight", "success", 1),
        ("pour-water", "low-light", "success", 1),
        ("pour-water", "low-light", "success", 2),
        ("open-jar", "cluttered", "near_miss", 1),
        ("pour-water", "failure-cases", "failure", 1),
    ]
    assert [c.recaptures for c in captures] == [None, None, manifests[1].episode, None, None]
    assert all(manifest.spec.throw_away for manifest in manifests)
    assert "pour-water with jug-2l and cup-glass, cell low-light, scene kitchen-2, by sim-b, attempt 2" in done.stdout
    assert not list((ROOT / "configs").glob("*.sig"))


def test_only_accepted_takes_have_footage_in_the_store(demo):
    state, _ = demo
    footage = {path.parent.name for path in (state / "store").rglob("episode.mcap")}
    assert footage == {path.name for path in (state / "spool/uploaded").iterdir()}
    assert len(footage) == 2
    assert len(list((state / "spool/rejected").iterdir())) == 3


def test_the_picture_is_one_self_contained_page(demo):
    state, done = demo
    assert str(state / "residuals.html") in done.stdout
    page = (state / "residuals.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    for loads in ("src=", 'href="http', "@import", "<script"):
        assert loads not in page


def test_judging_again_gives_the_same_verdict_bit_for_bit_without_footage(demo, tmp_path):
    state, _ = demo
    for episode in sorted(path for s in ("uploaded", "rejected") for path in (state / "spool" / s).iterdir()):
        footage = episode / "episode.mcap"
        footage.rename(tmp_path / "away.mcap")
        try:
            done = subprocess.run(
                [sys.executable, "-m", "firsthand_edge.cli", "episodes", "judge", episode.name, "--state", str(state)],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        finally:
            (tmp_path / "away.mcap").rename(footage)
        assert done.returncode in (0, 1), done.stderr
        assert "equal in every field to verdict.json" in done.stdout
