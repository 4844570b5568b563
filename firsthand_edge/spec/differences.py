"""Whether two documents measure the same thing; if not, what changed, by place, from what to what."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.explained import explanations, first_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spec.document import Spec

__all__ = ["Difference", "Group", "differences"]


class Group(StrEnum):
    """What kind of statement differs."""

    CRITERIA = "criteria"
    """What is recorded, how good it must be, what rejects it, and when a batch is accepted."""
    TARGETS = "cells and targets"
    """How much is recorded of what."""
    TERMS = "terms"
    """Delivery, licence, consent, retention."""
    WORDING = "wording"
    """Names and titles, by which nothing is measured."""


TARGETS: Final = frozenset({"cells", "axes"})
TERMS: Final = frozenset({"delivery", "licence", "consent", "retention"})
WORDING: Final = frozenset({"id", "title", "version", "gap"})
KEYS: Final = ("id", "name", "field", "stream")
"""What tells the rows of an array of tables apart: the first of these that a row has."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One statement that differs."""

    group: Group
    place: str
    """`cells[daylight].hours`; rows go by their name, since their order says nothing."""
    old: str | None
    """What the first document says; None where it says nothing."""
    new: str | None
    """What the second document says; None where it says nothing."""
    means: str
    """What the field means, in words; empty for a whole row."""

    def to_json(self) -> dict[str, str | None]:
        """A JSON object with the fields of this class."""
        return {
            "group": self.group.value,
            "place": self.place,
            "old": self.old,
            "new": self.new,
            "means": self.means,
        }


def differences(first: Spec, second: Spec) -> tuple[Difference, ...]:
    """What differs, by group and then in the order of the document; nothing exactly when the digests agree."""
    found = list(_of_models(first, second, place="", group=None))
    order = list(Group)
    return tuple(sorted(found, key=lambda difference: order.index(difference.group)))


def _of_models(old: BaseModel, new: BaseModel, *, place: str, group: Group | None) -> Iterator[Difference]:
    for name, info in type(old).model_fields.items():
        key = info.alias or name
        at = f"{place}.{key}" if place else key
        belongs = _group(name, group, at)
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _of_models(before, after, place=at, group=belongs)
        elif _is_rows(before) or _is_rows(after):
            yield from _of_rows(before, after, place=at, group=belongs)
        elif _plain(before) != _plain(after):
            means = first_sentence(explanations(type(old)).get(name, ""))
            yield Difference(belongs, at, _written(before), _written(after), means)


def _of_rows(
    old: tuple[BaseModel, ...], new: tuple[BaseModel, ...], *, place: str, group: Group
) -> Iterator[Difference]:
    before, after = _named(old), _named(new)
    for name in [*before, *(name for name in after if name not in before)]:
        at = f"{place}[{name}]"
        if name not in after:
            yield Difference(group, at, _summary(before[name]), None, "")
        elif name not in before:
            yield Difference(group, at, None, _summary(after[name]), "")
        else:
            yield from _of_models(before[name], after[name], place=at, group=group)


def _named(rows: tuple[BaseModel, ...]) -> dict[str, BaseModel]:
    """Rows by what tells them apart; further rows of one name (a camera may have to keep two things) are numbered."""
    found: dict[str, BaseModel] = {}
    for row in sorted(rows, key=lambda row: (_name(row), row.model_dump_json())):
        count, name = 1, _name(row)
        while name in found:
            count += 1
            name = f"{_name(row)}, {count}"
        found[name] = row
    return found


def _name(row: BaseModel) -> str:
    return str(next(getattr(row, key) for key in KEYS if key in type(row).model_fields))


def _group(name: str, inherited: Group | None, place: str) -> Group:
    if inherited is None:
        for names, group in ((TARGETS, Group.TARGETS), (TERMS, Group.TERMS), (WORDING, Group.WORDING)):
            if name in names:
                return group
        return Group.CRITERIA
    if name == "title":
        return Group.WORDING
    return Group.CRITERIA if place.startswith("cells") and name == "condition" else inherited


def _is_rows(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _summary(row: BaseModel) -> str:
    """A whole row in one line: what it says, without what it does not say."""
    said = [(name, _written(getattr(row, name))) for name in type(row).model_fields]
    return ", ".join(f"{name} {text}" for name, text in said if text)


def _plain(value: Any) -> Any:
    """What is compared: a list is a set."""
    return sorted(value) if isinstance(value, tuple) else value


def _written(value: Any) -> str | None:
    """As a person writes it; None for what is not said."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, tuple):
        return ", ".join(sorted(str(_written(item)) for item in value)) or "none"
    return (str(value.value) if isinstance(value, Enum) else str(value)) or None
