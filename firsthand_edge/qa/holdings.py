"""What a spool or a store holds, episode by episode, from manifests, verdicts and chain: what coverage counts.

Chains are checked row by row, and each document is held against the digest that its rig's chain has of it, and against
the other; what differs, or what no chain speaks of, is not counted and is told. Nothing is judged again here: that is
the business of `episodes verify`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from firsthand_edge.qa.chains import EpisodeRows
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.reading import NotReadable, names_in, read_document_file
from firsthand_edge.qa.rigs import Rigs, Untold, read_rigs
from firsthand_edge.qa.story import Story, read_story
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.capture import Capture  # noqa: TC001 - pydantic resolves annotations at run time
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.verdict_file import verdict_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from firsthand_edge.qa.coverage import ChainCounted
    from firsthand_edge.qa.places import Place
    from firsthand_edge.spool.row import Row

__all__ = ["Held", "Holdings", "Standing", "hold"]


class Standing(StrEnum):
    """What the last judgement and the chain make of an episode."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WAITING = "waiting"
    TAKEN_BACK = "taken_back"


@dataclass(frozen=True, slots=True)
class Held:
    """The facts of one episode."""

    episode: str
    folder: Path
    spec: tuple[str, int, str]
    """Id, version, digest."""
    capture: Capture | None
    day: date | None
    """By the rig's clock: a claim."""
    standing: Standing
    validated_ns: int = 0
    """Judged ticks times period; 0 unless accepted."""
    codes: tuple[str, ...] = ()
    """Why it is rejected, each code once."""
    recapture: bool = False
    """The spec calls for it to be recorded again."""

    @property
    def cell(self) -> str | None:
        """The condition cell that it counts for."""
        return None if self.capture is None else self.capture.cell


@dataclass(slots=True)
class Holdings:
    """All that was found."""

    held: list[Held] = field(default_factory=list)
    not_counted: list[tuple[str, str]] = field(default_factory=list)
    """Folder of an episode, or file of a chain, and sentence."""
    notes: list[str] = field(default_factory=list)
    chains: list[ChainCounted] = field(default_factory=list)


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Spec(_Loose):
    id: str
    version: int
    digest: str


class _Take(_Loose):
    claimed_utc: str = ""


class _Manifest(_Loose):
    episode: str
    spec: _Spec
    take: _Take
    capture: Capture | None = None
    recovery: dict[str, Any] | None = None


class _Span(_Loose):
    ticks: int = Field(ge=0)


class _Report(_Loose):
    period_ns: int | None = Field(default=None, ge=0)
    span: _Span


class _Reason(_Loose):
    code: str
    recapture: bool | None = None


class _Verdict(_Loose):
    schema_: str = Field(alias="schema")
    episode: str
    manifest: str
    spec: str
    cell: str | None = None
    verdict: Literal["accepted", "rejected"]
    reasons: tuple[_Reason, ...] = ()
    report: _Report


def hold(places: Sequence[Place], keys: Sequence[bytes] = ()) -> Holdings:
    """Reads every episode at `places`; one that lies at several of them counts once, whatever their order.

    Args:
        places: Folders of episodes. What the longest chain of a rig says holds for all copies of its episodes.
        keys: As `read_rigs` takes them.
    """
    rigs = read_rigs((path for place in places for path in place.source.files), keys)
    out = Holdings(not_counted=list(rigs.not_counted), notes=list(rigs.notes), chains=list(rigs.chains))
    seen: dict[str, str] = {}
    copies: dict[str, str] = {}
    for place in places:
        try:
            held = _held(place, rigs)
        except (NotReadable, ValueError, RecursionError) as exc:
            out.not_counted.append((printable(place.shown), printable(_short(exc))))
            continue
        if held is None:
            continue
        if held.episode in seen:
            copies.setdefault(held.episode, printable(place.shown))
            continue
        seen[held.episode] = printable(place.shown)
        out.held.append(held)
    if copies:
        episode, at = next(iter(copies.items()))
        what = "1 episode lies" if len(copies) == 1 else f"{len(copies)} episodes lie"
        out.notes.append(f"{what} at several places, and each counts once: {episode} at {seen[episode]} and {at}")
    return out


