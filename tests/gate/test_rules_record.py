"""Rules on the recording itself."""

from firsthand_edge.gate import rules_record
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


def test_nobody_counted_is_no_reason():
    assert rules_record.overrun(alone(), Limits()) == []
