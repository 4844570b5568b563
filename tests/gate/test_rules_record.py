"""Rules on the recording itself."""

from dataclasses import replace

import pytest

from firsthand_edge.gate import rules, rules_record
from firsthand_edge.gate.episode import _outcome as outcome_of
from firsthand_edge.gate.evidence import Evidence
from firsthand_edge.gate.figures import Loss
from firsthand_edge.gate.limits import Limits
from tests.gate.making import alone, figures, stream, ticks, with_facts


def test_a_take_that_was_cut_off_is_torn():
    torn = figures(stream("head", ticks(60)), torn="it was recovered after a crash or a power cut", recorded=True)
    (reason,) = rules_record.torn(torn, Limits())
    assert (reason.code, reason.measured, reason.limit) == ("record.torn", 1, 0)
    assert "recovered after a crash" in reason.sentence


def test_a_take_that_was_closed_is_not():
    assert rules_record.torn(alone(), Limits()) == []


def test_samples_lost_to_back_pressure():
    found = with_facts(alone(), "head", loss=Loss(socket=2, queue=3))
    (reason,) = rules_record.overrun(found, Limits())
    assert (reason.measured, reason.limit, reason.stream) == (5, 0, "head")
    assert reason.cause == "the disk was too slow"
    assert rules_record.overrun(found, Limits(overrun=5)) == []
    assert len(rules_record.overrun(found, Limits(overrun=4))) == 1


@pytest.mark.parametrize(("outcome", "words"), [("failure", "a failure"), ("near_miss", "a near-miss")])
def test_a_failed_attempt_is_rejected_where_the_spec_keeps_successes_only(outcome, words):
    found = replace(alone(), outcome=outcome)
    (reason,) = rules_record.outcome_not_retained(found, Limits(retain_failures=False))
    assert (reason.code, reason.measured, reason.limit) == ("take.outcome_not_retained", 1, 0)
    assert words in reason.sentence
    assert rules_record.outcome_not_retained(found, Limits(retain_failures=True)) == []


@pytest.mark.parametrize(
    ("take", "close", "outcome"),
    [
        ({"capture": {"outcome": "success"}}, {"outcome": "near_miss"}, "near_miss"),
        ({"capture": {"outcome": "failure"}}, {"outcome": None}, "failure"),
        ({"capture": {"outcome": "failure"}}, {}, "failure"),
        ({"capture": {"outcome": "failure"}}, None, "failure"),
        ({}, {"outcome": "success"}, "success"),
        ({}, None, None),
        ({"capture": None}, {"outcome": 3}, None),
    ],
)
def test_the_outcome_that_was_said_last_is_the_one_that_counts(take, close, outcome):
    evidence = Evidence(
        take=take, devices=(), close=close, recovery=None, attachments={}, events=(), edges_ns=ticks(0), samples={}
    )
    assert outcome_of(evidence) == outcome


@pytest.mark.parametrize("outcome", ["success", "unstated", None])
def test_what_did_not_fail_is_kept_and_what_nobody_said_is_not_judged(outcome):
    found = replace(alone(), outcome=outcome)
    limits = Limits(retain_failures=False)
    assert rules_record.outcome_not_retained(found, limits) == []
    listed = "take.outcome_not_retained" in rules.not_judged(found, limits)
    assert listed == (outcome != "success")
    assert "take.outcome_not_retained" not in rules.not_judged(found, Limits())


def test_nobody_counted_is_no_reason():
    assert rules_record.overrun(alone(), Limits()) == []
