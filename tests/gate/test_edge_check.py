"""A take's recorded times held against its trigger edges: from the evidence to the verdict."""

import json
from dataclasses import replace

import numpy as np
import pytest

from firsthand_edge import _core
from firsthand_edge.gate import rules
from firsthand_edge.gate.episode import figures_of
from firsthand_edge.gate.evidence import Evidence
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report
from firsthand_edge.gate.rules_stamp import unverified
from firsthand_edge.model import StampPoint
from firsthand_edge.record.plan import recorder_plan
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.testing.simulated_time import SimulatedRig, record_simulated
from tests.gate.recorded import BEGIN, MS, SPEC, WARMUP, Camera, P, evidence
from tests.sensors.rigs import camera

EDGES = BEGIN + P * np.arange(240, dtype=np.int64) - 5 * MS
"""Ticks lie 5 ms after their edges; an exposure of 4 ms begins 3 ms after the edge."""
CONTRACT = parse_spec(SPEC.encode(), place="a test")
HEAD = Camera("head", count=240, ppm=31, trigger_delay_ns=3 * MS)
WRIST = Camera("wrist", count=240, ppm=-47, seed=2)


def figures(*cameras):
    # The take states where its ticks lie after their edges, as the rig file does.
    take = {"clock": {"timebase": "arb"}, "tick_offset_ns": 5 * MS}
    return figures_of(evidence(*cameras, edges=EDGES, take=take), CONTRACT, Limits())


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("point", "exposure"), [(StampPoint.START, 4 * MS), (StampPoint.MIDDLE, 4 * MS), (StampPoint.END, 4 * MS)]
)
def test_edges_measure_what_a_calibration_only_states(indexed, point, exposure):
    head = replace(HEAD, point=point, exposure_ns=exposure, trigger_index=indexed)
    stated = figures(replace(head, trigger_delay_ns=None), WRIST).stream("head")
    found = figures(head, WRIST)
    measured = found.stream("head")
    assert stated.edge_check is None
    assert (measured.grade, measured.edge_check.contradicted) == (Grade.MAPPED, False)
    assert (measured.edge_check.pairs, measured.edge_check.refused) == (240, 0)
    assert abs(measured.edge_check.late_ns) < 20_000
    assert measured.uncertainty_ns <= stated.uncertainty_ns
    # The recorded times stand, and with them every other figure.
    assert found.sync.residual.max_ns == figures(replace(head, trigger_delay_ns=None), WRIST).sync.residual.max_ns
    assert found.notes == ()


def test_a_minimum_delay_that_is_wrong_is_found_out_and_the_right_one_told():
    # It is 3 ms longer under way than the rig file says: every time is recorded 3 ms late.
    found = figures(replace(HEAD, late_ns=3 * MS, trigger_index=True), WRIST)
    head = found.stream("head")
    assert head.edge_check.contradicted
    assert abs(head.edge_check.late_ns - 3 * MS) < 20_000
    assert head.uncertainty_ns > 2_900_000
    (reason,) = unverified(found, Limits())
    assert reason.stream == "head"
    assert "the trigger edges put its samples 3.0" in reason.sentence
    assert "ms before the times that its stated minimum delay gives" in reason.sentence
    (note,) = [note for note in found.notes if "minimum delay" in note]
    delay_us = float(note.split("minimum delay is ")[1].split(" us")[0])
    assert abs(delay_us - 5_000) < 20
    # The same transport, with the delay that the note tells.
    again = figures(replace(HEAD, min_delay_ns=int(delay_us * 1000)), WRIST)
    assert not again.stream("head").edge_check.contradicted


