"""Coverage from what is held: pure arithmetic on integers, each collection by itself."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from firsthand_edge.qa.coverage import (
    AxisCoverage,
    AxisRow,
    CellRow,
    CodeInCell,
    CodeRow,
    Collection,
    DayRow,
    OutcomeRow,
    Owed,
    SpecNamed,
    State,
)
from firsthand_edge.qa.holdings import Held, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date
    from decimal import Decimal
    from typing import Literal

    from firsthand_edge.spec.collection import Axis, Cell
    from firsthand_edge.spec.document import Spec

__all__ = ["collection_of", "different_collections"]

NS_PER_HOUR: Final = 3_600_000_000_000
PPM: Final = 1_000_000
OUTCOMES: Final = ("success", "failure", "near_miss", "unstated", "untold")
AXES: Final = ("scenes", "tasks", "objects", "participants")
JUDGED: Final = frozenset({Standing.ACCEPTED, Standing.REJECTED})


def collection_of(
    identity: tuple[str, int, str],
    held: Sequence[Held],
    spec: Spec | None,
    document: Literal["given", "evidence"] | None,
) -> Collection:
    """The coverage of one collection.

    Args:
        identity: Id, version and digest of its spec.
        held: Its episodes; all of that digest.
        spec: Its spec, from which the targets come; None where it is not at hand.
        document: Where the spec was read.
    """
    days = [one.day for one in held if one.day is not None and one.standing is not Standing.TAKEN_BACK]
    gone_by = (max(days) - min(days)).days + 1 if days else None
    counted = [one for one in held if one.standing is not Standing.TAKEN_BACK]
    by_cell: dict[str | None, list[Held]] = defaultdict(list)
    for one in held:
        by_cell[one.cell].append(one)
    cells: dict[str | None, Cell | None] = {} if spec is None else {cell.id: cell for cell in spec.cells}
    for name in sorted(by_cell, key=lambda name: (name is None, name or "")):
        cells.setdefault(name, None)
    id_, version, digest = identity
    return Collection(
        spec=SpecNamed(
            id=id_, version=version, digest=digest, title=None if spec is None else spec.title, document=document
        ),
        stages=tuple(sorted({_stage(one) for one in held})),
        first_day=min(days, default=None),
        last_day=max(days, default=None),
        days_gone_by=gone_by,
        cells=tuple(_cell(name, cell, by_cell.get(name, []), gone_by) for name, cell in cells.items()),
        axes=tuple(_axis(name, None if spec is None else getattr(spec.axes, name), counted, spec) for name in AXES),
        rejects=_rejects(counted),
        owed=_owed(counted),
    )


def different_collections(collections: Sequence[Collection]) -> tuple[str, ...]:
    """Says that specs of several digests are several collections, and names pilot and production that are."""
    if len(collections) < 2:
        return ()
    count = len(collections)
    said = [f"{count} specs of different digests are {count} collections; nothing is summed across them"]
    said += [
        f"the pilot was measured against {_named(pilot)} and production against {_named(production)}: "
        "they are different collections, and one says nothing about the other"
        for pilot in collections
        for production in collections
        if pilot is not production and "pilot" in pilot.stages and "production" in production.stages
    ]
    return tuple(said)


def _named(collection: Collection) -> str:
    spec = collection.spec
    return f"{spec.id} version {spec.version} ({spec.digest[:19]}...)"


def _stage(one: Held) -> str:
    return (one.capture.stage if one.capture is not None else None) or "unstated"


def _hours_ns(hours: Decimal | None) -> int | None:
    """Hours as nanoseconds; a fraction of a nanosecond counts as a whole one."""
    return None if hours is None else -(-Fraction(hours) * NS_PER_HOUR // 1)


def _share(part: int, whole: int | None) -> int | None:
    return None if not whole else part * PPM // whole


def _cell(name: str | None, cell: Cell | None, held: Sequence[Held], gone_by: int | None) -> CellRow:
    count = {standing: sum(1 for one in held if one.standing is standing) for standing in Standing}
    accepted = [one for one in held if one.standing is Standing.ACCEPTED]
    validated = sum(one.validated_ns for one in accepted)
    by_day: dict[date, int] = defaultdict(int)
    for one in accepted:
        if one.day is not None:
            by_day[one.day] += one.validated_ns
    dated = sum(by_day.values())
    target = None if cell is None else _hours_ns(cell.hours)
    due = _due(target, None if cell is None else cell.staffing_weeks, gone_by)
    judged = count[Standing.ACCEPTED] + count[Standing.REJECTED]
    left = 0 if target is None else max(0, target - validated)
    return CellRow(
        cell=name,
        title="" if cell is None else cell.title,
        listed=cell is not None,
        state=_state(validated, target, due),
        validated_ns=validated,
        target_ns=target,
        fill_ppm=_share(validated, target),
        due_ns=due,
        staffing_weeks=None if cell is None else cell.staffing_weeks,
        per_day_ns=None if gone_by is None else dated // gone_by,
        days_to_full=-(-left * gone_by // dated) if left and dated and gone_by is not None else None,
        days=tuple(DayRow(day=day, validated_ns=by_day[day]) for day in sorted(by_day)),
        undated_ns=validated - dated,
        accepted=count[Standing.ACCEPTED],
        rejected=count[Standing.REJECTED],
        reject_ppm=_share(count[Standing.REJECTED], judged),
        waiting=count[Standing.WAITING],
        taken_back=count[Standing.TAKEN_BACK],
        outcomes=tuple(_outcomes(accepted)),
    )


def _due(target: int | None, weeks: Decimal | None, gone_by: int | None) -> int | None:
    """The footage that a cell's staffing schedule asks for once `gone_by` days are over, in ns, rounded up."""
    if target is None or weeks is None or gone_by is None:
        return None
    return -(-target * min(Fraction(1), gone_by / (7 * Fraction(weeks))) // 1)


def _state(validated: int, target: int | None, due: int | None) -> State:
    if target is None:
        return State.UNKNOWN
    if validated >= target:
        return State.FULL
    if validated == 0:
        return State.EMPTY
    if due is None:
        return State.UNKNOWN
    return State.THIN if validated < due else State.ON_SCHEDULE


def _outcomes(accepted: Sequence[Held]) -> Iterable[OutcomeRow]:
    for outcome in OUTCOMES:
        of_it = [one for one in accepted if (one.capture.outcome.value if one.capture else "untold") == outcome]
        if of_it:
            yield OutcomeRow(outcome=outcome, episodes=len(of_it), validated_ns=sum(one.validated_ns for one in of_it))


def _axis(name: str, axis: Axis | None, counted: Sequence[Held], spec: Spec | None) -> AxisCoverage:
    validated: dict[str, int] = defaultdict(int)
    accepted: dict[str, int] = defaultdict(int)
    for one in counted:
        if one.standing is Standing.ACCEPTED and one.capture is not None:
            for value in one.capture.tags()[name]:
                validated[value] += one.validated_ns
                accepted[value] += 1
    listed = {} if axis is None else {value.id: value for value in axis.values}
    rows = []
    for value in [*listed, *sorted(set(accepted) - set(listed))]:
        target = _hours_ns(listed[value].hours) if value in listed else None
        rows.append(
            AxisRow(
                value=value,
                title=_title(name, value, listed[value].title if value in listed else "", spec),
                listed=value in listed,
                validated_ns=validated[value],
                target_ns=target,
                fill_ppm=_share(validated[value], target),
                accepted=accepted[value],
            )
        )
    distinct = sum(1 for nanoseconds in validated.values() if nanoseconds)
    return AxisCoverage(
        axis=name, distinct=distinct, distinct_target=None if axis is None else axis.distinct, values=tuple(rows)
    )


def _title(axis: str, value: str, title: str, spec: Spec | None) -> str:
    """A task's title is its verb and noun unless the axis gives it one."""
    task = spec.task(value) if axis == "tasks" and spec is not None and not title else None
    return title if task is None else task.title


def _rejects(counted: Sequence[Held]) -> tuple[CodeRow, ...]:
    judged: dict[str | None, int] = defaultdict(int)
    codes: dict[str, dict[str | None, int]] = defaultdict(lambda: defaultdict(int))
    for one in counted:
        if one.standing in JUDGED:
            judged[one.cell] += 1
        for code in one.codes:
            codes[code][one.cell] += 1
    return tuple(
        CodeRow(
            code=code,
            cells=tuple(
                CodeInCell(cell=cell, episodes=count, judged=judged[cell], ppm=count * PPM // judged[cell])
                for cell, count in sorted(codes[code].items(), key=lambda item: (item[0] is None, item[0] or ""))
            ),
        )
        for code in sorted(codes)
    )


def _owed(counted: Sequence[Held]) -> tuple[Owed, ...]:
    """Demonstrations that are still missing: each by the first episode that the spec wants recorded again.

    An episode is stood in for once an accepted one recaptures it, itself or by way of other recaptures.
    """
    by_id = {one.episode: one for one in counted}
    later: dict[str, list[Held]] = defaultdict(list)
    for one in counted:
        if one.capture is not None and one.capture.recaptures is not None:
            later[one.capture.recaptures].append(one)
    owed: dict[str, Owed] = {}
    for one in counted:
        if one.standing is not Standing.REJECTED or not one.recapture:
            continue
        tried = _followers(one.episode, later)
        if any(other.standing is Standing.ACCEPTED for other in tried):
            continue
        owed[one.episode] = Owed(
            episode=one.episode,
            cell=one.cell,
            task=None if one.capture is None else one.capture.task,
            codes=one.codes,
            tried=tuple(other.episode for other in tried),
        )
    return tuple(row for name, row in owed.items() if not _asked_before(name, by_id, owed))


def _followers(episode: str, later: Mapping[str, Sequence[Held]]) -> list[Held]:
    """Everything that recaptures `episode`, itself or by way of others."""
    found: dict[str, Held] = {}
    todo = [episode]
    while todo:
        for one in later.get(todo.pop(), ()):
            if one.episode not in found and one.episode != episode:
                found[one.episode] = one
                todo.append(one.episode)
    return list(found.values())


def _asked_before(episode: str, by_id: Mapping[str, Held], owed: Mapping[str, Owed]) -> bool:
    """Whether `episode` is itself a recapture of one that is owed: the same demonstration is not asked for twice."""
    seen = {episode}
    one = by_id.get(episode)
    while one is not None and one.capture is not None and one.capture.recaptures not in {None, *seen}:
        before = one.capture.recaptures
        if before in owed:
            return True
        seen.add(str(before))
        one = by_id.get(str(before))
    return False
