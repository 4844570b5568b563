"""The spool: every move of an episode is made here.

A step is: write what belongs to it, fsync, append its row to the chain, rename the folder, fsync both folders. The
chain is held from the first to the last, so two processes take steps one after the other; `restart` finishes a step
that a crash cut short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.durable import disk_errors, fsync_folder, make_folder, move_new, write_new
from firsthand_edge.errors import ConfigInvalid, DiskError, EpisodeDamaged, KeyRotated, UsageError
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import RIG, KeyPair, mend_public, private_path
from firsthand_edge.spec.signing import document_bytes, sign_document
from firsthand_edge.spool.chain import CHAIN_NAME, Chain, Event
from firsthand_edge.spool.episode import (
    EVIDENCE_SIDE,
    FOOTAGE_SIDE,
    Committed,
    Episode,
    Standing,
    file_fault,
    read_committed,
    receipt_name,
)
from firsthand_edge.spool.identity import EpisodeId, next_counter
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.reject_log import reject_row
from firsthand_edge.spool.removal import purge, require_removable
from firsthand_edge.spool.rotation import finish_rotation, unfinished
from firsthand_edge.spool.states import State, may_move
from firsthand_edge.spool.verdict_file import verdict_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.spool.chain import Appender, Row
    from firsthand_edge.spool.manifest import Manifest
    from firsthand_edge.spool.verdict_file import VerdictDocument

__all__ = ["Spool", "open_spool"]

ADOPTED: Final = ("digest", "signers", "throw_away")
"""What makes a spec another one to record under. Only another digest is another collection."""


def open_spool(state_dir: Path, *, create: bool) -> Spool:
    """The spool of a state directory, with the rig's key beside it.

    Args:
        state_dir: Holds `spool/` and `keys/`.
        create: Make what is not there, on a rig's first start. A key is never made beside a chain that another signed.
            Either way a rotation of the key that a crash cut short is finished.

    Raises:
        UsageError: there is no spool, and none is to be made.
        ConfigInvalid: the key is absent, unreadable, or not the one in force.
        KeyRotated: the key is one that was in force before.
        DiskFull, DiskError: the disk does not obey.
    """
    root, keys = state_dir / "spool", state_dir / "keys"
    if not create and not root.is_dir():
        raise UsageError(f"{state_dir} holds no spool; name the state directory of a rig with --state")
    chain = root / CHAIN_NAME
    with disk_errors(f"{chain} cannot be read"):
        first = create and not chain.exists() and not private_path(keys).exists()
    if first:
        return Spool(root, KeyPair.load_or_create(keys))
    said: list[str] = []
    if unfinished(keys):
        said = finish_rotation(keys, chain)
    while True:
        key = KeyPair.load(keys, RIG)
        try:
            spool = Spool(root, key, said=said)
        except (ConfigInvalid, KeyRotated):
            if KeyPair.load(keys, RIG).public == key.public:
                raise
            continue  # it was rotated between the two looks
        mend_public(keys, key)
        return spool


class Spool:
    """The episodes of one rig, in one folder. Any number of processes may hold one; one of them records."""

    def __init__(self, root: Path, key: KeyPair, *, said: Sequence[str] = ()) -> None:
        """Makes the folders that are not there.

        Args:
            root: The folder.
            key: The rig's key, which signs every row and document from now on.
            said: What was found and mended on the way here; the next `restart` reports it.

        Raises:
            ConfigInvalid: the chain is another key's, or does not prove whose it is.
            KeyRotated: the chain was continued by another key since.
            DiskFull, DiskError: the folders cannot be made, the chain cannot be read.
        """
        self.root: Final = root
        self.key: Final = key
        self.chain: Final = Chain(root / CHAIN_NAME, key)
        self.said: Final = list(said)
        with disk_errors(f"the spool {root} cannot be set up"):
            for state in State:
                make_folder(root / state)
        mended = self.chain.require_key()
        if mended is not None:
            self.said.append(mended)

    def begin(self, rig: str) -> Episode:
        """A new, empty episode in `recording`; its number is durable before its folder exists.

        Raises:
            UsageError: the rig id cannot stand in a file name.
            DiskFull, DiskError: nothing was begun.
        """
        EpisodeId.new(rig, 0)  # a bad rig id takes no number
        # Folders may have been taken away and the chain may have been lost; what either knows is not numbered again.
        known = (*self._names(), *self.chain.names())
        seen = max((number for name in known if (number := _counter(name)) is not None), default=0)
        name = str(EpisodeId.new(rig, next_counter(self.root / "counter", seen=seen)))
        path = self.root / State.RECORDING / name
        with disk_errors(f"the folder of episode {name} cannot be made"):
            path.mkdir()
            fsync_folder(path.parent)
        return Episode(name, State.RECORDING, path)

    def seal(self, episode: Episode, manifest: Manifest) -> Episode:
        """Binds an episode whose files are closed and durable: to `sealed`; a torn one stays in `torn`.

        Raises:
            UsageError: the manifest is of another episode.
            EpisodeDamaged: a file that the manifest lists is absent or of another size.
            DiskFull, DiskError: the episode is where it was; call again, or `restart`.
        """
        if manifest.episode != episode.id:
            raise UsageError(f"the manifest of {manifest.episode} cannot seal {episode.id}; make its own")
        data = manifest.document(self.key)
        with self.chain.locked() as chain:
            standing = self._standing(episode)
            if episode.state not in {State.RECORDING, State.TORN} or standing.sealed:
                raise DiskError(f"episode {episode.id} is sealed already ({standing.state}); list the episodes again")
            fault = file_fault(episode.path, manifest, contents=False)
            if fault is not None:
                raise EpisodeDamaged(f"episode {episode.id} cannot be sealed: {fault}; restart to recover it as torn")
            self._write(episode.path, MANIFEST_NAME, data)
            return self.append_sealed(chain, episode, manifest, digest_bytes(data))

    def append_sealed(self, chain: Appender, episode: Episode, manifest: Manifest, digest: str) -> Episode:
        """The second half of `seal`: row and move. `chain` is held and `manifest.json` is durable."""
        torn = episode.state is State.TORN or manifest.recovery is not None
        captured = manifest.capture
        body = {
            "cell": None if captured is None else captured.cell,
            "manifest": digest,
            "spec": manifest.spec.digest,
            "take": manifest.take.number,
            "task": None if captured is None else captured.task,
            "torn": torn,
        }
        chain.append(Event.SEALED, episode.id, body)
        return self.move(episode, State.TORN if torn else State.SEALED)

    def judge_done(self, episode: Episode, verdict: VerdictDocument) -> Episode:
        """Keeps a verdict and moves the episode to `accepted` or `rejected`. An episode may be judged again.

        Raises:
            UsageError: the verdict is of another episode, manifest or spec, or accepts a torn episode.
            EpisodeDamaged: the episode's documents are not those of the chain.
            ChainBroken: the verdict accepts, and the chain is not whole; the episode waits where it is.
            DiskFull, DiskError: the episode is where it was; call again, or `restart`.
        """
        with self.chain.locked() as chain:
            standing = self._standing(episode)
            committed = read_committed(episode.path, standing)
            self.check_verdict(episode, standing, committed, verdict)
            if verdict.accepted:
                self.chain.require_whole()
            data = verdict.document(self.key)
            self._write(episode.path, verdict_name(standing.judgements + 1), data)
            return self.append_judged(chain, episode, verdict, digest_bytes(data), standing.judgements + 1)

    def check_verdict(
        self, episode: Episode, standing: Standing, committed: Committed, verdict: VerdictDocument
    ) -> None:
        """Whether `verdict` may be passed on `episode`. Raises UsageError with the sentence why not."""
        target = State.ACCEPTED if verdict.accepted else State.REJECTED
        if (verdict.episode, verdict.manifest) != (episode.id, committed.manifest_digest):
            raise UsageError(
                f"the verdict judges {verdict.episode} ({verdict.manifest}), not {episode.id}; judge this one"
            )
        if committed.verdict is None and verdict.spec != committed.manifest.spec.digest:
            raise UsageError(
                f"episode {episode.id} is bound to spec {committed.manifest.spec.digest}; judge it by that one"
            )
        if standing.torn and verdict.accepted:
            raise UsageError(f"episode {episode.id} was torn by a crash and is never accepted; record the take again")
        if target is not episode.state and not may_move(episode.state, target):
            raise UsageError(f"an episode that is {episode.state} cannot become {target}")

    def append_judged(
        self, chain: Appender, episode: Episode, verdict: VerdictDocument, digest: str, judgement: int
    ) -> Episode:
        """The second half of `judge_done`: row and move. `chain` is held and the verdict's file is durable."""
        body = {
            "document": digest,
            "judgement": judgement,
            "manifest": verdict.manifest,
            "reasons": [reject_row(reason, cell=verdict.cell) for reason in verdict.reasons],
            "spec": verdict.spec,
            "verdict": verdict.verdict,
        }
        chain.append(Event.JUDGED if judgement == 1 else Event.REJUDGED, episode.id, body)
        return self.move(episode, State.ACCEPTED if verdict.accepted else State.REJECTED)

    def uploaded(self, episode: Episode, receipt: Mapping[str, Any]) -> Episode:
        """An accepted episode that the store has proved to hold moves to `uploaded`; `receipt` is the proof's record.

        Raises:
            DiskError: it is not accepted any more (judged again, or withdrawn), or the step failed; call again.
        """
        return self._leave(episode, receipt, side=FOOTAGE_SIDE, state=State.ACCEPTED, target=State.UPLOADED)

    def reported(self, episode: Episode, receipt: Mapping[str, Any]) -> Episode:
        """The store holds evidence, manifest and verdict of a rejected episode, which stays where it is.

        Raises:
            DiskError: it is not rejected any more, or the step failed; call again.
        """
        return self._leave(episode, receipt, side=EVIDENCE_SIDE, state=State.REJECTED, target=State.REJECTED)

    def _leave(
        self, episode: Episode, receipt: Mapping[str, Any], *, side: str, state: State, target: State
    ) -> Episode:
        data = document_bytes(sign_document(receipt, self.key))
        with self.chain.locked() as chain:
            standing = self._standing(episode)
            if standing.state is not state:
                raise DiskError(f"episode {episode.id} is {standing.state} and not {state} any more; list the episodes")
            self._write(episode.path, receipt_name(standing.receipts + 1), data)
            body = {
                "manifest": standing.manifest,
                "receipt": digest_bytes(data),
                "side": side,
                "store": str(receipt.get("store", "")),
            }
            chain.append(Event.UPLOADED, episode.id, body)
            return self.move(episode, target)

    def set_aside(self, episode: Episode, why: str) -> Episode:
        """Takes an episode out of the way whose files are not what they should be. Nothing is deleted.

        Raises:
            DiskError: it is not where it was any more.
            DiskFull, DiskError: the episode is where it was.
        """
        with self.chain.locked() as chain:
            self._require_there(episode)
            return self.append_damaged(chain, episode, why)

    def append_damaged(self, chain: Appender, episode: Episode, why: str) -> Episode:
        """`set_aside` while the chain is held."""
        chain.append(Event.DAMAGED, episode.id, {"was": episode.state, "why": why})
        return self.move(episode, State.ASIDE)

    def remove(self, episode: Episode, event: Event, why: str) -> Episode:
        """Removes an episode's footage, for good: it goes to `gone`, where manifest and verdicts stay.

        The row is durable before anything is deleted; after a crash `restart` deletes the rest. An episode that is
        being recorded is removed by the process that records it, once nobody writes it.

        Args:
            episode: As it lies on the disk.
            event: WITHDRAWN (consent; its evidence goes too), DISCARDED (a person threw it away), EXPIRED (retention).
            why: A sentence for the row.

        Raises:
            UsageError: the event removes no episode in this state (`removal.REMOVABLE`).
            EpisodeDamaged: its retention cannot have ended, because a row that speaks of it was changed.
            ChainBroken: as above, because the chain is not whole.
            DiskFull, DiskError: where no row was written the episode is where it was; else `restart` goes on.
        """
        with self.chain.locked() as chain:
            self._require_there(episode)
            # Rows that were changed count for nothing, and must not keep a person's footage on the disk either.
            proved, changed = self._rows(episode)
            standing = Standing.of(proved)
            if changed and event is Event.EXPIRED:
                raise _changed(episode, changed[0])
            if event is Event.EXPIRED:
                self.chain.require_whole()
            if not changed and (standing.state or episode.state) is not episode.state:
                raise _elsewhere(episode, standing)
            require_removable(episode.id, episode.state, standing, event)
            chain.append(event, episode.id, {"manifest": standing.manifest, "was": episode.state, "why": why})
            gone = self.move(episode, State.GONE)
            purge(self.root, episode.id, withdrawn=standing.withdrawn or event is Event.WITHDRAWN)
            return gone

    def adopt_spec(self, identity: Mapping[str, Any]) -> Row | None:
        """Records under which spec takes are recorded from now on, and who signed it, unless a row says just that.

        Args:
            identity: `id`, `version`, `digest`, `signers` (short names of keys), `throw_away`.

        Returns:
            The row of the spec before, when it was another one: what follows is a different collection.

        Raises:
            DiskFull, DiskError: nothing was recorded.
        """
        with self.chain.locked() as chain:
            before = self.chain.last_spec()
            same = before is not None and before.body.get("digest") == identity["digest"]
            # Who signed it, or that a throw-away key did, is part of what takes from now on are recorded under.
            if before is None or any(before.body.get(name) != identity[name] for name in ADOPTED):
                chain.append(Event.SPEC, None, identity)
            return None if same else before

    def episodes(self, state: State | None = None) -> list[Episode]:
        """Episodes in one state or in all, by counter. Raises DiskError when a folder cannot be read."""
        found = [
            Episode(name, where, self.root / where / name)
            for where in (State if state is None else (state,))
            for name in self._listed(where)
            if _counter(name) is not None and _is_folder(self.root / where / name)
        ]
        return sorted(found, key=lambda episode: (_counter(episode.id) or 0, episode.id))

    def find(self, text: str) -> Episode:
        """The episode that `text` means: its id, a beginning that only one id has, or its counter.

        Raises:
            UsageError: none or several are meant.
        """
        everything = self.episodes()
        found = [episode for episode in everything if episode.id == text]
        found = found or [e for e in everything if text.isdecimal() and text.isascii() and _counter(e.id) == int(text)]
        found = found or [episode for episode in everything if text and episode.id.startswith(text)]
        if len(found) > 1 and len({episode.id for episode in found}) == 1:  # it lies in two folders
            belongs = self.proved(found[0]).state
            found = [episode for episode in found if episode.state is belongs] or found
        if not found:
            raise UsageError(f"there is no episode {text!r} in {self.root}; see `firsthand-edge episodes list`")
        if len(found) > 1:
            names = ", ".join(episode.id for episode in found[:3])
            raise UsageError(f"{text!r} means {len(found)} episodes ({names}, ...); say more of its id")
        return found[0]

    def standing(self, episode: Episode) -> Standing:
        """What the chain says of `episode`; a row that was changed after it was signed counts for nothing.

        Raises:
            EpisodeDamaged: such a row is there.
            DiskError: the chain cannot be read.
        """
        proved, changed = self._rows(episode)
        if changed:
            raise _changed(episode, changed[0])
        return Standing.of(proved)

    def proved(self, episode: Episode) -> Standing:
        """What the rows that count say of `episode`, whatever else is there: for taking back, never for sending.

        Raises:
            DiskError: the chain cannot be read.
        """
        return Standing.of(self._rows(episode)[0])

    def _rows(self, episode: Episode) -> tuple[list[Row], list[Row]]:
        """Rows of `episode` that the key in force signed, and those that were changed or cannot come where they are."""
        ring = self.chain.keyring()
        proved: list[Row] = []
        changed: list[Row] = []
        standing = Standing()
        for row in self.chain.rows(episode.id):
            if row.signed_by(ring.at(row.n)) and standing.takes(row):
                proved.append(row)
                standing = standing.after(row)
            else:
                changed.append(row)
        return proved, changed

    def committed(self, episode: Episode) -> Committed:
        """The documents that the chain binds `episode` to.

        Raises:
            EpisodeDamaged: they are not what the chain says, or nothing binds the episode yet.
        """
        return read_committed(episode.path, self.standing(episode))

    def move(self, episode: Episode, target: State) -> Episode:
        """Renames the folder of an episode. Its row is durable; `chain` is held. Only steps and `restart` call this."""
        if target is episode.state:
            return episode
        path = self.root / target / episode.id
        with disk_errors(f"episode {episode.id} cannot be moved from {episode.state} to {target}"):
            try:
                move_new(episode.path, path)
            except FileExistsError as exc:
                raise DiskError(f"episode {episode.id} is in {target} already; run a restart to set one aside") from exc
        return Episode(episode.id, target, path)

    def _standing(self, episode: Episode) -> Standing:
        """`standing`, and the folder is where the caller believes it."""
        standing = self.standing(episode)
        if not episode.path.is_dir() or (standing.state or episode.state) is not episode.state:
            raise _elsewhere(episode, standing)
        return standing

    def _require_there(self, episode: Episode) -> None:
        if not episode.path.is_dir():
            raise _elsewhere(episode, self.proved(episode))

    def _write(self, folder: Path, name: str, data: bytes) -> None:
        """Writes a document that no row names yet; one that an unfinished step left is moved out of the way."""
        path = folder / name
        with disk_errors(f"{name} of episode {folder.name} cannot be written"):
            if path.exists():
                if path.read_bytes() == data:
                    fsync_folder(folder)
                    return
                self.out_of_the_way(path)
            write_new(path, data)

    def out_of_the_way(self, path: Path) -> Path:
        """Renames a file that nothing names to `<name>.aside`, `<name>.aside-2`, ... in its own folder."""
        number = 1
        while True:
            target = path.with_name(f"{path.name}.aside" + (f"-{number}" if number > 1 else ""))
            try:
                move_new(path, target)
            except FileExistsError:
                number += 1
            else:
                return target

    def _listed(self, state: State) -> list[str]:
        with disk_errors(f"{state} of the spool cannot be listed"):
            return sorted(entry.name for entry in (self.root / state).iterdir())

    def _names(self) -> list[str]:
        return [name for state in State for name in self._listed(state)]


def _changed(episode: Episode, row: Row) -> EpisodeDamaged:
    return EpisodeDamaged(
        f"chain row {row.n} of episode {episode.id} was changed or repeats an earlier one; run the chain's verification"
    )


def _elsewhere(episode: Episode, standing: Standing) -> DiskError:
    state = standing.state or "gone"
    return DiskError(f"episode {episode.id} is {state} and not {episode.state} any more; list the episodes again")


def _is_folder(path: Path) -> bool:
    """Whether it is a folder and no link to one: what is neither is a stranger in the spool."""
    return path.is_dir() and not path.is_symlink()


def _counter(name: str) -> int | None:
    episode = EpisodeId.parse(name)
    return None if episode is None else episode.counter
