"""Whole takes of the simulated rig, from drivers to verdict, in simulated time."""

import pytest

from firsthand_edge.gate.verdict import examine
from tests.simulated import record_take


@pytest.mark.parametrize(
    ("number", "reasons", "warnings"),
    [
        (1, set(), set()),
        (2, {"picture.frozen"}, set()),
        (3, set(), {"trigger.first_missed"}),
        (4, {"stamp.tai_utc"}, set()),
    ],
)
def test_the_takes_of_the_demo_have_their_outcomes(tmp_path, number, reasons, warnings):
    verdict = examine(record_take(tmp_path, seconds=6.5, number=number) / "evidence.mcap").verdict
    assert {reason.code for reason in verdict.reasons} == reasons
    assert {warning.code for warning in verdict.warnings} == warnings
    assert verdict.accepted == (not reasons)


def test_every_counter_wraps_within_take_1(tmp_path):
    report = examine(record_take(tmp_path, seconds=6.5) / "evidence.mcap").report
    assert {name for name, stream in report["streams"].items() if not stream["wraps"]} == set()


def test_take_1_is_rejected_when_the_clock_map_is_bypassed(tmp_path):
    verdict = examine(record_take(tmp_path, seconds=6.5, bypass_clock_maps=True) / "evidence.mcap").verdict
    assert not verdict.accepted
    assert {"sync.no_ticks", "sync.missing", "sync.ceiling"} & {reason.code for reason in verdict.reasons}


def test_the_same_seed_gives_the_same_verdict_bit_for_bit(tmp_path):
    reports = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        reports.append(examine(record_take(tmp_path / name, seconds=2) / "evidence.mcap").report)
    assert reports[0] == reports[1]


def test_judging_needs_no_footage(tmp_path):
    folder = record_take(tmp_path, seconds=2)
    before = examine(folder / "evidence.mcap").report
    (folder / "episode.mcap").rename(tmp_path / "moved-away.mcap")
    assert examine(folder / "evidence.mcap").report == before
