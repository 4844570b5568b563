"""A document in its readable parts, so that one look finds every contradiction, also beside other mistakes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from firsthand_edge.spec.collection import AxisValue, Cell, Geometry, Screening, Task
from firsthand_edge.spec.fields import NAME
from firsthand_edge.spec.rules import RejectRule, Rules
from firsthand_edge.spec.streams import StreamSpec, SyncSpec
from firsthand_edge.spec.terms import AcceptanceTest, CalibrationLimits, ConsentTerms, Licence, Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.fields import Loc

__all__ = ["AXES", "AxisParts", "Parts", "Rows"]

AXES: Final = ("scenes", "tasks", "objects", "participants")

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows(Generic[T]):
    """Rows of an array of tables, by their position."""

    rows: Mapping[int, T] = field(default_factory=dict)
    """Those that could be read."""
    names: Mapping[int, str] = field(default_factory=dict)
    """What they are called, also those whose name was all that could be read."""
    complete: bool = False
    """All of them could be read."""
    named: bool = False
    """The name of each of them could be read."""

    @classmethod
    def of(cls, rows: Sequence[T], key: str) -> Rows[T]:
        """All rows of a document that fits its model; `key` is the field that names them."""
        names = {index: str(getattr(row, key)) for index, row in enumerate(rows)}
        return cls(dict(enumerate(rows)), names, complete=True, named=True)


@dataclass(frozen=True, slots=True)
class AxisParts:
    """One diversity axis; what could not be read is None."""

    values: Rows[AxisValue]
    distinct: int | None
    open: bool | None


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that contradictions are looked for in; a section that could not be read is None."""

    streams: Rows[StreamSpec]
    tasks: Rows[Task]
    cells: Rows[Cell]
    geometry: Rows[Geometry]
    screening: Rows[Screening]
    axes: Mapping[str, AxisParts]
    sync: SyncSpec | None
    rules: Rules | None
    reject: RejectRule | None
    acceptance: AcceptanceTest | None
    calibration: CalibrationLimits | None
    licence: Licence | None
    consent: ConsentTerms | None
    retention: Retention | None

    @classmethod
    def of(cls, spec: Spec) -> Parts:
        """All parts of a document that fits its model."""
        return cls(
            streams=Rows.of(spec.streams, "name"),
            tasks=Rows.of(spec.tasks, "id"),
            cells=Rows.of(spec.cells, "id"),
            geometry=Rows.of(spec.capture.geometry, "stream"),
            screening=Rows.of(spec.population.screening, "field"),
            axes={name: _whole_axis(spec, name) for name in AXES},
            sync=spec.sync,
            rules=spec.rules,
            reject=spec.reject,
            acceptance=spec.acceptance,
            calibration=spec.calibration,
            licence=spec.licence,
            consent=spec.consent,
            retention=spec.retention,
        )

    @classmethod
    def read(cls, table: Mapping[str, Any], *, filled_in: Callable[[Loc], bool]) -> Parts:
        """The parts of a faulty document that can be read.

        Args:
            table: The document as TOML gives it.
            filled_in: Whether there is no placeholder at or below a place; where there is one, nothing is read.
        """

        def section(model: type[M], name: str, default: object = None) -> M | None:
            return _fits(model, table.get(name, default)) if filled_in((name,)) else None

        def rows(model: type[M], key: str, *place: str) -> Rows[M]:
            found = _within(table, place)
            if not isinstance(found, list):
                return Rows()
            read = [_fits(model, row) if filled_in((*place, i)) else None for i, row in enumerate(found)]
            kept = {i: row for i, row in enumerate(read) if row is not None}
            names = {i: row[key] for i, row in enumerate(found) if isinstance(row, dict) and _is_name(row.get(key))}
            whole = bool(read)  # a list without rows is a mistake of its own
            return Rows(kept, names, complete=whole and len(kept) == len(read), named=whole and len(names) == len(read))

        def axis(name: str) -> AxisParts:
            read = _within(table, ("axes", name))
            if not isinstance(read, dict):
                return AxisParts(Rows(), None, None)
            values = rows(AxisValue, "id", "axes", name, "values") if read.get("values") else Rows.of([], "id")
            distinct, is_open = read.get("distinct"), read.get("open")
            return AxisParts(
                values,
                distinct if isinstance(distinct, int) and not isinstance(distinct, bool) else None,
                is_open if isinstance(is_open, bool) else None,
            )

        return cls(
            streams=rows(StreamSpec, "name", "streams"),
            tasks=rows(Task, "id", "tasks"),
            cells=rows(Cell, "id", "cells"),
            geometry=rows(Geometry, "stream", "capture", "geometry"),
            screening=rows(Screening, "field", "population", "screening"),
            axes={name: axis(name) for name in AXES},
            sync=section(SyncSpec, "sync", {}),
            rules=section(Rules, "rules", {}),
            reject=section(RejectRule, "reject"),
            acceptance=section(AcceptanceTest, "acceptance"),
            calibration=section(CalibrationLimits, "calibration"),
            licence=section(Licence, "licence"),
            consent=section(ConsentTerms, "consent"),
            retention=section(Retention, "retention"),
        )


def _whole_axis(spec: Spec, name: str) -> AxisParts:
    axis = getattr(spec.axes, name)
    return AxisParts(Rows.of(axis.values, "id"), axis.distinct, axis.open)


def _within(table: object, place: Sequence[str]) -> object:
    for part in place:
        if not isinstance(table, dict):
            return None
        table = table.get(part)
    return table


def _is_name(value: object) -> bool:
    return isinstance(value, str) and re.match(NAME, value) is not None


def _fits(model: type[M], table: object) -> M | None:
    try:
        return model.model_validate(table)
    except ValidationError:
        return None
