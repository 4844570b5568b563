"""After a crash: folders and chain are brought to agree, and nothing is lost, doubled, or promoted without judgement.

The chain decides where an episode belongs, and whether its footage is to be deleted. Documents that were durable and
signed by the key in force when their row was not yet appended are followed forward: a manifest seals, a verdict judges.
What is neither is moved out of the way and reported. While the chain is broken nothing moves towards `accepted`, and no
restart makes a rejected episode an accepted one without a row that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from firsthand_edge.durable import PART, disk_errors, fsync_folder
from firsthand_edge.errors import EpisodeDamaged, UsageError
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spool.episode import Episode, Standing, file_fault, read_committed, read_signed
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.manifest import MANIFEST_NAME, Manifest
from firsthand_edge.spool.removal import purge
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import VerdictDocument, verdict_name

if TYPE_CHECKING:
    from firsthand_edge.spool.chain import Appender
    from firsthand_edge.spool.soundness import Break
    from firsthand_edge.spool.spool import Spool

__all__ = ["Found", "agree", "finish_steps", "restart"]

WAITING: Final = frozenset({State.TORN, State.SEALED})
LEAVING: Final = frozenset({State.ACCEPTED, State.UPLOADED})
"""Where nothing is moved while the chain is broken: a row that is lost might have taken it back."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that a restart found, and what it did about it."""

    what: str
    """`chain_torn`, `chain_broken`, `held`, `mended`, `torn`, `step_finished`, `removed`, `empty`, `leftover`,
    `damaged`, `doubled`, `missing`, `stranger`."""
    sentence: str
    episode: str | None = None


def restart(spool: Spool) -> list[Found]:
    """Brings folders and chain to agree after a crash. Only the process that records may call it.

    Leftovers in `recording` go to `torn`, or on to where a durable, signed document shows that they were going;
    unfinished steps are finished; damaged documents and half-made folders are moved out of the way. Nothing found
    stops it.

    Returns:
        What was found and done, in order; empty after a clean end.

    Raises:
        DiskFull, DiskError: the disk does not obey.
    """
    return _bring_to_agree(spool, recorder=True)


def finish_steps(spool: Spool) -> list[Found]:
    """As `restart`, for processes that do not record: leaves alone what may be being recorded or recovered."""
    return _bring_to_agree(spool, recorder=False)


def _bring_to_agree(spool: Spool, *, recorder: bool) -> list[Found]:
    with spool.chain.locked() as chain:
        return agree(spool, chain, recorder=recorder)


def agree(spool: Spool, chain: Appender, *, recorder: bool = True) -> list[Found]:
    """`restart`, or `finish_steps` when not `recorder`, for whoever holds the chain for more."""
    run = _Restart(spool, chain, recorder=recorder)
    run.everything()
    return run.found


