"""One episode of the spool: its folder, and what the chain says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from firsthand_edge.durable import disk_errors
from firsthand_edge.errors import EpisodeDamaged
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.signing import read_document, signature_fault
from firsthand_edge.spool.manifest import MANIFEST_NAME, Manifest
from firsthand_edge.spool.row import Event
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import VerdictDocument, verdict_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from firsthand_edge.spool.row import Row

__all__ = [
    "EVIDENCE_NAME",
    "EVIDENCE_SIDE",
    "FOOTAGE_SIDE",
    "Committed",
    "Episode",
    "Standing",
    "file_fault",
    "read_committed",
    "read_signed",
    "receipt_name",
]

EVIDENCE_NAME: Final = "evidence.mcap"
FOOTAGE_SIDE: Final = "episodes"
"""Side of the store for accepted episodes, whole."""
EVIDENCE_SIDE: Final = "rejected"
"""Side of the store for what may be known of rejected episodes: never footage."""
BLOCK_BYTES: Final = 1 << 20
JUDGING: Final = frozenset({Event.JUDGED, Event.REJUDGED})
REMOVALS: Final = frozenset({Event.WITHDRAWN, Event.DISCARDED, Event.EXPIRED})


def receipt_name(number: int) -> str:
    """The file of the n-th receipt of a store: `receipt.json`, `receipt-2.json`, ..."""
    return "receipt.json" if number == 1 else f"receipt-{number}.json"


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode as it lies on the disk. A step returns a new one; the old one's path is then stale."""

    id: str
    state: State
    path: Path


@dataclass(frozen=True, slots=True)
class Standing:
    """What the chain says of an episode. The default: nothing yet."""

    state: State | None = None
    """Where it belongs; None before it is sealed."""
    manifest: str | None = None
    """Digest of `manifest.json`."""
    verdict: str | None = None
    """Digest of the last verdict."""
    judgements: int = 0
    torn: bool = False
    """It was recovered after a crash, and is never accepted, however often it is judged."""
    reported: bool = False
    """The store holds evidence, manifest and last verdict of a rejected episode."""
    receipts: int = 0
    """How often a store gave a receipt."""
    rejected: bool = False
    """It was rejected at some time."""
    uploaded: bool = False
    """A store has proved to hold all of it."""
    removed: bool = False
    """Its footage is removed; nothing brings it back."""
    withdrawn: bool = False
    """Its evidence is removed too."""

    @property
    def sealed(self) -> bool:
        """Whether a manifest binds it."""
        return self.manifest is not None

    @property
    def known(self) -> bool:
        """Whether the chain says where it belongs."""
        return self.state is not None

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Standing:
        """Where the rows of one episode, in order, have brought it."""
        standing = cls()
        for row in rows:
            standing = standing.after(row)
        return standing

    def takes(self, row: Row) -> bool:
        """Whether `row` can come next. An old one that somebody appended once more is signed as it should be."""
        if self.removed or row.event in REMOVALS:
            return True
        if row.event == Event.SEALED:
            return not self.sealed
        number = row.body.get("judgement")
        return row.event not in JUDGING or (type(number) is int and number == self.judgements + 1)

    def after(self, row: Row) -> Standing:
        """The standing once `row` is counted too; this one where it cannot come next.

        After a removal only a withdrawal still changes anything.
        """
        event, body = row.event, row.body
        if event in REMOVALS:
            withdrawn = self.withdrawn or event == Event.WITHDRAWN
            return replace(self, state=State.GONE, removed=True, withdrawn=withdrawn)
        if self.removed or not self.takes(row):
            return self
        if event == Event.SEALED:
            torn = body.get("torn") is True
            state = State.TORN if torn else State.SEALED
            return replace(self, state=state, manifest=str(body.get("manifest")), torn=torn)
        if event in JUDGING:
            accepted = body.get("verdict") == "accepted"
            return replace(
                self,
                state=State.ACCEPTED if accepted else State.REJECTED,
                verdict=str(body.get("document")),
                judgements=self.judgements + 1,
                reported=False,
                rejected=self.rejected or not accepted,
            )
        if event == Event.UPLOADED:
            whole = body.get("side") == FOOTAGE_SIDE
            return replace(
                self,
                state=State.UPLOADED if whole else self.state,
                reported=self.reported or not whole,
                uploaded=self.uploaded or whole,
                receipts=self.receipts + 1,
            )
        return replace(self, state=State.ASIDE) if event == Event.DAMAGED else self


