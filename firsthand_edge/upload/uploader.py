"""One pass over what may leave: accepted episodes whole; of rejected ones evidence and reasons, never footage.

And over what may not be at the store any more: a person took it back, or it was judged again, also while it was sent.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from firsthand_edge.errors import ChainBroken, DiskError, EpisodeDamaged, FirsthandError, StoreError, StoreRefused
from firsthand_edge.spool.episode import EVIDENCE_NAME, EVIDENCE_SIDE, FOOTAGE_SIDE, read_committed
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.states import State
from firsthand_edge.upload.store import SourceChanged, StoreFile, UploadStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from firsthand_edge.spool.episode import Committed, Episode, Standing
    from firsthand_edge.spool.spool import Spool
    from firsthand_edge.upload.store import Store

__all__ = ["Pass", "Uploader", "barred"]

CHAIN: Final = "chain"
"""Stands for the chain where a failure is of no episode."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass did. Episode ids, in order."""

    uploaded: list[str] = field(default_factory=list)
    """Accepted ones that the store now holds whole."""
    reported: list[str] = field(default_factory=list)
    """Rejected ones of which the store now holds evidence, manifest and verdict."""
    taken_back: list[str] = field(default_factory=list)
    """Withdrawn, rejected or thrown away since the store was sent something of them, which it no longer holds."""
    set_aside: list[str] = field(default_factory=list)
    """Their files were not what chain and manifest say; nothing of them was kept by the store under their names."""
    failures: list[tuple[str, FirsthandError]] = field(default_factory=list)
    """What stays and why; `chain` stands for the chain and its copy."""


