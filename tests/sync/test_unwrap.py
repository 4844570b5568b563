"""`_core.unwrap`: counters go on where they return to zero, and nothing else makes a wrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge import _core

ABSENT = -(2**63)


def int64(values):
    return np.array(values, dtype=np.int64)


def unwrapped(ticks, *, bits, arrival_ns=None, **tick):
    arrivals = None if arrival_ns is None else int64(arrival_ns)
    return _core.unwrap(int64(ticks), bits=bits, arrival_ns=arrivals, **tick).tolist()


def test_k01_32_bit_microseconds_unwrap():
    raw_counter_ns = [((4294900000 + i * 33333) % 4294967296) * 1000 for i in range(12)]
    peer_ns = [(4294900000 + i * 33333) * 1000 + 580000 for i in range(12)]

    device_ns = unwrapped([ns // 1000 for ns in raw_counter_ns], bits=32, tick_num=1000)

    assert np.diff(device_ns).tolist() == [33_333_000] * 11
    assert [peer - own for peer, own in zip(peer_ns, device_ns, strict=True)] == [580_000] * 12
    scan = _core.scan_stamps(int64(device_ns))
    assert (scan.backwards, scan.jump_count, scan.wrap_count) == (0, 0, 0)
    # The same counter, not unwrapped, is told by its range.
    scan = _core.scan_stamps(int64(raw_counter_ns))
    assert (scan.wrap_count, scan.jump_count) == (1, 0)
    assert [(step.index, step.kind, step.detail) for step in scan.jumps] == [(3, "wrap", "2^32 us")]
    # The wrap is a note of the map, which the episode's log can give.
    mapped = _core.map_clock(int64(raw_counter_ns) // 1000, int64(peer_ns), bits=32, tick_num=1000)
    assert (mapped.wraps, mapped.splits.tolist()) == (1, [])


@given(st.data(), st.integers(3, 63))
def test_late_readings_within_half_the_range_come_out_as_they_were(data, bits):
    reach = 2**bits // 4
    steps = st.integers(-reach + 1, reach - 1)
    truth = np.cumsum([data.draw(st.integers(0, 2**bits - 1)), *data.draw(st.lists(steps, max_size=40))], dtype=object)
    truth = [int(t) for t in truth if abs(int(t)) < 2**62]
    ticks = [t % 2**bits for t in truth]
    first = truth[0] - ticks[0] if truth else 0

    assert unwrapped(ticks, bits=bits) == [t - first for t in truth]


@given(
    st.lists(st.tuples(st.integers(-30_000, 200_000), st.integers(0, 30_000)), min_size=1, max_size=60),
    st.integers(0, 2**16 - 1),
)
def test_whole_ranges_that_passed_in_silence_are_told_by_arrivals(steps, first):
    # 16 bits of 1 us, after a reading that was under way for as short as any; others for up to half the range longer.
    truth_us = [first, *(first + int(t) for t in np.cumsum([max(0, step) for step, _ in steps]))]
    delay_us = [500, *(500 + delay for _, delay in steps)]
    arrivals = [(t + delay) * 1000 for t, delay in zip(truth_us, delay_us, strict=True)]

    device_ns = unwrapped([t % 2**16 for t in truth_us], bits=16, tick_num=1000, arrival_ns=arrivals)

    assert device_ns == [t * 1000 for t in truth_us]


@given(st.lists(st.integers(0, 2**40), max_size=20), st.integers(1, 10**6), st.integers(1, 10**6))
def test_ticks_become_ns_by_flooring_exactly(ticks, num, den):
    beyond = 2**63
    expected = [t * num // den if t * num // den < beyond else ABSENT for t in ticks]
    assert unwrapped(ticks, bits=64, tick_num=num, tick_den=den) == expected


def test_absent_readings_and_arrivals_are_passed_over():
    ticks = [250, ABSENT, 5, 7]
    assert unwrapped(ticks, bits=8, arrival_ns=[0, 5, ABSENT, 13]) == [250, ABSENT, 261, 263]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), st.integers(1, 64), st.data())
def test_no_reading_whatever_is_answered_with_another_time(ticks, bits, data):
    arrivals = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(ticks), max_size=len(ticks)))
    num, den = data.draw(st.sampled_from([(1, 1), (1000, 3), (2**63 - 1, 1), (1, 2**63 - 1)]))
    device_ns = unwrapped(ticks, bits=bits, arrival_ns=arrivals, tick_num=num, tick_den=den)
    for raw, ns in zip(ticks, device_ns, strict=True):
        if raw == ABSENT:
            assert ns == ABSENT
        elif ns != ABSENT:
            # Some count that is congruent to the reading takes just that time.
            first, beyond = -(-ns * den // num), -(-(ns + 1) * den // num)
            assert first + (raw - first) % 2**bits < beyond


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"bits": 0}, "bits is 0; it must be from 1 to 64"),
        ({"bits": 32, "tick_den": 0}, "tick_den is 0"),
        ({"bits": 32, "arrival_ns": int64([1, 2])}, "2 entries for 1 samples"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        _core.unwrap(int64([1]), **call)
