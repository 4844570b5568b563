"""A coverage as a page of 80 columns: cells first, then axes, outcomes, rejects and what is owed. No totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from firsthand_edge.cli.page import Page
from firsthand_edge.qa.coverage import State
from firsthand_edge.qa.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firsthand_edge.qa.coverage import AxisCoverage, CellRow, Collection, Coverage

__all__ = ["hours", "percent", "print_coverage"]

NS_PER_S: Final = 1_000_000_000
BAR: Final = 10
SHOWN: Final = 20
"""So many things that are not counted are listed; `--json` lists all."""
NAME: Final = 16
STATES: Final = {
    State.EMPTY: ("thin", "bold red"),
    State.THIN: ("thin", "bold red"),
    State.ON_SCHEDULE: ("on schedule", "green"),
    State.FULL: ("full", "bold green"),
    State.UNKNOWN: ("-", "dim"),
}


def print_coverage(coverage: Coverage) -> None:
    """Prints the page."""
    page = Page()
    for sentence in coverage.different:
        page.text(f"{sentence[0].upper()}{sentence[1:]}.", "bold yellow")
    for collection in coverage.collections:
        _collection(page, collection)
    if not coverage.collections:
        page.text("No sealed episode is here" + (" that counts." if coverage.not_counted else "."))
    if coverage.not_counted:
        page.head("Not counted")
        for row in coverage.not_counted[:SHOWN]:
            page.item(f"{row.folder}: {row.why}")
        if len(coverage.not_counted) > SHOWN:
            page.item(f"and {len(coverage.not_counted) - SHOWN} more; --json lists all")
    for note in coverage.notes:
        page.text(note, "dim")
    page.space()
    for chain in coverage.chains:
        by = "a key that was given" if chain.asked_for else "whosever key that is; --key would say"
        page.text(f"Chain {chain.file}: {chain.rows} rows, all signed, begun by key {chain.name}, {by}.", "dim")
    page.text("Nothing was judged again and no footage read: `firsthand-edge episodes verify` does that.", "dim")


def hours(nanoseconds: int | None) -> str:
    """`h:mm:ss`, rounded down, or a dash."""
    if nanoseconds is None:
        return "-"
    seconds = nanoseconds // NS_PER_S
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def percent(ppm: int | None) -> str:
    """Millionths as per cent with two decimals, rounded down: 100.00 % is reached, never nearly reached."""
    return "-" if ppm is None else f"{ppm // 10_000}.{ppm // 100 % 100:02} %"


def _collection(page: Page, collection: Collection) -> None:
    spec = collection.spec
    page.space()
    page.text(f"{printable(spec.id)} version {spec.version}" + (f": {spec.title}" if spec.title else ""), "bold")
    page.line(printable(spec.digest), "dim")
    if spec.document is None:
        page.text("This spec is not at hand, so no target is known; name it with --spec.", "yellow")
    if collection.days_gone_by is not None:
        days = f"1 day, {collection.first_day}"
        if collection.days_gone_by > 1:
            days = f"{collection.days_gone_by} days, {collection.first_day} to {collection.last_day}"
        page.text(f"Stage {', '.join(collection.stages)}; {days} by the rigs' clocks (a claim).")
    _cells(page, collection.cells)
    for axis in collection.axes:
        _axis(page, axis)
    _outcomes(page, collection.cells)
    _rejects(page, collection)
    _owed(page, collection)


def _cells(page: Page, cells: Iterable[CellRow]) -> None:
    page.head("Cells")
    head = f"{'cell':<{NAME}} {'':<{BAR + 2}}{'validated':>10}{'budget':>9}{'fill':>10}{'a day':>10} state"
    page.line(head, "dim")
    for row in cells:
        word, style = STATES[row.state]
        page.columns(
            (
                (f"{_name(row.cell)} {_bar(row.fill_ppm)}{hours(row.validated_ns):>10}", ""),
                (f"{_budget(row.target_ns):>9}{percent(row.fill_ppm):>10}{hours(row.per_day_ns):>10} ", ""),
                (word, style),
            )
        )
    for row in cells:
        for sentence in _about(row):
            page.item(sentence)


def _about(row: CellRow) -> Iterable[str]:
    """What has to be said of a cell in words."""
    name = "The cell that nobody named" if row.cell is None else printable(row.cell)
    if row.state is State.EMPTY:
        yield f"{name} is thin: nothing is validated yet."
    if row.state is State.THIN:
        yield (
            f"{name} is thin: at {row.staffing_weeks} {'week' if row.staffing_weeks == 1 else 'weeks'} of staffing "
            f"{hours(row.due_ns)} is due by now, and {hours(row.validated_ns)} is validated."
        )
    if row.state is State.FULL:
        yield f"{name} is full: record elsewhere."
    if row.days_to_full is not None and row.state is not State.FULL:
        days = "1 day" if row.days_to_full == 1 else f"{row.days_to_full:,} days"
        yield f"{name} is full in {days} at this speed."
    if not row.listed and row.cell is not None and row.target_ns is None:
        yield f"{name} is no cell of the spec at hand."
    if row.waiting:
        yield f"{name}: {row.waiting} not judged yet."
    if row.taken_back:
        yield f"{name}: {row.taken_back} taken back (withdrawn, discarded or set aside), counted nowhere."
    if row.undated_ns:
        yield f"{name}: {hours(row.undated_ns)} of it claims no day and is in no speed."


def _axis(page: Page, axis: AxisCoverage) -> None:
    wanted = "" if axis.distinct_target is None else f" of {axis.distinct_target} different ones wanted"
    page.head(f"{axis.axis.capitalize()}: {axis.distinct}{wanted}")
    for row in axis.values:
        more = row.title if row.listed else "not named up front"
        page.columns(
            (
                (f"{_name(row.value)} {_bar(row.fill_ppm)}{hours(row.validated_ns):>10}", ""),
                (f"{_budget(row.target_ns):>9}{percent(row.fill_ppm):>10}  ", ""),
                (_cut(more, 20), "dim"),
            )
        )
    if not axis.values:
        page.line("none yet", "dim")


def _outcomes(page: Page, cells: Iterable[CellRow]) -> None:
    page.head("Outcomes of accepted attempts")
    said = False
    for row in cells:
        words = [
            f"{outcome.outcome.replace('_', ' ')} {outcome.episodes} ({hours(outcome.validated_ns)})"
            for outcome in row.outcomes
        ]
        if words:
            said = True
            page.columns(((f"{_name(row.cell)} ", ""), (", ".join(words), "")))
    if not said:
        page.line("none yet", "dim")


def _rejects(page: Page, collection: Collection) -> None:
    page.head("Rejected, by cell and by code")
    judged = [row for row in collection.cells if row.accepted + row.rejected]
    for row in judged:
        count = f"{row.rejected} of {row.accepted + row.rejected}"
        page.columns(((f"{_name(row.cell)} {count:>12}{percent(row.reject_ppm):>10}", ""),))
    for code in collection.rejects:
        for number, cell in enumerate(code.cells):
            count = f"{cell.episodes} of {cell.judged}"
            name = printable(code.code) if number == 0 else ""
            page.columns(((f"  {name:<28}{_name(cell.cell)} {count:>12}{percent(cell.ppm):>10}", ""),))
    if not judged:
        page.line("nothing is judged yet", "dim")


def _owed(page: Page, collection: Collection) -> None:
    page.head("Recapture still owed")
    for row in collection.owed:
        tried = f"; tried by {', '.join(row.tried)}" if row.tried else ""
        what = f"{row.task or 'unknown task'} in {row.cell or 'an unknown cell'}"
        page.item(printable(f"{row.episode}: {what}, for {', '.join(row.codes)}{tried}"))
    if not collection.owed:
        page.line("none", "dim")


def _name(name: str | None) -> str:
    return f"{_cut('(not told)' if name is None else printable(name), NAME):<{NAME}}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}~"


def _budget(nanoseconds: int | None) -> str:
    """A budget in hours where it is whole minutes, as `h:mm`."""
    if nanoseconds is None:
        return "-"
    minutes = nanoseconds // (60 * NS_PER_S)
    return f"{minutes // 60}:{minutes % 60:02} h"


def _bar(ppm: int | None) -> str:
    if ppm is None:
        return " " * (BAR + 2)
    full = min(BAR, ppm * BAR // 1_000_000)
    return f"[{'#' * full}{'.' * (BAR - full)}]"
