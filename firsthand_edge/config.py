"""The one reader of TOML documents: every mistake in one go, each with its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from firsthand_edge.errors import ConfigInvalid
from firsthand_edge.toml_lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["WRONG_KIND", "mistakes_of", "parse_document", "read_file", "toml_table", "with_lines"]

M = TypeVar("M", bound=BaseModel)
Loc: TypeAlias = "Sequence[str | int]"

LARGEST_DOCUMENT = 1 << 20
"""Bytes; a rig file or spec larger than this is somebody's recording, not a document."""
MOST_MISTAKES = 100
"""Sentences that are shown; whoever has more than this wants to know how many, not to read them."""


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
        text = data.decode("utf-8")
        if DEEP_KEY.search(text):
            raise error(place, [f"is not a configuration document: a key has more than {MOST_PARTS} parts"])
        return tomllib.loads(text, parse_float=Decimal)
    except UnicodeDecodeError as exc:
        line = data[: exc.start].count(b"\n") + 1
        raise error(place, [f"line {line}: is not UTF-8; save the file as UTF-8 text"]) from exc
    except tomllib.TOMLDecodeError as exc:
        raise error(place, [f"is not TOML: {exc}"]) from exc
    except RecursionError as exc:
        raise error(place, ["is not a configuration document: its values are nested too deeply"]) from exc
    except ValueError as exc:  # an integer of thousands of digits
        raise error(place, ["holds a whole number of thousands of digits; correct it"]) from exc


MOST_PARTS = 64
DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)""" + f"{{{MOST_PARTS}}}")
"""Dotted keys that no person writes; the parser's time grows with the square of their length."""
DECIMAL = re.compile(r"Decimal\('([^']*)'\)")
"""How pydantic writes a decimal limit in its sentences."""


WRONG_KIND = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "model_type": "must be a table",
}
"""A value of the wrong kind, by pydantic's name for the mistake, in words of the document."""


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
    text = str(value) if isinstance(value, Decimal | date | time) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def mistakes_of(exc: ValidationError, table: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Place and sentence of each mistake; a misspelt key is one mistake, not a missing and an unknown one."""
    found = [(_without_tags(table, e["loc"]), e) for e in exc.errors(include_url=False)]
    missing = {loc for loc, e in found if e["type"] == "missing"}
    within = {loc[:depth] for loc, _ in found for depth in range(len(loc))}
    explained: set[tuple[str | int, ...]] = set()
    out: list[tuple[tuple[str | int, ...], str]] = []
    for loc, e in found:
        if e["type"] != "extra_forbidden":
            continue
        siblings = [str(m[-1]) for m in missing if m[:-1] == loc[:-1]] if len(out) < MOST_MISTAKES else []
        near = difflib.get_close_matches(str(loc[-1]), siblings, n=1, cutoff=0.6)
        if near:
            explained.add((*loc[:-1], near[0]))
            out.append((loc, f"unknown key; did you mean `{near[0]}`?"))
        else:
            out.append((loc, "unknown key; remove it or correct its name"))
    for loc, e in found:
        if e["type"] == "extra_forbidden" or loc in explained:
            continue
        if e["type"] == "too_short" and loc in within:
            continue  # rows that are there and faulty are told one by one
        if e["type"] == "missing":
            out.append((loc, "is missing; add it"))
        else:
            message = WRONG_KIND.get(e["type"]) or DECIMAL.sub(r"\1", e["msg"].removeprefix("Value error, "))
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
        found = mistakes_of(exc, table)
    raise error(place, with_lines(data, found))


def with_lines(data: bytes, found: Sequence[tuple[Loc, str]]) -> list[str]:
    """`line 12: device[2].name: sentence` for each place and sentence, in the order of the lines of `data`.

    Beyond `MOST_MISTAKES` only their number is told.
    """
    numbers = lines_of(data.decode("utf-8"), [tuple(loc) for loc, _ in found])
    lines = sorted((line, _name(loc) or "document", text) for line, (loc, text) in zip(numbers, found, strict=True))
    shown = [f"line {line}: {name}: {text}" for line, name, text in lines[:MOST_MISTAKES]]
    more = len(lines) - len(shown)
    return [*shown, f"and {more} more; mend these first"] if more else shown
