"""Rules on one stream within the take, both sides of each limit."""

from fractions import Fraction

import numpy as np
import pytest

from firsthand_edge.gate import rules_stream
from firsthand_edge.gate.figures import Death, Frozen, Span, Stamps, frozen_run, span_of
from firsthand_edge.gate.limits import Limits
from firsthand_edge.model import Kind
from tests.gate.making import MS, START, P, alone, figures, stream, ticks, with_facts

SECOND = 10**9


class TestRate:
    def rate(self, times, nominal, **limits):
        return rules_stream.rate(figures(stream("head", times, period_ns=nominal)), Limits(**limits))

    def test_two_percent_itself_passes(self):
        # 50 steps of 10 ms in 0.51 s: 1/1.02 of nominal is 1.96 % off; 0.5102... is over.
        steps = np.full(50, 10_000_000, dtype=np.int64)
        exact = np.concatenate(([START], START + np.cumsum(steps)))
        assert self.rate(exact, 10_200_000) == []  # 2 % too quick
        (reason,) = self.rate(exact, 10_200_001)
        assert (reason.measured, reason.limit, reason.unit) == (0.02, 0.02, "share")
        assert "100.00 Hz" in reason.sentence

    def test_half_the_rate_is_off_whatever_was_lost(self):
        (reason,) = self.rate(ticks(100, period=10 * MS), 5 * MS)
        assert reason.measured == 0.5
        assert reason.cause is None

    def test_missing_samples_are_told_as_the_cause(self):
        (reason,) = self.rate(np.delete(ticks(200), np.arange(50, 60)), P)
        assert reason.cause == "10 samples missing between the first and the last one; at its rate otherwise"

    def test_a_short_take_has_no_bias_at_its_ends(self):
        assert self.rate(ticks(3), P, rate_ratio=Fraction(0)) == []

    def test_repeats_do_not_count(self):
        assert self.rate(np.repeat(ticks(50), 2), P, rate_ratio=Fraction(0)) == []

    def test_without_a_stated_rate_or_a_step_nothing_is_said(self):
        assert self.rate(ticks(50), None) == []
        assert self.rate(ticks(1), P) == []


class TestLateEarly:
    def cut(self, *, start_ns=0, end_ns=0):
        times = ticks(600)
        short = times[(times >= times[0] + start_ns) & (times <= times[-1] - end_ns)]
        return figures(stream("head", times), stream("wrist", short))

    def test_trim_max_itself_passes(self):
        gap = 60 * P  # 1.00000002 s
        found = self.cut(start_ns=gap, end_ns=gap)
        (late,) = rules_stream.late(found, Limits())
        (early,) = rules_stream.early(found, Limits())
        assert (late.code, late.measured, late.limit, late.stream) == ("stream.late", gap, SECOND, "wrist")
        assert (early.code, early.measured, early.limit, early.stream) == ("stream.early", gap, SECOND, "wrist")
        assert rules_stream.late(found, Limits(trim_max_ns=gap)) == []
        assert rules_stream.early(found, Limits(trim_max_ns=gap)) == []

    def test_an_event_may_come_late(self):
        found = figures(stream("head", ticks(600)), stream("contact", [START + 5 * SECOND], kind=Kind.EVENT))
        assert rules_stream.late(found, Limits()) == rules_stream.early(found, Limits()) == []


