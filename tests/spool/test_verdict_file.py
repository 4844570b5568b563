from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pydantic import ValidationError

from firsthand_edge.model import Reason, Verdict
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import signature_fault
from firsthand_edge.spool.verdict_file import VerdictDocument, exact, verdict_name

KEY = KeyPair.generate()
REASON = Reason(
    code="sync.ceiling", sentence="s", pair=("head", "wrist"), first_tick=3, measured=2000001, limit=2000000, unit="ns"
)
RATE = Reason(code="stream.rate", sentence="s", stream="imu", measured=990.5, limit=Decimal("0.02"))  # type: ignore[arg-type]


def make(verdict: Verdict, report: dict[str, object] | None = None) -> VerdictDocument:
    return VerdictDocument.of(
        episode="e-1",
        manifest="blake3:1",
        spec="blake3:2",
        core="0.1.0",
        cell="daylight",
        verdict=verdict,
        report=report or {"a": 1},
        recaptures=lambda code: code == "sync.ceiling",
    )


def test_written_signed_and_read_back_without_floats() -> None:
    made = make(Verdict(accepted=False, reasons=(REASON, RATE)), {"rate_hz": 59.99, "tick": (1, 2)})
    data = made.document(KEY)
    assert VerdictDocument.read(data) == made
    document = json.loads(data)
    assert signature_fault(document, KEY.public) is None
    assert document["report"] == {"rate_hz": "59.99", "tick": [1, 2]}
    assert document["reasons"][0]["pair"] == ["head", "wrist"]
    assert document["reasons"][0]["measured"] == 2000001
    assert (document["reasons"][1]["measured"], document["reasons"][1]["limit"]) == ("990.5", "0.02")


def test_each_reason_says_whether_the_take_is_recorded_again_and_the_verdict_names_the_cell() -> None:
    made = make(Verdict(accepted=False, reasons=(REASON, RATE)))
    document = json.loads(made.document(KEY))
    assert (document["schema"], document["cell"]) == ("firsthand.verdict/2", "daylight")
    assert [reason["recapture"] for reason in document["reasons"]] == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"cell":"daylight",', b"", "cell is missing"),
        (b'"recapture":true,', b"", "every reason says"),
        (b'"recapture":true,', b'"recapture":1,', "every reason says"),
        (b"verdict/2", b"verdict/1", "cell is no field of it"),
        (b"verdict/2", b"verdict/3", "does not fit firsthand.verdict/2"),
        (b'"core":', b'"corf":', "does not fit firsthand.verdict/2"),
    ],
)
def test_another_form_is_one_sentence(old: bytes, new: bytes, why: str) -> None:
    data = make(Verdict(accepted=False, reasons=(REASON,))).document(KEY)
    assert old in data
    with pytest.raises(ValueError, match=why):
        VerdictDocument.read(data.replace(old, new))


def test_the_same_judgement_whoever_signed_it() -> None:
    made = make(Verdict(accepted=False, reasons=(REASON,)))
    again = VerdictDocument.read(made.document(KeyPair.generate()))
    assert again.same_as(made)
    assert not again.same_as(made.model_copy(update={"cell": "low-light"}))
    assert not again.same_as(made.model_copy(update={"report": {"a": 2}}))


def test_equal_judgements_are_equal_files() -> None:
    first = make(Verdict(accepted=True), {"a": 1, "b": {"c": 2, "d": 3}})
    second = make(Verdict(accepted=True), {"b": {"d": 3, "c": 2}, "a": 1})
    assert first.document(KEY) == second.document(KEY)


def test_a_verdict_and_its_reasons_fit() -> None:
    with pytest.raises(ValidationError, match="a rejected episode carries its reasons"):
        make(Verdict(accepted=False))
    with pytest.raises(ValidationError, match="no reasons against it"):
        make(Verdict(accepted=True, reasons=(REASON,)))


def test_figures_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        exact({"a": [float("nan")]})


def test_names() -> None:
    assert [verdict_name(n) for n in (1, 2, 3)] == ["verdict.json", "verdict-2.json", "verdict-3.json"]
