"""Rules on stamps, both sides of each limit."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from firsthand_edge.gate import rules, rules_stamp
from firsthand_edge.gate.figures import DomainChange, Figures, Future, Grade, Stamps, Step
from firsthand_edge.gate.limits import Limits
from firsthand_edge.model import Domain, Kind, StampPoint
from tests.gate.making import MS, START, P, alone, figures, stream, ticks, with_facts

SECOND = 10**9


def apart(seconds, *, slack_ns=0, count=60):
    return figures(stream("head", ticks(count)), stream("wrist", ticks(count) + round(seconds * SECOND) + slack_ns))


class TestTaiUtc:
    @pytest.mark.parametrize("seconds", [10, 18, 37, 60, -37])
    def test_two_streams_a_whole_number_of_seconds_apart(self, seconds):
        found = apart(seconds)
        (reason,) = rules_stamp.tai_utc(found, Limits())
        assert (reason.code, reason.stream, reason.pair) == ("stamp.tai_utc", "wrist", ("head", "wrist"))
        assert (reason.measured, reason.limit, reason.unit) == (abs(seconds), 0, "s")
        assert ("later" if seconds > 0 else "earlier") in reason.sentence
        assert found.sync is None
        assert found.withheld == "stamp.tai_utc"

    @pytest.mark.parametrize("seconds", [0, 1, 9, 61, 90, 37.2])
    def test_other_distances_are_none(self, seconds):
        assert rules_stamp.tai_utc(apart(seconds), Limits()) == []

    def test_fifty_milliseconds_pass_as_whole_and_one_nanosecond_more_does_not(self):
        assert len(rules_stamp.tai_utc(apart(37, slack_ns=50 * MS), Limits())) == 1
        assert rules_stamp.tai_utc(apart(37, slack_ns=50 * MS + 1), Limits()) == []

    def test_both_ends_must_differ_by_the_same_number(self):
        late = figures(stream("head", ticks(3000)), stream("wrist", ticks(600) + 37 * SECOND))
        assert rules_stamp.tai_utc(late, Limits()) == []

    def test_one_stream_apart_from_many_is_named_once(self):
        takes = [stream(name, ticks(60)) for name in ("a", "b", "c")]
        found = figures(stream("head", ticks(60) - 37 * SECOND), *takes)
        (reason,) = rules_stamp.tai_utc(found, Limits())
        assert reason.stream == "head"
        assert "2 other streams" in reason.sentence
        assert reason.cause == "head is on another time scale than a: 37 s is TAI - UTC"

    def test_a_stream_that_steps_while_its_sequence_advances_by_one(self):
        step = Step(40, 37 * SECOND + P, P, "tai_utc", "")
        found = with_facts(alone(), "head", stamps=Stamps(samples=100, steps=(step,), tai_utc_count=1))
        (reason,) = rules_stamp.tai_utc(found, Limits())
        assert (reason.stream, reason.first_sample, reason.measured) == ("head", 40, 37)

    def test_events_and_streams_that_are_not_required_do_not_count(self):
        found = figures(
            stream("head", ticks(60)),
            stream("event", ticks(60) + 37 * SECOND, kind=Kind.EVENT),
            stream("extra", ticks(60) + 37 * SECOND, required=False),
        )
        assert rules_stamp.tai_utc(found, Limits()) == []


class TestBackwards:
    def back(self, times, **facts):
        return figures(stream("head", times, **facts))

    def test_in_order_passes(self):
        assert rules_stamp.backwards(self.back(ticks(50)), Limits()) == []

    def test_one_sample_out_of_order_rejects_and_is_named(self):
        times = ticks(50)
        times[[20, 21]] = times[[21, 20]]
        (reason,) = rules_stamp.backwards(self.back(times), Limits())
        assert (reason.measured, reason.limit, reason.first_sample) == (1, 0, 21)
        assert "16.666667 ms" in reason.sentence

    def test_the_drivers_reorder_bound_passes(self):
        times = ticks(50)
        times[[20, 21]] = times[[21, 20]]
        assert rules_stamp.backwards(self.back(times, reorder_bound=1), Limits()) == []
        times = ticks(50)
        times[20:23] = np.roll(times[20:23], -1)  # one sample two places late
        assert len(rules_stamp.backwards(self.back(times, reorder_bound=1), Limits())) == 1
        assert rules_stamp.backwards(self.back(times, reorder_bound=2), Limits()) == []

    def test_the_limit_itself_passes(self):
        times = ticks(50)
        times[[20, 21]] = times[[21, 20]]
        assert rules_stamp.backwards(self.back(times), Limits(backwards=1)) == []

    def test_events_are_judged_too(self):
        found = figures(stream("head", ticks(9)), stream("contact", [START + 5, START], kind=Kind.EVENT))
        assert [r.stream for r in rules_stamp.backwards(found, Limits())] == ["contact"]


class TestDuplicate:
    def test_the_limit_itself_passes_and_one_more_does_not(self):
        times = ticks(1000)
        times[500] = times[499]
        found = figures(stream("head", times))
        assert rules_stamp.duplicate(found, Limits()) == []  # 1 of 1000 is 0.1 %
        (reason,) = rules_stamp.duplicate(found, Limits(duplicate_ratio=Fraction(999, 10**6)))
        assert (reason.measured, reason.unit, reason.stream) == (0.001, "share", "head")
        times[502] = times[501]
        assert len(rules_stamp.duplicate(figures(stream("head", times)), Limits())) == 1

    def test_an_empty_stream_has_no_share(self):
        assert rules_stamp.duplicate(figures(stream("head", [])), Limits()) == []


class TestJump:
    def test_a_counted_jump_rejects_with_its_place(self):
        step = Step(12, 90 * MS, P, "jump", "sequence +1, arrival unknown")
        stamps = Stamps(samples=100, steps=(step,), jump_count=1)
        found = with_facts(alone(), "head", stamps=stamps, has_sequence=True)
        (reason,) = rules_stamp.jump(found, Limits())
        assert (reason.measured, reason.limit, reason.first_sample) == (1, 0, 12)
        assert step.detail in reason.sentence
        assert rules_stamp.jump(found, Limits(jumps=1)) == []

    def test_without_sequence_a_silence_of_its_own_is_a_jump(self):
        times = ticks(200)
        times[100:] += 600 * MS
        found = figures(stream("head", ticks(240)), stream("wrist", times))
        (reason,) = rules_stamp.jump(found, Limits())
        assert (reason.stream, reason.first_sample, reason.measured) == ("wrist", 100, 1)
        assert "no other stream was silent" in reason.sentence

    def test_a_silence_that_another_stream_shares_is_none(self):
        times = ticks(200)
        times[100:] += 600 * MS
        found = figures(stream("head", times), stream("wrist", times + 1000))
        assert rules_stamp.jump(found, Limits()) == []

    def test_the_limit_on_silence_itself_is_no_jump(self):
        times = ticks(200)
        times[100:] += 500 * MS - P
        assert rules_stamp.jump(figures(stream("head", ticks(240)), stream("wrist", times)), Limits()) == []


class TestWrap:
    def test_a_counter_that_was_not_unwrapped(self):
        times = (np.arange(60, dtype=np.int64) * 16_667 + 4_294_500_000) % 2**32 * 1000
        found = figures(stream("head", times))
        (reason,) = rules_stamp.wrap(found, Limits())
        assert (reason.measured, reason.limit) == (1, 0)
        assert reason.first_sample == int(np.argmin(times))
        assert reason.cause == "head's counter of 2^32 us wrapped and was not unwrapped"
        assert rules_stamp.wrap(found, Limits(wraps=1)) == []

    def test_none_passes(self):
        assert rules_stamp.wrap(figures(stream("head", ticks(60))), Limits()) == []


class TestUnit:
    @pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
    def test_a_period_off_by_a_power_of_a_thousand(self, factor):
        found = alone(period_ns=P * factor)
        (reason,) = rules_stamp.unit(found, Limits())
        assert (reason.measured, reason.limit, reason.unit) == (P, P * factor, "ns")
        assert str(factor) in (reason.cause or "")

    def test_the_inverse(self):
        found = with_facts(alone(period_ns=P), "head", stamps=Stamps(samples=9, median_step_ns=P * 1000))
        assert "longer" in rules_stamp.unit(found, Limits())[0].sentence

    @pytest.mark.parametrize(("step", "found"), [(950 * P, 1), (950 * P - 1, 0), (1050 * P, 1), (1050 * P + 1, 0)])
    def test_five_percent_of_the_factor(self, step, found):
        case = with_facts(alone(period_ns=P), "head", stamps=Stamps(samples=9, median_step_ns=step))
        assert len(rules_stamp.unit(case, Limits())) == found

    def test_at_nominal_and_without_nominal_nothing(self):
        assert rules_stamp.unit(alone(period_ns=P), Limits()) == []
        assert rules_stamp.unit(alone(), Limits()) == []


class TestDomain:
    def test_a_change_names_the_frame(self):
        change = DomainChange(5, Domain.DEVICE, Domain.MONOTONIC)
        (reason,) = rules_stamp.domain(with_facts(alone(), "head", domain_change=change), Limits())
        assert (reason.first_sample, reason.stream, reason.pair) == (5, "head", None)

    def test_two_native_clocks_are_not_matched(self):
        native = {"grade": Grade.NATIVE}
        found = figures(
            stream("head", ticks(60), domain=Domain.PTP, **native),
            stream("wrist", ticks(60), domain=Domain.UTC, **native),
        )
        (reason,) = rules_stamp.domain(found, Limits())
        assert reason.pair == ("head", "wrist")
        assert (found.sync, found.withheld) == (None, "stamp.domain")

    def test_mapped_clocks_are_comparable(self):
        found = figures(
            stream("head", ticks(60), domain=Domain.DEVICE, grade=Grade.MAPPED),
            stream("wrist", ticks(60), domain=Domain.PTP, grade=Grade.NATIVE),
        )
        assert rules_stamp.domain(found, Limits()) == []
        assert found.sync is not None


class TestFuture:
    def test_the_limit_itself_passes(self):
        found = with_facts(alone(), "head", future=Future(2, 7, 3 * MS))
        (reason,) = rules_stamp.future(found, Limits(future=1))
        assert (reason.measured, reason.limit, reason.first_sample) == (2, 1, 7)
        assert rules_stamp.future(found, Limits(future=2)) == []

    def test_not_measured_is_not_rejected(self):
        assert rules_stamp.future(alone(), Limits()) == []


class TestUnverified:
    @pytest.mark.parametrize(
        ("facts", "word"),
        [
            ({"grade": Grade.ARRIVAL}, "grade `arrival`"),
            ({"grade": Grade.SYNTHETIC}, "no clock was read. Keep the stamps of a clock with each sample"),
            ({"stamp_point": StampPoint.UNKNOWN}, "stamp point is unknown"),
        ],
    )
    def test_what_nobody_can_vouch_for(self, facts, word):
        (reason,) = rules_stamp.unverified(alone(**facts), Limits())
        assert word in reason.sentence

    def test_both_are_one_reason(self):
        assert len(rules_stamp.unverified(alone(grade=Grade.ARRIVAL, stamp_point=StampPoint.UNKNOWN), Limits())) == 1

    @pytest.mark.parametrize("grade", sorted(set(Grade) - {Grade.ARRIVAL, Grade.SYNTHETIC}))
    def test_others_pass(self, grade):
        assert rules_stamp.unverified(alone(grade=grade), Limits()) == []

    @pytest.mark.parametrize("grade", Grade)
    def test_what_is_taken_at_its_word_is_not_judged(self, grade):
        verdict = rules.apply(alone(grade=grade), Limits())
        at_its_word = {Grade.DECLARED, Grade.FLOAT64, Grade.FLOAT32, Grade.RECEIVED, Grade.SENT}
        assert ("stamp.unverified" in verdict.not_judged) == (grade in at_its_word)

    def test_a_stream_that_is_not_required_passes(self):
        assert rules_stamp.unverified(alone(grade=Grade.ARRIVAL, required=False), Limits()) == []


class TestFloat64:
    @pytest.mark.parametrize(
        ("gcd", "distinct", "found"), [(64, 30, 1), (256, 30, 1), (256, 29, 0), (32, 99, 0), (192, 99, 0), (0, 99, 0)]
    )
    def test_a_power_of_two_from_64_ns_on_in_thirty_stamps(self, gcd, distinct, found):
        stamps = Stamps(samples=distinct, distinct=distinct, steps_gcd_ns=gcd)
        assert len(rules_stamp.float64(with_facts(alone(), "head", stamps=stamps), Limits())) == found

    def test_a_recording_of_floats(self):
        assert len(rules_stamp.float64(alone(grade=Grade.FLOAT64), Limits())) == 1


def test_rules_read_facts_only():
    """A figure set without streams gives no reason and no error."""
    nothing = Figures(reference="head", streams=())
    limits = replace(Limits())
    for name in rules_stamp.__all__:
        if name != "tai_utc_streams":
            assert getattr(rules_stamp, name)(nothing, limits) == []
