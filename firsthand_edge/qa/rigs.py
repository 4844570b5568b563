"""The chains that a coverage relies on: of every rig its longest unbroken copy, and of nobody else anything.

A chain is held against the key that began it, or one that was given. Copies of one chain differ in length only; where
two of them differ otherwise, nothing that they say counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firsthand_edge.qa.chains import CHAIN_BYTES, is_beginning, proving_key, shown_path
from firsthand_edge.qa.coverage import ChainCounted
from firsthand_edge.qa.reading import NotReadable, read_document_file
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.keyring import ring_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.spool.chain_check import CheckedChain
    from firsthand_edge.spool.keyring import KeyRing
    from firsthand_edge.spool.row import Row

__all__ = ["Rigs", "Untold", "read_rigs"]


class Untold(ValueError):
    """No chain that can be relied on tells of an episode. The text is a sentence about it."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A chain file of a rig."""

    file: str
    data: bytes
    ring: KeyRing
    given: bytes | None
    """The key by which a person asked for it."""


@dataclass(slots=True)
class Rigs:
    """What the chains tell, all rigs together."""

    chains: list[ChainCounted] = field(default_factory=list)
    not_counted: list[tuple[str, str]] = field(default_factory=list)
    """File and sentence: chains on which nothing rests."""
    notes: list[str] = field(default_factory=list)
    _rows: list[tuple[str, Mapping[str, tuple[Row, ...]]]] = field(default_factory=list)
    """File and rows by episode, one a rig."""
    _doubts: dict[str, str] = field(default_factory=dict)
    """Episodes of which nothing counts, and why."""

    def about(self, episode: str) -> tuple[Row, ...]:
        """The rows of an episode, of one chain; empty when none speaks of it.

        Raises:
            Untold: chains contradict each other.
        """
        if episode in self._doubts:
            raise Untold(self._doubts[episode])
        speaking = [(file, rows[episode]) for file, rows in self._rows if episode in rows]
        if len(speaking) > 1:
            raise Untold(f"{speaking[0][0]} and {speaking[1][0]}, chains of different rigs, both speak of it")
        return speaking[0][1] if speaking else ()

    def add(self, copies: Sequence[_Copy]) -> None:
        """Counts one rig, of which these are all files."""
        good: list[tuple[_Copy, CheckedChain]] = []
        broken: list[tuple[_Copy, CheckedChain]] = []
        for copy in sorted(copies, key=lambda copy: (-len(copy.data), copy.file)):
            whole = next((other for other, _ in good if is_beginning(copy.data, other.data)), None)
            if whole is not None:
                self._shorter(copy, whole)
                continue
            checked = check_chain(copy.data, copy.given or copy.ring.root)
            (broken if checked.report.findings else good).append((copy, checked))
        for copy, checked in broken:
            first = checked.report.findings[0]
            self.not_counted.append(
                (copy.file, f"line {first.line} {first.sentence}; nothing that it alone says counts")
            )
        if not good:
            return
        copy, checked = good[0]
        if len(good) > 1:
            self._two_histories(copy, checked, good[1:])
            return
        self._rows.append((copy.file, checked.rows))
        self.chains.append(
            ChainCounted(
                file=copy.file,
                name=copy.ring.name,
                rows=checked.report.rows,
                head=checked.report.head,
                asked_for=copy.given is not None,
            )
        )
        for other, found in broken:
            self._doubt(copy, checked, other, found)

    def _shorter(self, copy: _Copy, whole: _Copy) -> None:
        here, there = copy.data.count(b"\n"), whole.data.count(b"\n")
        if here != there:
            self.notes.append(
                f"chain {copy.file} has {here} rows, and {whole.file} {there}, the same to begin with: "
                "the longer one decides for all copies"
            )

    def _two_histories(self, copy: _Copy, checked: CheckedChain, others: Sequence[tuple[_Copy, CheckedChain]]) -> None:
        """Both are signed, so nobody can tell which one is true."""
        for other, found in others:
            same = _common(copy.data, other.data)
            why = (
                f"differs from {copy.file} from row {same} on, and both are signed: "
                f"two histories of the rig whose key {copy.ring.name} began them, of which nothing counts"
            )
            self.not_counted.append((other.file, why))
            for episode in (*checked.rows, *found.rows):
                self._doubts[episode] = f"{copy.file} and {other.file} are two histories of its rig"

    def _doubt(self, copy: _Copy, checked: CheckedChain, other: _Copy, found: CheckedChain) -> None:
        """What the rig signed stays its word in a broken file too: of such an episode nothing counts."""
        keys = {key.public for key in checked.keyring.keys}
        for episode, rows in found.rows.items():
            known = {row.line for row in checked.rows.get(episode, ())}
            for row in rows:
                if row.line not in known and found.keyring.at(row.n) in keys:
                    self._doubts[episode] = (
                        f"{other.file}, which is broken, has row {row.n} ({row.event}) of it, signed by the rig, and "
                        f"{copy.file} has not"
                    )


def read_rigs(files: Iterable[Path], keys: Sequence[bytes] = ()) -> Rigs:
    """Reads and checks chain files.

    Args:
        files: All of them; each counts once.
        keys: Public keys, 32 raw bytes each, one of which must prove each chain; empty: the key that began it does.
    """
    out = Rigs()
    by_root: dict[bytes, list[_Copy]] = defaultdict(list)
    for path in dict.fromkeys(files):
        file = shown_path(path)
        try:
            data = read_document_file(path, most=CHAIN_BYTES)
        except NotReadable as exc:
            out.not_counted.append((file, str(exc)))
            continue
        data, _, torn = data.rpartition(b"\n")
        data += b"\n" if data else b""
        if torn:
            out.notes.append(
                f"chain {file} ends in a row without a line feed, cut off or being written: it is not counted"
            )
        ring, given = ring_of(data), proving_key(data, keys)
        if ring is None:
            out.not_counted.append((file, "is no chain: its first line is not the signed row of a key"))
        elif keys and given is None:
            out.not_counted.append((file, f"was begun by key {ring.name}, and no key of its rig was given with --key"))
        else:
            by_root[ring.root].append(_Copy(file, data, ring, given))
    for copies in by_root.values():
        out.add(copies)
    return out


def _common(one: bytes, other: bytes) -> int:
    """How many lines at the beginning are equal."""
    pairs = zip(one.split(b"\n")[:-1], other.split(b"\n")[:-1], strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), 0)
