"""The one reader of TOML documents: every mistake in one go, each with its line.

No TOML library tells line numbers, so a mistake's line is found by parsing ever longer prefixes of the text until the
place it names exists; that work is done only when there are mistakes.
"""

from __future__ import annotations

import difflib
import tomllib
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from firsthand_edge.errors import ConfigInvalid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Locator", "parse_document", "read_file", "toml_table"]

M = TypeVar("M", bound=BaseModel)
Loc: TypeAlias = "Sequence[str | int]"

LARGEST_DOCUMENT = 1 << 20
"""Bytes; a rig file or spec larger than this is somebody's recording, not a document."""


def read_file(path: Path, *, error: type[ConfigInvalid] = ConfigInvalid) -> bytes:
    """The bytes of a document, or one sentence why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except OSError as exc:
        raise error(str(path), [f"cannot be read ({exc.strerror}); name a file that is there and readable"]) from exc
    if len(data) > LARGEST_DOCUMENT:
        raise error(str(path), [f"is larger than {LARGEST_DOCUMENT} bytes; this is not a configuration document"])
    return data


def toml_table(data: bytes, *, place: str, error: type[ConfigInvalid] = ConfigInvalid) -> dict[str, Any]:
    """Parses TOML with decimals kept as `Decimal`. Raises `error` with the line of the first syntax mistake."""
    try:
        return tomllib.loads(data.decode("utf-8"), parse_float=Decimal)
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        raise error(place, [f"line {line}: is not UTF-8; save the file as UTF-8 text"]) from exc
    except tomllib.TOMLDecodeError as exc:
        raise error(place, [f"is not TOML: {exc}"]) from exc


class Locator:
    """Finds the line of a place in a TOML document that is known to parse."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.decode("utf-8").splitlines()

    def line(self, loc: Loc) -> int | None:
        """The first line at which `loc` exists; for a missing key, the line of the table that lacks it."""
        prefix = ""
        best: int | None = None
        depth = 0
        for number, line in enumerate(self._lines, start=1):
            prefix += line + "\n"
            try:
                table = tomllib.loads(prefix)
            except tomllib.TOMLDecodeError:
                continue  # in the middle of a value that spans lines
            reached = _depth(table, loc)
            if reached > depth:
                best, depth = number, reached
                if depth == len(loc):
                    break
        return best


def _depth(table: Any, loc: Loc) -> int:
    """How many leading parts of `loc` exist in `table`."""
    for count, part in enumerate(loc):
        if not _has(table, part):
            return count
        table = table[part]
    return len(loc)


def _has(table: Any, part: str | int) -> bool:
    """Whether a parsed document has the key or the position `part` here."""
    if isinstance(table, dict):
        return part in table
    return isinstance(table, list) and isinstance(part, int) and 0 <= part < len(table)


def _without_tags(table: Any, loc: Loc) -> tuple[str | int, ...]:
    """Drops the tags that pydantic puts into the place of a tagged union: parts that the document does not have."""
    out: list[str | int] = []
    for count, part in enumerate(loc):
        last = count == len(loc) - 1
        if _has(table, part):
            table = table[part]
        elif not last:
            continue
        out.append(part)
    return tuple(out)


def _name(loc: Loc) -> str:
    """`device[2].stream[0].name`."""
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else str(part)
    return out


def _value(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _sentences(exc: ValidationError, table: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """One sentence a mistake; a misspelt key is one mistake, not a missing and an unknown one."""
    found = [(_without_tags(table, e["loc"]), e) for e in exc.errors(include_url=False)]
    missing = {loc for loc, e in found if e["type"] == "missing"}
    explained: set[tuple[str | int, ...]] = set()
    out: list[tuple[tuple[str | int, ...], str]] = []
    for loc, e in found:
        if e["type"] != "extra_forbidden":
            continue
        siblings = [str(m[-1]) for m in missing if m[:-1] == loc[:-1]]
        near = difflib.get_close_matches(str(loc[-1]), siblings, n=1, cutoff=0.6)
        if near:
            explained.add((*loc[:-1], near[0]))
            out.append((loc, f"unknown key; did you mean `{near[0]}`?"))
        else:
            out.append((loc, "unknown key; remove it or correct its name"))
    for loc, e in found:
        if e["type"] == "extra_forbidden" or loc in explained:
            continue
        if e["type"] == "missing":
            out.append((loc, "is missing; add it"))
        else:
            message = e["msg"].removeprefix("Value error, ")
            where = "" if isinstance(e["input"], dict | list) else f" (it is {_value(e['input'])})"
            out.append((loc, f"{message[:1].lower()}{message[1:]}{where}"))
    return out


def parse_document(
    data: bytes,
    model: type[M],
    *,
    place: str,
    error: type[ConfigInvalid] = ConfigInvalid,
    contradictions: Callable[[M], Sequence[tuple[Loc, str]]] | None = None,
    context: dict[str, Any] | None = None,
) -> M:
    """Validates a TOML document against `model`.

    Args:
        data: The document's bytes.
        model: The pydantic model.
        place: What to call the document in messages, mostly its path.
        error: The class to raise.
        contradictions: Checks across fields, run when the document fits the model; place and sentence of each.
        context: Handed to the model's validators, such as the folder that relative paths start from.

    Raises:
        ConfigInvalid: (or `error`) with every mistake, each with its line and place.
    """
    table = toml_table(data, place=place, error=error)
    try:
        document = model.model_validate(table, context=context)
        found = [(tuple(loc), sentence) for loc, sentence in (contradictions(document) if contradictions else ())]
        if not found:
            return document
    except ValidationError as exc:
        found = _sentences(exc, table)
    locator = Locator(data)
    lines = [(locator.line(loc) or 1, _name(loc) or "document", sentence) for loc, sentence in found]
    raise error(place, [f"line {line}: {name}: {sentence}" for line, name, sentence in sorted(lines)])
