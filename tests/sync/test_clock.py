"""`_core.ClockMap` and `_core.map_clock`: causal, below every arrival, honest about what they do not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge import _core

ABSENT = -(2**63)
MS = 1_000_000
MIN_DELAY = 1_200_000
ANY = st.integers(-(2**63), 2**63 - 1)
SANE = st.integers(0, 3 * 10**10)
READINGS = st.lists(st.tuples(ANY | SANE, ANY | SANE | st.just(ABSENT)), max_size=60)
"""(ticks, arrival) each."""


def int64(values):
    return np.array(values, dtype=np.int64)


def device(seed, *, hz=60, seconds=30, ppm=80.0, tail=300_000.0, spikes=0.005):
    """(truth, device, arrival), each (n,) int64 ns: a drifting crystal with a temperature curve, a one-sided delay."""
    random = np.random.default_rng(seed)
    truth = 10**12 + np.arange(hz * seconds, dtype=np.int64) * (10**9 // hz)
    at = truth / 1e9
    drift_us = ppm * at + 8.0 * 300 / (2 * np.pi) * (1 - np.cos(2 * np.pi * at / 300))
    delay = MIN_DELAY + random.exponential(tail, truth.size) + 30 * MS * (random.random(truth.size) < spikes)
    return truth, truth + (drift_us * 1000).astype(np.int64), truth + delay.astype(np.int64)


def pushed(ticks, arrivals, **config):
    clock_map = _core.ClockMap(**config)
    return clock_map, [clock_map.push(int(t), int(a)) for t, a in zip(ticks, arrivals, strict=True)]


@settings(deadline=None)
@given(READINGS, st.sampled_from([8, 32, 64]), st.data())
def test_a_prefix_maps_identically_and_pushing_is_mapping(pairs, bits, data):
    ticks, arrivals = [t for t, _ in pairs], [a for _, a in pairs]
    cut = data.draw(st.integers(0, len(pairs)))
    config = {"bits": bits, "min_delay_ns": 1000, "identity": data.draw(st.booleans())}
    whole = _core.map_clock(int64(ticks), int64(arrivals), **config)
    part = _core.map_clock(int64(ticks[:cut]), int64(arrivals[:cut]), **config)
    for name in ("device_ns", "rig_ns", "uncertainty_ns"):
        assert getattr(part, name).tolist() == getattr(whole, name)[:cut].tolist()
    assert part.splits.tolist() == [at for at in whole.splits.tolist() if at < cut]

    clock_map, mapped = pushed(ticks, arrivals, **config)
    assert mapped == list(zip(whole.rig_ns.tolist(), whole.uncertainty_ns.tolist(), strict=True))
    assert (clock_map.splits, clock_map.wraps, clock_map.rate_ppb) == (whole.splits.size, whole.wraps, whole.rate_ppb)


@settings(deadline=None)
@given(READINGS, st.integers(0, 10 * MS))
def test_nothing_is_mapped_later_than_it_arrived(pairs, min_delay):
    ticks, arrivals = int64([t for t, _ in pairs]), int64([a for _, a in pairs])
    mapped = _core.map_clock(ticks, arrivals, min_delay_ns=min_delay)
    columns = zip(mapped.rig_ns.tolist(), mapped.uncertainty_ns.tolist(), arrivals.tolist(), strict=True)
    for rig, uncertainty, arrival in columns:
        if ABSENT not in {rig, arrival}:
            assert rig <= arrival - min_delay
            assert uncertainty >= 0
    assert mapped.future == 0


@pytest.mark.parametrize("hz", [30, 60, 1000])
@pytest.mark.parametrize("ppm", [-100.0, 50.0])
def test_rig_time_is_found_again(hz, ppm):
    truth, ticks, arrivals = device(hz, hz=hz, ppm=ppm)
    mapped = _core.map_clock(ticks, arrivals, min_delay_ns=MIN_DELAY)
    error = np.abs(mapped.rig_ns - truth)
    settled = truth - truth[0] > 3 * 10**9
    assert np.median(error[settled]) < 20_000
    assert np.all(error <= mapped.uncertainty_ns)
    assert np.median(mapped.uncertainty_ns[settled]) < 150_000
    assert abs(mapped.rate_ppb + ppm * 1000) < 20_000
    assert mapped.splits.size == 0


def test_times_of_a_stream_rise_within_what_is_uncertain():
    _, ticks, arrivals = device(3, hz=1000, seconds=10)
    mapped = _core.map_clock(ticks, arrivals, min_delay_ns=MIN_DELAY)
    falls = np.diff(mapped.rig_ns)
    assert np.all(falls >= -mapped.uncertainty_ns[:-1])
    assert np.all(falls[3000:] > 0)


def test_the_bound_of_the_minimum_delay_is_part_of_the_uncertainty():
    _, ticks, arrivals = device(4)
    bare = _core.map_clock(ticks, arrivals, min_delay_ns=MIN_DELAY)
    bound = _core.map_clock(ticks, arrivals, min_delay_ns=MIN_DELAY, min_delay_bound_ns=70_000)
    assert bound.rig_ns.tolist() == bare.rig_ns.tolist()
    assert set((bound.uncertainty_ns - bare.uncertainty_ns).tolist()) == {70_000}


def test_settled_takes_two_seconds_of_pairs():
    truth, ticks, arrivals = device(5, hz=200, seconds=3)
    clock_map = _core.ClockMap(min_delay_ns=MIN_DELAY)
    settled = []
    for tick, arrival in zip(ticks.tolist(), arrivals.tolist(), strict=True):
        clock_map.push(tick, arrival)
        settled.append(clock_map.settled)
    first = settled.index(True)
    assert 2.0 <= (truth[first] - truth[0]) / 1e9 < 2.2
    clock_map.push(int(ticks[-1]) + 10**10, int(arrivals[-1]))
    assert (clock_map.settled, clock_map.splits) == (False, 1)


def test_k06_slow_control_transfer():
    device_ns = [i * 100000000 for i in range(21)]
    host_ns = [1764537600000000000 + i * 100000000 + (7500000 if i == 1 else 250000) for i in range(21)]
    mapped = _core.map_clock(int64(device_ns), int64(host_ns), min_delay_ns=250_000)
    # The slow pair bends nothing: the cadence is as it was, and no frame lies after its arrival.
    assert np.diff(mapped.rig_ns).tolist() == [100 * MS] * 20
    assert np.all(mapped.rig_ns <= int64(host_ns))
    assert (mapped.future, mapped.splits.size) == (0, 0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 7)), max_size=30), st.integers(2_000_000, 15_000_000))
def test_k06_slow_control_transfers_at_any_time_bend_nothing(transfers, late_ns):
    # Clock samples at 10 Hz for 6 s, a good one 0.25 ms under way, a slow one by half its round trip: up to five in a
    # row, then at least one that is good.
    is_slow = [late for slow, good in transfers for late in [True] * slow + [False] * good]
    is_slow = np.array((is_slow + [False] * 60)[:60])
    device_ns = np.arange(60, dtype=np.int64) * 100 * MS
    truth = 1764537600000000000 + device_ns
    host_ns = truth + 250_000 + late_ns * is_slow
    mapped = _core.map_clock(device_ns, host_ns, min_delay_ns=250_000)
    assert np.all(mapped.rig_ns <= host_ns - 250_000)
    assert np.all(np.abs(mapped.rig_ns - truth) <= mapped.uncertainty_ns)
    assert (mapped.future, mapped.splits.size) == (0, 0)
    # Before there are 2 s of pairs, when no take begins, a row of slow ones may look like a clock that runs slow.
    assert np.all(mapped.rig_ns[20:] == truth[20:])


def test_stamps_that_claim_to_be_rig_time_and_lie_after_their_arrival_are_counted():
    # k06: frames arrive 26 ms after their capture; two of these claim to have been taken after they arrived.
    capture = [i * 33_333_333 + (30 * MS if i in {4, 9} else 0) for i in range(20)]
    arrival = [i * 33_333_333 + 26 * MS for i in range(20)]
    mapped = _core.map_clock(int64(capture), int64(arrival), identity=True, min_delay_bound_ns=100_000)
    assert mapped.rig_ns.tolist() == capture
    assert mapped.future == 2


@pytest.mark.parametrize("step", [25 * MS, 600 * MS, 37 * 10**9, -(2 * 10**9), -37 * 10**9])
def test_a_step_of_the_device_clock_splits_the_map_and_bends_nothing(step):
    truth, ticks, arrivals = device(6, seconds=20, spikes=0.0)
    before = _core.map_clock(ticks[:600], arrivals[:600], min_delay_ns=MIN_DELAY)
    ticks = ticks + step * (np.arange(ticks.size) >= 600)
    mapped = _core.map_clock(ticks, arrivals, min_delay_ns=MIN_DELAY)
    assert mapped.splits.tolist() == [600]
    assert mapped.rig_ns[:600].tolist() == before.rig_ns.tolist()
    assert np.all(np.abs(mapped.rig_ns - truth) <= mapped.uncertainty_ns)


def test_k12_imu_steps_back_and_the_map_splits_when_it_is_sure():
    truth = 1764537600000000000 + np.arange(2000, dtype=np.int64) * 5000000
    imu_ns = int64([1764537600000000000 + i * 5000000 - (600000000 if i >= 1000 else 0) for i in range(2000)])
    mapped = _core.map_clock(imu_ns, truth + 1_000_000)
    # 0.6 s might be a delay; after a second of it, it is none. Until then the uncertainty covers it.
    assert mapped.splits.tolist() == [1200]
    error = np.abs(mapped.rig_ns - truth - 1_000_000)
    assert np.all(error[1002:1200] <= mapped.uncertainty_ns[1002:1200])
    assert np.all(error[1200:] <= mapped.uncertainty_ns[1200:])
    assert np.all(error[:1000] == 0)


def test_interleaved_streams_of_one_clock_are_no_steps():
    # k03: pictures at once, batches of the IMU 12 ms late, in order of arrival.
    colour = [1764537600000000000 + i * 33333333 for i in range(30)]
    imu = [1764537600000000000 - 12000000 + i * 5000000 for i in range(200)]
    arrivals = sorted([(t + 2 * MS, t) for t in colour] + [(t + 14 * MS, t) for t in imu])
    ticks = int64([(t // 1000) % 2**32 for _, t in arrivals])
    mapped = _core.map_clock(ticks, int64([a for a, _ in arrivals]), bits=32, tick_num=1000)
    assert (mapped.splits.size, mapped.wraps, mapped.future) == (0, 0, 0)


def test_without_arrivals_a_map_knows_nothing_and_says_so():
    clock_map = _core.ClockMap()
    rig, uncertainty = clock_map.push(123, ABSENT)
    assert rig == 123
    assert uncertainty > 10**18
    assert not clock_map.settled
    assert clock_map.push(ABSENT, 5) == (ABSENT, ABSENT)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"bits": 65}, "bits is 65"),
        ({"tick_num": 0}, "tick_num is 0"),
        ({"window_ns": 0}, "window_ns is 0; it must be from 1 ms to 1 h"),
        ({"min_delay_bound_ns": -1}, "min_delay_bound_ns is -1"),
    ],
)
def test_a_map_that_no_device_can_have_is_refused(config, words):
    with pytest.raises(ValueError, match=words):
        _core.ClockMap(**config)
    with pytest.raises(ValueError, match=words):
        _core.map_clock(int64([]), int64([]), **config)


def test_columns_must_be_of_one_length():
    with pytest.raises(ValueError, match="1 entries for 2 samples"):
        _core.map_clock(int64([1, 2]), int64([1]))
