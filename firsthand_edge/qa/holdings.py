"""What a spool or a store holds, episode by episode, from manifests, verdicts and chain: what coverage counts.

Each document is held against the digest that the chain has of it; one that differs is not counted and is told. Nothing
is proved here: signatures are the business of `episodes verify`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from firsthand_edge.qa.chains import CHAIN_BYTES, EpisodeRows
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.reading import NotReadable, names_in, read_document_file
from firsthand_edge.qa.story import Story, read_story
from firsthand_edge.qa.verdicts import judgements
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.capture import Capture  # noqa: TC001 - pydantic resolves annotations at run time
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.row import read_rows
from firsthand_edge.spool.verdict_file import verdict_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.qa.places import Place, Source
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
    """Folder and sentence."""
    notes: list[str] = field(default_factory=list)


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
    verdict: str
    reasons: tuple[_Reason, ...] = ()
    report: _Report


def hold(places: Sequence[Place]) -> Holdings:
    """Reads every episode at `places`; one that lies at two of them counts once."""
    out = Holdings()
    logs: dict[Source, dict[str, list[Row]]] = {}
    seen: dict[str, str] = {}
    for place in places:
        if place.source not in logs:
            logs[place.source] = _rows(place.source, out)
        try:
            held = _held(place, logs[place.source])
        except (NotReadable, ValueError, RecursionError) as exc:
            out.not_counted.append((printable(place.shown), printable(_short(exc))))
            continue
        if held is None:
            continue
        if held.episode in seen:
            out.notes.append(f"{held.episode} lies at {seen[held.episode]} too, and counts once")
            continue
        seen[held.episode] = printable(place.shown)
        out.held.append(held)
    return out


def _rows(source: Source, out: Holdings) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for path in source.files:
        try:
            data = read_document_file(path, most=CHAIN_BYTES)
        except NotReadable as exc:
            out.notes.append(printable(f"{path}: {exc}"))
            continue
        for row in read_rows(data):
            if row.episode is not None:
                rows.setdefault(row.episode, []).append(row)
    if not source.files:
        out.notes.append("no chain lies beside some episodes: the last verdict in their folder counts")
    return rows


def _held(place: Place, log: Mapping[str, list[Row]]) -> Held | None:
    """The facts of one episode; None for one that is not sealed. Raises NotReadable or ValueError with a sentence."""
    names = names_in(place.folder)
    told = bool(place.source.files)
    story = read_story(_told(log.get(place.folder.name, ()))) if told else Story()
    if MANIFEST_NAME not in names and not story.sealed:
        return None
    data = read_document_file(place.folder / MANIFEST_NAME)
    manifest = _Manifest.model_validate_json(data)
    if story.known and manifest.episode != place.folder.name:
        raise ValueError(f"its manifest is of {manifest.episode}")
    if story.known:
        _require(MANIFEST_NAME, data, story.sealed[0][0].body.get("manifest") if story.sealed else None)
    held = Held(
        episode=manifest.episode,
        folder=place.folder,
        spec=(manifest.spec.id, manifest.spec.version, manifest.spec.digest),
        capture=manifest.capture,
        day=date.fromisoformat(manifest.take.claimed_utc[:10]) if manifest.take.claimed_utc else None,
        standing=Standing.TAKEN_BACK if story.taken_back is not None else Standing.WAITING,
    )
    if held.standing is Standing.TAKEN_BACK:
        return held
    number = len(story.judged) if story.known else max(judgements(names), default=0)
    return held if number == 0 else _judged(held, manifest, story, number)


def _judged(held: Held, manifest: _Manifest, story: Story, number: int) -> Held:
    name = verdict_name(number)
    data = read_document_file(held.folder / name)
    if story.known:
        _require(name, data, story.judged[number - 1][0].body.get("document"))
    verdict = _Verdict.model_validate_json(data)
    torn = manifest.recovery is not None or any(row.body.get("torn") is True for row, _ in story.sealed)
    if verdict.verdict == "accepted" and not torn:
        seconds = verdict.report.span.ticks * (verdict.report.period_ns or 0)
        return replace(held, standing=Standing.ACCEPTED, validated_ns=seconds)
    codes = tuple(dict.fromkeys(reason.code for reason in verdict.reasons)) or ("record.torn",)
    again = any(reason.recapture for reason in verdict.reasons)
    return replace(held, standing=Standing.REJECTED, codes=codes, recapture=again)


def _told(rows: Sequence[Row]) -> EpisodeRows:
    return EpisodeRows(file="", name="", own=False, fault=None, rows=tuple((row, None) for row in rows))


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
