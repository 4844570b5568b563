"""The plan file: which takes are to be made, in their order, and what each captures (TOML, `firsthand.plan/1`).

These models are its documentation, field by field; docs/capture.md shows it to people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from firsthand_edge.config import mistakes_of, read_file, toml_table, with_lines
from firsthand_edge.errors import PlanInvalid
from firsthand_edge.spec.canonical import digest
from firsthand_edge.spec.capture import Capture, capture_faults
from firsthand_edge.spec.fields import Name, Number, Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal
    from pathlib import Path

    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.fields import Loc

__all__ = ["Plan", "PlanEntry", "PlanFile", "PlannedTake", "load_plan", "parse_plan"]


class PlanEntry(Capture):
    """One `[[takes]]`: what a take captures, and how often and how long it is recorded."""

    times: Annotated[int, Field(ge=1, le=10_000)] = 1
    """So many takes of the same, one after the other."""
    seconds: Annotated[Number, Field(gt=0, le=86_400)] | None = None
    """Length of the take where nobody ends it otherwise."""

    def capture(self, *, stage: str | None, batch: str | None) -> Capture:
        """The capture, with what the head of the plan says for all of its takes."""
        fields = self.model_dump(exclude={"times", "seconds"}, exclude_unset=True)
        general = {"stage": stage, "batch": batch}
        return Capture.model_validate({**{k: v for k, v in general.items() if v is not None}, **fields})


class PlanFile(Section):
    """The whole document."""

    schema_: Annotated[Literal["firsthand.plan/1"], Field(alias="schema")]
    """What this document is; always `firsthand.plan/1`."""
    spec: Annotated[str, Field(pattern=r"^blake3:[0-9a-f]{64}$")] | None = None
    """Digest of the spec that the plan was written for. Given, the spec in force must be that one."""
    stage: Literal["pilot", "production"] | None = None
    """Of every take that does not say its own."""
    batch: Name | None = None
    """Of every take that does not say its own."""
    takes: Annotated[tuple[PlanEntry, ...], Field(strict=False)]
    """`[[takes]]`, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class PlannedTake:
    """One take that is to be made."""

    capture: Capture
    seconds: Decimal | None
    position: int
    """From 1, every repetition counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that fits its spec."""

    name: str
    """What to call it: mostly the name of its file."""
    takes: tuple[PlannedTake, ...]

    def digest(self, count: int) -> str:
        """Over what the first `count` takes capture, however the plan is formatted and whatever follows them."""
        return digest([take.capture.model_dump(mode="python") for take in self.takes[:count]])


def parse_plan(data: bytes, spec: Spec, *, place: str, name: str | None = None) -> Plan:
    """Reads a plan file and holds every take against the spec.

    Args:
        data: TOML, UTF-8.
        spec: The contract in force.
        place: What to call the document in messages, mostly its path.
        name: What to call the plan from then on; `place` without it.

    Raises:
        PlanInvalid: with every mistake, of form and against the spec, each with its line.
    """
    table = toml_table(data, place=place, error=PlanInvalid)
    found = list(_faults(table, spec))
    try:
        file = PlanFile.model_validate(table)
    except ValidationError as exc:
        raise PlanInvalid(place, with_lines(data, [*mistakes_of(exc, table), *found])) from exc
    if found:
        raise PlanInvalid(place, with_lines(data, found))
    takes = [
        (entry.capture(stage=file.stage, batch=file.batch), entry.seconds)
        for entry in file.takes
        for _ in range(entry.times)
    ]
    return Plan(
        name or place,
        tuple(PlannedTake(capture, seconds, position) for position, (capture, seconds) in enumerate(takes, start=1)),
    )


def load_plan(path: Path, spec: Spec) -> Plan:
    """Reads the plan file at `path`. Raises PlanInvalid as `parse_plan` does, also when it cannot be read."""
    return parse_plan(read_file(path, error=PlanInvalid), spec, place=str(path), name=path.name)


def _faults(table: Mapping[str, Any], spec: Spec) -> Iterator[tuple[Loc, str]]:
    """What a plan says that the spec does not allow, as far as it can be read."""
    bound = table.get("spec")
    if isinstance(bound, str) and len(bound) == len(spec.digest) and bound != spec.digest:
        yield (
            ("spec",),
            f"the spec in force is `{spec.id}` version {spec.version}, {spec.digest}; see whether each take still fits",
        )
    entries = table.get("takes")
    if entries == []:
        yield ("takes",), "is empty; add the takes that are to be made"
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, dict):
            continue
        for field, sentence in capture_faults(entry, spec):
            yield ("takes", place, field), sentence
        times = entry.get("times")
        if isinstance(times, int) and times > 1 and "recaptures" in entry:
            yield ("takes", place, "times"), "an episode is recaptured by one take; remove times"