def _held(place: Place, rigs: Rigs) -> Held | None:
    """The facts of one episode; None for one that is not sealed. Raises NotReadable or ValueError with a sentence."""
    names = names_in(place.folder)
    name = place.name
    if name is None:
        raise ValueError(f"{MANIFEST_NAME} names no episode")
    story = read_story(_told(rigs.about(name)))
    if MANIFEST_NAME not in names and not story.sealed:
        return None
    data = read_document_file(place.folder / MANIFEST_NAME)
    if len(story.sealed) != 1:
        raise Untold(_silent(place, rigs) if not story.sealed else f"it was sealed {len(story.sealed)} times")
    sealed = story.sealed[0][0]
    manifest = _Manifest.model_validate_json(data)
    if manifest.episode != name:
        raise ValueError(f"its manifest is of {manifest.episode}")
    _require(MANIFEST_NAME, data, sealed.body.get("manifest"))
    if sealed.body.get("spec") != manifest.spec.digest:
        raise ValueError(f"row {sealed.n} seals it under another spec than its manifest names")
    held = Held(
        episode=manifest.episode,
        folder=place.folder,
        spec=(manifest.spec.id, manifest.spec.version, manifest.spec.digest),
        capture=manifest.capture,
        day=date.fromisoformat(manifest.take.claimed_utc[:10]) if manifest.take.claimed_utc else None,
        standing=Standing.TAKEN_BACK if story.taken_back is not None else Standing.WAITING,
    )
    if held.standing is Standing.TAKEN_BACK or not story.judged:
        return held
    return _judged(held, manifest, story, digest_bytes(data))


def _silent(place: Place, rigs: Rigs) -> str:
    if not rigs.chains:
        beside = "no unbroken chain that was asked for lies" if place.source.files else "no chain lies"
        return f"{beside} beside it, so nothing tells that a rig sealed it"
    return "no chain that counts says that it was sealed"


def _judged(held: Held, manifest: _Manifest, story: Story, manifest_digest: str) -> Held:
    """With what the last judgement says."""
    name = verdict_name(len(story.judged))
    data = read_document_file(held.folder / name)
    row = story.judged[-1][0]
    _require(name, data, row.body.get("document"))
    verdict = _Verdict.model_validate_json(data)
    _require_bound(name, verdict, held, manifest_digest)
    if row.body.get("verdict") != verdict.verdict:
        raise ValueError(f"row {row.n} says {row.body.get('verdict')!r}, and {name} {verdict.verdict!r}")
    torn = manifest.recovery is not None or any(row.body.get("torn") is True for row, _ in story.sealed)
    if verdict.verdict == "accepted" and not torn:
        seconds = verdict.report.span.ticks * (verdict.report.period_ns or 0)
        return replace(held, standing=Standing.ACCEPTED, validated_ns=seconds)
    codes = tuple(dict.fromkeys(reason.code for reason in verdict.reasons)) or ("record.torn",)
    again = any(reason.recapture for reason in verdict.reasons)
    return replace(held, standing=Standing.REJECTED, codes=codes, recapture=again)


def _told(rows: Sequence[Row]) -> EpisodeRows:
    return EpisodeRows(file="", name="", own=False, fault=None, rows=tuple((row, None) for row in rows))


def _require_bound(name: str, verdict: _Verdict, held: Held, manifest_digest: str) -> None:
    """A verdict counts for the episode, manifest, spec and cell that it judged, and for no other."""
    expected = {"episode": held.episode, "manifest": manifest_digest, "spec": held.spec[2], "cell": held.cell}
    for what, value in expected.items():
        if what == "cell" and verdict.schema_ == "firsthand.verdict/1":
            continue  # which does not say it
        if (said := getattr(verdict, what)) != value:
            raise ValueError(f"{name} judges {what} {said}, and the manifest says {value}")


def _require(name: str, data: bytes, digest: object) -> None:
    if digest is None:
        raise ValueError(f"no row of the chain names its {name}")
    if digest_bytes(data) != digest:
        raise ValueError(f"{name} is not the document that the chain names: it was changed, or is of another episode")


def _short(exc: Exception) -> str:
    if isinstance(exc, ValidationError):
        first = exc.errors(include_url=False)[0]
        return f"a document has another form: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    return "a document is nested too deeply" if isinstance(exc, RecursionError) else str(exc)
