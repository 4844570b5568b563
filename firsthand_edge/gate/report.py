"""The report: figures and verdict as the one JSON object of sync.md section 7 (`firsthand.sync-report/1`).

Times are integer nanoseconds. Figures that were not measured are null. Fields are added to, never renamed.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.rules_stream import mean_rate_mhz
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge import _core
    from firsthand_edge.gate.figures import Facts, Figures
    from firsthand_edge.gate.limits import Limits
    from firsthand_edge.model import Verdict

__all__ = ["SCHEMA", "report", "report_bytes"]

SCHEMA = "firsthand.sync-report/1"


def report(
    figures: Figures, verdict: Verdict, limits: Limits, *, bound: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The report as a JSON object.

    Args:
        figures: What was measured.
        verdict: What the rules said.
        limits: The limits that were in force.
        bound: Further fields: which take, which spec, where stamps came from.
    """
    sync = figures.sync
    return {
        "schema": SCHEMA,
        "reference": figures.reference,
        "period_ns": sync.period_ns if sync is not None else None,
        "ceiling_ns": limits.ceiling_ns,
        "statistic": limits.statistic,
        "guard_band": limits.guard_band,
        "min_ticks": limits.min_ticks,
        "span": {
            "start_ns": sync.start_ns if sync is not None else None,
            "end_ns": sync.end_ns if sync is not None else None,
            "ticks": sync.ticks if sync is not None else 0,
            "absent": sync.absent if sync is not None else 0,
            "trimmed_start": sync.trimmed_start if sync is not None else 0,
            "trimmed_end": sync.trimmed_end if sync is not None else 0,
        },
        "residual_ns": _residuals(sync.residual if sync is not None else None),
        "guarded_ns": _residuals(sync.guarded if sync is not None else None),
        "streams": {facts.name: _stream(facts, figures) for facts in figures.streams},
        "verdict": "accepted" if verdict.accepted else "rejected",
        "reasons": [reason.to_json() for reason in verdict.reasons],
        "warnings": [warning.to_json() for warning in verdict.warnings],
        "not_judged": list(verdict.not_judged),
        "notes": [*figures.notes, *_unstamped(figures), *_stepped(figures)],
        **({} if figures.outcome is None else {"outcome": figures.outcome}),
        **(bound or {}),
    }


def _unstamped(figures: Figures) -> Iterator[str]:
    """A sentence for each stream that holds samples without a stamp, so that they do not vanish unseen."""
    for facts in figures.streams:
        if facts.unstamped:
            without = count(facts.unstamped, "sample carries", "samples carry")
            yield f"{facts.name}: {without} no stamp and cannot be judged; {facts.samples} do."


def _stepped(figures: Figures) -> Iterator[str]:
    """A sentence for each device whose clock stepped: its map began anew, so that residuals need not show it."""
    devices = {facts.device or facts.name: facts.splits for facts in figures.streams if facts.splits}
    for device, splits in devices.items():
        yield (
            f"{device}: its clock stepped {count(splits, 'time')}, warm-up included; its map began anew there and "
            "bends nothing. See what set the clock."
        )


def report_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes of a report as they are written and signed: UTF-8 JSON, fields in the report's order, one line feed.

    A byte of a name that is no UTF-8 reached us as a lone surrogate and is written as JSON's escape of that.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _residuals(found: _core.Residuals | None) -> dict[str, Any]:
    if found is None:
        names = ("median", "p99", "p999", "max", "first_over_tick", "last_over_tick", "worst_tick", "worst_pair")
        return {"ticks": 0, "over_ceiling": 0, **dict.fromkeys(names)}
    return {
        "ticks": found.ticks,
        "median": found.median_ns,
        "p99": found.p99_ns,
        "p999": found.p999_ns,
        "max": found.max_ns,
        "over_ceiling": found.over_ceiling,
        "first_over_tick": found.first_over_tick,
        "last_over_tick": found.last_over_tick,
        "worst_tick": found.worst_tick,
        "worst_pair": list(found.worst_pair) if found.worst_pair is not None else None,
    }


def _stream(facts: Facts, figures: Figures) -> dict[str, Any]:
    rate = mean_rate_mhz(facts.span)
    own: dict[str, Any] = {
        "kind": facts.kind.value,
        "required": facts.required,
        "samples": facts.samples,
        "unstamped": facts.unstamped,
        "duplicate": facts.stamps.duplicate,
        "backwards": facts.stamps.backwards,
        "rate_hz": None if rate is None else rate / 1000,
        "uncertainty_ns": facts.uncertainty_ns,
        "grade": facts.grade.value,
        "stamp_point": facts.stamp_point.value,
        "first_ns": facts.span.first_ns if facts.span is not None else None,
        "last_ns": facts.span.last_ns if facts.span is not None else None,
        "longest_silence_ns": facts.span.silence.length_ns if facts.span and facts.span.silence else None,
        "sequence_gaps": facts.stamps.sequence_gaps if facts.has_sequence else None,
        "frozen_run": facts.frozen.run if facts.frozen is not None else None,
        "wraps": facts.wraps,
        "splits": facts.splits,
    }
    if facts.edge_check is not None:
        own["edges"] = asdict(facts.edge_check)
    row = figures.sync.streams.get(facts.name) if figures.sync is not None else None
    if row is None or facts.kind is Kind.EVENT:
        return own
    return {
        **own,
        "expected": row.expected,
        "matched": row.matched,
        "missing": row.missing,
        "longest_missing_run": row.longest_missing_run,
        "first_missing_tick": row.first_missing_tick,
        "last_missing_tick": row.last_missing_tick,
        "extra": row.extra,
        "trimmed": row.trimmed,
        "duplicate": row.duplicate,
        "backwards": row.backwards,
        "decimate": row.decimate,
        "phase": row.phase,
        "offset_ns": {
            "median": row.offset_median_ns,
            "p99_abs": row.offset_p99_abs_ns,
            "max_abs": row.offset_max_abs_ns,
        },
    }
