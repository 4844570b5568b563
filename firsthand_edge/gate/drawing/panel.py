"""What is said of a recording beside its drawing: the verdict, a few figures, why, and what was not judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firsthand_edge.gate.wording import ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.gate.figures import Figures

__all__ = ["Card", "Panel", "Statement", "milliseconds"]


@dataclass(frozen=True, slots=True)
class Card:
    """One figure, in large."""

    value: str
    label: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A reason or a warning, in words."""

    kind: str
    """`reason` or `warning`."""
    code: str
    sentence: str
    more: str = ""
    """The diagnosis, or the likely cause, where the sentence does not say it itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One take or recording, as it is shown."""

    title: str
    report: Mapping[str, Any]
    """`firsthand.sync-report/1`."""
    figures: Figures
    """What the report was made of."""

    @property
    def accepted(self) -> bool:
        """The verdict."""
        return bool(self.report["verdict"] == "accepted")

    @property
    def held(self) -> Mapping[str, Any]:
        """The order statistics of what is held against the ceiling: R, or G with a guard band."""
        held: Mapping[str, Any] = self.report["guarded_ns" if self.report["guard_band"] else "residual_ns"]
        return held

    def cards(self) -> tuple[Card, ...]:
        """The figures that one asks for first."""
        report, held, span = self.report, self.held, self.report["span"]
        ceiling = report["ceiling_ns"]
        missing = sum(row.get("missing", 0) for row in report["streams"].values())
        over = held["over_ceiling"] > 0
        return (
            Card(milliseconds(held["max"]), "largest disagreement", over),
            Card(milliseconds(held["p99"]), "99th percentile", (held["p99"] or 0) > ceiling),
            Card(milliseconds(held["median"]), "median", (held["median"] or 0) > ceiling),
            Card(f"{held['over_ceiling']} of {held['ticks']}", f"ticks over {ms(ceiling)}", over),
            Card(str(missing), "missing samples", any(r["code"] == "sync.missing" for r in report["reasons"])),
            Card(f"{span['trimmed_start']} + {span['trimmed_end']}", "ticks trimmed"),
        )

    def statements(self) -> tuple[Statement, ...]:
        """Reasons first, then warnings, in the order of the report."""
        return tuple(
            Statement(kind, row["code"], row["sentence"], _more(row))
            for kind, rows in (("reason", self.report["reasons"]), ("warning", self.report["warnings"]))
            for row in rows
        )

    def nothing(self) -> str:
        """Why there are no residuals; empty where there are."""
        sync = self.figures.sync
        if sync is not None and sync.tick.size:
            return ""
        first = self.report["reasons"][0]["code"] if self.report["reasons"] else "no ticks"
        return f"Nothing was matched ({first}), so there are no residuals to draw."

    def footnotes(self) -> tuple[str, ...]:
        """What a reader should know, and what was not looked at."""
        silent = ", ".join(self.report["not_judged"])
        return (*self.report["notes"], f"Not judged: {silent}." if silent else "Everything was judged.")

    def codes(self) -> str:
        """What rejects it and what it is warned about, in one line."""
        reasons, warnings = (dict.fromkeys(r["code"] for r in self.report[k]) for k in ("reasons", "warnings"))
        return ", ".join((*reasons, *(f"warning {code}" for code in warnings)))


def milliseconds(value_ns: int | None) -> str:
    """A figure, or a dash where there is none."""
    return "\u2014" if value_ns is None else ms(value_ns)


def _more(row: Mapping[str, Any]) -> str:
    cause = row.get("cause")
    return f"Likely: {cause}." if cause and cause not in row["sentence"] else ""
