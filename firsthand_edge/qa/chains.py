"""Chain files, each checked once, and what they say of single episodes with the key in force at each row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import CheckedChain
from firsthand_edge.qa.reading import NotReadable, read_document_file
from firsthand_edge.spec.keys import key_id
from firsthand_edge.spool.chain_check import check_chain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firsthand_edge.qa.places import Source
    from firsthand_edge.spool.chain import Row
    from firsthand_edge.spool.keyring import KeyRing

__all__ = ["Chains", "EpisodeRows", "OpenChain"]

CHAIN_BYTES: Final = 1 << 30
"""Some millions of rows."""


@dataclass(frozen=True, slots=True)
class OpenChain:
    """A chain that was read, and found good or not."""

    record: CheckedChain
    rows: Mapping[str, tuple[Row, ...]]
    """By episode, in order."""
    ring: KeyRing | None
    """None where no row tells which keys were in force."""
    own: bool


@dataclass(frozen=True, slots=True)
class EpisodeRows:
    """What one chain says of one episode."""

    file: str
    name: str
    own: bool
    """The rig's own chain, not a copy of it."""
    fault: str | None
    """What is wrong with the chain as a whole; None when nothing is."""
    rows: tuple[tuple[Row, bytes | None], ...]
    """Each row and the public key in force there."""


class Chains:
    """The chains of all episodes of one proof; each file is read and checked once."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Nothing is read yet.

        Args:
            keys: Public keys, 32 raw bytes each; one of a chain's ring must be among them.
        """
        self._keys: Final = tuple(keys)
        self._open: dict[Source, list[OpenChain]] = {}

    @property
    def opened(self) -> tuple[OpenChain, ...]:
        """Every chain that was checked, in order of first use."""
        return tuple(chain for chains in self._open.values() for chain in chains)

    def of(self, source: Source) -> list[OpenChain]:
        """The chains among `source` that are by one of the keys, or say that they are."""
        if source not in self._open:
            self._open[source] = [
                chain
                for path in source.files
                if (chain := self._checked(path, own=source.own, single=len(source.files) == 1)) is not None
            ]
        return self._open[source]

    def about(self, source: Source, episode: str | None) -> EpisodeRows | None:
        """What is said of `episode`; None where there is no chain.

        Of several chains it is the one that speaks of the episode. A chain with another's rows in it is found when it
        is checked: every row is signed.
        """
        chains = self.of(source)
        if not chains:
            return None
        speaking = [chain for chain in chains if episode is not None and episode in chain.rows]
        chain = (speaking or chains)[0]
        fault = chain.record.findings[0] if chain.record.findings else None
        if len(speaking) > 1:
            fault = fault or f"{speaking[1].record.file} speaks of the same episode"
        rows = chain.rows.get(episode, ()) if episode is not None else ()
        ring = chain.ring
        return EpisodeRows(
            file=chain.record.file,
            name=chain.record.name,
            own=chain.own,
            fault=fault,
            rows=tuple((row, None if ring is None else ring.at(row.n)) for row in rows),
        )

    def _checked(self, path: Path, *, own: bool, single: bool) -> OpenChain | None:
        """A file is left alone when nothing in it or in its name says that it is of one of the keys."""
        try:
            data = read_document_file(path, most=CHAIN_BYTES)
        except NotReadable as exc:
            return _unread(path, str(exc), own=own)
        named = [key for key in self._keys if key_id(key) == path.stem]
        ours = [key for key in self._keys if key.hex().encode() in data]
        if not named and not ours and not single:
            return None
        key = (ours or named or list(self._keys))[0]
        checked = check_chain(data, key)
        report = checked.report
        record = CheckedChain(
            file=_shown(path),
            name=key_id(checked.keyring.root),
            rows=report.rows,
            head=report.head,
            findings=tuple(f"line {finding.line} {finding.sentence}" for finding in report.findings),
            cannot_know=report.cannot_know,
            notes=report.notes,
        )
        return OpenChain(record, checked.rows, checked.keyring, own)


def _unread(path: Path, why: str, *, own: bool) -> OpenChain:
    record = CheckedChain(file=_shown(path), name="", rows=0, head=None, findings=(why,), cannot_know=())
    return OpenChain(record, {}, None, own)


def _shown(path: Path) -> str:
    """The path as a person would write it: from the working directory where it lies below that."""
    here = Path.cwd()
    return printable(str(path.relative_to(here) if path.is_relative_to(here) else path))
