"""Chain files, each checked once, and what they say of single episodes with the key in force at each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from firsthand_edge.errors import DiskError
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import CheckedChain
from firsthand_edge.qa.reading import NotReadable, Withheld, read_document_file
from firsthand_edge.spec.keys import key_id
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.keyring import ring_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firsthand_edge.qa.places import Source
    from firsthand_edge.spool.chain import Row
    from firsthand_edge.spool.keyring import KeyRing

__all__ = ["CHAIN_BYTES", "Chains", "EpisodeRows", "OpenChain", "is_beginning", "proving_key", "shown_path"]

CHAIN_BYTES: Final = 1 << 30
"""Some millions of rows."""


@dataclass(frozen=True, slots=True)
class OpenChain:
    """A chain that was read, and found good or not."""

    record: CheckedChain
    rows: Mapping[str, tuple[Row, ...]]
    """By episode, in order; rows that the key in force signed."""
    ring: KeyRing | None
    """None where no row tells which keys were in force."""
    own: bool
    data: bytes

    @property
    def good(self) -> bool:
        """Nothing is wrong with it, and a key that was given proves it."""
        return not self.record.findings

    def of(self, episode: str | None) -> tuple[Row, ...]:
        """The rows of an episode."""
        return () if episode is None else self.rows.get(episode, ())


@dataclass(slots=True)
class _Beside:
    """The chains that lie beside some episodes, sorted by what they are worth."""

    good: list[OpenChain] = field(default_factory=list)
    """Unbroken ones, none of which is the beginning of another."""
    broken: list[OpenChain] = field(default_factory=list)
    used: list[OpenChain] = field(default_factory=list)
    """Broken ones that speak for an episode all the same, because no other does: it fails by them."""
    notes: list[str] = field(default_factory=list)

    @property
    def told(self) -> list[OpenChain]:
        """Those by which anything was proved, or failed."""
        return [*self.good, *(self.used if self.good else self.broken)]


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
        self._beside: dict[Source, _Beside] = {}

    @property
    def opened(self) -> tuple[OpenChain, ...]:
        """Every chain by which something was proved or failed, in order of first use."""
        return tuple(chain for beside in self._beside.values() for chain in beside.told)

    @property
    def notes(self) -> tuple[str, ...]:
        """What lies beside those, and why nothing depends on it."""
        notes = []
        for beside in self._beside.values():
            notes += beside.notes
            told = beside.told
            notes += (
                f"chain {chain.record.file} is left aside, because {beside.good[0].record.file} is unbroken: "
                f"{chain.record.findings[0]}"
                for chain in beside.broken
                if chain not in told
            )
        return tuple(notes)

    def about(self, source: Source, episode: str | None) -> EpisodeRows | None:
        """What is said of `episode`; None where there is no chain.

        Of several chains it is an unbroken one that speaks of the episode. Whoever can put a file beside an episode
        can so make no genuine one fail: a broken chain counts only where no unbroken one speaks, and then against it.
        """
        beside = self._of(source)
        speaking = [chain for chain in beside.good if chain.of(episode)]
        if not speaking and (broken := [chain for chain in beside.broken if chain.of(episode)]):
            beside.used += (chain for chain in broken[:1] if chain not in beside.used)
            speaking = broken
        chains = speaking or beside.good or beside.broken
        if not chains:
            return None
        chain = chains[0]
        ring = chain.ring
        return EpisodeRows(
            file=chain.record.file,
            name=chain.record.name,
            own=chain.own,
            fault=_fault(chain, beside, episode),
            rows=tuple((row, None if ring is None else ring.at(row.n)) for row in chain.of(episode)),
        )

    def _of(self, source: Source) -> _Beside:
        """The chains among `source` that are by one of the keys, or say that they are."""
        if source not in self._beside:
            read = (self._checked(path, own=source.own, single=len(source.files) == 1) for path in source.files)
            self._beside[source] = _sorted([chain for chain in read if chain is not None])
        return self._beside[source]

    def _checked(self, path: Path, *, own: bool, single: bool) -> OpenChain | None:
        """A file is left alone when nothing in it or in its name says that it is of one of the keys."""
        try:
            data = read_document_file(path, most=CHAIN_BYTES)
        except Withheld as exc:
            raise DiskError(f"the chain {path}: {exc}; give this user the right to read it") from exc
        except NotReadable as exc:
            return _unread(path, str(exc), own=own)
        proving = proving_key(data, self._keys)
        named = [key for key in self._keys if key_id(key) == path.stem]
        ours = [key for key in self._keys if key.hex().encode() in data]
        if proving is None and not named and not ours and not single:
            return None
        key = proving or (ours or named or list(self._keys))[0]
        checked = check_chain(data, key)
        report = checked.report
        record = CheckedChain(
            file=shown_path(path),
            name=key_id(checked.keyring.root),
            rows=report.rows,
            head=report.head,
            findings=tuple(f"line {finding.line} {finding.sentence}" for finding in report.findings),
            cannot_know=report.cannot_know,
            notes=report.notes,
        )
        return OpenChain(record, checked.rows, checked.keyring, own, data)


def proving_key(data: bytes, keys: Sequence[bytes]) -> bytes | None:
    """The earliest of `keys` (32 raw bytes each) that was the rig's by this chain; None when none of them ever was."""
    ring = ring_of(data)
    return None if ring is None else next((key.public for key in ring.keys if key.public in keys), None)


