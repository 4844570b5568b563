"""First causes of what is missing, and who of a pair strays further."""

import numpy as np

from firsthand_edge.gate import causes
from tests.gate.making import MS, figures, stream, ticks, with_facts


def test_of_two_others_the_one_that_strays_further():
    found = figures(stream("head", ticks(60)), stream("a", ticks(60) - MS), stream("b", ticks(60) + 2 * MS))
    assert causes.culprit(found, ("a", "b")) == "b"
    assert causes.culprit(found, ("a", "head")) == "a"


def test_sequence_gaps_explain_what_is_missing():
    found = figures(stream("head", ticks(60)), stream("wrist", np.delete(ticks(60), [9, 10])))
    stamps = found.stream("wrist").stamps
    changed = with_facts(found, "wrist", has_sequence=True, stamps=type(stamps)(samples=58, sequence_gaps=2))
    assert causes.of_missing(changed.stream("wrist")) == "the device counted 2 samples that did not arrive"
    assert causes.of_missing(found.stream("wrist")) is None