@dataclass(frozen=True, slots=True)
class Committed:
    """The documents that the chain binds an episode to, read and found to be those."""

    manifest: Manifest
    manifest_digest: str
    verdict: VerdictDocument | None
    verdict_digest: str | None
    verdict_file: str | None
    """Name of the last verdict's file."""


def read_committed(folder: Path, standing: Standing) -> Committed:
    """Reads manifest and last verdict and holds them against the chain.

    Raises:
        EpisodeDamaged: one of them is absent, or not byte for byte what the chain names.
        DiskError: one cannot be read.
    """
    if not standing.sealed:
        raise EpisodeDamaged(f"episode {folder.name} is not sealed, so no manifest binds it; restart to recover it")
    data = _bound(folder / MANIFEST_NAME, standing.manifest)
    try:
        manifest = Manifest.read(data)
    except ValueError as exc:
        raise EpisodeDamaged(f"{folder / MANIFEST_NAME} {exc}; keep it and ask whoever keeps the rig") from exc
    if standing.verdict is None:
        return Committed(manifest, digest_bytes(data), None, None, None)
    name = verdict_name(standing.judgements)
    text = _bound(folder / name, standing.verdict)
    try:
        verdict = VerdictDocument.read(text)
    except ValueError as exc:
        raise EpisodeDamaged(f"{folder / name} {exc}; judge the episode again from its evidence") from exc
    if verdict.manifest != digest_bytes(data):
        raise EpisodeDamaged(f"{folder / name} judges another manifest ({verdict.manifest}); judge the episode again")
    return Committed(manifest, digest_bytes(data), verdict, digest_bytes(text), name)


def _bound(path: Path, digest: str | None) -> bytes:
    with disk_errors(f"{path.name} of episode {path.parent.name} cannot be read"):
        data = path.read_bytes() if path.is_file() else None
    if data is None:
        raise EpisodeDamaged(f"{path} is not there, and the chain says it is; look for it before anything is removed")
    if digest_bytes(data) != digest:
        what = "is empty" if not data else "is all zeros" if not any(data) else f"has digest {digest_bytes(data)}"
        raise EpisodeDamaged(f"{path} {what}, and the chain says {digest}; nothing of this episode leaves the rig")
    return data


def read_signed(path: Path, public_key: bytes) -> bytes:
    """The bytes of a signed document that the chain does not know yet.

    Raises:
        ValueError: with a sentence, unless it is whole and signed by `public_key` (32 raw bytes).
    """
    data = path.read_bytes()
    if not data:
        raise ValueError("is empty")
    if not any(data):
        raise ValueError(f"is {len(data)} zeros")
    fault = signature_fault(read_document(data), public_key)
    if fault is not None:
        raise ValueError(fault)
    return data


def file_fault(folder: Path, manifest: Manifest, *, contents: bool) -> str | None:
    """What is wrong with the files that `manifest` lists, as a sentence; None when nothing is.

    Args:
        folder: The episode's folder.
        manifest: Names, sizes and digests.
        contents: Read every byte; False compares sizes only.

    Raises:
        DiskError: a file cannot be read.
    """
    for name, expected in manifest.files.items():
        path = folder / name
        with disk_errors(f"{name} of episode {folder.name} cannot be read"):
            if "/" in name or not path.is_file():
                return f"{path} is not there"
            size = path.stat().st_size
            if size != expected.bytes:
                return f"{path} has {size} bytes and its manifest says {expected.bytes}"
            if contents and (found := _blake3(path)) != expected.blake3:
                return f"{path} has digest blake3:{found} and its manifest says blake3:{expected.blake3}"
    return None


def _blake3(path: Path) -> str:
    hasher = blake3()
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()