class _Restart:
    """One restart, with the chain held."""

    def __init__(self, spool: Spool, chain: Appender, *, recorder: bool) -> None:
        self._spool = spool
        self._chain = chain
        self._recorder = recorder
        self._broken: Break | None = None
        self.found: list[Found] = [Found("mended", sentence) for sentence in spool.said]
        spool.said.clear()
        if chain.torn is not None:
            self.found.append(Found("chain_torn", chain.torn))

    def everything(self) -> None:
        standings, forged = self._standings()
        places: dict[str, list[Episode]] = {}
        for episode in self._spool.episodes():
            places.setdefault(episode.id, []).append(episode)
        for name, episodes in places.items():
            standing = standings.get(name, Standing())
            if standing.removed:
                self._removed(self._single(episodes, standing), standing)
            elif name in forged:
                self._distrust(self._single(episodes, standing), forged[name])
            elif self._recorder or standing.known:
                self._one(self._single(episodes, standing), standing)
        for name, standing in standings.items():
            if name not in places and standing.known:
                self._say(
                    "missing", name, f"the chain says {standing.state}, and its folder is nowhere; nothing was done"
                )
        if self._recorder:
            self._strangers()

    def _standings(self) -> tuple[dict[str, Standing], dict[str, int]]:
        """What the rows that count say of each episode, and for each that others speak of, the first of those."""
        standings: dict[str, Standing] = {}
        forged: dict[str, int] = {}
        self._broken = self._spool.chain.broken(anew=True)
        if self._broken is not None:
            self.found.append(Found("chain_broken", self._broken.sentence))
        ring = self._spool.chain.keyring()
        for row in self._spool.chain.rows():
            if row.episode is None:
                continue
            standing = standings.get(row.episode, Standing())
            # Every row of a whole chain is signed: that was looked at just now.
            proved = self._broken is None or row.signed_by(ring.at(row.n))
            if proved and standing.takes(row):
                standings[row.episode] = standing.after(row)
            else:
                forged.setdefault(row.episode, row.n)
        return standings, forged

    def _distrust(self, episode: Episode, number: int) -> None:
        """An episode that a changed row speaks of: nobody knows where it belongs, so a person decides."""
        if episode.state in {State.ASIDE, State.GONE}:
            return
        why = f"row {number} of the chain, which speaks of it, was changed or repeats an earlier one"
        self._spool.append_damaged(self._chain, episode, why)
        self._say("damaged", episode.id, f"set aside: {why}")

    def _single(self, episodes: list[Episode], standing: Standing) -> Episode:
        """The one folder of an episode that counts; copies in other states, which no step makes, are set aside."""
        keep = next((e for e in episodes if e.state is standing.state), episodes[0])
        for copy in episodes:
            if copy is not keep:
                target = self._spool.out_of_the_way(copy.path)
                self._say("doubled", copy.id, f"was in {copy.state} and in {keep.state}; the first is now {target}")
        return keep

    def _one(self, episode: Episode, standing: Standing) -> None:
        if self._broken is not None and standing.state in LEAVING and episode.state is not standing.state:
            where = f"is in {episode.state}, and what is left of the chain says {standing.state}"
            self._say("held", episode.id, f"{where}; it stays until the chain is restored")
            return
        if standing.state in {State.UPLOADED, State.ASIDE}:
            self._settle(episode, standing.state)
            return
        self._leftovers(episode)
        try:
            if not standing.sealed:
                self._unsealed(episode)
            elif standing.state in WAITING:
                self._waiting(episode, standing)
            else:
                self._judged(episode, standing)
        except EpisodeDamaged as exc:
            self._spool.append_damaged(self._chain, episode, str(exc))
            self._say("damaged", episode.id, f"set aside: {exc}")

    def _removed(self, episode: Episode, standing: Standing) -> None:
        """What its row removed is not here any more, however often it came back."""
        episode = self._settle(episode, State.GONE)
        deleted = purge(self._spool.root, episode.id, withdrawn=standing.withdrawn)
        if deleted:
            self._say("removed", episode.id, f"the chain says removed; deleted {', '.join(deleted)}")

    def _unsealed(self, episode: Episode) -> None:
        """No row binds it yet."""
        if not any(episode.path.iterdir()):
            with disk_errors(f"the empty folder of episode {episode.id} cannot be removed"):
                episode.path.rmdir()
                fsync_folder(episode.path.parent)
            self._say(
                "empty", episode.id, f"nothing had been recorded in {episode.state}; its empty folder was removed"
            )
            return
        bound = self._manifest_ahead(episode)
        if bound is None:
            if episode.state is not State.TORN:
                self._spool.move(episode, State.TORN)
                self._say(
                    "torn", episode.id, f"was in {episode.state} without being sealed; now in torn, to be recovered"
                )
            return
        manifest, digest = bound
        sealed = self._spool.append_sealed(self._chain, episode, manifest, digest)
        self._say("step_finished", episode.id, f"its manifest was durable; sealed, now in {sealed.state}")
        self._waiting(sealed, Standing(state=sealed.state, manifest=digest))

    def _manifest_ahead(self, episode: Episode) -> tuple[Manifest, str] | None:
        """The manifest that `seal` wrote before a crash kept it from the chain, when it and its files are whole."""
        path = episode.path / MANIFEST_NAME
        if not path.exists():
            return None
        if not path.is_file():
            target = self._spool.out_of_the_way(path)
            self._say("damaged", episode.id, f"{MANIFEST_NAME} is no file; moved to {target.name}")
            return None
        with disk_errors(f"{path} cannot be read"):
            try:
                data = read_signed(path, self._spool.key.public)
                manifest = Manifest.read(data)
                fault = "is of another episode" if manifest.episode != episode.id else None
                fault = fault or file_fault(episode.path, manifest, contents=True)
            except ValueError as exc:
                fault = str(exc)
            if fault is None:
                return manifest, digest_bytes(data)
            target = self._spool.out_of_the_way(path)
        self._say("damaged", episode.id, f"{MANIFEST_NAME}, which no row names, {fault}; moved to {target.name}")
        return None

    def _waiting(self, episode: Episode, standing: Standing) -> None:
        """Sealed, and no row judges it yet."""
        committed = read_committed(episode.path, standing)
        fault = file_fault(episode.path, committed.manifest, contents=self._recorder)
        if fault is not None:
            raise EpisodeDamaged(fault)
        if standing.state is not None:
            episode = self._settle(episode, standing.state)
        self._verdict_ahead(episode, standing)

    def _judged(self, episode: Episode, standing: Standing) -> None:
        if standing.state is State.ACCEPTED or not standing.reported:
            committed = read_committed(episode.path, standing)
            accepted = standing.state is State.ACCEPTED
            fault = file_fault(episode.path, committed.manifest, contents=False) if accepted else None
            if fault is not None:
                raise EpisodeDamaged(fault)
        if episode.state is State.REJECTED and standing.state is State.ACCEPTED:
            _require_promoted(episode, standing)
        if standing.state is not None:
            episode = self._settle(episode, standing.state)
        self._verdict_ahead(episode, standing)

    def _verdict_ahead(self, episode: Episode, standing: Standing) -> None:
        """The verdict that `judge_done` wrote before a crash kept it from the chain."""
        number = standing.judgements + 1
        path = episode.path / verdict_name(number)
        if not path.exists():
            return
        committed = read_committed(episode.path, standing)
        with disk_errors(f"{path} cannot be read"):
            try:
                data = read_signed(path, self._spool.key.public)
                verdict = VerdictDocument.read(data)
                self._spool.check_verdict(episode, standing, committed, verdict)
            except (ValueError, UsageError) as exc:
                target = self._spool.out_of_the_way(path)
                self._say("damaged", episode.id, f"{path.name}, which no row names, {exc}; moved to {target.name}")
                return
            if verdict.accepted and self._broken is not None:
                self._say("held", episode.id, f"{path.name} accepts it; it waits until the chain is restored")
                return
            if verdict.accepted and standing.state is State.REJECTED:
                # Any earlier verdict that accepted it, copied, would be one.
                target = self._spool.out_of_the_way(path)
                said = f"is rejected, and {path.name}, which no row names, accepts it; moved to {target.name}"
                self._say("held", episode.id, f"{said}; judge it again")
                return
        judged = self._spool.append_judged(self._chain, episode, verdict, digest_bytes(data), number)
        self._say("step_finished", episode.id, f"its verdict was durable; now in {judged.state}")

    def _settle(self, episode: Episode, target: State) -> Episode:
        """Moves a folder to where the chain says it belongs."""
        if episode.state is target:
            return episode
        self._say("step_finished", episode.id, f"the chain says {target}; moved there from {episode.state}")
        return self._spool.move(episode, target)

    def _leftovers(self, episode: Episode) -> None:
        for path in sorted(episode.path.glob(f".*{PART}")):
            target = self._spool.out_of_the_way(path)
            self._say("leftover", episode.id, f"{path.name} was never finished; moved to {target.name}")

    def _strangers(self) -> None:
        for state in State:
            for path in sorted((self._spool.root / state).iterdir()):
                if ".aside" in path.name:
                    continue
                if EpisodeId.parse(path.name) is None or not path.is_dir() or path.is_symlink():
                    self.found.append(Found("stranger", f"{path} is no episode; nothing here reads it"))

    def _say(self, what: str, episode: str, sentence: str) -> None:
        self.found.append(Found(what, f"episode {episode}: {sentence}", episode))


def _require_promoted(episode: Episode, standing: Standing) -> None:
    """Whether the row that accepts a rejected episode can be the last one. Raises EpisodeDamaged when it cannot."""
    known = {verdict_name(number) for number in range(1, standing.judgements + 1)}
    later = sorted(path.name for path in episode.path.glob("verdict*.json") if path.name not in known)
    if later:
        raise EpisodeDamaged(f"it is rejected, {later[0]} is no row's, and the last row accepts it: rows were lost")
    if not standing.rejected:
        raise EpisodeDamaged("it is among the rejected, and no row of the chain ever rejected it: rows were lost")
