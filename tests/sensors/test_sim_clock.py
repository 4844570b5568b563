import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.sensors.sim_clock import SimClock, Step, scaled

times = st.lists(st.integers(0, 10**15), min_size=1, max_size=20)


@given(times, st.integers(-(10**6), 10**6))
def test_scaling_is_exact(elapsed, ppb):
    got = scaled(np.array(elapsed, np.int64), ppb)
    for e, g in zip(elapsed, got.tolist(), strict=True):
        # Whole seconds and rest are floored apart, so no more than 1 ns is lost.
        assert 0 <= e * ppb // 10**9 - g <= 1 or g == e * ppb // 10**9


@given(
    st.lists(st.integers(0, 10**13), min_size=2, max_size=20),
    st.integers(-100_000, 100_000),
    st.sampled_from([(32, 1000, 1), (32, 80, 3), (24, 100_000, 1), (40, 1, 1), (64, 1, 1)]),
)
def test_the_counter_stays_within_its_bits_and_runs_with_time(elapsed, ppb, kind):
    bits, num, den = kind
    clock = SimClock(rate_ppb=ppb, bits=bits, tick_num=num, tick_den=den, start=5)
    at = np.sort(np.array(elapsed, np.int64)) + 10**12
    ticks = clock.ticks(at, 10**12)
    assert (ticks >= 0).all()
    assert (ticks < 2 ** min(bits, 63)).all()
    unwrapped = clock.device_ns(at, 10**12) * den // num + 5
    assert all((u - t) % 2 ** min(bits, 63) == 0 for u, t in zip(unwrapped.tolist(), ticks.tolist(), strict=True))
    assert (np.diff(unwrapped) >= 0).all()


def test_it_wraps_when_told():
    clock = SimClock.wrapping(5 * 10**9, rate_ppb=0, bits=32, tick_num=1000, tick_den=1)
    before, after = clock.ticks(np.array([5 * 10**9 - 1000, 5 * 10**9], np.int64), 0)
    assert (before, after) == (2**32 - 1, 0)


def test_a_step_holds_from_its_time_on_and_can_be_taken_back():
    clock = SimClock(rate_ppb=0, bits=40, tick_num=1, tick_den=1, start=0)
    clock.steps = [Step(100, jump_ns=1000), Step(200, jump_ns=-1000)]
    assert clock.ticks(np.array([99, 100, 199, 200], np.int64), 0).tolist() == [99, 1100, 1199, 200]
