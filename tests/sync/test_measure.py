"""`_core.measure` is sync.md, sections 3 and 4: it agrees with the brute-force reading, and by hand with each rule."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from firsthand_edge import _core
from tests.sync import brute
from tests.sync.figures import agreed, int64

ABSENT = brute.ABSENT
T = 1000


def triggered(name, times, **more):
    return {"name": name, "kind": "triggered", "times_ns": list(times), **more}


def sampled(name, times, **more):
    return {"name": name, "kind": "sampled", "times_ns": list(times), **more}


def interpolated(name, times, **more):
    return {"name": name, "kind": "interpolated", "times_ns": list(times), **more}


def grid(n, *, first=0, step=T):
    return [first + i * step for i in range(n)]


# ---- stamps of any size


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=6),
    st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=6),
    st.sampled_from([None, 1, 10**6, 2**62, 2**63 - 1]),
    st.sampled_from(["triggered", "sampled", "interpolated"]),
)
def test_stamps_of_the_whole_int64(reference, partner, period, kind):
    stamps = reference + partner
    assume(not stamps or max(stamps) - min(stamps) < 2**63)
    assume(period != 1)  # the brute-force reading lists every absent tick
    steps = brute.median_step(sorted(set(reference)))
    assume(period is not None or steps == 0 or (max(reference) - min(reference)) // steps < 1000)
    assume(period is None or not reference or (max(reference) - min(reference)) // period < 1000)
    streams = [triggered("ref", reference), {"name": "p", "kind": kind, "times_ns": partner, "uncertainty_ns": 3}]
    agreed(streams, "ref", period_ns=period, trim_max_ns=2**63 - 1)


# ---- each rule by hand


def test_order_counts_backwards_and_duplicates():
    times = [0, 1000, 3000, 2000, 3000, 4000]
    row = agreed([triggered("ref", times)], "ref")["streams"]["ref"]
    assert (row["backwards"], row["duplicate"], row["matched"], row["samples"]) == (1, 1, 5, 6)


def test_absent_ticks_are_missing_of_the_reference_only():
    reference = [0, 1000, 4000, 5000, 5001, 7000]
    figures = agreed([triggered("ref", reference), triggered("p", grid(8))], "ref", period_ns=T)
    assert figures["tick"] == [0, 1, 4, 5, 6, 8]
    row = figures["streams"]["ref"]
    assert (row["expected"], row["missing"], row["longest_missing_run"]) == (9, 3, 2)
    assert (row["longest_missing_first_tick"], row["first_missing_tick"], row["last_missing_tick"]) == (2, 2, 7)
    assert figures["absent"] == 3
    assert figures["streams"]["p"]["expected"] == 6


def test_tick_numbers_round_halves_up():
    assert agreed([triggered("ref", [0, 1500, 2999])], "ref", period_ns=T)["tick"] == [0, 2, 3]


def test_the_median_step_is_the_period_without_one():
    assert agreed([triggered("ref", [0, 900, 1900, 3000, 3000])], "ref")["period_ns"] == 1000
    assert agreed([triggered("ref", [0, 900, 1900], period_ns=950)], "ref")["period_ns"] == 950


def test_a_missed_first_pulse_is_trimmed_and_nothing_slips():
    figures = agreed([triggered("ref", grid(50)), triggered("p", grid(50)[1:])], "ref", period_ns=T)
    assert (figures["trimmed_start"], figures["ticks"], figures["residual"]["max_ns"]) == (1, 49, 0)
    assert figures["streams"]["ref"]["trimmed"] == 1


def test_half_a_period_counts_as_outside():
    outside = agreed([triggered("ref", grid(9)), triggered("p", [500, *grid(7, first=1000)])], "ref", period_ns=T)
    assert outside["trimmed_start"] == 1
    inside = agreed([triggered("ref", grid(9)), triggered("p", [499, *grid(7, first=1000)])], "ref", period_ns=T)
    assert inside["trimmed_start"] == 0
    assert inside["residual_ns"][0] == 499


def test_free_running_streams_have_no_half_period():
    figures = agreed([triggered("ref", grid(9)), sampled("imu", grid(701, first=1, step=10))], "ref", period_ns=T)
    assert (figures["trimmed_start"], figures["trimmed_end"]) == (1, 1)


def test_what_is_lacking_beyond_the_trim_is_missing():
    figures = agreed(
        [triggered("ref", grid(20)), triggered("p", grid(10, first=8000))], "ref", period_ns=T, trim_max_ns=3 * T
    )
    assert (figures["trimmed_start"], figures["trimmed_end"]) == (3, 2)
    row = figures["streams"]["p"]
    assert (row["missing"], row["first_missing_tick"], row["longest_missing_run"]) == (5, 3, 5)


def test_a_tie_belongs_to_the_earlier_on_both_sides():
    # The sample at 500 is as near to tick 0 as to tick 1; with T = 1001 it is near enough for both.
    figures = agreed([triggered("ref", [0, 1000]), triggered("p", [500])], "ref", period_ns=1001)
    assert figures["offset_ns"]["p"] == [500, None]
    figures = agreed([triggered("ref", [500]), triggered("p", [0, 1000])], "ref", period_ns=1001)
    assert figures["offset_ns"]["p"] == [-500]
    assert (figures["streams"]["p"]["extra"], figures["streams"]["p"]["trimmed"]) == (1, 0)


def test_half_a_period_apart_is_no_match():
    p = [0, 1500, 2000]
    row = agreed([triggered("ref", [0, 1000, 3000]), triggered("p", [*p, 3000])], "ref", period_ns=T)["streams"]["p"]
    assert (row["matched"], row["missing"], row["extra"]) == (2, 1, 2)


def test_samples_of_trimmed_ticks_are_extra_inside_and_trimmed_outside():
    # The span starts at 400 (p's first) less half a period; tick 0 at -110 is before it, its sample at 400 is not.
    streams = [triggered("ref", [-110, 900, 1900]), triggered("p", [395, 1100, 1900])]
    figures = agreed(streams, "ref", period_ns=T)
    assert figures["trimmed_start"] == 1
    row = figures["streams"]["p"]
    assert (row["matched"], row["extra"], row["trimmed"]) == (2, 1, 0)


def test_decimation_by_configured_and_by_found_phase():
    depth = grid(10, first=1000, step=2 * T)
    found = agreed([triggered("ref", grid(20)), triggered("d", depth, decimate=2)], "ref", period_ns=T)
    assert (found["streams"]["d"]["phase"], found["streams"]["d"]["missing"]) == (1, 0)
    wrong = agreed([triggered("ref", grid(20)), triggered("d", depth, decimate=2, phase=0)], "ref", period_ns=T)
    row = wrong["streams"]["d"]
    assert (row["phase"], row["expected"], row["missing"], row["matched"]) == (0, 9, 9, 10)


def test_of_phases_with_as_many_matches_the_lower_is_taken():
    every_tick = [triggered("ref", grid(8)), triggered("d", grid(8), decimate=2)]
    assert agreed(every_tick, "ref", period_ns=T)["streams"]["d"]["phase"] == 0
    two_of_three = [t for t in grid(9) if t // T % 3]
    found = agreed([triggered("ref", grid(9)), triggered("d", two_of_three, decimate=3)], "ref", period_ns=T)
    assert found["streams"]["d"]["phase"] == 1


def test_an_index_shows_the_slip_that_times_hide():
    slipped = [t + T for t in grid(20)]
    by_time = agreed([triggered("ref", grid(20), trigger_index=range(20)), triggered("p", slipped)], "ref", period_ns=T)
    assert by_time["residual"]["max_ns"] == 0
    streams = [
        triggered("ref", grid(20), trigger_index=list(range(20))),
        triggered("p", slipped, trigger_index=list(range(20))),
    ]
    by_index = agreed(streams, "ref", period_ns=T)
    assert by_index["residual"]["median_ns"] == T
    by_edges = agreed(streams, "edges", edges=grid(20), period_ns=T)
    assert by_edges["streams"]["p"]["offset_median_ns"] == T


def test_an_index_with_a_gap_in_it_is_not_used():
    index = [*range(5), ABSENT, *range(6, 20)]
    streams = [
        triggered("ref", grid(20), trigger_index=list(range(20))),
        triggered("p", [t + T for t in grid(20)], trigger_index=index),
    ]
    assert agreed(streams, "ref", period_ns=T)["residual"]["max_ns"] == 0


def test_an_index_that_came_twice_is_that_of_the_earlier_sample_and_tick():
    ref = triggered("ref", grid(6), trigger_index=[0, 1, 2, 2, 4, 5])
    p = triggered("p", grid(6, first=100), trigger_index=[0, 1, 1, 2, 4, 5])
    assert agreed([ref, p], "ref", period_ns=T)["offset_ns"]["p"] == [100, 100, 1100, None, 100, 100]


def test_guarded_residuals_end_where_int64_does():
    ref = triggered("ref", [0, T], trigger_index=[0, 1], uncertainty_ns=2**60)
    p = triggered("p", [2**63 - 1 - T, 2**63 - 1], trigger_index=[0, 1], uncertainty_ns=2**60)
    figures = agreed([ref, p], "ref", period_ns=T, trim_max_ns=0)
    assert figures["ticks"] == 2
    assert (figures["residual"]["max_ns"], figures["guarded"]["max_ns"]) == (2**63 - 1 - T, 2**63 - 1)


def test_sampled_streams_within_one_period_of_their_own():
    streams = [triggered("ref", grid(4)), sampled("imu", [0, 900, 1100, 2100, 2899, 3001], period_ns=100)]
    figures = agreed(streams, "ref", period_ns=T)
    assert figures["offset_ns"]["imu"] == [0, -100, 100, 1]
    streams = [triggered("ref", grid(4)), sampled("imu", [0, 899, 1101, 2100, 3001], period_ns=100)]
    assert agreed(streams, "ref", period_ns=T)["offset_ns"]["imu"] == [0, None, 100, 1]


def test_interpolated_streams_are_bracketed_and_add_nothing_to_the_plain_residual():
    glove = interpolated("glove", [-50, 950, 2000, 2500, 3100], period_ns=500, uncertainty_ns=40)
    streams = [triggered("ref", grid(4)), triggered("p", [t + 5 for t in grid(4)], uncertainty_ns=1), glove]
    figures = agreed(streams, "ref", period_ns=T)
    # 1000 is between 950 and 2000, 50 more than two periods apart; 2000 is a sample and so on both sides.
    assert figures["offset_ns"]["glove"] == [0, None, 0, 0]
    assert figures["residual_ns"] == [5, 5, 5, 5]
    assert figures["guarded_ns"] == [46, 6, 46, 46]
    assert figures["guarded"]["worst_pair"] == ("glove", "p")


def test_one_clock_map_has_no_uncertainty_of_its_own():
    def pair(clock):
        return [
            triggered("ref", grid(4), uncertainty_ns=30, clock="head"),
            triggered("p", grid(4, first=7), uncertainty_ns=30, clock=clock),
        ]

    assert agreed(pair("head"), "ref", period_ns=T)["guarded"]["max_ns"] == 7
    assert agreed(pair("wrist"), "ref", period_ns=T)["guarded"]["max_ns"] == 67
    assert agreed(pair(None), "ref", period_ns=T)["guarded"]["max_ns"] == 67


def test_edges_are_never_a_member():
    one = agreed([triggered("p", grid(5, first=90))], "trigger", edges=grid(5), period_ns=T)
    assert one["residual"]["ticks"] == 0
    assert one["residual"]["worst_pair"] is None
    assert one["streams"]["p"]["offset_max_abs_ns"] == 90
    two = agreed(
        [triggered("p", grid(5, first=90)), triggered("q", grid(5, first=100))], "trigger", edges=grid(5), period_ns=T
    )
    assert two["residual"]["max_ns"] == 10


def test_the_ceiling_itself_passes():
    streams = [triggered("ref", grid(3)), triggered("p", [100, 1101, 1900])]
    figures = agreed(streams, "ref", period_ns=T, ceiling_ns=100)
    assert (figures["residual"]["over_ceiling"], figures["residual"]["first_over_tick"]) == (1, 1)
    assert figures["residual"]["worst_pair"] == ("ref", "p")


def test_the_worst_tick_is_the_earliest_and_its_pair_goes_by_name():
    streams = [
        triggered(n, t) for n, t in [("ref", grid(3)), ("c", grid(3)), ("b", [9, 1000, 2009]), ("a", [9, 1000, 2009])]
    ]
    worst = agreed(streams, "ref", period_ns=T)["residual"]
    assert (worst["worst_tick"], worst["worst_pair"]) == (0, ("c", "a"))


@pytest.mark.parametrize("kind", ["triggered", "sampled", "interpolated", "event"])
def test_what_is_not_there_makes_figures_not_errors(kind):
    empty = {"name": "p", "kind": kind, "times_ns": []}
    one = {"name": "p", "kind": kind, "times_ns": [5]}
    for other in (empty, one):
        for reference in ([], [7], grid(5)):
            agreed([triggered("ref", reference), other], "ref")
            agreed([triggered("ref", reference), other], "ref", period_ns=T)
            agreed([other], "trigger", edges=reference)
    nothing = agreed([], "trigger", edges=[])
    assert (nothing["start_ns"], nothing["end_ns"], nothing["ticks"], nothing["period_ns"]) == (None, None, 0, 0)


def test_streams_that_do_not_overlap_have_no_tick():
    figures = agreed([triggered("ref", grid(5)), triggered("p", grid(5, first=9000))], "ref", period_ns=T)
    assert (figures["ticks"], figures["trimmed_start"], figures["trimmed_end"]) == (0, 5, 0)
    assert figures["streams"]["p"]["trimmed"] == 5


# ---- the boundary


def stream_of(times, **more):
    return _core.Stream("ref", "triggered", times, **more)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: _core.measure([], reference="head"), "no stream 'head'"),
        (lambda: _core.measure([stream_of(int64([1]))] * 2, reference="ref"), "two streams are called 'ref'"),
        (lambda: _core.measure([_core.Stream("i", "sampled", int64([1]))], reference="i"), "'i' is sampled"),
        (lambda: _core.measure([stream_of(int64([1]), decimate=2)], reference="ref"), "decimated by 2"),
        (lambda: _core.measure([stream_of(int64([1]))], reference="ref", edges_ns=int64([1])), "name of their own"),
        (lambda: _core.measure([stream_of(int64([1]))], reference="ref", period_ns=0), "period_ns is 0"),
        (lambda: _core.measure([stream_of(int64([1]))], reference="ref", trim_max_ns=-1), "trim_max_ns is -1"),
        (lambda: _core.measure([stream_of(int64([1]), phase=1)], reference="ref"), "phase of 'ref' is 1"),
        (lambda: _core.measure([stream_of(int64([1]), uncertainty_ns=2**61)], reference="ref"), "uncertainty_ns"),
        (lambda: _core.measure([stream_of(int64([1]), trigger_index=int64([]))], reference="ref"), "0 entries for 1"),
        (lambda: _core.measure([stream_of(int64([3, ABSENT]))], reference="ref"), "sample 1 of 'ref' has no stamp"),
        (lambda: _core.measure([stream_of(int64([-(2**62), 2**62 + 1]))], reference="ref"), "one timebase"),
        (lambda: _core.Stream("a", "video", int64([])), "no kind of stream 'video'"),
    ],
)
def test_calls_that_make_no_sense_are_value_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_columns_are_read_only_int64_and_strided_input_is_read_right():
    both = int64([[0, 5], [1000, 1005], [2000, 2005]])
    streams = [_core.Stream("ref", "triggered", both[:, 0]), _core.Stream("p", "triggered", both[:, 1])]
    figures = _core.measure(streams, reference="ref")
    for values in (figures.tick, figures.reference_ns, figures.residual_ns, figures.guarded_ns, figures.offset_ns("p")):
        assert values.dtype == np.int64
        assert not values.flags.writeable
    assert figures.offset_ns("p").tolist() == [5, 5, 5]
    with pytest.raises(KeyError):
        figures.offset_ns("q")
    with pytest.raises(TypeError):
        _core.Stream("f", "triggered", np.array([1.5]))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 3000), max_size=120),
    st.lists(st.integers(0, 3000), max_size=120),
    st.sampled_from([0, 1, 5, 40, 10**6]),
    st.booleans(),
)
def test_match_nearest_is_an_as_of_join(reference, times, tolerance, dense):
    reference = [t + (i * 3000 if dense else 0) for i, t in enumerate(sorted(reference))]
    times = [t + (i * 3000 if dense else 0) for i, t in enumerate(sorted(times))]
    positions, offsets = _core.match_nearest(int64(reference), int64(times), tolerance)
    assert (positions.dtype, offsets.dtype) == (np.uint32, np.int64)
    for t, position, offset in zip(reference, positions.tolist(), offsets.tolist(), strict=True):
        best = min(range(len(times)), key=lambda j: (abs(times[j] - t), times[j], j), default=None)
        if best is None or abs(times[best] - t) > tolerance:
            assert (position, offset) == (2**32 - 1, ABSENT)
        else:
            assert (position, offset) == (best, times[best] - t)


def test_match_nearest_refuses_disorder():
    with pytest.raises(ValueError, match="position 1"):
        _core.match_nearest(int64([2, 1]), int64([1]), 5)