def is_beginning(data: bytes, of: bytes) -> bool:
    """Whether the chain `data` is a beginning of the chain `of`, or the same: so the two tell one history."""
    return of.startswith(data)


def shown_path(path: Path) -> str:
    """The path as a person would write it: from the working directory where it lies below that."""
    here = Path.cwd()
    return printable(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _sorted(chains: Sequence[OpenChain]) -> _Beside:
    beside = _Beside()
    for chain in sorted(chains, key=lambda chain: -len(chain.data)):
        whole = next((other for other in beside.good if is_beginning(chain.data, other.data)), None)
        if whole is not None and chain.record.name == whole.record.name:
            beside.notes.append(
                f"chain {chain.record.file} is the beginning of {whole.record.file}: "
                f"{chain.record.rows} of {whole.record.rows} rows, the same history"
            )
        elif chain.good:
            beside.good.append(chain)
        else:
            beside.broken.append(chain)
    for number, chain in enumerate(beside.good):
        beside.notes += (
            f"chains {chain.record.file} and {other.record.file} are both unbroken, by one key, and differ: "
            "whoever holds the key wrote two histories"
            for other in beside.good[:number]
            if chain.record.name == other.record.name
        )
    return beside


def _fault(chain: OpenChain, beside: _Beside, episode: str | None) -> str | None:
    """Why nothing is proved by what `chain` says of an episode; None where nothing speaks against it."""
    if not chain.good:
        return chain.record.findings[0]
    rows = chain.of(episode)
    for other in beside.good:
        if (said := other.of(episode)) and [row.line for row in said] != [row.line for row in rows]:
            return f"{other.record.file} is unbroken too, and says otherwise of this episode"
    # A row that the rig signed stays its word, whatever was done to the file around it.
    keys = {key.public for key in chain.ring.keys} if chain.ring is not None else set()
    lines = {row.line for row in rows}
    for other in beside.broken:
        for row in other.of(episode):
            if row.line not in lines and other.ring is not None and other.ring.at(row.n) in keys:
                return (
                    f"it does not hold row {row.n} ({row.event}) of {other.record.file}, "
                    "which the rig signed and which speaks of this episode"
                )
    return None


def _unread(path: Path, why: str, *, own: bool) -> OpenChain:
    record = CheckedChain(file=shown_path(path), name="", rows=0, head=None, findings=(why,), cannot_know=())
    return OpenChain(record, {}, None, own, b"")
