"""`_core.Monitor`: live ticks are those of the batch core (sync.md, section 6)."""

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand_edge import _core
from tests.sync.scenes import Scene, assert_live_is_batch, scene

ABSENT = -(2**63)
T = 1000
RANDOM = st.randoms(use_true_random=False)
EXPECTED = {
    # Share of random scenes, in percent, that must be so: a third of what is seen, or less.
    "edges": 10, "indexed": 5, "slipped": 0.8, "reordered": 15, "duplicates": 8, "absent ticks": 5, "missing": 15,
    "decimated": 5, "sampled": 5, "interpolated": 5, "trimmed": 10, "long": 8, "one or none": 3, "over": 5,
}  # fmt: skip


def traits(own: Scene, figures: _core.Figures, late: int) -> set[str]:
    rows = figures.streams.values()
    kinds = {row.kind for row in rows if row.matched}
    offsets = [offset for name in own.indexed for offset in figures.offset_ns(name).tolist() if offset != ABSENT]
    found = {
        "edges": own.taken.edges is not None,
        "indexed": any(name != "ref" for name in own.indexed),
        "slipped": any(2 * abs(offset) >= own.settings["period_ns"] for offset in offsets),
        "reordered": own.settings["reorder_ns"] > 0,
        "duplicates": any(row.duplicate for row in rows),
        "absent ticks": figures.absent > 0,
        "missing": any(0 < row.missing < row.expected for row in rows),
        "decimated": any(row.decimate > 1 and row.matched for row in rows),
        "sampled": "sampled" in kinds,
        "interpolated": "interpolated" in kinds,
        "trimmed": figures.trimmed_start + figures.trimmed_end > 0,
        "long": figures.ticks >= 64,
        "one or none": figures.ticks < 2,
        "over": figures.residual.over_ceiling > 0,
        "late": late > 0,
    }
    return {name for name, holds in found.items() if holds}


def assert_scenes(examples: int, *, keeps_bounds: bool) -> None:
    tried: Counter[str] = Counter()

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(RANDOM.map(lambda random: scene(random, keeps_bounds=keeps_bounds)), st.integers(0, 2**32))
    def check(own, seed):
        figures, late = assert_live_is_batch(own, Random(seed))  # noqa: S311 - no secrets
        assert late == 0 or not keeps_bounds
        tried.update(["scenes", *traits(own, figures, late)])

    check()
    expected = EXPECTED if keeps_bounds else {**EXPECTED, "late": 8}
    rare = {name: tried[name] for name, share in expected.items() if 100 * tried[name] < share * tried["scenes"]}
    assert not rare, f"{tried['scenes']} scenes do not try what they are for: {rare}"


def test_within_their_bounds_live_ticks_and_figures_are_those_of_the_batch_core():
    assert_scenes(500, keeps_bounds=True)


def test_beyond_their_bounds_they_are_those_of_what_was_not_late():
    assert_scenes(400, keeps_bounds=False)


@pytest.mark.soak
@pytest.mark.parametrize("keeps_bounds", [True, False])
def test_live_is_batch_in_many_scenes(keeps_bounds):
    assert_scenes(200_000, keeps_bounds=keeps_bounds)


def pair(latency_ns, period_ns=T):
    streams = [("head", "triggered", period_ns, 1, 0), ("wrist", "triggered", period_ns, 1, 0)]
    return _core.Monitor(streams, reference="head", period_ns=period_ns, latency_ns=latency_ns)


def test_a_tick_is_final_when_every_stream_has_passed_half_a_period():
    monitor = pair(100 * T)
    for stream, time in [(0, 0), (1, 30), (0, 1000), (1, 499)]:
        monitor.push(stream, time)
        assert monitor.advance(1000) == []
    monitor.push(1, 500)
    assert monitor.advance(1000) == [(0, 0, 30, 0b11)]


def test_a_sample_beyond_its_bound_is_late_and_changes_nothing():
    monitor = pair(2 * T)
    for k in range(5):
        monitor.push(0, k * T)
    assert monitor.advance(2499) == []
    assert monitor.advance(2500) == [(0, 0, ABSENT, 0b01)]
    monitor.push(1, 20)
    assert monitor.late == 1
    monitor.push(1, 1020)
    assert monitor.advance(2**63 - 1) == [
        (1, 1000, 20, 0b11),
        (2, 2000, ABSENT, 0b01),
        (3, 3000, ABSENT, 0b01),
        (4, 4000, ABSENT, 0b01),
    ]
    row = monitor.close().streams["wrist"]
    assert (row.samples, row.matched) == (1, 1)