class TestLost:
    def silent(self, gap_ns):
        times = ticks(300)
        times[100:] += gap_ns - P
        return figures(stream("head", ticks(340)), stream("wrist", times))

    def test_silence_max_itself_passes(self):
        assert rules_stream.lost(self.silent(500 * MS), Limits()) == []
        (reason,) = rules_stream.lost(self.silent(500 * MS + 1), Limits())
        assert (reason.measured, reason.limit, reason.unit, reason.stream) == (500 * MS + 1, 500 * MS, "ns", "wrist")
        assert reason.first_tick == 99

    def test_order_of_arrival_does_not_matter(self):
        assert rules_stream.lost(figures(stream("head", ticks(300)[::-1])), Limits()) == []

    def test_a_dead_worker_rejects_even_when_it_came_back_quickly(self):
        found = with_facts(alone(), "head", deaths=(Death("cam0", "signal 11 (SIGSEGV)"),))
        (reason,) = rules_stream.lost(found, Limits())
        assert (reason.measured, reason.limit, reason.unit) == (1, 0, "deaths")
        assert reason.cause == "the worker of cam0 died: signal 11 (SIGSEGV)"

    def test_a_silence_after_a_death_carries_it_as_its_cause(self):
        found = with_facts(self.silent(900 * MS), "wrist", deaths=(Death("cam1", ""),))
        (reason,) = rules_stream.lost(found, Limits())
        assert (reason.measured, reason.cause) == (900 * MS, "the worker of cam1 died")


class TestFrozen:
    def run(self, length):
        digest = np.arange(100, dtype=np.int64)
        digest[40 : 40 + length] = 40
        return with_facts(alone(), "head", frozen=frozen_run(digest, ticks(100), ticks(100) + 5))

    def test_three_equal_pictures_pass_and_four_do_not(self):
        assert rules_stream.frozen(self.run(3), Limits()) == []
        (reason,) = rules_stream.frozen(self.run(4), Limits())
        assert (reason.measured, reason.limit, reason.unit) == (4, 3, "pictures")
        assert (reason.first_sample, reason.last_sample) == (40, 43)
        facts = self.run(4).stream("head").frozen
        assert (facts.start_ns, facts.end_ns) == (START + 40 * P + 5, START + 43 * P + 5)

    def test_a_repeated_stamp_does_not_lengthen_a_run(self):
        times, digest = ticks(10), np.arange(10, dtype=np.int64)
        times[3:7], digest[3:7] = times[3], 3
        assert frozen_run(digest, times, times) == Frozen(1, 0, 0, START, START)
        times[5], digest[4], digest[6] = times[5] + 1, 3, 3  # equal pictures, of which one repeats a stamp
        found = frozen_run(digest, times, times)
        assert (found.run, found.first, found.last) == (2, 3, 5)

    def test_a_picture_that_comes_back_is_no_run(self):
        assert frozen_run(np.array([1, 2] * 20, dtype=np.int64), ticks(40), ticks(40)).run == 1

    def test_nothing_recorded(self):
        nothing = np.empty(0, np.int64)
        assert frozen_run(nothing, nothing, nothing) == Frozen(0)

    def test_without_payloads_nothing_is_said(self):
        assert rules_stream.frozen(alone(), Limits()) == []


class TestSpan:
    def test_periods_count_what_is_missing(self):
        span = span_of(np.delete(ticks(100), [10, 11, 50]), silence_max_ns=10**9)
        assert (span.steps, span.periods) == (96, 99)
        assert span.silence.length_ns == 3 * P

    def test_one_sample(self):
        assert span_of(ticks(1), silence_max_ns=10**9) == Span(START, START, 0, 0, None)

    @pytest.mark.parametrize(("steps", "rate"), [([P] * 59, 60_000), ([], None), ([P, 2 * P], 40_000)])
    def test_mean_rate_in_millihertz(self, steps, rate):
        times = START + np.concatenate(([0], np.cumsum(np.array(steps, dtype=np.int64)))).astype(np.int64)
        assert rules_stream.mean_rate_mhz(span_of(times, silence_max_ns=10**9)) == rate


def test_joined_incarnations_are_not_compared():
    one, two = Stamps(samples=3, median_step_ns=5, steps_gcd_ns=4), Stamps(samples=7, median_step_ns=6, steps_gcd_ns=6)
    both = Stamps.joined([one, two])
    assert (both.samples, both.median_step_ns, both.steps_gcd_ns, both.backwards) == (10, 6, 2, 0)
    assert Stamps.joined([]) == Stamps()
