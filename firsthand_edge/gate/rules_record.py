"""Rules on the recording itself: was it closed, is everything in it that was made, is it an attempt that is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.gate import causes
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Reason

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Figures, Loss
    from firsthand_edge.gate.limits import Limits

__all__ = ["OUTCOMES_KEPT_BY_SOME", "outcome_not_retained", "overrun", "torn"]

OUTCOMES_KEPT_BY_SOME = {"failure": "a failure", "near_miss": "a near-miss"}
"""Outcomes that a spec may retain or not (`reject.retain_failures`), in words."""


def torn(figures: Figures, limits: Limits) -> list[Reason]:  # noqa: ARG001 - every rule has the same two arguments
    """`record.torn`: the take was not closed; it was recovered after a crash or a power cut."""
    if figures.torn is None:
        return []
    return [
        Reason(
            "record.torn",
            f"The take was cut off: {figures.torn}. What was recorded up to the last flush is whole; record it again.",
            measured=1,
            limit=0,
            unit="cuts",
        )
    ]


def overrun(figures: Figures, limits: Limits) -> list[Reason]:
    """`record.overrun`: samples lost because the rig could not keep up."""
    out = []
    for facts in figures.required:
        loss = facts.loss
        if loss is None or loss.total <= limits.overrun:
            continue
        out.append(
            Reason(
                "record.overrun",
                f"{facts.name}: {count(loss.total, 'sample')} lost under way "
                f"({loss.socket} before the recorder, {loss.queue} before the disk, {loss.disk} at the disk; "
                f"{limits.overrun} may be). "
                "See what else uses the processor and the disk.",
                stream=facts.name,
                measured=loss.total,
                limit=limits.overrun,
                unit="samples",
                cause=causes.death(facts) or _slow(loss),
            )
        )
    return out


def outcome_not_retained(figures: Figures, limits: Limits) -> list[Reason]:
    """`take.outcome_not_retained`: a failed or near-miss attempt, and the spec keeps successes only."""
    words = OUTCOMES_KEPT_BY_SOME.get(figures.outcome or "")
    if limits.retain_failures or words is None:
        return []
    return [
        Reason(
            "take.outcome_not_retained",
            f"The attempt was {words}, and the spec keeps no failed or near-miss attempts (reject.retain_failures). "
            "Nothing is wrong with the recording; the next attempt counts.",
            measured=1,
            limit=0,
            unit="attempts",
        )
    ]


def _slow(loss: Loss) -> str:
    return "the recorder was too slow" if loss.socket >= loss.queue + loss.disk else "the disk was too slow"
