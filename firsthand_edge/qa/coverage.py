"""What a coverage says: each collection apart, per cell and per axis value, as JSON (`firsthand.coverage/1`).

There is no total in here: seconds of one cell never make up for another's, so nothing is summed across cells, and
nothing at all across specs. Every figure is an integer; shares are millionths, rounded down, so that nothing is shown
as full before it is.
"""

from __future__ import annotations

from datetime import date  # noqa: TC003 - pydantic resolves annotations at run time
from decimal import Decimal  # noqa: TC003 - as above
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AxisCoverage",
    "AxisRow",
    "CellRow",
    "ChainCounted",
    "CodeInCell",
    "CodeRow",
    "Collection",
    "Coverage",
    "DayRow",
    "NotCounted",
    "OutcomeRow",
    "Owed",
    "SpecNamed",
    "State",
    "coverage_bytes",
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class State(StrEnum):
    """Where a cell stands against its budget and its staffing schedule."""

    EMPTY = "empty"
    """Thin: nothing is validated yet."""
    THIN = "thin"
    """Less is validated than its staffing schedule asks for by the last day of the collection."""
    ON_SCHEDULE = "on_schedule"
    FULL = "full"
    """At or over its budget."""
    UNKNOWN = "unknown"
    """No budget is known, or no day."""


class DayRow(_Frozen):
    """One day of a cell, by the rig's clock: a claim."""

    day: date
    validated_ns: int


class OutcomeRow(_Frozen):
    """Attempts that ended one way."""

    outcome: str
    """`success`, `failure`, `near_miss`, `unstated`; `untold` where the manifest says nothing of the capture."""
    episodes: int
    validated_ns: int


class CellRow(_Frozen):
    """One condition cell."""

    cell: str | None
    """None: episodes whose manifest names no cell."""
    title: str
    listed: bool
    """Whether the spec knows it."""
    state: State
    validated_ns: int
    """Judged ticks of accepted episodes, times their period."""
    target_ns: int | None
    """Its budget."""
    fill_ppm: int | None
    """validated / target, millionths, rounded down."""
    due_ns: int | None
    """What the staffing schedule asks for by the last day: target x min(1, days gone by / (7 x staffing weeks))."""
    staffing_weeks: Decimal | None
    per_day_ns: int | None
    """Validated footage that carries a day / days gone by in the collection, rounded down."""
    days_to_full: int | None
    """What is left / that speed, in days, rounded up; None where nothing is left or nothing moves."""
    days: tuple[DayRow, ...]
    undated_ns: int
    """Validated footage whose manifest claims no day."""
    accepted: int
    rejected: int
    reject_ppm: int | None
    """rejected / (accepted + rejected), millionths, rounded down."""
    waiting: int
    """Sealed and not judged yet."""
    taken_back: int
    """Withdrawn, discarded, or set aside: counted nowhere else."""
    outcomes: tuple[OutcomeRow, ...]
    """Of accepted episodes."""


class AxisRow(_Frozen):
    """One value of an axis."""

    value: str
    title: str
    listed: bool
    """Whether the spec names it up front."""
    validated_ns: int
    target_ns: int | None
    fill_ppm: int | None
    accepted: int


class AxisCoverage(_Frozen):
    """One diversity axis. A take that holds several objects counts for each of them."""

    axis: str
    distinct: int
    """Different values with validated footage."""
    distinct_target: int | None
    """How many the spec wants at least."""
    values: tuple[AxisRow, ...]


class CodeInCell(_Frozen):
    """How often one code rejected in one cell."""

    cell: str | None
    episodes: int
    judged: int
    """Episodes of the cell that were accepted or rejected."""
    ppm: int


class CodeRow(_Frozen):
    """One code of the reject log, cell by cell. An episode that has several codes stands under each."""

    code: str
    cells: tuple[CodeInCell, ...]


class Owed(_Frozen):
    """A rejected episode that the spec wants recorded again, and that no accepted one stands in for."""

    episode: str
    cell: str | None
    task: str | None
    codes: tuple[str, ...]
    tried: tuple[str, ...]
    """Recaptures of it that were rejected, or are not judged yet."""


class SpecNamed(_Frozen):
    """Which document the collection is measured against."""

    id: str
    version: int
    digest: str
    title: str | None
    document: Literal["given", "evidence"] | None
    """Where its targets come from: the file that was given, or the evidence of an episode; None: not at hand."""


class Collection(_Frozen):
    """Everything that was recorded under one spec digest."""

    spec: SpecNamed
    stages: tuple[str, ...]
    """`pilot`, `production`, `unstated`: those that occur."""
    first_day: date | None
    last_day: date | None
    days_gone_by: int | None
    """From the first day to the last, both counted."""
    cells: tuple[CellRow, ...]
    axes: tuple[AxisCoverage, ...]
    rejects: tuple[CodeRow, ...]
    owed: tuple[Owed, ...]


class ChainCounted(_Frozen):
    """A chain on which figures rest: unbroken, every row signed."""

    file: str
    name: str
    """Key id of the key that began it."""
    rows: int
    head: str | None
    """Digest of its last row."""
    asked_for: bool
    """A key that was given proves it; false: it is held against the key that began it, whosever that is."""


class NotCounted(_Frozen):
    """An episode or a chain that no figure counts, because it cannot be relied on."""

    folder: str
    """Of the episode; for a chain, its file."""
    why: str


class Coverage(_Frozen):
    """The whole document."""

    schema_: Literal["firsthand.coverage/1"] = Field(default="firsthand.coverage/1", alias="schema")
    collections: tuple[Collection, ...]
    different: tuple[str, ...]
    """That collections are different ones, in words: pilot and production above all."""
    not_counted: tuple[NotCounted, ...]
    notes: tuple[str, ...]
    chains: tuple[ChainCounted, ...] = ()


def coverage_bytes(coverage: Coverage) -> bytes:
    """The bytes of the JSON document: UTF-8, fields in their order, one line feed at the end."""
    return coverage.model_dump_json(by_alias=True, indent=2).encode() + b"\n"
