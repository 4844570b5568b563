"""One pass over what may leave: accepted episodes whole; of rejected ones evidence and reasons, never footage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firsthand_edge.errors import DiskError, EpisodeDamaged, FirsthandError, StoreError, StoreRefused
from firsthand_edge.spool.episode import EVIDENCE_NAME, EVIDENCE_SIDE, FOOTAGE_SIDE, read_committed
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.states import State
from firsthand_edge.upload.store import SourceChanged, StoreFile, UploadStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from firsthand_edge.spool.episode import Committed, Episode
    from firsthand_edge.spool.spool import Spool
    from firsthand_edge.upload.store import Store

__all__ = ["Pass", "Uploader"]


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did. Episode ids, in order."""

    uploaded: list[str] = field(default_factory=list)
    """Accepted ones that the store now holds whole."""
    reported: list[str] = field(default_factory=list)
    """Rejected ones of which the store now holds evidence, manifest and verdict."""
    set_aside: list[str] = field(default_factory=list)
    """Their files were not what chain and manifest say; nothing of them was kept by the store under their names."""
    failures: list[tuple[str, FirsthandError]] = field(default_factory=list)
    """What stays and why; `chain` stands for the copy of the chain."""


class Uploader:
    """Sends what waits in a spool to one store. One process does that for one spool."""

    def __init__(self, spool: Spool, store: Store, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._spool = spool
        self._store = store
        self._stopping = stopping

    def run_once(self) -> Pass:
        """Sends everything that waits, oldest first.

        A store that cannot be reached or written ends the pass; one that refuses an episode, or an episode that is
        damaged, does not keep the others back.

        Raises:
            KeyRotated: the rig has another key since; open the spool again. Nothing is lost, and nothing was recorded
                with the old key.
            DiskFull, DiskError: the spool cannot be listed.
        """
        done = Pass()
        waiting = [*self._spool.episodes(State.ACCEPTED), *self._spool.episodes(State.REJECTED)]
        for episode in waiting:
            if self._stopping() or not self._try(episode, done):
                return done
        self._mirror(done)
        return done

    def _try(self, episode: Episode, done: Pass) -> bool:
        """Sends one episode; false when the pass is over."""
        try:
            if episode.state is State.ACCEPTED:
                self._send_whole(episode)
                done.uploaded.append(episode.id)
            elif self._send_evidence(episode):
                done.reported.append(episode.id)
        except UploadStopped:
            return False
        except (EpisodeDamaged, SourceChanged) as exc:
            self._put_aside(episode, exc, done)
        except (StoreRefused, DiskError) as exc:
            done.failures.append((episode.id, exc))
        except StoreError as exc:
            done.failures.append((episode.id, exc))
            return False
        return True

    def _put_aside(self, episode: Episode, why: FirsthandError, done: Pass) -> None:
        try:
            self._spool.set_aside(episode, str(why))
        except DiskError as exc:  # it was removed, or judged again, while it was being sent
            done.failures.append((episode.id, exc))
        else:
            done.set_aside.append(episode.id)
            done.failures.append((episode.id, why))

    def _send_whole(self, episode: Episode) -> None:
        committed = read_committed(episode.path, self._spool.standing(episode))
        if committed.verdict is None or not committed.verdict.accepted:
            raise EpisodeDamaged(f"{episode.path} is among the accepted, and its verdict does not accept it")
        footage = (StoreFile(n, episode.path / n, f.bytes, f.blake3) for n, f in committed.manifest.files.items())
        files = _manifest_last(footage, episode.path, committed)
        receipt = self._store.put(episode.id, files, side=FOOTAGE_SIDE, stopping=self._stopping)
        self._spool.uploaded(episode, receipt.to_json())

    def _send_evidence(self, episode: Episode) -> bool:
        standing = self._spool.standing(episode)
        if standing.reported:
            return False
        committed = read_committed(episode.path, standing)
        held = committed.manifest.files.get(EVIDENCE_NAME)
        path = episode.path / EVIDENCE_NAME
        evidence = [] if held is None else [StoreFile(EVIDENCE_NAME, path, held.bytes, held.blake3)]
        files = _manifest_last(evidence, episode.path, committed)
        receipt = self._store.put(episode.id, files, side=EVIDENCE_SIDE, stopping=self._stopping)
        self._spool.reported(episode, receipt.to_json())
        return True

    def _mirror(self, done: Pass) -> None:
        try:
            with self._spool.chain.locked():
                data = self._spool.chain.path.read_bytes()
            # Its name outlives every rotation of the rig's key: a copy goes on where it was.
            self._store.mirror_chain(self._spool.chain.name, data)
        except (StoreError, DiskError) as exc:
            done.failures.append(("chain", exc))


def _manifest_last(files: Iterable[StoreFile], folder: Path, committed: Committed) -> list[StoreFile]:
    """`files`, then the verdict, then the manifest: who finds a manifest in the store finds the rest too."""
    out = list(files)
    names = ((committed.verdict_file, committed.verdict_digest), (MANIFEST_NAME, committed.manifest_digest))
    for name, digest in names:
        if name is not None and digest is not None:
            path = folder / name
            out.append(StoreFile(name, path, path.stat().st_size, digest.removeprefix("blake3:")))
    return out
