"""The codes that a spec may name are those that the gate can produce."""

from __future__ import annotations

from firsthand_edge.gate.rules import REJECTING
from firsthand_edge.spec.codes import REJECTING_CODES


def test_every_code_that_rejects_is_in_the_specs_table_and_no_other():
    assert {code for code, _ in REJECTING} == set(REJECTING_CODES)


def test_each_is_explained_in_plain_words():
    for code, words in REJECTING_CODES.items():
        assert code not in words
        assert words[0].islower()
        assert not words.endswith(".")
