"""Reject rule, acceptance, calibration, licence, consent and retention that cannot be true at once."""

from __future__ import annotations

import json

import pytest

from firsthand_edge.spec.codes import REJECTING_CODES
from tests.spec.test_collection_contradictions import changed
from tests.spec.test_document import mistakes, parse

PERPETUAL = ("perpetual = false", "perpetual = true")
WITHOUT_CONSENT_DAYS = ("consent_days = 1000\n", "")
CODES = ('recapture_except = ["record.torn", "picture.frozen"]', "recapture_except = {}")


def codes(*names: str) -> str:
    return changed((CODES[0], CODES[1].format(json.dumps(list(names)))))


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        (
            codes("sync.cieling"),
            "reject.recapture_except[0]",
            "no rule has the code `sync.cieling`; did you mean `sync.ceiling`",
        ),
        (codes("x"), "reject.recapture_except[0]", "no rule has the code `x`; the codes are listed in the manual"),
        (codes("sync.near"), "reject.recapture_except[0]", "no rule has the code `sync.near`"),  # it only warns
        (codes("record.torn", "record.torn"), "reject.recapture_except[1]", "`record.torn` is in the list twice"),
        (
            codes(*REJECTING_CODES),
            "reject.recapture_except",
            "names every code; write recapture = false and no exceptions",
        ),
        (
            changed(("failed_ratio_max = 0.02", "failed_ratio_max = 1")),
            "acceptance.failed_ratio_max",
            "lets every inspected episode fail; no batch could miss it",
        ),
        (
            changed(('purposes = ["training", "evaluation"]', 'purposes = ["training", "training"]')),
            "consent.purposes[1]",
            "`training` is in the list twice",
        ),
        (
            changed(('kind = "triggered"\nrate_hz = 30\ndecimate = 2\nphase = 1', 'kind = "sampled"\nrate_hz = 30')),
            "calibration.epipolar_px_max",
            "limits stereo pairs, and no two cameras are required; remove it",
        ),
        (
            changed(('name = "imu"\nkind = "sampled"', 'name = "imu"\nrequired = false\nkind = "sampled"')),
            "calibration.camera_imu_offset_ms_max",
            "limits cameras against an IMU, and no sampled stream is required; remove it",
        ),
        (
            changed(PERPETUAL, WITHOUT_CONSENT_DAYS, ('withdrawal = "until_delivery"', 'withdrawal = "any_time"')),
            "licence.perpetual",
            "cannot be true where consent.withdrawal is `any_time`",
        ),
        (
            changed(PERPETUAL),
            "retention.consent_days",
            "deletes the proof of consent while the licence, which is for good",
        ),
        (
            changed(("rejected_days = 30", "rejected_days = 0")),
            "retention.rejected_days",
            "deletes rejected footage at once, and reject.retain_failures",
        ),
        (
            changed(("consent_days = 1000", "consent_days = 699")),
            "retention.consent_days",
            "deletes the proof of consent before the footage, which the store keeps 700 days",
        ),
        (
            changed(("store_days = 700\n", "")),
            "retention.consent_days",
            "deletes the proof of consent before the footage, which the store keeps for as long as the licence",
        ),
    ],
)
def test_a_contradiction_is_one_sentence_at_its_place(text: str, place: str, sentence: str) -> None:
    found = [m.split(": ", 2)[1:] for m in mistakes(text)]
    assert any(at == place and sentence in said for at, said in found), found


def test_what_is_no_contradiction() -> None:
    parse(changed(PERPETUAL, WITHOUT_CONSENT_DAYS))
    parse(changed(('withdrawal = "until_delivery"', 'withdrawal = "any_time"')))
    parse(changed(("consent_days = 1000", "consent_days = 700")))
    parse(changed(("rejected_days = 30", "rejected_days = 0"), ("retain_failures = true", "retain_failures = false")))
    parse(codes(*list(REJECTING_CODES)[1:]))
    parse(codes())
