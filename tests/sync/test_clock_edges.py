"""`_core.map_clock_by_edges`: triggered devices by their edges, two-sided, without any delay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge import _core

ABSENT = -(2**63)
MS = 1_000_000
AFTER = 3 * MS
COUNTER = {"bits": 32, "tick_num": 1000}
ANY = st.integers(-(2**63), 2**63 - 1)
SANE = st.integers(0, 10**9)


def int64(values):
    return np.array(values, dtype=np.int64)


def camera(seed, *, hz=60, seconds=20, ppm=80.0, min_delay=1_200_000, jitter=300.0):
    """(truth, ticks, arrival, edges): stamps AFTER their edge, edges stamped with some jitter."""
    random = np.random.default_rng(seed)
    truth = 10**12 + np.arange(hz * seconds, dtype=np.int64) * (10**9 // hz)
    device = truth + ((truth - truth[0]) * ppm / 1e6).astype(np.int64)
    arrival = truth + min_delay + random.exponential(300_000, truth.size).astype(np.int64)
    edges = truth - AFTER + (random.normal(size=truth.size) * jitter).astype(np.int64)
    return truth, device // 1000 % 2**32, arrival, edges


def fitted(ticks, arrival, edges, *, indexed=True, calibrated=False, **config):
    index = np.arange(ticks.size, dtype=np.int64)
    return _core.map_clock_by_edges(
        ticks,
        arrival,
        np.full(ticks.size, AFTER, dtype=np.int64),
        trigger_index=index if indexed else np.full(ticks.size, ABSENT, dtype=np.int64),
        edge_index=np.arange(edges.size, dtype=np.int64),
        edge_ns=edges,
        calibrated=calibrated,
        **{**COUNTER, **config},
    )


@pytest.mark.parametrize("ppm", [-100.0, -50.0, 50.0, 100.0])
@pytest.mark.parametrize("hz", [30, 60, 240])
def test_the_truth_is_found_within_two_microseconds_and_within_what_is_stated(hz, ppm):
    truth, ticks, arrival, edges = camera(hz, hz=hz, ppm=ppm)
    mapped = fitted(ticks, arrival, edges)
    error = np.abs(mapped.rig_ns - truth)
    assert np.median(error) < 2_000
    assert np.all(error <= mapped.uncertainty_ns)
    assert np.median(mapped.uncertainty_ns) < 4_000
    assert abs(mapped.rate_ppb + ppm * 1000) < 2_000
    assert (mapped.pairs, mapped.refused, mapped.future, mapped.splits.size) == (truth.size, 0, 0, 0)


def test_a_device_without_a_count_is_paired_by_a_calibrated_delay():
    truth, ticks, arrival, edges = camera(1)
    mapped = fitted(ticks, arrival, edges, indexed=False, calibrated=True, min_delay_ns=1_200_000)
    assert np.median(np.abs(mapped.rig_ns - truth)[300:]) < 2_000
    nothing = fitted(ticks, arrival, edges, indexed=False)
    assert (nothing.pairs, set(nothing.uncertainty_ns.tolist())) == (0, {2**60})


def test_the_map_of_arrivals_beside_it_is_the_one_of_map_clock():
    _, ticks, arrival, edges = camera(2)
    beside = fitted(ticks, arrival, edges, min_delay_ns=7, min_delay_bound_ns=9).by_arrival
    alone = _core.map_clock(ticks, arrival, min_delay_ns=7, min_delay_bound_ns=9, **COUNTER)
    for name in ("device_ns", "rig_ns", "uncertainty_ns", "splits"):
        assert getattr(beside, name).tolist() == getattr(alone, name).tolist()
    assert (beside.wraps, beside.rate_ppb, beside.future) == (alone.wraps, alone.rate_ppb, alone.future)


def test_the_bound_of_edges_is_part_of_the_uncertainty():
    _, ticks, arrival, edges = camera(3)
    bare, bound = fitted(ticks, arrival, edges), fitted(ticks, arrival, edges, bound_ns=70_000)
    assert bound.rig_ns.tolist() == bare.rig_ns.tolist()
    assert set((bound.uncertainty_ns - bare.uncertainty_ns).tolist()) == {70_000}


@settings(deadline=None)
@given(
    st.lists(st.tuples(ANY | SANE, ANY | SANE, ANY | SANE, st.integers(0, 30) | st.just(ABSENT)), max_size=60),
    st.lists(SANE | ANY, max_size=25, unique=True),
    st.booleans(),
    st.data(),
)
def test_a_prefix_maps_identically_whatever_it_is(rows, edges, calibrated, data):
    columns = [int64([row[i] for row in rows]) for i in range(4)]
    edges = sorted(edge for edge in edges if edge != ABSENT)
    cut = data.draw(st.integers(0, len(rows)))

    def mapped(rows):
        ticks, arrival, after, index = (column[:rows] for column in columns)
        return _core.map_clock_by_edges(
            ticks,
            arrival,
            after,
            trigger_index=index,
            edge_index=np.arange(len(edges), dtype=np.int64),
            edge_ns=int64(edges),
            calibrated=calibrated,
        )

    whole, part = mapped(len(rows)), mapped(cut)
    for name in ("rig_ns", "uncertainty_ns"):
        assert getattr(part, name).tolist() == getattr(whole, name)[:cut].tolist()
    assert part.splits.tolist() == [at for at in whole.splits.tolist() if at < cut]
    assert all(u >= 0 for u, rig in zip(whole.uncertainty_ns, whole.rig_ns, strict=True) if rig != ABSENT)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"after_edge_ns": int64([1])}, "after_edge_ns of 'clock' has 1 entries for 2 samples"),
        ({"trigger_index": int64([1])}, "trigger_index of 'clock' has 1 entries for 2 samples"),
        ({"edge_index": int64([1])}, "edge_index has 1 entries for 2 of edge_ns"),
        ({"edge_index": int64([1, 1])}, "index of edge 1 is 1; it must be above that of the edge before"),
        ({"edge_ns": int64([5, 5])}, "time_ns of edge 1 is 5; it must be above that of the edge before"),
        ({"bound_ns": -1}, "bound_ns is -1; it must be from 0 to 1 s"),
        ({"bits": 65}, "bits is 65"),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    two = int64([1, 2])
    columns = {"ticks": two, "arrival_ns": two, "after_edge_ns": two}
    more = {"trigger_index": two, "edge_index": two, "edge_ns": two, "calibrated": True}
    call = {**columns, **more, **change}
    with pytest.raises(ValueError, match=words):
        _core.map_clock_by_edges(**call)