def test_a_minimum_delay_that_is_wrong_is_found_out_without_a_count_of_pulses():
    found = figures(replace(HEAD, late_ns=3 * MS), WRIST)
    check = found.stream("head").edge_check
    assert (check.pairs, check.unpaired, check.contradicted) == (0, 240, True)
    (reason,) = unverified(found, Limits())
    assert "no trigger edge lies where its stated minimum delay puts 240 of its exposures" in reason.sentence


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("point", [StampPoint.START, StampPoint.MIDDLE])
def test_exposures_that_hold_arrivals_up_are_in_what_times_may_be_off_by(point, checked):
    """From 4 to 8 ms in 20 s, begun at one time after each edge: pictures arrive the later the longer they expose."""
    grows = np.arange(1200) * 4 * MS // 1200
    before = np.zeros(WARMUP, dtype=np.int64)
    head = Camera(
        "head",
        count=1200,
        point=point,
        sends_when_exposed=True,
        exposure_ns=4 * MS + grows,
        skew_ns=np.concatenate((before, grows // 2)),
        jitter_ns=MS // 2,
        trigger_index=True,
        trigger_delay_ns=3 * MS if checked else None,
    )
    edges = BEGIN + P * np.arange(1200, dtype=np.int64) - 5 * MS
    found = figures_of(evidence(head, edges=edges), CONTRACT, Limits()).stream("head")
    times = evidence(head, edges=edges).samples["head"]["rig_ns"][WARMUP:]
    error = np.abs(times - (edges + 5 * MS + grows // 2))
    assert error[-1] > MS  # the map by arrivals is wrong
    assert found.uncertainty_ns >= error.max()


def test_a_device_that_was_never_calibrated_learns_its_delay():
    # Whoever counts pulses needs no delay to be paired.
    head = replace(HEAD, bound_ns=None, trigger_index=True)
    found = figures(head, WRIST)
    assert found.stream("head").grade is Grade.ARRIVAL
    (note,) = found.notes
    assert note.startswith("head_device: by the trigger edges its minimum delay is ")
    assert note.endswith("state it as min_delay_us and min_delay_bound_us.")
    # Without a count and without a delay there is nothing to pair by.
    nothing = figures(replace(head, trigger_index=False), WRIST)
    assert nothing.stream("head").edge_check.pairs == 0
    assert nothing.notes == ()


def test_a_device_that_miscounts_its_pulses_keeps_its_times_and_is_named():
    found = figures(replace(HEAD, trigger_index=True, miscounts_from=120), WRIST)
    check = found.stream("head").edge_check
    assert check.refused == 120
    assert not check.contradicted
    assert any("120 of 240 exposures are off the edge that caused them" in note for note in found.notes)


def test_the_report_of_a_stream_says_what_its_edges_say():
    found = figures(HEAD, WRIST)
    told = report(found, rules.apply(found, Limits()), Limits())
    assert told["streams"]["head"]["edges"] == {
        "pairs": 240,
        "refused": 0,
        "compared": found.stream("head").edge_check.compared,
        "late_ns": found.stream("head").edge_check.late_ns,
        "spread_ns": found.stream("head").edge_check.spread_ns,
        "unpaired": 0,
        "contradicted": False,
    }
    assert "edges" not in told["streams"]["wrist"]


def test_edges_that_do_not_rise_are_no_edges():
    taken = evidence(HEAD, WRIST, edges=EDGES[::-1])
    assert figures_of(taken, CONTRACT, Limits()).stream("head").edge_check is None


def test_a_worker_that_was_restarted_is_paired_by_time():
    found = figures(replace(HEAD, trigger_index=True, restart_at=60), WRIST)
    check = found.stream("head").edge_check
    assert check.refused == 0
    assert check.pairs > 30


@pytest.mark.parametrize(("error_us", "contradicted"), [(0, False), (150, False), (2_000, True)])
def test_a_simulated_rig_from_drivers_to_verdict(tmp_path, error_us, contradicted):
    # The device is under way for longer than it reports, within what it states of that and beyond.
    shared = {"check_edges": True, "drift_ppm": 80, "min_delay_bound_us": 200, "delay_error_us": error_us}
    with_stream = {"trigger_delay_us": 4000, "has_trigger_index": True}
    rig = SimulatedRig([camera("head", with_stream=with_stream, **shared)], tmp_path / "run")
    plan = recorder_plan(CONTRACT, period_ns=P, latency_ns=150 * MS)
    intake = _core.Intake(json.dumps([info.to_json() for info in rig.infos]), plan=plan, live=tmp_path / "live")
    (tmp_path / "episode").mkdir()
    record_simulated(
        rig, intake, directory=tmp_path / "episode", seconds=6, period_ns=P, take={"clock": {"timebase": "arb"}}
    )
    rig.close()
    taken = Evidence.read(tmp_path / "episode" / "evidence.mcap")
    head = figures_of(taken, CONTRACT, Limits()).stream("head")
    # Every map has the truth within what it states, here as in simulation: pulses are where the line put them.
    assert abs(head.edge_check.late_ns - error_us * 1000) < 20_000
    assert head.edge_check.contradicted is contradicted
    assert head.grade is (Grade.ARRIVAL if contradicted else Grade.MAPPED)
    rows = taken.samples["head"]
    own = rows["warmup"] == 0
    truth = taken.edges_ns[rows["trigger_index"][own]] + 4 * MS + rows["exposure_ns"][own] // 2
    assert np.abs(rows["rig_ns"][own] - truth).max() <= head.uncertainty_ns
