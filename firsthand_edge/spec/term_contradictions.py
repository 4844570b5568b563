"""What reject rule, acceptance, calibration, licence, consent and retention say that cannot be true at once."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from firsthand_edge.model import Kind
from firsthand_edge.spec.codes import REJECTING_CODES
from firsthand_edge.spec.doubled import repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spec.fields import Loc
    from firsthand_edge.spec.parts import Parts
    from firsthand_edge.spec.rules import RejectRule

__all__ = ["term_contradictions"]


def term_contradictions(parts: Parts) -> Iterator[tuple[Loc, str]]:
    """Place and sentence of each; a section that could not be read says nothing."""
    if parts.reject is not None:
        yield from _codes(parts.reject)
    if parts.acceptance is not None and parts.acceptance.failed_ratio_max == 1:
        yield ("acceptance", "failed_ratio_max"), "lets every inspected episode fail; no batch could miss it"
    if parts.consent is not None:
        yield from repeated(parts.consent.purposes, ("consent", "purposes"))
    yield from _calibration(parts)
    yield from _licence(parts)
    yield from _retention(parts)


def _codes(reject: RejectRule) -> Iterator[tuple[Loc, str]]:
    place: Loc = ("reject", "recapture_except")
    yield from repeated(reject.recapture_except, place)
    for index, code in enumerate(reject.recapture_except):
        if code not in REJECTING_CODES:
            near = get_close_matches(code, REJECTING_CODES, n=1, cutoff=0.6)
            advice = f"did you mean `{near[0]}`?" if near else "the codes are listed in the manual"
            yield (*place, index), f"no rule has the code `{code}`; {advice}"
    if set(reject.recapture_except) >= set(REJECTING_CODES):
        yield place, f"names every code; write recapture = {str(not reject.recapture).lower()} and no exceptions"


def _calibration(parts: Parts) -> Iterator[tuple[Loc, str]]:
    """Limits on what the rig does not have."""
    limits = parts.calibration
    if limits is None or not parts.streams.complete:
        return
    kinds = [stream.kind for stream in parts.streams.rows.values() if stream.required]
    if limits.epipolar_px_max is not None and kinds.count(Kind.TRIGGERED) < 2:
        yield ("calibration", "epipolar_px_max"), "limits stereo pairs, and no two cameras are required; remove it"
    if limits.camera_imu_offset_ms_max is not None and Kind.SAMPLED not in kinds:
        yield (
            ("calibration", "camera_imu_offset_ms_max"),
            "limits cameras against an IMU, and no sampled stream is required; remove it",
        )


def _licence(parts: Parts) -> Iterator[tuple[Loc, str]]:
    licence, consent = parts.licence, parts.consent
    if licence is None or not licence.perpetual:
        return
    if consent is not None and consent.withdrawal == "any_time":
        yield (
            ("licence", "perpetual"),
            "cannot be true where consent.withdrawal is `any_time`; write `until_delivery` there, or perpetual = false",
        )
    if parts.retention is not None and parts.retention.consent_days is not None:
        yield (
            ("retention", "consent_days"),
            "deletes the proof of consent while the licence, which is for good, still rests on it; remove it",
        )


def _retention(parts: Parts) -> Iterator[tuple[Loc, str]]:
    retention, reject = parts.retention, parts.reject
    if retention is None:
        return
    if reject is not None and reject.retain_failures and retention.rejected_days == 0:
        yield (
            ("retention", "rejected_days"),
            "deletes rejected footage at once, and reject.retain_failures keeps failed attempts; allow a day or more",
        )
    if retention.consent_days is not None and (
        retention.store_days is None or retention.consent_days < retention.store_days
    ):
        kept = "for as long as the licence" if retention.store_days is None else f"{retention.store_days} days"
        yield (
            ("retention", "consent_days"),
            f"deletes the proof of consent before the footage, which the store keeps {kept}; keep it at least as long",
        )
