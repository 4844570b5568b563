"""Rules on the trigger's pulses, and the warning about the first of them."""

import numpy as np
import pytest

from firsthand_edge.gate import rules_trigger
from firsthand_edge.gate.figures import edges_of
from firsthand_edge.gate.limits import Limits
from tests.gate.making import START, P, figures, stream, ticks

RULES = (rules_trigger.missed, rules_trigger.doubled, rules_trigger.rate)


def pulses(times, period=P):
    return figures(stream("head", ticks(60)), edges=edges_of(np.asarray(times, dtype=np.int64), period))


def codes(found):
    return [reason.code for rule in RULES for reason in rule(found, Limits())]


def test_a_steady_trigger_passes():
    assert codes(pulses(ticks(600))) == []


def test_no_edges_recorded_is_no_reason():
    assert codes(figures(stream("head", ticks(60)))) == []


def test_a_pulse_that_was_left_out():
    (reason,) = rules_trigger.missed(pulses(np.delete(ticks(600), [100, 200, 201])), Limits())
    assert (reason.measured, reason.limit, reason.first_tick) == (3, 0, 100)


@pytest.mark.parametrize(("step", "found"), [(P + P // 2, []), (P + P // 2 + 1, ["trigger.missed"])])
def test_a_step_is_missed_from_one_and_a_half_periods_on(step, found):
    # P is odd: a step of P + P // 2 is just under one and a half periods.
    times = ticks(600)
    times[300:] += step - P
    assert codes(pulses(times)) == found


@pytest.mark.parametrize(("step", "found"), [(P // 2 + 1, []), (P // 2, ["trigger.doubled"])])
def test_a_step_is_doubled_below_half_a_period(step, found):
    times = np.sort(np.concatenate((ticks(600), [START + 300 * P + step])))
    times[302:] += step  # so that the next step is a whole period
    assert codes(pulses(times)) == found


def test_two_percent_of_the_rate_itself_passes():
    times = ticks(501, period=10_000_000)
    assert codes(pulses(times, 10_200_000)) == []
    assert codes(pulses(times, 10_200_001)) == ["trigger.rate"]


class TestFirstMissed:
    def test_equal_counts_by_index_would_slip(self):
        found = figures(stream("head", ticks(100)), stream("stereo", ticks(100, start=START + P)))
        (warning,) = rules_trigger.first_missed(found, Limits())
        assert (warning.stream, warning.measured, warning.first_tick, warning.last_tick) == ("stereo", 1, 0, 0)
        assert found.sync.trimmed_start == 1
        assert found.sync.residual.max_ns == 0

    def test_the_reference_may_be_the_one(self):
        found = figures(stream("head", ticks(98, start=START + 2 * P)), stream("wrist", ticks(100)))
        (warning,) = rules_trigger.first_missed(found, Limits())
        assert (warning.stream, warning.measured, warning.first_tick) == ("head", 2, -2)
        assert "first 2 pulses" in warning.sentence

    def test_a_decimated_stream_begins_at_its_phase(self):
        on_time = stream("depth", ticks(100)[1::2], decimate=2)
        assert rules_trigger.first_missed(figures(stream("head", ticks(100)), on_time), Limits()) == []
        late = stream("depth", ticks(100)[3::2], decimate=2)
        (warning,) = rules_trigger.first_missed(figures(stream("head", ticks(100)), late), Limits())
        assert (warning.stream, warning.measured) == ("depth", 1)

    def test_later_than_trim_max_is_another_matter(self):
        found = figures(stream("head", ticks(200)), stream("wrist", ticks(139, start=START + 61 * P)))
        assert rules_trigger.first_missed(found, Limits()) == []

    def test_nothing_matched_says_nothing(self):
        assert rules_trigger.first_missed(figures(stream("head", [])), Limits()) == []
