"""Verdicts in words, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.wording import fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["capture_words", "milliseconds", "outcome_lines", "residual_line"]


def milliseconds(value_ns: int | None) -> str:
    """Nanoseconds as milliseconds with three decimals, halves up, or a dash where nothing was measured."""
    return "-" if value_ns is None else f"{fixed((value_ns + 500) // 1000, places=3, keep=3)} ms"


def capture_words(capture: Mapping[str, Any]) -> str:
    """What a take captures, in one line."""
    objects = f" with {' and '.join(capture['objects'])}" if capture["objects"] else ""
    attempt = f", attempt {capture['attempt']}" if capture["attempt"] != 1 else ""
    instead = f", in the place of {capture['recaptures']}" if capture["recaptures"] else ""
    return (
        f"{capture['task']}{objects}, cell {capture['cell']}, scene {capture['scene']}, by {capture['contributor']}"
        f"{attempt}{instead}"
    )


def residual_line(report: Mapping[str, Any]) -> str:
    """Median, p99 and largest residual of a `firsthand.sync-report/1`, in one line."""
    residual = report["residual_ns"]
    return (
        f"{residual['ticks']} ticks, residual median {milliseconds(residual['median'])}, "
        f"p99 {milliseconds(residual['p99'])}, largest {milliseconds(residual['max'])}, over {residual['over_ceiling']}"
    )


def outcome_lines(summary: Mapping[str, Any]) -> list[str]:
    """A judged episode: verdict, figures, every reason and warning."""
    report = summary["report"]
    lines = [f"  {report['verdict']}  {summary['episode']}", f"    {residual_line(report)}"]
    lines += [f"    {reason['code']}: {reason['sentence']}" for reason in report["reasons"]]
    lines += [f"    warning {warning['code']}: {warning['sentence']}" for warning in report["warnings"]]
    return lines
