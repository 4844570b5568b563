"""The report on an audit, as frozen values: the fields of `firsthand.sync-report/1`, and the series behind them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge.errors import UsageError
from firsthand_edge.gate.pairs import Pair, disagreement_ns, judged_ns, pair_names, summary
from firsthand_edge.gate.wording import count, listed, ms

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from firsthand_edge.gate.figures import Int64
    from firsthand_edge.gate.verdict import Judgement
    from firsthand_edge.model import Reason

__all__ = ["Offset", "Report", "Residual", "Span", "Stream"]


@dataclass(frozen=True, slots=True)
class Span:
    """The ticks that are judged: all streams run, or should."""

    start_ns: int | None
    end_ns: int | None
    """None where no required stream holds a sample."""
    ticks: int
    """Ticks of the reference in the span."""
    absent: int
    """Ticks between the first and the last that the reference lacks; there is no time to judge them at."""
    trimmed_start: int
    trimmed_end: int
    """Ticks outside of it."""


@dataclass(frozen=True, slots=True)
class Residual:
    """Exact order statistics of the worst disagreement of each tick; every figure is one that occurred.

    None where no tick has two streams.
    """

    ticks: int
    """Ticks with two streams or more."""
    median_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    over_ceiling: int
    """Ticks over the ceiling."""
    first_over_tick: int | None
    last_over_tick: int | None
    worst_tick: int | None
    worst_pair: tuple[str, str] | None
    """The earliest stream of the worst tick, and the latest."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Order statistics of a stream's signed offset to the reference."""

    median_ns: int | None
    p99_abs_ns: int | None
    max_abs_ns: int | None


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream. What is None was not measured: the stream is an event, not required, or nothing was matched."""

    name: str
    kind: str
    required: bool
    samples: int
    duplicate: int
    """Further samples of an equal stamp."""
    backwards: int
    """Samples below the running maximum, in order of arrival."""
    rate_hz: float | None
    """Mean rate, to a thousandth; for people, no verdict rests on it."""
    first_ns: int | None
    last_ns: int | None
    longest_silence_ns: int | None
    grade: str
    """What its times are worth: `native`, `mapped`, `declared`, ..."""
    uncertainty_ns: int
    expected: int | None
    """Ticks of the span at which it should have a sample."""
    matched: int | None
    missing: int | None
    longest_missing_run: int | None
    first_missing_tick: int | None
    last_missing_tick: int | None
    extra: int | None
    """Samples within the span that no tick claims."""
    trimmed: int | None
    """Samples outside of the span."""
    decimate: int | None
    phase: int | None
    offset: Offset | None


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The verdict on a recording, why, and every figure behind it.

    Times are int nanoseconds, ticks are numbered by the reference from its first sample on.
    """

    accepted: bool
    reasons: tuple[Reason, ...]
    """Why it is rejected: `code`, `sentence`, `stream` or `pair`, `first_tick`, `measured`, `limit`, `unit` of each."""
    warnings: tuple[Reason, ...]
    """As reasons; they reject nothing."""
    not_judged: tuple[str, ...]
    """Rules that had nothing to go by; they are neither passed nor failed."""
    notes: tuple[str, ...]
    reference: str
    """The stream whose samples number the ticks."""
    period_ns: int | None
    ceiling_ns: int
    """How far the streams of a tick may disagree; the value itself passes."""
    statistic: str
    """What is held against it: `max`, `p99` or `p99.9`."""
    guard_band: bool
    """Whether `guarded` is held against it, instead of `residual`."""
    span: Span
    residual: Residual
    guarded: Residual
    """With the uncertainties of both streams added."""
    streams: Mapping[str, Stream]
    """By name, the reference first."""
    _title: str = field(repr=False)
    _judgement: Judgement = field(repr=False)

    @classmethod
    def of(cls, judgement: Judgement, *, title: str) -> Report:
        """The report on what the gate found."""
        said, verdict = judgement.report, judgement.verdict
        return cls(
            accepted=verdict.accepted,
            reasons=verdict.reasons,
            warnings=verdict.warnings,
            not_judged=verdict.not_judged,
            notes=tuple(said["notes"]),
            reference=said["reference"],
            period_ns=said["period_ns"],
            ceiling_ns=said["ceiling_ns"],
            statistic=said["statistic"],
            guard_band=said["guard_band"],
            span=Span(**{name: said["span"][name] for name in Span.__slots__}),
            residual=_residual(said["residual_ns"]),
            guarded=_residual(said["guarded_ns"]),
            streams=MappingProxyType({name: _stream(name, row) for name, row in said["streams"].items()}),
            _title=title,
            _judgement=judgement,
        )

    @property
    def tick(self) -> Int64:
        """(ticks,) int64, the number of each tick of the span."""
        sync = self._judgement.figures.sync
        return _nothing() if sync is None else sync.tick

    @property
    def reference_ns(self) -> Int64:
        """(ticks,) int64, its time."""
        sync = self._judgement.figures.sync
        return _nothing() if sync is None else sync.reference_ns

    @property
    def residual_ns(self) -> Int64:
        """(ticks,) int64, the worst disagreement of two streams at it; `ABSENT` where there are no two."""
        sync = self._judgement.figures.sync
        return _nothing() if sync is None else sync.residual_ns

    @property
    def guarded_ns(self) -> Int64:
        """(ticks,) int64, the same with uncertainties."""
        sync = self._judgement.figures.sync
        return _nothing() if sync is None else sync.guarded_ns

    def offset_ns(self, stream: str) -> Int64:
        """(ticks,) int64, signed offset of a stream to the reference; `ABSENT` where it has no match.

        Raises:
            UsageError: there is no such stream.
        """
        sync = self._judgement.figures.sync
        self._known(stream)
        if sync is None or stream not in sync.streams:
            return _nothing()
        return sync.offset_ns(stream)

    def pair_ns(self, first: str, second: str) -> Int64:
        """(ticks,) int64, what two streams disagree by, never negative; `ABSENT` where either has no match.

        Raises:
            UsageError: there is no such stream.
        """
        sync = self._judgement.figures.sync
        for name in (first, second):
            self._known(name)
        if sync is None or not {first, second} <= set(sync.streams):
            return _nothing()
        return disagreement_ns(self._judgement.figures, (first, second), guard_band=self.guard_band)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The order statistics of every pair that the residual is the worst of, the worst pair first."""
        figures = self._judgement.figures
        found = [
            summary(names, judged_ns(figures, names, guard_band=self.guard_band), ceiling_ns=self.ceiling_ns)
            for names in pair_names(figures, guard_band=self.guard_band)
        ]
        return tuple(sorted(found, key=lambda p: (-1 if p.max_ns is None else -p.max_ns - 1, p.streams)))

    def to_json(self) -> dict[str, Any]:
        """The object that `firsthand-edge audit --json` prints, `firsthand.sync-report/1`; a copy."""
        return deepcopy(self._judgement.report)

    def plot(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Draws the disagreement over time, the gaps and the distribution of every pair.

        Args:
            path: `.html` for a page that stands alone, `.png` for an image (takes the extra `plot`).
            title: What to call the recording.

        Raises:
            UsageError: the name ends otherwise, or what a PNG takes is not installed.
            DiskError: the file cannot be written.
        """
        from firsthand_edge.gate.picture import Panel, write_picture

        panel = Panel(self._title if title is None else title, self._judgement.report, self._judgement.figures)
        write_picture(Path(path), [panel])

    def __str__(self) -> str:
        """The verdict and the reasons, as one would tell a colleague."""
        held = self.guarded if self.guard_band else self.residual
        lines = ["accepted" if self.accepted else "rejected"]
        lines += [f"  {reason.code}: {reason.sentence}" for reason in self.reasons]
        lines += [f"  warning {warning.code}: {warning.sentence}" for warning in self.warnings]
        if held.max_ns is None or held.median_ns is None or held.p99_ns is None:
            lines.append("no tick could be judged")
        else:
            lines.append(
                f"disagreement over {count(held.ticks, 'tick')}: median {ms(held.median_ns)}, p99 {ms(held.p99_ns)}, "
                f"max {ms(held.max_ns)}; {held.over_ceiling} over {ms(self.ceiling_ns)}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        codes = ", ".join(dict.fromkeys(reason.code for reason in self.reasons))
        verdict = "accepted" if self.accepted else f"rejected: {codes}"
        return f"<Report of {len(self.streams)} streams, {self.span.ticks} ticks, {verdict}>"

    def _known(self, stream: str) -> None:
        if stream not in self.streams:
            raise UsageError(f"there is no stream `{stream}`; there are {listed(list(self.streams))}")


def _nothing() -> Int64:
    return np.empty(0, dtype=np.int64)


def _residual(said: Mapping[str, Any]) -> Residual:
    pair = said["worst_pair"]
    return Residual(
        ticks=said["ticks"],
        median_ns=said["median"],
        p99_ns=said["p99"],
        p999_ns=said["p999"],
        max_ns=said["max"],
        over_ceiling=said["over_ceiling"],
        first_over_tick=said["first_over_tick"],
        last_over_tick=said["last_over_tick"],
        worst_tick=said["worst_tick"],
        worst_pair=None if pair is None else (pair[0], pair[1]),
    )


def _stream(name: str, said: Mapping[str, Any]) -> Stream:
    offset = said.get("offset_ns")
    fields: dict[str, Any] = {key: said.get(key) for key in Stream.__slots__ if key not in ("name", "offset")}
    return Stream(
        name=name,
        offset=None if offset is None else Offset(offset["median"], offset["p99_abs"], offset["max_abs"]),
        **fields,
    )
