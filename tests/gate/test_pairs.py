"""The pairs are what the residual is the worst of: the largest of all pairs is the residual, tick by tick."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.pairs import LARGEST_NS, disagreement_ns, judged_ns, pair_names, summary
from firsthand_edge.model import ABSENT, Kind
from tests.gate.making import MS, START, P, figures, stream, ticks


@st.composite
def takes(draw):
    """Two to five streams of a take, with jitter, drops, decimation, uncertainties and shared clocks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, 40))
    streams = []
    for number in range(draw(st.integers(2, 5))):
        facts = {
            "uncertainty_ns": draw(st.sampled_from([0, 100_000, 700_000])),
            "device": draw(st.sampled_from([None, "a", "b"])),
        }
        kind = (
            Kind.TRIGGERED if number == 0 else draw(st.sampled_from([Kind.TRIGGERED, Kind.SAMPLED, Kind.INTERPOLATED]))
        )
        times = ticks(count) + rng.integers(-4 * MS, 4 * MS, count)
        if kind is Kind.INTERPOLATED:
            times = ticks(count + 4, start=START - 2 * P)
        kept = rng.random(times.size) > draw(st.sampled_from([0.0, 0.3]))
        if number and kind is Kind.TRIGGERED:
            facts["decimate"] = draw(st.sampled_from([1, 2]))
        streams.append(stream("head" if number == 0 else f"s{number}", times[kept], kind=kind, **facts))
    return streams


def check(streams, *, guard_band):
    found = figures(*streams)
    sync = found.sync
    if sync is None:
        assert list(pair_names(found, guard_band=guard_band)) == []
        return
    columns = [
        disagreement_ns(found, names, guard_band=guard_band) for names in pair_names(found, guard_band=guard_band)
    ]
    expected = sync.guarded_ns if guard_band else sync.residual_ns
    worst = np.max(columns, axis=0) if columns else np.full(sync.ticks, ABSENT)
    assert np.array_equal(worst, expected)


@given(takes(), st.booleans())
def test_the_largest_of_all_pairs_is_the_residual(streams, guard_band):
    check(streams, guard_band=guard_band)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(takes(), st.booleans())
def test_the_largest_of_all_pairs_is_the_residual_over_many_takes(streams, guard_band):
    check(streams, guard_band=guard_band)


def test_order_statistics_of_a_pair():
    times = ticks(200)
    times[:3] += 3 * MS
    times[7] += 2 * MS
    found = figures(stream("head", ticks(200)), stream("wrist", np.delete(times, [100])))
    pair = summary(("head", "wrist"), judged_ns(found, ("head", "wrist")), ceiling_ns=2 * MS)
    assert (pair.ticks, pair.median_ns, pair.p99_ns, pair.max_ns, pair.over_ceiling) == (199, 0, 3 * MS, 3 * MS, 3)


def test_streams_that_never_meet_have_no_figures():
    found = figures(stream("head", ticks(40)), stream("wrist", ticks(0)))
    pair = summary(("head", "wrist"), judged_ns(found, ("head", "wrist")), ceiling_ns=2 * MS)
    assert (pair.ticks, pair.median_ns, pair.p99_ns, pair.max_ns, pair.over_ceiling) == (0, None, None, None, 0)


def test_the_order_of_two_streams_does_not_matter_and_one_with_itself_agrees():
    found = figures(stream("head", ticks(40)), stream("wrist", ticks(40) - MS))
    assert set(disagreement_ns(found, ("head", "wrist")).tolist()) == {MS}
    assert set(disagreement_ns(found, ("wrist", "head")).tolist()) == {MS}
    assert set(disagreement_ns(found, ("head", "head")).tolist()) == {0}


def test_a_guarded_disagreement_stays_within_int64():
    wide = {"uncertainty_ns": 2**60}
    found = figures(stream("head", ticks(40), **wide), stream("wrist", ticks(40) + MS, **wide))
    assert set(disagreement_ns(found, ("head", "wrist"), guard_band=True).tolist()) == {MS + 2**61}
    assert np.iinfo(np.int64).max == LARGEST_NS


def test_a_stream_that_was_not_matched_is_a_key_error():
    found = figures(stream("head", ticks(40)), stream("wrist", ticks(40)), limits=Limits())
    with pytest.raises(KeyError):
        disagreement_ns(found, ("head", "nobody"))