def played(streams, columns, **monitor):
    """Final ticks and figures of columns that are pushed in order of time, as they would come."""
    live = _core.Monitor(streams, **monitor)
    ticks = []
    for t, at in sorted((t, at) for at, column in enumerate(columns) for t in column):
        live.push(at, t)
        ticks += live.advance(t)
    return ticks, live.close()


def test_k27_free_running_cameras_drift_and_it_shows_at_once():
    a_ns = [1764537600000000000 + i * 33333333 for i in range(2700)]
    b_ns = [1764537600000000000 + i * 33347228 for i in range(2699)]
    streams = [("a", "triggered", 33333333, 1, 0), ("b", "triggered", 33333333, 1, 0)]
    ticks, figures = played(streams, [a_ns, b_ns], reference="a", period_ns=33333333, latency_ns=10**8)
    over = next(tick for tick, _, residual, _ in ticks if residual > 2_000_000)
    assert over == figures.residual.first_over_tick == 144
    assert (a_ns[144] - a_ns[0]) / 1e9 == pytest.approx(4.8, abs=0.01)


def test_k30_cameras_that_miss_the_first_trigger_are_matched_by_time():
    cam0_ns = [1764537600000000000 + i * 10000000 for i in range(500)]
    cam1_ns = [1764537600000000000 + (i + 1) * 10000000 for i in range(500)]
    names = [f"cam{i}" for i in range(8)]
    columns = [cam1_ns if i in {1, 2, 3} else cam0_ns for i in range(8)]
    streams = [(name, "triggered", 10000000, 1, 0) for name in names]
    ticks, figures = played(streams, columns, reference="cam0", period_ns=10000000, latency_ns=10**8)
    assert ticks[0] == (0, cam0_ns[0], 0, 0b11110001)
    assert {tick[2] for tick in ticks} == {0}
    assert (figures.residual.max_ns, figures.trimmed_start, figures.ticks) == (0, 1, 499)
    assert [figures.streams[name].missing for name in names] == [0] * 8
    assert [figures.streams[name].trimmed for name in names] == [1] * 8


def test_a_slip_by_index_is_seen_live_and_its_tick_waits_for_it():
    streams = [("head", "triggered", T, 1, 0), ("wrist", "triggered", T, 1, 0)]
    monitor = _core.Monitor(streams, reference="head", period_ns=T, latency_ns=10 * T, indexed=["head", "wrist"])
    ticks = []
    for k in range(6):
        monitor.push(0, k * T, k)
        monitor.push(1, k * T + 30, k - 2)  # what it reports as pulse k - 2 is the picture of pulse k
        ticks += monitor.advance(k * T)
    assert ticks == [(k, k * T, 2 * T + 30, 0b11) for k in range(4)]
    monitor.push(1, 6 * T)  # without an index: by time from here on
    monitor.push(0, 6 * T, 6)
    ticks = monitor.advance(2**63 - 1)
    assert [(tick, residual) for tick, _, residual, _ in ticks] == [(4, 30), (5, 30), (6, 0)]
    assert monitor.close().residual.max_ns == 30


def test_a_monitor_that_keeps_nothing_has_no_figures():
    monitor = _core.Monitor([("head", "triggered", T, 1, 0)], reference="head", period_ns=T, latency_ns=0, keep=False)
    monitor.push(0, 5)
    assert len(monitor.advance(2**63 - 1)) == 1
    with pytest.raises(ValueError, match="keeps no stamps"):
        monitor.close()


@pytest.mark.parametrize(
    ("streams", "rest", "words"),
    [
        ([("head", "triggered", T, 1, 0)], {"reference": "haed"}, "no stream 'haed'"),
        ([("head", "camera", T, 1, 0)], {}, "camera"),
        ([("head", "triggered", T, 1, 0)] * 2, {}, "two streams are called 'head'"),
        ([("head", "triggered", T, 1, 0), ("imu", "sampled", 0, 1, 0)], {}, "sampled stream 'imu' is 0"),
        ([("head", "triggered", T, 1, 0)], {"period_ns": 0}, "period_ns of a monitor is 0"),
        ([("head", "triggered", T, 1, 0)], {"latency_ns": -1}, "latency_ns of a monitor is -1"),
        ([("head", "triggered", T, 0, 0)], {}, "decimate"),
    ],
)
def test_what_cannot_be_monitored_is_refused_at_once(streams, rest, words):
    with pytest.raises(ValueError, match=words):
        _core.Monitor(streams, **{"reference": "head", "period_ns": T, "latency_ns": 0, **rest})


def test_a_stream_that_is_not_there_cannot_be_pushed_to():
    with pytest.raises(IndexError, match="stream 2 of 2"):
        pair(0).push(2, 5)
