"""The link from a rejected episode to the take that is recorded in its place; checked before anything is begun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.errors import CaptureInvalid, EpisodeDamaged, UsageError
from firsthand_edge.spool.episode import read_committed
from firsthand_edge.spool.manifest import MANIFEST_NAME, Manifest
from firsthand_edge.spool.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.spec.capture import Capture
    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spool.episode import Committed, Episode, Standing
    from firsthand_edge.spool.spool import Spool

__all__ = ["recapture_links", "recapture_mistakes", "recaptured_by", "recapturing"]

TAKEN_OVER: Final = ("task", "cell", "scene", "objects", "contributor", "consent_record", "stage", "batch")
"""What a recapture repeats unless it says otherwise. Its outcome is its own."""


def recapturing(fields: Mapping[str, Any], spool: Spool) -> dict[str, Any]:
    """`fields` of a capture, completed from the episode that it recaptures; as they are where it recaptures none.

    The episode may be named as anywhere else: by its id, the beginning of it, or its number.

    Raises:
        CaptureInvalid: that episode is not on this rig, was withdrawn or set aside, or nothing binds it.
    """
    named = fields.get("recaptures")
    if not isinstance(named, str):
        return dict(fields)
    episode, committed = _named(named, spool)
    before = committed.manifest.capture
    if before is None:
        return {**fields, "recaptures": episode.id}
    told = before.model_dump()
    taken_over = {name: told[name] for name in TAKEN_OVER if told[name] is not None}
    return {**taken_over, "attempt": before.attempt + 1, **fields, "recaptures": episode.id}


def recapture_mistakes(capture: Capture, spec: Spec, spool: Spool) -> list[str]:
    """Why `capture` cannot stand in the place of the episode that it names, as sentences; empty when it can.

    That episode must be rejected under this very spec, for at least one reason for which the spec calls for recapture,
    be of the same task and cell, and not be recaptured by an accepted episode yet. Its footage may be gone, thrown away
    or expired; what was withdrawn is not spoken of again.
    """
    if capture.recaptures is None:
        return []
    try:
        episode, committed = _named(capture.recaptures, spool)
    except CaptureInvalid as exc:
        return list(exc.mistakes)
    return [f"recaptures: {sentence}" for sentence in _faults(capture, spec, spool, episode, committed)]


def _faults(capture: Capture, spec: Spec, spool: Spool, episode: Episode, committed: Committed) -> Iterator[str]:
    manifest, verdict, before = committed.manifest, committed.verdict, committed.manifest.capture
    if verdict is None:
        yield f"{episode.id} is {episode.state} and not judged yet"
    elif verdict.accepted:
        yield f"{episode.id} was accepted; only a rejected episode is recaptured"
    else:
        codes = list(dict.fromkeys(str(reason["code"]) for reason in verdict.reasons))
        if not any(spec.reject.recaptures(code) for code in codes):
            yield f"{episode.id} was rejected for {', '.join(codes)}, and the spec does not call for recapture of that"
    if manifest.spec.digest != spec.digest:
        yield (
            f"{episode.id} was recorded under spec {manifest.spec.id} version {manifest.spec.version} "
            f"({manifest.spec.digest}), which is a different collection"
        )
    if before is None:
        yield f"nothing tells what {episode.id} captured"
    else:
        for what, was, is_ in (("task", before.task, capture.task), ("cell", before.cell, capture.cell)):
            if was != is_:
                yield f"{episode.id} is of {what} {was}, and this take is of {what} {is_}"
        if capture.attempt <= before.attempt:
            yield f"{episode.id} is attempt {before.attempt}, and this take says attempt {capture.attempt}"
    done = recaptured_by(episode.id, spool)
    if done is not None:
        yield f"{episode.id} is recaptured already, by {done}, which was accepted"


def recaptured_by(episode: str, spool: Spool) -> str | None:
    """The accepted episode that stands in the place of `episode`, itself or by way of rejected recaptures.

    One that was accepted and taken back since stands in nobody's place.
    """
    links = recapture_links(spool)
    todo, seen = [episode], {episode}
    while todo:
        for name, accepted in links.get(todo.pop(), []):
            if accepted:
                return name
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return None


def recapture_links(spool: Spool) -> dict[str, list[tuple[str, bool]]]:
    """For each episode that is recaptured, by which ones, in their order, and whether each stands accepted."""
    links: dict[str, list[tuple[str, bool]]] = {}
    for later in spool.episodes():
        for before, accepted in _link(later, spool):
            links.setdefault(before, []).append((later.id, accepted))
    return links


def _link(later: Episode, spool: Spool) -> Iterator[tuple[str, bool]]:
    """What `later` recaptures, and whether it stands accepted; nothing where it recaptures none or cannot be read."""
    try:
        data = (later.path / MANIFEST_NAME).read_bytes()
        if b'"recaptures":null' in data or later.state is State.ASIDE:
            return
        manifest = Manifest.read(data)
        if manifest.capture is None or manifest.capture.recaptures is None:
            return
        standing = spool.standing(later)
        verdict = read_committed(later.path, standing).verdict
    except (OSError, ValueError, EpisodeDamaged):
        return
    # What only expired here is at the store. What was withdrawn or thrown away is as if it had never been accepted.
    kept = not standing.withdrawn and (standing.uploaded or not standing.removed)
    yield manifest.capture.recaptures, kept and verdict is not None and verdict.accepted


def _named(name: str, spool: Spool) -> tuple[Episode, Committed]:
    try:
        episode = spool.find(name)
        standing = spool.standing(episode)
        _require_told(episode, standing)
        return episode, read_committed(episode.path, standing)
    except (UsageError, EpisodeDamaged) as exc:
        raise CaptureInvalid([f"recaptures: {exc}"]) from exc


def _require_told(episode: Episode, standing: Standing) -> None:
    """Whether what an episode captured may be spoken of. Raises UsageError."""
    if standing.withdrawn:
        raise UsageError(f"{episode.id} was withdrawn; nothing of it is taken over, say what this take captures")
    if State.ASIDE in {standing.state, episode.state}:
        raise UsageError(f"{episode.id} was set aside, so nothing tells what it captured")
