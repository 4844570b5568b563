from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.sensors.faults import FreeRun, Slip
from firsthand_edge.sensors.sim_exposure import Schedule, Train, slips
from firsthand_edge.trigger.line import Pulses

S = 1_000_000_000


def trains():
    """Trains of pulses, of which a device may run free."""
    pulses = st.builds(
        lambda first, period, length: Pulses(1, 1, first, period, first + length),
        st.integers(1, 10**13),
        st.integers(1_000_000, 40_000_000),
        st.integers(1, 20 * S),
    )
    ppm = st.decimals(-100_000, 100_000, places=3)
    free = st.none() | st.builds(
        lambda ppm, at_s: FreeRun(kind="free_run", ppm=ppm, at_s=at_s), ppm, st.decimals(0, 20, places=3)
    )
    return st.builds(lambda pulses, fault: Train(pulses, () if fault is None else (fault,)), pulses, free)


@given(train=trains(), since_ns=st.integers(-S, 30 * S))
def test_what_was_counted_fell_due_and_the_next_did_not(train, since_ns):
    schedule, now_ns = Schedule.of(train), train.start_ns + since_ns
    count = schedule.count(now_ns)
    last_ns = min(now_ns, train.pulses.stop_ns - 1)
    assert count == 0 or schedule.instant_ns(count - 1) <= last_ns
    # An instant is rounded down to a nanosecond, so the next one may show the last one's end.
    assert schedule.instant_ns(count) >= last_ns
    slots = np.arange(max(0, count - 3), count + 3)
    assert schedule.instants_ns(slots).tolist() == [schedule.instant_ns(int(slot)) for slot in slots]
    assert (np.diff(schedule.instants_ns(slots)) > 0).all()


@given(train=trains())
def test_pulses_seen_are_those_that_had_happened(train):
    schedule = Schedule.of(train)
    slots = np.arange(200)
    for slot, seen in zip(slots.tolist(), schedule.pulses_seen(slots).tolist(), strict=True):
        since_ns = schedule.instant_ns(slot) - train.start_ns
        assert seen * train.pulses.period_ns <= since_ns < (seen + 1) * train.pulses.period_ns


def test_slips_add_up():
    faults = (Slip(kind="slip", ticks=2, at_s=Decimal("0.1")), Slip(kind="slip", ticks=-1, at_s=Decimal("0.2")))
    happens, lag = slips(Train(Pulses(1, 1, S, 10_000_000), faults), np.arange(25))
    assert np.flatnonzero(~happens).tolist() == [10, 11]
    assert lag.tolist() == [0] * 10 + [2] * 10 + [1] * 5
