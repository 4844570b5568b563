"""Any order of events, with crashes between and within them: folders, chain and keys agree after every restart."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from firsthand_edge.errors import UsageError
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.folder_check import check_folders
from firsthand_edge.spool.removal import REMOVABLE
from firsthand_edge.spool.restart import finish_steps, restart
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import open_spool
from firsthand_edge.spool.states import State
from tests.spool.kill import MEMORY, killed
from tests.spool.takes import TORN, judged, manifest, record, sealed, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from firsthand_edge.spool.episode import Episode
    from firsthand_edge.spool.restart import Found

RECEIPT = {"schema": "firsthand.receipt/1", "store": "test"}
PICK = st.integers(0, 5)
INSTANT = st.none() | st.integers(0, 25)
REMOVING = st.sampled_from(sorted(REMOVABLE))
SPEC = {"id": "kitchen", "version": 1, "signers": [], "throw_away": True}


def there(*states: State) -> Callable[[Orders], bool]:
    """Whether an episode is in one of `states`."""
    return lambda machine: any(state in states for state in machine.expected.values())


class Orders(RuleBasedStateMachine):
    """One spool and what must be true of it. Every event runs in a child that may be killed within it."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="orders-", dir=MEMORY))
        self.spool = open_spool(self.root, create=True)
        self.first_key = self.spool.key.public
        self.keys = 1
        self.expected: dict[str, State] = {}
        self.withdrawn: set[str] = set()
        self.spec = ""

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def _pick(self, number: int, *states: State) -> Episode | None:
        found = [e for e in self.spool.episodes() if e.state in states]
        return found[number % len(found)] if found else None

    def _event(self, episode: Episode, at: int | None, after: State, event: object) -> None:
        """Runs an event; killed within it, the episode is where it was or where it was going."""
        assert callable(event)
        if not killed(event, at):
            self.expected[episode.id] = after
            return
        found = self._restarted()
        recording = {name for name, state in self.expected.items() if state is State.RECORDING}
        lost = {entry.episode for entry in found if entry.what == "torn" and entry.episode is not None}
        assert recording - {episode.id} <= lost <= recording
        known = {"step_finished", "removed", "leftover", "chain_torn", "torn", "held"}
        assert {entry.what for entry in found} <= known, found
        self.expected |= dict.fromkeys(lost, State.TORN)
        now = self._where()[episode.id]
        assert now in {self.expected[episode.id], after}
        self.expected[episode.id] = now

    def _restarted(self) -> list[Found]:
        self.spool = open_spool(self.root, create=True)
        return restart(self.spool)

    def _where(self) -> dict[str, State]:
        episodes = self.spool.episodes()
        assert len({e.id for e in episodes}) == len(episodes), "an episode is in two folders"
        return {e.id: e.state for e in episodes}

    @initialize(good=st.integers(0, 2), bad=st.integers(0, 2), waiting=st.integers(0, 2))
    def yesterday(self, good: int, bad: int, waiting: int) -> None:
        for _ in range(good):
            self.expected[judged(self.spool).id] = State.ACCEPTED
        for _ in range(bad):
            self.expected[judged(self.spool, TORN).id] = State.REJECTED
        for _ in range(waiting):
            self.expected[sealed(self.spool).id] = State.SEALED

    @rule()
    def begin(self) -> None:
        episode = self.spool.begin("sim")
        assert episode.id not in self.expected
        record(episode)
        self.expected[episode.id] = State.RECORDING

    @precondition(there(State.RECORDING))
    @rule(number=PICK, at=INSTANT)
    def seal(self, number: int, at: int | None) -> None:
        if episode := self._pick(number, State.RECORDING):
            made = manifest(episode)
            self._event(episode, at, State.SEALED, lambda: self.spool.seal(episode, made))

    @precondition(there(State.SEALED, State.TORN, State.ACCEPTED, State.REJECTED))
    @rule(number=PICK, at=INSTANT, good=st.booleans())
    def judge(self, number: int, at: int | None, good: bool) -> None:
        waiting = (State.SEALED, State.TORN, State.ACCEPTED, State.REJECTED)
        episode = self._pick(number, *waiting)
        if episode is None or not self.spool.standing(episode).sealed:
            return
        accepted = good and not self.spool.standing(episode).torn
        document = verdict(self.spool, episode, *(() if accepted else (TORN,)))
        after = State.ACCEPTED if accepted else State.REJECTED
        self._event(episode, at, after, lambda: self.spool.judge_done(episode, document))

    @precondition(there(State.TORN))
    @rule(number=PICK, at=INSTANT)
    def recover(self, number: int, at: int | None) -> None:
        episode = self._pick(number, State.TORN)
        if episode is not None and not self.spool.standing(episode).sealed:
            made = manifest(episode, recovery={"kept": number})
            self._event(episode, at, State.TORN, lambda: self.spool.seal(episode, made))

    @precondition(there(State.ACCEPTED))
    @rule(number=PICK, at=INSTANT)
    def upload(self, number: int, at: int | None) -> None:
        if episode := self._pick(number, State.ACCEPTED):
            self._event(episode, at, State.UPLOADED, lambda: self.spool.uploaded(episode, RECEIPT))

    @precondition(there(State.REJECTED))
    @rule(number=PICK, at=INSTANT)
    def report(self, number: int, at: int | None) -> None:
        if episode := self._pick(number, State.REJECTED):
            self._event(episode, at, State.REJECTED, lambda: self.spool.reported(episode, RECEIPT))

    @precondition(there(State.SEALED, State.ACCEPTED, State.REJECTED))
    @rule(number=PICK, at=INSTANT)
    def put_aside(self, number: int, at: int | None) -> None:
        if episode := self._pick(number, State.SEALED, State.ACCEPTED, State.REJECTED):
            self._event(episode, at, State.ASIDE, lambda: self.spool.set_aside(episode, "asked"))

    @precondition(lambda machine: bool(machine.expected))
    @rule(number=PICK, at=INSTANT, event=REMOVING)
    def remove(self, number: int, at: int | None, event: Event) -> None:
        episode = self._pick(number, *State)
        assert episode is not None
        refused = episode.state not in REMOVABLE[event] or (event is Event.WITHDRAWN and episode.id in self.withdrawn)
        if refused:
            with pytest.raises(UsageError):
                self.spool.remove(episode, event, "asked")
            return
        was = self.expected[episode.id]
        self._event(episode, at, State.GONE, lambda: self.spool.remove(episode, event, "asked"))
        last = self.spool.chain.rows(episode.id)[-1:]
        if last and last[0].event == Event.WITHDRAWN:
            self.withdrawn.add(episode.id)
        assert at is not None or self.expected[episode.id] is State.GONE
        assert self.expected[episode.id] in {was, State.GONE, State.TORN}

    @rule(at=INSTANT, digest=st.sampled_from(["blake3:1", "blake3:2"]))
    def adopt_spec(self, at: int | None, digest: str) -> None:
        died = killed(lambda: self._adopt(digest), at)
        if died:
            lost = {entry.episode for entry in self._restarted() if entry.what == "torn"}
            self.expected |= {name: State.TORN for name in lost if name is not None}
        row = self.spool.chain.last_spec()
        now = "" if row is None else str(row.body["digest"])
        assert now == digest or (died and now == self.spec)
        self.spec = now

    def _adopt(self, digest: str) -> None:
        before = self.spool.adopt_spec({**SPEC, "digest": digest})
        assert (before is not None) == (self.spec not in {"", digest})

    @rule(at=st.none() | st.integers(0, 60))
    def rotate(self, at: int | None) -> None:
        old = self.spool.key.public
        died = killed(lambda: rotate(open_spool(self.root, create=False), self.root / "keys"), at)
        self._restarted()
        self.expected |= {name: State.TORN for name, state in self.expected.items() if state is State.RECORDING}
        happened = self.spool.key.public != old
        assert happened or died
        self.keys += happened

    @precondition(there(State.RECORDING))
    @rule()
    def crash_while_recording(self) -> None:
        found = restart(self.spool)
        lost = [name for name, state in self.expected.items() if state is State.RECORDING]
        assert sorted(entry.episode or "" for entry in found) == sorted(lost)
        self.expected |= dict.fromkeys(lost, State.TORN)

    @precondition(there(State.ACCEPTED, State.REJECTED, State.UPLOADED, State.ASIDE, State.GONE))
    @rule(number=PICK, back=st.sampled_from(list(State)))
    def crash_before_a_rename(self, number: int, back: State) -> None:
        """The folder is somewhere that its row has already left."""
        episode = self._pick(number, State.ACCEPTED, State.REJECTED, State.UPLOADED, State.ASIDE, State.GONE)
        # The last row of one that the chain never rejected cannot have left it among the rejected.
        impossible = back is State.REJECTED and episode is not None and self._never_rejected(episode)
        if episode is not None and episode.state is not back and not impossible:
            episode.path.rename(self.spool.root / back / episode.id)
            finish_steps(self.spool)

    def _never_rejected(self, episode: Episode) -> bool:
        standing = self.spool.standing(episode)
        return standing.state is State.ACCEPTED and not standing.rejected

    @rule(kept=st.integers(0, 200))
    def power_cut_in_a_row(self, kept: int) -> None:
        """A row of which only a part reached the disk: no step had become visible."""
        with self.spool.chain.path.open("ab") as file:
            file.write(b'{"at":{"boot":"' + b"x" * kept)
        finish_steps(self.spool)

    @invariant()
    def folders_and_chain_agree(self) -> None:
        assert self._where() == self.expected
        for episode in self.spool.episodes():
            standing = self.spool.standing(episode)
            assert standing.state in {episode.state, None}
            files = {path.name for path in episode.path.iterdir()}
            if episode.state is State.GONE:
                assert "episode.mcap" not in files
                assert standing.withdrawn == (episode.id in self.withdrawn)
                assert ("evidence.mcap" in files) != standing.withdrawn
            else:
                assert {"episode.mcap", "evidence.mcap"} <= files, "something recorded is lost"
            if standing.sealed and episode.state is not State.ASIDE:
                self.spool.committed(episode)
            else:
                assert episode.state in {State.RECORDING, State.TORN, State.ASIDE, State.GONE}

    @invariant()
    def chain_and_keys_agree(self) -> None:
        assert sorted(path.name for path in (self.root / "keys").iterdir()) == ["rig.key", "rig.pub"]
        if not self.spool.chain.path.exists():
            return
        checked = check_chain(self.spool.chain.path.read_bytes(), self.first_key)
        assert checked.report.good, checked.report.findings
        assert len(checked.keyring.keys) == self.keys
        assert checked.keyring.current == self.spool.key.public
        found = check_folders(self.spool.root, self.spool.chain.path, checked.rows, checked.keyring)
        assert found.findings == ()


Orders.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestOrders = Orders.TestCase


@pytest.mark.soak
def test_many_orders() -> None:
    run_state_machine_as_test(Orders, settings=settings(max_examples=3000, stateful_step_count=40, deadline=None))
