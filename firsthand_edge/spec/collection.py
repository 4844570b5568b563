"""What is collected: from whom, which tasks, under which conditions, how varied, and what must stay in frame."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, TypeAlias

from pydantic import Field

from firsthand_edge.spec.fields import Line, Name, Number, Section, Text

__all__ = ["Axes", "Axis", "AxisValue", "CaptureTerms", "Cell", "Geometry", "Population", "Screening", "Task"]

Hours: TypeAlias = Annotated[Number, Field(gt=0, le=Decimal(1_000_000))]


class Screening(Section):
    """One question of the recruitment (`[[population.screening]]`)."""

    field: Name
    """Name of the field in the screening record."""
    accepts: Text
    """Which answers pass."""


class Population(Section):
    """Whose hands are recorded (`[population]`)."""

    name: Line
    """The named population that recruitment screens against."""
    screening: Annotated[tuple[Screening, ...], Field(strict=False, min_length=1, max_length=200)]
    """What is asked of everyone before the first take."""


class Geometry(Section):
    """What must stay in a camera's frame (`[[capture.geometry]]`)."""

    stream: Name
    """A required stream of the document."""
    keep: Text
    """What it must show for as long as the take runs."""


class CaptureTerms(Section):
    """How it is recorded (`[capture]`)."""

    tier: Line
    """The capture tier that was ordered: which rig, how many cameras, which labels."""
    geometry: Annotated[tuple[Geometry, ...], Field(strict=False, min_length=1, max_length=200)]
    """`[[capture.geometry]]`: what must stay in frame, a stream each."""


class Task(Section):
    """One task (`[[tasks]]`), named by verb and noun, with what decides its outcome."""

    id: Name
    """As takes and coverage name it."""
    verb: Line
    """What the hands do: `pick up`."""
    noun: Line
    """What they do it to: `cup`."""
    success: Text
    """What must be true at the end for the attempt to be a success."""
    failure: Text
    """What makes it a failure."""
    near_miss: Text
    """What is neither: nearly done, or done only after a correction."""

    @property
    def title(self) -> str:
        """Verb and noun: `pick up cup`."""
        return f"{self.verb} {self.noun}"


class Cell(Section):
    """One condition cell (`[[cells]]`): hours are budgeted here and never as one total."""

    id: Name
    """As takes and coverage name it."""
    title: Line
    """For people."""
    condition: Text
    """What the place must be like while a take of this cell runs."""
    hours: Hours
    """Budget of validated hours."""
    staffing_weeks: Annotated[Number, Field(gt=0, le=Decimal(1000))]
    """Weeks that it takes to find places of this condition, staff them and record there: the cell's schedule."""
    tasks: Annotated[tuple[Name, ...], Field(strict=False, min_length=1, max_length=1000)] | None = None
    """Tasks that are recorded in this cell; without it, every task of the document."""


class AxisValue(Section):
    """One value of a diversity axis (`[[axes.scenes.values]]` and its like)."""

    id: Name
    """As takes and coverage name it."""
    title: Line = ""
    """For people; without it, the id."""
    hours: Hours | None = None
    """Target of validated hours; without it, none of its own."""


class Axis(Section):
    """One diversity axis: which values there are and how many different ones are wanted."""

    values: Annotated[tuple[AxisValue, ...], Field(strict=False, max_length=10_000)] = ()
    """The values that are named up front."""
    distinct: Annotated[int, Field(ge=1, le=1_000_000)]
    """The least number of different values with validated footage."""
    open: bool
    """Whether values that are not named here are allowed too."""


class Axes(Section):
    """The four diversity axes (`[axes.*]`). All four are named: one left out would be a gap that nobody sees."""

    scenes: Axis
    """Places: `kitchen-1`, `workshop-3`."""
    tasks: Axis
    """Tasks; its values are ids of `[[tasks]]`."""
    objects: Axis
    """Things that are handled; a take may hold several."""
    participants: Axis
    """Contributors, by their pseudonyms."""
