"""Any order of events, with crashes between and within them: folders and chain agree after every restart."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import verify_chain
from firsthand_edge.spool.restart import finish_steps, restart
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from tests.spool.kill import MEMORY, killed
from tests.spool.takes import TORN, judged, manifest, record, sealed, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from firsthand_edge.spool.episode import Episode

KEY = KeyPair.generate()
RECEIPT = {"schema": "firsthand.receipt/1", "store": "test"}
PICK = st.integers(0, 5)
INSTANT = st.none() | st.integers(0, 25)


def there(*states: State) -> Callable[[Orders], bool]:
    """Whether an episode is in one of `states`."""
    return lambda machine: any(state in states for state in machine.expected.values())


class Orders(RuleBasedStateMachine):
    """One spool and what must be true of it. Every event runs in a child that may be killed within it."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="orders-", dir=MEMORY))
        self.spool = Spool(self.root / "spool", KEY)
        self.expected: dict[str, State] = {}

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
        found = restart(self.spool)
        lost = {name for name, state in self.expected.items() if state is State.RECORDING} - {episode.id}
        assert {entry.episode for entry in found if entry.what == "torn"} == lost
        assert {entry.what for entry in found} <= {"step_finished", "leftover", "chain_torn", "torn"}, found
        self.expected |= dict.fromkeys(lost, State.TORN)
        now = self._where()[episode.id]
        assert now in {self.expected[episode.id], after}
        self.expected[episode.id] = now

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
    @rule(number=PICK)
    def seal(self, number: int) -> None:
        if episode := self._pick(number, State.RECORDING):
            made = manifest(episode)
            self.spool.seal(episode, made)
            self.expected[episode.id] = State.SEALED

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

    @precondition(there(State.RECORDING))
    @rule()
    def crash_while_recording(self) -> None:
        found = restart(self.spool)
        lost = [name for name, state in self.expected.items() if state is State.RECORDING]
        assert sorted(entry.episode or "" for entry in found) == sorted(lost)
        self.expected |= dict.fromkeys(lost, State.TORN)

    @precondition(there(State.ACCEPTED, State.REJECTED, State.UPLOADED, State.ASIDE))
    @rule(number=PICK, back=st.sampled_from(list(State)))
    def crash_before_a_rename(self, number: int, back: State) -> None:
        """The folder is somewhere that its row has already left."""
        episode = self._pick(number, State.ACCEPTED, State.REJECTED, State.UPLOADED, State.ASIDE)
        if episode is not None and episode.state is not back:
            episode.path.rename(self.spool.root / back / episode.id)
            finish_steps(self.spool)

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
            if standing.sealed and episode.state is not State.ASIDE:
                self.spool.committed(episode)
            else:
                assert episode.state in {State.RECORDING, State.TORN, State.ASIDE}
        if self.spool.chain.path.exists():
            assert verify_chain(self.spool.chain.path, KEY.public).good


Orders.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestOrders = Orders.TestCase
