from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from firsthand_edge.model import Reason, Verdict
from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spool.reject_log import FIELDS, reject_row
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.verdict_file import VerdictDocument
from tests.spool.takes import CAPTURE, judged

SYNC = Reason(
    code="sync.ceiling",
    sentence="head and wrist disagree by 2.500 ms",
    pair=("head", "wrist"),
    first_tick=3,
    last_tick=9,
    measured=2_500_000,
    limit=2_000_000,
    unit="ns",
    rule_version=2,
    cause="wrist runs free",
)
FROZEN = Reason(code="picture.frozen", sentence="s", stream="head", measured=9, limit=3, first_sample=4, last_sample=12)
RATE = Reason(code="stream.rate", sentence="s", stream="imu", measured=990.5, limit=Decimal("0.02"))  # type: ignore[arg-type]


def row_of(reason: Reason, *, cell: str | None = "daylight", recapture: bool | None = True) -> dict[str, Any]:
    document = VerdictDocument.of(
        episode="e-1",
        manifest="blake3:1",
        spec="blake3:2",
        core="0.1.0",
        cell=cell,
        verdict=Verdict(accepted=False, reasons=(reason,)),
        report={},
        recaptures=lambda _code: recapture,
    )
    return reject_row(document.reasons[0], cell=document.cell)


def test_every_field_of_the_reject_log() -> None:
    assert row_of(SYNC) == {
        "code": "sync.ceiling",
        "rule": "sync.ceiling/2",
        "measured": 2_500_000,
        "limit": 2_000_000,
        "unit": "ns",
        "stream": None,
        "pair": ["head", "wrist"],
        "range": {"first_tick": 3, "last_tick": 9},
        "cell": "daylight",
        "recapture": True,
        "sentence": "head and wrist disagree by 2.500 ms",
    }


@pytest.mark.parametrize("reason", [SYNC, FROZEN, RATE, Reason(code="record.torn", sentence="s")])
@pytest.mark.parametrize("recapture", [True, False, None])
def test_each_row_has_the_same_fields_and_no_floats(reason: Reason, recapture: bool | None) -> None:
    row = row_of(reason, cell=None, recapture=recapture)
    assert tuple(sorted(row)) == tuple(sorted(FIELDS))
    assert (row["cell"], row["recapture"]) == (None, recapture)
    canonical_bytes(row)


def test_samples_and_ticks_are_ranges_and_nothing_is_null() -> None:
    assert row_of(FROZEN)["range"] == {"first_sample": 4, "last_sample": 12}
    assert row_of(RATE)["range"] is None
    assert (row_of(RATE)["measured"], row_of(RATE)["limit"]) == ("990.5", "0.02")


def test_the_rows_of_a_chain_say_what_was_captured_and_why_it_was_rejected(spool: Spool) -> None:
    episode = judged(spool, FROZEN)
    sealed, rejected = spool.chain.rows(episode.id)
    assert (sealed.body["cell"], sealed.body["task"]) == (CAPTURE.cell, CAPTURE.task)
    assert set(sealed.body) == {"manifest", "spec", "take", "torn", "task", "cell"}
    assert set(rejected.body) == {"document", "judgement", "manifest", "reasons", "spec", "verdict"}
    assert rejected.body["reasons"] == [row_of(FROZEN)]
