"""`_core.scan_stamps` against the sentences of sync.md, section 5, read in plain Python."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge import _core

ABSENT = -(2**63)
MS = 1_000_000
P = 16_666_667
ANY = st.integers(-(2**63) + 1, 2**63 - 1)


def int64(values):
    return np.array(values, dtype=np.int64)


def scanned(times, *, sequence=None, arrival=None, **rest):
    columns = {"sequence": sequence, "arrival_ns": arrival}
    return _core.scan_stamps(int64(times), **{k: int64(v) for k, v in columns.items() if v is not None}, **rest)


def steps(scan):
    return [(step.index, step.kind, step.step_ns) for step in scan.jumps]


@given(st.lists(st.integers(0, 60) | ANY, max_size=40))
def test_order_repeats_silence_and_divisor(times):
    scan = scanned(times)
    distinct = sorted(set(times))
    apart = [b - a for a, b in pairwise(distinct)]
    below = [(i, max(times[:i]) - t) for i, t in enumerate(times) if i and t < max(times[:i])]
    assert (scan.samples, scan.distinct, scan.duplicate) == (len(times), len(distinct), len(times) - len(distinct))
    assert scan.backwards == len(below)
    assert scan.first_backwards == (below[0][0] if below else None)
    assert scan.largest_backwards_ns == max((by for _, by in below), default=0)
    assert scan.late_by == max((sum(e > t for e in times[:i]) for i, t in enumerate(times)), default=0)
    assert scan.longest_silence_ns == max(apart, default=0)
    assert scan.longest_silence_index == (times.index(distinct[apart.index(max(apart)) + 1]) if apart else None)
    assert scan.steps_gcd_ns == math.gcd(*apart)
    if apart and max(apart) < 2**63:
        assert scan.median_step_ns == sorted(apart)[(len(apart) + 1) // 2 - 1]


@given(
    st.lists(
        st.tuples(st.integers(-40, 60), st.integers(-3, 5), st.integers(-5, 60)),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 20),
    st.none() | st.integers(1, 40),
)
def test_a_jump_differs_from_both_what_was_counted_and_what_went_by(rows, period, tick):
    times, sequence, arrival = (np.cumsum([1000, *column]).tolist() for column in zip(*rows, strict=True))
    scan = scanned(times, sequence=sequence, arrival=arrival, period_ns=period, tick_ns=tick)
    half = tick or period  # sync.md section 5: half of T, which is the period of the ticks and not of the stream
    expected = [
        (i + 1, "jump", step)
        for i, (step, dseq, arrived) in enumerate(rows)
        if 2 * abs(step - dseq * period) > half and 2 * abs(step - arrived) > half
    ]
    # Steps of a few periods are no wrap and no whole seconds: every finding is a jump.
    assert (scan.jump_count, scan.wrap_count, scan.tai_utc_count) == (len(expected), 0, 0)
    assert steps(scan) == expected[:16]
    assert [step.expected_ns for step in scan.jumps] == [rows[i - 1][1] * period for i, _, _ in expected[:16]]


@given(st.integers(-70, 70), st.integers(-60, 60), st.integers(0, 3))
def test_tai_and_utc_lie_ten_to_sixty_whole_seconds_apart(seconds, off_ms, dseq):
    times = [i * P for i in range(20)]
    stepped = [t + (seconds * 10**9 + off_ms * MS if i >= 10 else 0) for i, t in enumerate(times)]
    sequence = [i + (dseq - 1 if i >= 10 else 0) for i in range(20)]
    scan = scanned(stepped, sequence=sequence, arrival=times)
    expected = 10 <= abs(seconds) <= 60 and abs(off_ms) <= 50 and dseq == 1
    assert scan.tai_utc_count == int(expected)
    assert scan.jump_count + scan.wrap_count <= int(not expected)
    assert scanned(stepped, arrival=times).tai_utc_count == 0


@given(st.lists(st.integers(0, 3), max_size=60), st.randoms())
def test_samples_that_the_device_counted_and_that_are_not_here(skips, random):
    sequence = np.cumsum([5, *(1 + skip for skip in skips)]).tolist()
    # Neighbours may change places, the ends stay.
    for i in range(1, len(sequence) - 2, 2):
        if random.random() < 0.2:
            sequence[i], sequence[i + 1] = sequence[i + 1], sequence[i]
    scan = scanned([n * P for n in sequence], sequence=sequence, period_ns=P)
    assert scan.sequence_gaps == sum(skips)
    assert scan.jump_count == 0


def test_k12_imu_steps_back():
    imu_ns = [1764537600000000000 + i * 5000000 - (600000000 if i >= 1000 else 0) for i in range(2000)]
    arrival = [1764537600000000000 + i * 5000000 + 900_000 for i in range(2000)]
    scan = scanned(imu_ns, sequence=range(2000), arrival=arrival)
    assert steps(scan) == [(1000, "jump", -595_000_000)]
    assert (scan.backwards, scan.first_backwards, scan.largest_backwards_ns) == (119, 1000, 595_000_000)
    # With nothing but stamps, what is left is that they run backwards.
    alone = scanned(imu_ns)
    assert (alone.jump_count, alone.backwards, alone.first_backwards) == (0, 119, 1000)


def test_k04_a_change_of_domain_is_far_from_any_overflow():
    cam_ns = [1764537600000000000 + i * 33333333 for i in range(5)] + [91234000000 + i * 33333333 for i in range(5, 30)]
    arrival = [1764537600000000000 + i * 33333333 + 9 * MS for i in range(30)]
    scan = scanned(cam_ns, sequence=range(30), arrival=arrival)
    assert [(index, kind) for index, kind, _ in steps(scan)] == [(5, "jump")]
    assert scan.first_backwards == 5


def test_k07_imu_repeats_stamps():
    imu_ns = [
        1593335798138876361,
        1593335798141408861,
        1593335798143941361,
        1593335798143941361,
        1593335798149006361,
        1593335798149006361,
    ]
    scan = scanned(imu_ns)
    assert (scan.samples, scan.distinct, scan.duplicate, scan.backwards) == (6, 4, 2, 0)
    assert scan.median_step_ns == 2_532_500


def test_k15_stamps_that_do_not_advance():
    scan = scanned([1764537600000000000 for _ in range(30)])
    assert (scan.distinct, scan.duplicate, scan.median_step_ns, scan.steps_gcd_ns) == (1, 29, None, 0)


def test_k27_two_rates_are_no_fault_of_either_stream():
    for stamps in (
        [1764537600000000000 + i * 33333333 for i in range(2700)],
        [1764537600000000000 + i * 33347228 for i in range(2699)],
    ):
        scan = scanned(stamps)
        assert (scan.backwards, scan.duplicate, scan.jump_count, scan.wrap_count) == (0, 0, 0, 0)


def test_float64_seconds_show_in_the_divisor_of_the_steps():
    exact = [1_403_636_579_758_555_392 + i * 50_000_117 for i in range(100)]
    assert scanned(exact).steps_gcd_ns == 50_000_117
    damaged = [int(float(t)) for t in exact]
    assert scanned(damaged).steps_gcd_ns == 256


@pytest.mark.parametrize(
    ("range_ns", "period", "detail"),
    [
        (2**32 * 1000, P, "2^32 us"),
        (2**32, P, "2^32 ns"),
        (2**16 * MS, P, "2^16 ms"),
        (2**16 * 1000, MS, "2^16 us"),
        (2**24 * 390625 // 10, 5 * MS, "2^24 * 39.0625 us"),
        (2**16 * P, P, "2^16 frame periods"),
    ],
)
def test_a_counter_that_was_not_unwrapped_is_named(range_ns, period, detail):
    times = [(range_ns - 20 * period + i * period) % range_ns for i in range(60)]
    for scan in (scanned(times), scanned(times, sequence=range(60), arrival=[i * period for i in range(60)])):
        assert (scan.wrap_count, scan.jump_count) == (1, 0)
        assert [(step.index, step.kind, step.detail) for step in scan.jumps] == [(20, "wrap", detail)]


def test_a_long_step_is_a_jump_where_nothing_else_is_known():
    times = [i * P + (600 * MS if i >= 50 else 0) for i in range(100)]
    assert steps(scanned(times)) == [(50, "jump", 600 * MS + P)]
    assert scanned(times, silence_max_ns=700 * MS).jump_count == 0
    assert scanned(times, arrival=times).jump_count == 0


def test_samples_without_a_stamp_keep_their_place():
    times = [0, 10, ABSENT, 30, ABSENT, 25]
    scan = scanned(times)
    assert (scan.samples, scan.first_backwards, scan.longest_silence_index) == (4, 5, 5)


@given(st.lists(ANY, max_size=12), st.data())
def test_nothing_overflows(times, data):
    column = st.lists(ANY | st.just(ABSENT), min_size=len(times), max_size=len(times))
    scan = scanned(
        times,
        sequence=data.draw(column),
        arrival=data.draw(column),
        period_ns=data.draw(st.none() | st.integers(1, 2**63 - 1)),
        silence_max_ns=data.draw(st.integers(0, 2**63 - 1)),
    )
    for step in scan.jumps:
        assert step.step_ns == times[step.index] - times[step.index - 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"sequence": [1]}, "the sequence of 'stamps' has 1 entries for 2 samples"),
        ({"arrival": [1, 2, 3]}, "3 entries for 2 samples"),
        ({"period_ns": 0}, "period_ns of stamps is 0"),
        ({"silence_max_ns": -1}, "silence_max_ns of stamps is -1"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        scanned([1, 2], **call)
