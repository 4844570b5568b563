"""Outcomes, exit statuses, and the published form of a proof."""

from __future__ import annotations

import itertools
import json

import pytest

from firsthand_edge.qa.differences import differences
from firsthand_edge.qa.ledger import CHECKS, Ledger
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import (
    ONCE,
    Check,
    Outcome,
    Proof,
    Result,
    Summary,
    VerdictOnFile,
    exit_status,
    outcome_of,
    proof_bytes,
)


def check(result, *, excused=False):
    return Check(id="x", result=result, what="w", found="f", excused=excused)


def verdict(word):
    return VerdictOnFile(file="verdict.json", judgement=1, digest="d", verdict=word, core="1", signed_by=None)


HOLDS, FAILS, OPEN = check(Result.HOLDS), check(Result.FAILS), check(Result.NOT_CHECKED)
EXCUSED = check(Result.NOT_CHECKED, excused=True)


@pytest.mark.parametrize(
    ("checks", "word", "taken_back", "outcome"),
    [
        ((HOLDS,), "accepted", False, Outcome.ACCEPTED),
        ((HOLDS, EXCUSED), "rejected", False, Outcome.REJECTED),
        ((HOLDS, OPEN), "accepted", False, Outcome.UNKNOWN),
        ((HOLDS, OPEN), "rejected", False, Outcome.UNKNOWN),
        ((HOLDS,), None, False, Outcome.UNKNOWN),
        ((HOLDS, OPEN), "accepted", True, Outcome.TAKEN_BACK),
        ((HOLDS, FAILS), "accepted", True, Outcome.FAILED),
        ((OPEN, FAILS), "rejected", False, Outcome.FAILED),
    ],
)
def test_what_checks_amount_to(checks, word, taken_back, outcome):
    found = outcome_of(checks, None if word is None else verdict(word), taken_back=taken_back)
    assert found is outcome


@pytest.mark.parametrize(("failed", "unknown", "rejected", "taken_back"), [*itertools.product((0, 1), repeat=4)])
def test_exit_status(failed, unknown, rejected, taken_back):
    summary = Summary(episodes=5, accepted=1, rejected=rejected, taken_back=taken_back, failed=failed, unknown=unknown)
    expected = 1 if failed else 3 if unknown else 1 if rejected or taken_back else 0
    assert exit_status(summary) == expected


def test_nothing_proved_is_unknown():
    assert exit_status(Summary(episodes=0, accepted=0, rejected=0, taken_back=0, failed=0, unknown=0)) == 3


def test_the_document_reads_back_and_has_a_schema(pristine):
    proof = pristine.prove()
    document = json.loads(proof_bytes(proof))
    assert document["schema"] == "firsthand.proof/1"
    assert Proof.model_validate(document) == proof
    schema = Proof.model_json_schema(by_alias=True)
    assert set(document) == set(schema["properties"])
    assert {check["id"] for check in document["episodes"][0]["checks"]} == (
        set(CHECKS) - {"files"} | {ONCE} | {"file:episode.mcap", "file:evidence.mcap"}
    )


def test_a_ledger_tells_every_check_once_and_what_was_not_come_to():
    ledger = Ledger()
    ledger.holds("folder", "yes")
    ledger.fails("manifest.form", "no")
    with pytest.raises(ValueError, match="twice"):
        ledger.holds("folder", "again")
    checks = ledger.close("it ended there")
    assert [c.id for c in checks] == list(CHECKS)
    assert {c.found for c in checks[2:]} == {"it ended there"}
    assert {c.result for c in checks[2:]} == {Result.NOT_CHECKED}


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": [1, {"b": 2}]}, {"a": (1, {"b": 2})}, []),
        ({"a": 1}, {"a": True}, ["a: 1 here, True there"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b: 1 here, 2 there"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: 1 entries here, 2 there"]),
        ({"a": 1}, {}, ["a: only here"]),
        ({}, {"a": 1}, ["a: only there"]),
        ({"a": "x" * 99}, {"a": 1}, ["a: '" + "x" * 56 + "... here, 1 there"]),
        (dict.fromkeys("abcdef", 1), dict.fromkeys("abcdef", 2), [f"{c}: 1 here, 2 there" for c in "abc"]),
    ],
)
def test_differences_are_named_by_their_places(left, right, said):
    assert differences(left, right) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("wörd", "wörd"), ("a\x1b[0m", "a\\x1b[0m"), ("\udcff", "\\udcff"), ("a\nb", "a\\nb")],
)
def test_printable(text, shown):
    assert printable(text) == shown