class Uploader:
    """Sends what waits in a spool to one store. One process does that for one spool."""

    def __init__(self, spool: Spool, store: Store, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._spool = spool
        self._store = store
        self._stopping = stopping
        self._swept = False
        self._looked_at: dict[str, tuple[int, bool]] = {}
        """How many rows spoke of an episode, and whether the chain was whole, when the store held no more of it than it
        may."""

    def run_once(self) -> Pass:
        """Takes back what was taken back here, then sends everything that waits, oldest first.

        A store that cannot be reached or written ends the pass; one that refuses an episode, or an episode that is
        damaged, does not keep the others back. Nothing leaves while the chain is broken.

        Raises:
            KeyRotated: the rig has another key since; open the spool again. Nothing is lost, and nothing was recorded
                with the old key.
            DiskFull, DiskError: the spool cannot be listed.
        """
        done = Pass()
        self._sweep()
        if self._take_back(done) and self._send(done):
            self._mirror(done)
        return done

    def _sweep(self) -> None:
        """Once: what a sender that died left half sent. A store that cannot be swept is told by what comes next."""
        if self._swept:
            return
        with suppress(StoreError):
            for name in {*self._spool.chain.names(), *(episode.id for episode in self._spool.episodes())}:
                if EpisodeId.parse(name) is not None:
                    self._store.sweep(name)
            self._swept = True

    def _take_back(self, done: Pass) -> bool:
        """Removes from the store what may not be there any more; false when the pass is over."""
        whole = self._spool.chain.broken() is None
        for episode in [*self._spool.episodes(State.GONE), *self._spool.episodes(State.REJECTED)]:
            said = (self._spool.chain.count(episode.id), whole)
            if self._looked_at.get(episode.id) == said:
                continue
            try:
                self._retract(episode, done)
            except StoreError as exc:
                done.failures.append((episode.id, exc))
                return False
            self._looked_at[episode.id] = said
        return True

    def _retract(self, episode: Episode, done: Pass) -> None:
        sides = barred(self._spool.proved(episode), whole=self._spool.chain.broken() is None)
        held = [self._store.retract(episode.id, side=side) for side in sides]
        if any(held):
            done.taken_back.append(episode.id)

    def _send(self, done: Pass) -> bool:
        """Sends what waits; false when the pass is over."""
        waiting = [*self._spool.episodes(State.ACCEPTED), *self._spool.episodes(State.REJECTED)]
        return all(not self._stopping() and self._try(episode, done) for episode in waiting)

    def _try(self, episode: Episode, done: Pass) -> bool:
        """Sends one episode; false when the pass is over."""
        try:
            self._spool.chain.require_whole()
            self._one(episode, done)
        except UploadStopped:
            return False
        except ChainBroken as exc:
            done.failures.append((CHAIN, exc))
            return False
        except (EpisodeDamaged, SourceChanged) as exc:
            self._put_aside(episode, exc, done)
        except (StoreRefused, DiskError) as exc:
            done.failures.append((episode.id, exc))
        except StoreError as exc:
            done.failures.append((episode.id, exc))
            return False
        return True

    def _one(self, episode: Episode, done: Pass) -> None:
        watch = _Watch(self._spool, episode, self._stopping)
        try:
            if episode.state is State.ACCEPTED:
                self._send_whole(episode, watch)
                done.uploaded.append(episode.id)
            elif self._send_evidence(episode, watch):
                done.reported.append(episode.id)
        except (UploadStopped, DiskError):
            # Judged again or taken back while it was being sent: what the store holds of it by now may not stay.
            self._spool.chain.require_whole()
            if not (watch.sending and watch.over):
                raise
            self._retract(episode, done)

    def _put_aside(self, episode: Episode, why: FirsthandError, done: Pass) -> None:
        try:
            self._spool.set_aside(episode, str(why))
        except DiskError as exc:  # it was removed, or judged again, while it was being sent
            done.failures.append((episode.id, exc))
        else:
            done.set_aside.append(episode.id)
            done.failures.append((episode.id, why))

    def _send_whole(self, episode: Episode, watch: _Watch) -> None:
        committed = read_committed(episode.path, self._spool.standing(episode))
        if committed.verdict is None or not committed.verdict.accepted:
            raise EpisodeDamaged(f"{episode.path} is among the accepted, and its verdict does not accept it")
        footage = (StoreFile(n, episode.path / n, f.bytes, f.blake3) for n, f in committed.manifest.files.items())
        files = _manifest_last(footage, episode.path, committed)
        receipt = self._store.put(episode.id, files, side=FOOTAGE_SIDE, stopping=watch.stopping)
        self._spool.uploaded(episode, receipt.to_json())

    def _send_evidence(self, episode: Episode, watch: _Watch) -> bool:
        standing = self._spool.standing(episode)
        if standing.reported:
            return False
        committed = read_committed(episode.path, standing)
        held = committed.manifest.files.get(EVIDENCE_NAME)
        path = episode.path / EVIDENCE_NAME
        evidence = [] if held is None else [StoreFile(EVIDENCE_NAME, path, held.bytes, held.blake3)]
        files = _manifest_last(evidence, episode.path, committed)
        receipt = self._store.put(episode.id, files, side=EVIDENCE_SIDE, stopping=watch.stopping)
        self._spool.reported(episode, receipt.to_json())
        return True

    def _mirror(self, done: Pass) -> None:
        try:
            with self._spool.chain.locked():
                # The copy only grows: what is broken here would be in it for good.
                self._spool.chain.require_whole()
                data = self._spool.chain.path.read_bytes()
            # Its name outlives every rotation of the rig's key: a copy goes on where it was.
            self._store.mirror_chain(self._spool.chain.name, data)
        except (StoreError, DiskError) as exc:
            done.failures.append((CHAIN, exc))


class _Watch:
    """Whether an episode may go on being sent. Asked often; the chain is read only when it has changed."""

    def __init__(self, spool: Spool, episode: Episode, stopping: Callable[[], bool]) -> None:
        self._spool = spool
        self._episode = episode
        self._stopping = stopping
        self._seen: tuple[int, int, int] | None = None
        self.sending = False
        """Whether the store was given anything."""
        self._may = True

    def stopping(self) -> bool:
        """For the store: whether to stop."""
        self.sending = True
        if self._stopping():
            return True
        status = self._spool.chain.path.stat()
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        if seen != self._seen:
            self._seen = seen
            self._may = not self.over and self._spool.chain.broken() is None
        return not self._may

    @property
    def over(self) -> bool:
        """Whether it is not any more what it was sent for. Reads the chain."""
        return self._spool.proved(self._episode).state not in {self._episode.state, State.ASIDE}


def barred(standing: Standing, *, whole: bool) -> tuple[str, ...]:
    """The sides of a store on which nothing of an episode may be.

    Withdrawn: both. Judged bad, or thrown away before it was sent: no footage, whatever a sender had begun to send.
    What only expired here was sent for good, and stays there. A chain that is broken might lack the row that says that
    it was sent, so by such a one only what was withdrawn is taken back.

    Args:
        standing: What the chain says of it.
        whole: Whether the chain is not broken.
    """
    if standing.withdrawn:
        return (FOOTAGE_SIDE, EVIDENCE_SIDE)
    never_sent = not standing.uploaded and standing.state in {State.REJECTED, State.GONE}
    return (FOOTAGE_SIDE,) if whole and never_sent else ()


def _manifest_last(files: Iterable[StoreFile], folder: Path, committed: Committed) -> list[StoreFile]:
    """`files`, then the verdict, then the manifest: who finds a manifest in the store finds the rest too."""
    out = list(files)
    names = ((committed.verdict_file, committed.verdict_digest), (MANIFEST_NAME, committed.manifest_digest))
    for name, digest in names:
        if name is not None and digest is not None:
            path = folder / name
            out.append(StoreFile(name, path, path.stat().st_size, digest.removeprefix("blake3:")))
    return out
