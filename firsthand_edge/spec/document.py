"""The skill spec: one TOML document that says what is collected, from whom, and what rejects it.

The models of this room document it field by field: `Spec` here, its sections in `streams`, `rules`, `collection` and
`terms`. Every limit is **the greatest value that passes**: a figure equal to its limit is good, one above it rejects.
Times are written in milliseconds and held as decimals; the properties named `*_ns` are the integers that everything
computes with. The order of a list never matters.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, ValidationError

from firsthand_edge.config import mistakes_of, read_file, toml_table, with_lines
from firsthand_edge.errors import SpecInvalid
from firsthand_edge.spec.canonical import canonical_bytes, digest_bytes
from firsthand_edge.spec.collection import (  # noqa: TC001 - pydantic resolves annotations at run time
    Axes,
    CaptureTerms,
    Cell,
    Population,
    Task,
)
from firsthand_edge.spec.contradictions import contradictions
from firsthand_edge.spec.fields import Line, Loc, Name, Section, Text, ms_to_ns
from firsthand_edge.spec.parts import Parts
from firsthand_edge.spec.placeholders import placeholders
from firsthand_edge.spec.rules import RejectRule, Rules
from firsthand_edge.spec.streams import StreamSpec, SyncSpec
from firsthand_edge.spec.terms import (  # noqa: TC001 - pydantic resolves annotations at run time
    AcceptanceTest,
    CalibrationLimits,
    ConsentTerms,
    Delivery,
    Licence,
    Retention,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["SCHEMA", "Loc", "Rules", "Spec", "StreamSpec", "SyncSpec", "load_spec", "ms_to_ns", "parse_spec"]

SCHEMA: Final = "firsthand.spec/1"


class Spec(Section):
    """The whole document. What it says is what `digest` covers; how it is formatted is not."""

    schema_: Annotated[Literal["firsthand.spec/1"], Field(alias="schema")]
    """`firsthand.spec/1`: which form of document this is."""
    id: Name
    """Name of the collection's spec; stays the same from version to version."""
    title: Line
    """One line for people."""
    version: Annotated[int, Field(ge=1, le=2**31)]
    """Raised by one whenever anything in the document changes."""
    gap: Text | None = None
    """Which gap in an existing mix of data this collection fills; None when it stands alone."""
    population: Population
    """`[population]`."""
    capture: CaptureTerms
    """`[capture]`."""
    tasks: Annotated[tuple[Task, ...], Field(strict=False, min_length=1, max_length=1000)]
    """`[[tasks]]`, in any order."""
    cells: Annotated[tuple[Cell, ...], Field(strict=False, min_length=1, max_length=1000)]
    """`[[cells]]`, in any order."""
    axes: Axes
    """`[axes.scenes]`, `[axes.tasks]`, `[axes.objects]`, `[axes.participants]`."""
    streams: Annotated[tuple[StreamSpec, ...], Field(strict=False, min_length=1, max_length=256)]
    """`[[streams]]`, in any order."""
    sync: SyncSpec = SyncSpec()
    """`[sync]`."""
    rules: Rules = Rules()
    """`[rules]`."""
    reject: RejectRule
    """`[reject]`."""
    acceptance: AcceptanceTest
    """`[acceptance]`."""
    calibration: CalibrationLimits
    """`[calibration]`."""
    delivery: Delivery
    """`[delivery]`."""
    licence: Licence
    """`[licence]`."""
    consent: ConsentTerms
    """`[consent]`."""
    retention: Retention
    """`[retention]`."""

    @property
    def canonical(self) -> bytes:
        """RFC 8785 bytes: every default filled in, every list in the order of its items' own bytes."""
        return canonical_bytes(_unordered(self.model_dump(mode="python", by_alias=True)))

    @property
    def digest(self) -> str:
        """`blake3:<hex>` over `canonical`.

        Comments, white space, the order of keys and of every list, and `2.0` against `2.00` do not change it; a changed
        word or criterion does, also when a later version of this software changed a default.
        """
        return _digest_of(self)

    def stream(self, name: str) -> StreamSpec | None:
        """The stream of that name, None when the spec does not know it."""
        return next((stream for stream in self.streams if stream.name == name), None)

    def task(self, id_: str) -> Task | None:
        """The task of that id, None when the spec does not know it."""
        return next((task for task in self.tasks if task.id == id_), None)

    def cell(self, id_: str) -> Cell | None:
        """The cell of that id, None when the spec does not know it."""
        return next((cell for cell in self.cells if cell.id == id_), None)

    @property
    def required(self) -> tuple[StreamSpec, ...]:
        """The streams that are judged."""
        return tuple(stream for stream in self.streams if stream.required)

    def contradictions(self) -> list[tuple[Loc, str]]:
        """What cannot be true at once: place and sentence of each, all of them."""
        return contradictions(Parts.of(self))


@lru_cache(maxsize=16)  # asked for at every episode
def _digest_of(spec: Spec) -> str:
    return digest_bytes(spec.canonical)


def _unordered(value: object) -> object:
    """Every list of a spec is a set, so its items stand in the order of their canonical bytes."""
    if isinstance(value, dict):
        return {key: _unordered(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return sorted((_unordered(inner) for inner in value), key=canonical_bytes)
    return value


def parse_spec(data: bytes, *, place: str) -> Spec:
    """Reads a spec document.

    Args:
        data: TOML, UTF-8.
        place: What to call the document in messages, mostly its path.

    Raises:
        SpecInvalid: with every mistake, every contradiction and every placeholder, each with its line.
    """
    found = _parsed(data)
    if isinstance(found, Spec):
        return found
    if isinstance(found, SpecInvalid):
        raise SpecInvalid(place, found.mistakes)
    raise SpecInvalid(place, with_lines(data, found))


def load_spec(path: Path) -> Spec:
    """Reads the spec document at `path`. Raises SpecInvalid as `parse_spec` does, also when it cannot be read."""
    return parse_spec(read_file(path, error=SpecInvalid), place=str(path))


@lru_cache(maxsize=16)  # thousands of episodes are judged against one document
def _parsed(data: bytes) -> Spec | SpecInvalid | Sequence[tuple[Loc, str]]:
    """The document; or why it is not TOML; or place and sentence of everything that is wrong with it."""
    try:
        table = toml_table(data, place="the spec", error=SpecInvalid)
    except SpecInvalid as exc:
        return exc
    open_places = dict(placeholders(table))
    try:
        spec = Spec.model_validate(table)
    except ValidationError as exc:
        found = mistakes_of(exc, table)
        prefixes = {place[:depth] for place in open_places for depth in range(len(place) + 1)}
        found += contradictions(Parts.read(table, filled_in=lambda place: place not in prefixes))
    else:
        if not open_places:
            found = spec.contradictions()
            return found or spec
        found = []
    return [(place, sentence) for place, sentence in found if tuple(place) not in open_places] + [*open_places.items()]
