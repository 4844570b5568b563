"""What a take captures: said at its start by a plan file or by command, held against the spec, bound in the manifest.

Every value is an id of the spec (a task, a cell, a value of an axis); where an axis is open, other ids are allowed too.
A contributor is an id, never a name.
"""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from firsthand_edge.config import WRONG_KIND
from firsthand_edge.errors import CaptureInvalid
from firsthand_edge.spec.fields import Name, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.spec.collection import Axis
    from firsthand_edge.spec.document import Spec

__all__ = ["MISSING", "Capture", "EpisodeName", "Outcome", "capture_faults", "capture_mistakes", "parse_capture"]

MISSING: Final = "is missing; say it"
LONGEST_SHOWN: Final = 60
"""Characters of a wrong value that a sentence shows."""
EpisodeName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}-[0-9]{8,19}-[0-9a-f]{16}$")]
"""The id of an episode: rig, counter, 64 random bits."""


class Outcome(StrEnum):
    """How an attempt at a task ended, by the spec's definitions of that task."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEAR_MISS = "near_miss"
    UNSTATED = "unstated"
    """Nobody said."""


def _outcome(value: object) -> object:
    """Takes the word for the outcome; any other word is told all four."""
    if isinstance(value, str) and value in {outcome.value for outcome in Outcome}:
        return Outcome(value)
    raise ValueError(f"must be one of {', '.join(outcome.value for outcome in Outcome)}")


def _differ(names: tuple[str, ...]) -> tuple[str, ...]:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"has {', '.join(doubled)} twice; name each once")
    return names


class Capture(Section):
    """What one take captures."""

    task: Name
    """Id of the task that is attempted."""
    cell: Name
    """Id of the condition cell that the footage counts for."""
    scene: Name
    """Where: a value of the axis `scenes`."""
    objects: Annotated[tuple[Name, ...], Field(strict=False, max_length=100), AfterValidator(_differ)] = ()
    """With what: values of the axis `objects`."""
    contributor: Name
    """Who wears the rig: a value of the axis `participants`."""
    consent_record: Name | None = None
    """The contributor's release that covers this session; nothing is checked against it here."""
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """1 for a demonstration's first attempt; one more each time that it is recaptured."""
    outcome: Annotated[Outcome, BeforeValidator(_outcome)] = Outcome.UNSTATED
    """As expected at the start; whoever stops the take may say otherwise."""
    recaptures: EpisodeName | None = None
    """The rejected episode in whose place this one is recorded."""
    stage: Literal["pilot", "production"] | None = None
    batch: Name | None = None

    def tags(self) -> dict[str, tuple[str, ...]]:
        """The capture's values by axis of the spec."""
        return {
            "scenes": (self.scene,),
            "tasks": (self.task,),
            "objects": self.objects,
            "participants": (self.contributor,),
        }


def capture_faults(fields: Mapping[str, Any], spec: Spec) -> list[tuple[str, str]]:
    """What of a capture does not fit the spec: name of the field and sentence of each.

    Args:
        fields: Fields of a `Capture`. Those that are absent, or no text, are another check's to tell.
        spec: The contract in force.
    """
    return list(_faults(fields, spec))


def capture_mistakes(capture: Capture, spec: Spec) -> list[str]:
    """Every way in which `capture` does not fit `spec`, as sentences that begin with the field; empty when it fits."""
    return [f"{field}: {sentence}" for field, sentence in _faults(capture.model_dump(), spec)]


def parse_capture(fields: Mapping[str, Any], spec: Spec) -> Capture:
    """The capture that `fields` say, held against the spec.

    Args:
        fields: As a plan's entry or a command gives them.
        spec: The contract in force.

    Raises:
        CaptureInvalid: with every mistake, of form and against the spec, at once.
    """
    mistakes = [f"{field}: {sentence}" for field, sentence in _faults(fields, spec)]
    try:
        capture = Capture.model_validate(dict(fields))
    except ValidationError as exc:
        mistakes = [*(_sentence(error) for error in exc.errors(include_url=False)), *mistakes]
    else:
        if not mistakes:
            return capture
    raise CaptureInvalid(mistakes)


def _sentence(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "capture"
    if error["type"] == "missing":
        return f"{place}: {MISSING}"
    if error["type"] == "extra_forbidden":
        known = ", ".join(Capture.model_fields)
        return f"{place}: is not known; a capture has {known}"
    message = WRONG_KIND.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    value = repr(error["input"])
    shown = value if len(value) <= LONGEST_SHOWN else f"{value[: LONGEST_SHOWN - 3]}..."
    return f"{place}: {message[:1].lower()}{message[1:]} (it is {shown})"


def _faults(fields: Mapping[str, Any], spec: Spec) -> Iterator[tuple[str, str]]:
    task, cell = _text(fields.get("task")), _text(fields.get("cell"))
    if task is not None and spec.task(task) is None:
        yield "task", f"the spec has no task `{task}`; {_choice(task, [known.id for known in spec.tasks])}"
    elif task is not None:
        yield from _listed("task", task, "tasks", spec.axes.tasks)
    if cell is not None:
        yield from _cell(cell, task, spec)
    axes = spec.axes
    for field, name, axis in (("scene", "scenes", axes.scenes), ("contributor", "participants", axes.participants)):
        value = _text(fields.get(field))
        if value is not None:
            yield from _listed(field, value, name, axis)
    objects = fields.get("objects")
    for value in objects if isinstance(objects, list | tuple) else ():
        if isinstance(value, str):
            yield from _listed("objects", value, "objects", axes.objects)


def _cell(name: str, task: str | None, spec: Spec) -> Iterator[tuple[str, str]]:
    cell = spec.cell(name)
    if cell is None:
        yield "cell", f"the spec has no cell `{name}`; {_choice(name, [known.id for known in spec.cells])}"
    elif cell.tasks is not None and task is not None and spec.task(task) is not None and task not in cell.tasks:
        yield "cell", f"`{name}` does not take task `{task}`; its tasks are {', '.join(cell.tasks)}"


def _listed(field: str, value: str, name: str, axis: Axis) -> Iterator[tuple[str, str]]:
    listed = [known.id for known in axis.values]
    if not axis.open and value not in listed:
        yield field, f"`{value}` is not on the axis `{name}` of the spec, which is closed; {_choice(value, listed)}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _choice(value: str, known: list[str]) -> str:
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"it has {', '.join(known)}" if known else "it lists none"
