"""`_core.Monitor`: live ticks are those of the batch core (sync.md, section 6)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge import _core

ABSENT = -(2**63)
T = 1000
STREAMS = [
    ("head", "triggered", T, 1, 0),
    ("wrist", "triggered", T, 1, 0),
    ("depth", "triggered", 2 * T, 2, 1),
    ("imu", "sampled", 170, 1, 0),
    ("glove", "interpolated", 700, 1, 0),
]
STREAM_FIGURES = [
    "kind", "samples", "expected", "matched", "missing", "longest_missing_run", "longest_missing_first_tick",
    "first_missing_tick", "last_missing_tick", "extra", "trimmed", "duplicate", "backwards", "decimate", "phase",
    "first_ns", "last_ns", "uncertainty_ns", "offset_median_ns", "offset_p99_abs_ns", "offset_max_abs_ns",
]  # fmt: skip
RESIDUALS = [
    "ticks", "median_ns", "p99_ns", "p999_ns", "max_ns", "over_ceiling", "first_over_tick", "last_over_tick",
    "worst_tick", "worst_pair",
]  # fmt: skip
FIGURES = ["reference", "period_ns", "start_ns", "end_ns", "ticks", "absent", "trimmed_start", "trimmed_end"]
SERIES = ["tick", "reference_ns", "residual_ns", "guarded_ns"]


def told(figures):
    """Every figure and every series, as plain values."""
    return {
        **{name: getattr(figures, name) for name in FIGURES},
        **{name: getattr(figures, name).tolist() for name in SERIES},
        "residual": [getattr(figures.residual, name) for name in RESIDUALS],
        "guarded": [getattr(figures.guarded, name) for name in RESIDUALS],
        "streams": {name: [getattr(row, f) for f in STREAM_FIGURES] for name, row in figures.streams.items()},
        "offsets": {name: figures.offset_ns(name).tolist() for name in figures.streams},
    }


def batch(streams, times, *, reference, edges=None, **rest):
    columns = [
        _core.Stream(name, kind, np.array(own, dtype=np.int64), period_ns=period, decimate=decimate, phase=phase)
        for (name, kind, period, decimate, phase), own in zip(streams, times, strict=True)
    ]
    edges_ns = None if edges is None else np.array(edges, dtype=np.int64)
    return _core.measure(columns, reference=reference, edges_ns=edges_ns, **rest)


@st.composite
def scenes(draw, *, reorder):
    """(latency, edges or not, trim, pushes of (arrival, stream, time) in order of arrival)."""
    latency, edges = draw(st.integers(0, 3 * T)), draw(st.booleans())
    random = draw(st.randoms(use_true_random=False))
    jitter, loss = draw(st.sampled_from([0, 100, 900, 1400])), draw(st.sampled_from([0.0, 0.1, 0.5]))
    pushes = []
    for at, period in enumerate([row[2] for row in STREAMS] + [T] * edges):
        first, count = random.randrange(3 * T), random.randrange(1, 12 * T) // period
        times = [first + i * period + random.randint(-jitter, jitter) for i in range(count) if random.random() >= loss]
        times = sorted(times + [t for t in times if random.random() < 0.05])
        before = -(2**62)
        for t in times:
            arrival = t + random.choice([0, latency, random.randint(0, latency)])
            if not reorder or at == len(STREAMS):
                before = arrival = min(max(before, arrival), t + latency)
            pushes.append((arrival, at, t))
    return latency, edges, draw(st.sampled_from([0, 2 * T, 10**9])), sorted(pushes, key=lambda push: push[0])


def assert_live_is_batch(scene, asking, *, reorder):
    latency, edges, trim, pushes = scene
    reference = "edges" if edges else "head"
    monitor = _core.Monitor(
        STREAMS,
        reference=reference,
        period_ns=T,
        latency_ns=latency,
        ceiling_ns=300,
        trim_max_ns=trim,
        reorder_ns=latency if reorder else 0,
        edges=edges,
    )
    times = [[] for _ in range(len(STREAMS) + 1)]
    live = []
    for arrival, at, t in pushes:
        times[at].append(t)
        monitor.push(at, t)
        live += monitor.advance(asking.choice([ABSENT, arrival]))
    live += monitor.advance(2**63 - 1)

    figures = batch(
        STREAMS,
        times[:-1],
        reference=reference,
        edges=times[-1] if edges else None,
        period_ns=T,
        trim_max_ns=trim,
        ceiling_ns=300,
    )
    assert monitor.late == 0
    assert told(monitor.close()) == told(figures)
    offsets = np.array([figures.offset_ns(name) for name in figures.streams]).reshape(len(STREAMS), -1)
    matched = [int(sum(1 << i for i in np.flatnonzero(column != ABSENT))) for column in offsets.T]
    columns = [figures.tick.tolist(), figures.reference_ns.tolist(), figures.residual_ns.tolist(), matched]
    assert live[figures.trimmed_start : len(live) - figures.trimmed_end] == list(zip(*columns, strict=True))
    assert len(live) == figures.ticks + figures.trimmed_start + figures.trimmed_end


@settings(deadline=None)
@given(scenes(reorder=False), st.randoms(use_true_random=False))
def test_live_ticks_are_those_of_the_batch_core(scene, asking):
    assert_live_is_batch(scene, asking, reorder=False)


@settings(deadline=None)
@given(scenes(reorder=True), st.randoms(use_true_random=False))
def test_reordering_within_the_bound_changes_nothing(scene, asking):
    assert_live_is_batch(scene, asking, reorder=True)


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
