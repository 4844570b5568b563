"""Rules on the match, both sides of each limit."""

from fractions import Fraction

import numpy as np
import pytest

from firsthand_edge.gate import rules_sync
from firsthand_edge.gate.figures import Loss
from firsthand_edge.gate.limits import Limits
from firsthand_edge.model import Kind
from tests.gate.making import MS, figures, stream, ticks, with_facts


def pair(offset_ns, *, count=60, at=None, limits=None, **rest):
    """Head and a wrist that is `offset_ns` away, at one tick or at all."""
    times = ticks(count)
    if at is None:
        times += offset_ns
    else:
        times[at] += offset_ns
    return figures(stream("head", ticks(count)), stream("wrist", times), limits=limits, **rest)


class TestCeiling:
    def test_the_ceiling_itself_passes_and_a_nanosecond_more_does_not(self):
        assert rules_sync.ceiling(pair(2 * MS, at=17), Limits()) == []
        (reason,) = rules_sync.ceiling(pair(2 * MS + 1, at=17), Limits())
        assert (reason.measured, reason.limit, reason.unit) == (2 * MS + 1, 2 * MS, "ns")
        assert (reason.first_tick, reason.last_tick, reason.pair) == (17, 17, ("head", "wrist"))
        assert "2.000001 ms" in reason.sentence
        assert "tick 17" in reason.sentence

    def test_a_pair_is_named_lower_first(self):
        (reason,) = rules_sync.ceiling(pair(-3 * MS, at=17), Limits())
        assert reason.pair == ("wrist", "head")
        assert reason.stream == "wrist"

    def test_p99_lets_one_of_a_hundred_pass(self):
        limits = Limits(statistic="p99")
        assert rules_sync.ceiling(pair(3 * MS, count=100, at=17), limits) == []
        times = ticks(100)
        times[[17, 18]] += 3 * MS
        found = figures(stream("head", ticks(100)), stream("wrist", times))
        (reason,) = rules_sync.ceiling(found, limits)
        assert reason.measured == 3 * MS
        assert "99th percentile" in reason.sentence

    def test_p999_lets_one_of_a_thousand_pass(self):
        limits = Limits(statistic="p99.9")
        assert rules_sync.ceiling(pair(3 * MS, count=1000, at=17), limits) == []
        assert len(rules_sync.ceiling(pair(3 * MS, count=999, at=17), limits)) == 1

    def test_the_guard_band_adds_uncertainties(self):
        streams = (
            stream("head", ticks(60), uncertainty_ns=300_000, device="a"),
            stream("wrist", ticks(60) + 1_500_000, uncertainty_ns=200_001, device="b"),
        )
        found = figures(*streams)
        assert rules_sync.ceiling(found, Limits()) == []
        (reason,) = rules_sync.ceiling(found, Limits(guard_band=True))
        assert reason.measured == 2 * MS + 1
        assert "uncertainties" in reason.sentence

    def test_nothing_matched_is_no_reason(self):
        assert rules_sync.ceiling(figures(stream("wrist", ticks(60))), Limits()) == []


class TestMissing:
    def lacking(self, count, gone, **limits):
        found = figures(stream("head", ticks(count)), stream("wrist", np.delete(ticks(count), gone)))
        return rules_sync.missing(found, Limits(**limits))

    def test_the_share_itself_passes(self):
        assert self.lacking(400, [100, 200]) == []  # 2 of 400 is 0.5 %
        (reason,) = self.lacking(399, [100, 200])
        assert (reason.measured, reason.limit, reason.unit, reason.stream) == (0.005013, 0.005, "share", "wrist")
        assert (reason.first_tick, reason.last_tick) == (100, 200)

    def test_the_longest_run_itself_passes(self):
        assert self.lacking(1000, [100, 101, 102]) == []
        (reason,) = self.lacking(1000, [100, 101, 102, 103])
        assert (reason.measured, reason.limit, reason.unit) == (4, 3, "ticks")
        assert (reason.first_tick, reason.last_tick) == (100, 103)

    def test_a_decimated_streams_run_ends_at_an_expected_tick(self):
        depth = np.delete(ticks(2000)[::2], [50, 51, 52, 53])
        found = figures(stream("head", ticks(2000)), stream("depth", depth, decimate=2))
        (reason,) = rules_sync.missing(found, Limits())
        assert (reason.first_tick, reason.last_tick) == (100, 106)

    def test_absent_ticks_of_the_reference(self):
        found = figures(stream("head", np.delete(ticks(100), [50])), stream("wrist", ticks(100)))
        (reason,) = rules_sync.missing(found, Limits())
        assert reason.stream == "head"
        assert "no time to judge" in reason.sentence

    def test_what_back_pressure_lost_is_the_cause(self):
        found = figures(stream("head", ticks(100)), stream("wrist", np.delete(ticks(100), [50])))
        (reason,) = rules_sync.missing(with_facts(found, "wrist", loss=Loss(queue=1)), Limits())
        assert reason.cause == "1 sample lost because the rig could not keep up"

    def test_a_limit_is_exact(self):
        assert self.lacking(1000, [7], missing_ratio=Fraction(1, 1000)) == []
        assert len(self.lacking(1000, [7], missing_ratio=Fraction(1, 1001))) == 1


class TestNoTicks:
    def test_the_least_number_passes(self):
        assert rules_sync.no_ticks(pair(0, count=30), Limits()) == []
        (reason,) = rules_sync.no_ticks(pair(0, count=29), Limits())
        assert (reason.measured, reason.limit, reason.unit) == (29, 30, "ticks")

    def test_an_absent_stream_is_named(self):
        found = figures(stream("head", ticks(60)), stream("wrist", []))
        (reason,) = rules_sync.no_ticks(found, Limits())
        assert (reason.stream, reason.measured) == ("wrist", 0)
        assert rules_sync.missing(found, Limits()) == []

    def test_an_absent_reference_matches_nothing(self):
        found = figures(stream("head", []), stream("wrist", ticks(60)))
        assert found.sync is None
        assert [r.stream for r in rules_sync.no_ticks(found, Limits())] == ["head"]

    def test_one_stream_has_nothing_to_be_compared_with(self):
        (reason,) = rules_sync.no_ticks(figures(stream("head", ticks(60))), Limits())
        assert "nothing to compare" in reason.sentence

    def test_streams_that_do_not_overlap(self):
        late = ticks(60) + 5 * 10**9
        (reason,) = rules_sync.no_ticks(figures(stream("head", ticks(60)), stream("wrist", late)), Limits())
        assert reason.measured == 0

    def test_an_event_may_be_absent(self):
        found = figures(stream("head", ticks(60)), stream("wrist", ticks(60)), stream("button", [], kind=Kind.EVENT))
        assert rules_sync.no_ticks(found, Limits()) == []


class TestNear:
    @pytest.mark.parametrize(("offset", "found"), [(1_799_999, 0), (1_800_000, 1), (2_000_000, 1), (2_000_001, 0)])
    def test_within_a_tenth_of_the_ceiling(self, offset, found):
        warnings = rules_sync.near(pair(offset, at=17), Limits())
        assert len(warnings) == found
        if found:
            assert (warnings[0].measured, warnings[0].first_tick) == (offset, 17)
