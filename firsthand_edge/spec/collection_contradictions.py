"""What tasks, cells, axes, population and geometry say that cannot be true at once."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.doubled import doubled, repeated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from firsthand_edge.spec.collection import Cell, Task
    from firsthand_edge.spec.fields import Loc
    from firsthand_edge.spec.parts import AxisParts, Parts, Rows

__all__ = ["collection_contradictions"]


def collection_contradictions(parts: Parts) -> Iterator[tuple[Loc, str]]:
    """Place and sentence of each; about what is absent nothing is said while a row could not be read."""
    tasks, cells = parts.tasks, parts.cells
    yield from doubled(parts.screening.names, ("population", "screening"), "field", "screening field")
    yield from doubled(tasks.names, ("tasks",), "id", "task")
    titles = {index: task.title.casefold() for index, task in tasks.rows.items()}
    yield from doubled(titles, ("tasks",), "noun", "pair of verb and noun")
    yield from doubled(cells.names, ("cells",), "id", "cell")
    yield from _cells(tasks, cells)
    for name, axis in parts.axes.items():
        yield from doubled(axis.values.names, ("axes", name, "values"), "id", f"value of axes.{name}")
        yield from _axis(name, axis)
        yield from _hours(name, axis, cells)
    yield from _task_axis(parts.axes["tasks"], tasks, cells)
    yield from _geometry(parts)


def _cells(tasks: Rows[Task], cells: Rows[Cell]) -> Iterator[tuple[Loc, str]]:
    known = set(tasks.names.values())
    for index, cell in cells.rows.items():
        place = ("cells", index, "tasks")
        yield from repeated(cell.tasks or (), place)
        if tasks.named:
            for position, name in enumerate(cell.tasks or ()):
                if name not in known:
                    yield (*place, position), f"no task is called `{name}`; {_choice(known)}"
    if cells.complete and all(cell.tasks is not None for cell in cells.rows.values()):
        wanted = {name for cell in cells.rows.values() for name in cell.tasks or ()}
        for index, name in tasks.names.items():
            if name not in wanted:
                yield ("tasks", index, "id"), f"no cell is for `{name}`; name it in a cell, or remove the task"


def _axis(name: str, axis: AxisParts) -> Iterator[tuple[Loc, str]]:
    """An axis against itself."""
    if axis.open is not False or not axis.values.named:
        return
    count = len(set(axis.values.names.values()))
    if count == 0:
        yield ("axes", name, "open"), "is false, and no value is named; name the values, or write open = true"
    elif axis.distinct is not None and axis.distinct > count:
        yield (
            ("axes", name, "distinct"),
            f"asks for {axis.distinct} different values, and the axis is closed with {count}; name more, or open it",
        )


def _hours(name: str, axis: AxisParts, cells: Rows[Cell]) -> Iterator[tuple[Loc, str]]:
    """An axis' hours against the cells' budget: a take has one scene, task and contributor, and many objects."""
    if not cells.complete:
        return
    budget = _sum(cell.hours for cell in cells.rows.values())
    asked = {index: value.hours for index, value in axis.values.rows.items() if value.hours is not None}
    alone = {index for index, hours in asked.items() if hours > budget}
    for index in alone:
        yield (
            ("axes", name, "values", index, "hours"),
            f"asks for {decimal_text(asked[index])} h, and all cells together have {decimal_text(budget)} h",
        )
    total = _sum(asked.values())
    if total > budget and name != "objects" and not alone:
        yield (
            ("axes", name, "values"),
            f"ask for {decimal_text(total)} h together, and all cells together have {decimal_text(budget)} h",
        )


def _task_axis(axis: AxisParts, tasks: Rows[Task], cells: Rows[Cell]) -> Iterator[tuple[Loc, str]]:
    """The axis of tasks against the tasks: its values are tasks, and each task has cells enough for its hours."""
    if not tasks.named:
        return
    known, values = set(tasks.names.values()), set(axis.values.names.values())
    if axis.distinct is not None and axis.distinct > len(known):
        yield ("axes", "tasks", "distinct"), f"asks for {axis.distinct} different tasks; the document has {len(known)}"
    for index, name in axis.values.names.items():
        if name not in known:
            yield ("axes", "tasks", "values", index, "id"), f"no task is called `{name}`; {_choice(known)}"
    if cells.complete:
        yield from _task_hours(axis, known, list(cells.rows.values()))
    if axis.open is False and axis.values.named and values:
        for index, name in tasks.names.items():
            if name not in values:
                yield (
                    ("tasks", index, "id"),
                    f"`{name}` is no value of axes.tasks, which is closed; name it there, or open the axis",
                )


def _task_hours(axis: AxisParts, known: set[str], cells: list[Cell]) -> Iterator[tuple[Loc, str]]:
    budget = _sum(cell.hours for cell in cells)
    everywhere = _sum(cell.hours for cell in cells if cell.tasks is None)
    room = dict.fromkeys(known, everywhere)
    for cell in cells:
        for name in set(cell.tasks or ()) & known:
            room[name] += cell.hours
    for index, value in axis.values.rows.items():
        if value.hours is not None and value.id in known and room[value.id] < value.hours <= budget:
            asked, there = decimal_text(value.hours), decimal_text(room[value.id])
            yield (
                ("axes", "tasks", "values", index, "hours"),
                f"`{value.id}` asks for {asked} h, and the cells that are for it have {there} h",
            )


def _geometry(parts: Parts) -> Iterator[tuple[Loc, str]]:
    names = set(parts.streams.names.values())
    streams = {stream.name: stream for stream in parts.streams.rows.values()}
    seen: set[tuple[str, str]] = set()
    for index, geometry in parts.geometry.rows.items():
        place: Loc = ("capture", "geometry", index, "stream")
        stream = streams.get(geometry.stream)
        if parts.streams.named and geometry.stream not in names:
            yield place, f"no stream is called `{geometry.stream}`; {_choice(names)}"
        elif stream is not None and not stream.required:
            yield place, f"`{geometry.stream}` is not required, so nothing that must stay in frame can rest on it"
        if (geometry.stream, geometry.keep) in seen:
            yield (*place[:-1], "keep"), f"says the same of `{geometry.stream}` as a row before; remove it"
        seen.add((geometry.stream, geometry.keep))


def _sum(hours: Iterable[Decimal]) -> Decimal:
    return sum(hours, Decimal(0))


def _choice(names: set[str]) -> str:
    """What to do about a name that is not there."""
    if not names:
        return "there is none"
    shown = sorted(names)[:12]
    more = len(names) - len(shown)
    return f"name one of {', '.join(shown)}" + (f" and {more} more" if more else "")
