"""Comparing a chain with a copy that somebody took: what was seen once cannot be cut off or rewritten unnoticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from firsthand_edge.spool.row import read_row

if TYPE_CHECKING:
    from firsthand_edge.spool.keyring import KeyRing

__all__ = ["Compared", "Finding", "compare"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a chain."""

    line: int
    """Counted from 1."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Compared:
    """What a copy says of a chain."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    cannot_know: tuple[str, ...]


def compare(data: bytes, copy: bytes, ring: KeyRing) -> Compared:
    """Holds a chain against a copy of it.

    Args:
        data: The chain's bytes.
        copy: The copy's bytes.
        ring: The keys of the chain, by which rows of the copy are judged.
    """
    here, there = data.split(b"\n")[:-1], copy.split(b"\n")[:-1]
    same = _common(here, there)
    if same == len(there):
        unseen = len(here) - same
        note = f"the copy holds {len(there)} rows, all of them the same as here"
        newer = (
            f"whether rows after row {same - 1} were cut off or rewritten: the copy has not seen {unseen} of those here"
            if unseen
            else "whether rows were cut off that neither this chain nor the copy holds"
        )
        return Compared((), (note,), (newer,))
    proved = _proved(there[same], ring)
    if same == len(here):
        missing = len(there) - same
        lost = "1 row was" if missing == 1 else f"{missing} rows were"
        how = "cut off the end" if proved else "added to the copy, not signed as rows of this chain are"
        sentence = f"is missing: {lost} {how}; the copy holds {len(there)} rows"
    elif proved and _proved(here[same], ring):
        sentence = "differs from the copy, and both are signed: the holder of the key wrote two histories"
    elif proved:
        sentence = "differs from the copy, whose row is signed as it should be: it was rewritten here"
    else:
        sentence = "differs from the copy, whose row is not signed as it should be: the copy was changed"
    finding = Finding(same + 1, sentence)
    return Compared((finding,), (f"the copy holds {len(there)} rows; the first {same} are the same as here",), ())


def _common(first: list[bytes], second: list[bytes]) -> int:
    """How many lines at the beginning are equal."""
    for number, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return number
    return min(len(first), len(second))


def _proved(line: bytes, ring: KeyRing) -> bool:
    row = read_row(line)
    return row is not None and row.signed_by(ring.at(row.n))
