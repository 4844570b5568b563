"""SIGKILL at every instant of every step, and at random ones: folders, chain and store agree after a restart."""

from __future__ import annotations

import os
import random
import select
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge.spec.keys import KeyPair, private_path
from firsthand_edge.spool.chain import Event, read_rows
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.episode import file_fault
from firsthand_edge.spool.folder_check import check_folders
from firsthand_edge.spool.keyring import KeyRing
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import Spool, open_spool
from firsthand_edge.spool.states import State
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader
from tests.spool.kill import MEMORY, killed
from tests.spool.takes import FOOTAGE, TORN, manifest, record, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

_write = os.write  # the ledger is not on the disk, so the killer does not count it
RANK = [State.RECORDING, State.TORN, State.SEALED, State.ACCEPTED, State.REJECTED, State.UPLOADED, State.GONE]


class Ledger:
    """What a child saw done, told over a pipe before it may die: nothing told may be undone."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()

    def tell(self, name: str, state: State) -> None:
        _write(self.write, f"{name} {state}\n".encode())

    def told(self) -> dict[str, State]:
        os.close(self.write)
        with os.fdopen(self.read) as file:
            return {name: State(state) for name, state in (line.split() for line in file.read().splitlines())}


def day(root: Path, ledger: Ledger, takes: int = 2) -> None:
    """Takes, alternately good and bad, each sealed, judged and sent; what was sent is removed, and the key rotated."""
    spool = open_spool(root, create=True)
    store = DirectoryStore(root / "store")
    recover(spool)
    spool.adopt_spec({"id": "kitchen", "version": 1, "digest": "blake3:1", "signers": [], "throw_away": True})
    for number in range(takes):
        episode = spool.begin("sim")
        ledger.tell(episode.id, episode.state)
        record(episode)
        episode = spool.seal(episode, manifest(episode))
        ledger.tell(episode.id, episode.state)
        reasons = (TORN,) if number % 2 else ()
        episode = spool.judge_done(episode, verdict(spool, episode, *reasons))
        ledger.tell(episode.id, episode.state)
        done = Uploader(spool, store).run_once()
        assert not done.failures, done.failures
        if episode.state is State.ACCEPTED:
            ledger.tell(episode.id, State.UPLOADED)
        episode = spool.find(episode.id)
        event = Event.EXPIRED if number % 2 else Event.WITHDRAWN
        if number % 3 < 2:
            ledger.tell(spool.remove(episode, event, "as agreed").id, State.GONE)
        if number % 4 == 1:
            rotate(open_spool(root, create=False), root / "keys")
            spool = open_spool(root, create=False)


def recover(spool: Spool) -> None:
    """What the daemon does at start."""
    restart(spool)
    for episode in spool.episodes(State.TORN):
        sealed = episode
        if not spool.standing(episode).sealed:
            sealed = spool.seal(episode, manifest(episode, recovery={"kept": 1}))
        spool.judge_done(sealed, verdict(spool, sealed, TORN))
    for episode in spool.episodes(State.SEALED):
        spool.judge_done(episode, verdict(spool, episode))


def _store_holds_what_it_may(spool: Spool, store: DirectoryStore, kept: set[str]) -> None:
    rows = spool.chain.rows()
    sent = {row.episode for row in rows if row.event == "uploaded" and row.body["side"] == "episodes"}
    withdrawn = {row.episode for row in rows if row.event == "withdrawn"}
    assert kept == sent - withdrawn
    held = {path.parent.name for path in (store.root).rglob("*.mcap")}
    assert not held & withdrawn, "the store holds what was withdrawn"


def check(root: Path, told: dict[str, State], *, interrupt: int | None = None) -> None:
    """Restarts as the daemon would, and holds everything against everything."""
    if interrupt is not None:
        killed(lambda: recover(open_spool(root, create=True)), interrupt)
    spool = open_spool(root, create=True)
    assert {path.name for path in (root / "keys").iterdir() if path.suffix == ".key"} == {"rig.key"}
    assert KeyPair.load(root / "keys").public == spool.chain.keyring().current, private_path(root / "keys")
    store = DirectoryStore(root / "store")
    recover(spool)
    assert restart(spool) == [], "a second restart found something"

    episodes = spool.episodes()
    names = [episode.id for episode in episodes]
    assert len(names) == len(set(names)), "an episode is in two folders"
    where = {episode.id: episode.state for episode in episodes}
    for name, state in told.items():
        if state is State.RECORDING and name not in where:
            continue  # its folder was still empty: nothing had been recorded
        assert RANK.index(where[name]) >= RANK.index(state), f"{name} was {state} and is {where[name]}"
    for episode in episodes:
        standing = spool.standing(episode)
        assert standing.state is episode.state
        committed = spool.committed(episode)
        assert committed.verdict is not None, "an episode went on without judgement"
        if episode.state is State.GONE:
            assert standing.removed
            assert not (episode.path / "episode.mcap").exists()
            assert (episode.path / "evidence.mcap").exists() != standing.withdrawn
            continue
        assert committed.verdict.accepted == (episode.state in {State.ACCEPTED, State.UPLOADED})
        assert file_fault(episode.path, committed.manifest, contents=True) is None
        footage = episode.path / "episode.mcap"
        if committed.manifest.recovery is None:
            assert footage.read_bytes() == FOOTAGE
        if episode.state is State.UPLOADED:
            assert (store.root / "episodes" / episode.id / "episode.mcap").read_bytes() == FOOTAGE
    data = spool.chain.path.read_bytes()
    root_key = KeyRing.begun_by(read_rows(data)[0]) if data else KeyRing.of(spool.key.public)
    assert root_key is not None
    checked = check_chain(data, root_key.root)
    assert checked.report.good or not data, checked.report.findings
    assert check_folders(spool.root, spool.chain.path, checked.rows, checked.keyring).findings == ()

    done = Uploader(spool, store).run_once()
    assert not done.failures, done.failures
    assert not done.set_aside
    assert not spool.episodes(State.ACCEPTED)
    kept = {path.name for path in (store.root / "episodes").glob("*") if (path / "manifest.json").exists()}
    _store_holds_what_it_may(spool, store, kept)
    assert not list((store.root / "rejected").rglob("episode.mcap"))
    reported = {path.parent.name for path in (store.root / "rejected").glob("*/manifest.json")}
    assert reported >= {episode.id for episode in spool.episodes(State.REJECTED)}
    spool.begin("sim").path.rmdir()
    assert not [p for p in root.rglob("*") if p.name.endswith(".part")]


@pytest.fixture
def memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="crash-", dir=MEMORY) as folder:
        yield Path(folder)


def crash(root: Path, at: int | None, *, interrupt: int | None = None) -> bool:
    (root / "store").mkdir(parents=True)
    ledger = Ledger()
    died = killed(lambda: day(root, ledger), at, root / "calls")
    check(root, ledger.told(), interrupt=interrupt)
    return died


def test_killed_at_every_instant_of_a_day(memory: Path) -> None:
    assert not crash(memory / "whole", None)
    calls = int((memory / "whole" / "calls").read_text())
    assert calls > 150, "the killer no longer sees the calls that change the disk"
    for at in range(calls):
        assert crash(memory / str(at), at), at


def killed_twice(at: int, interrupt: int) -> None:
    with tempfile.TemporaryDirectory(prefix="crash-", dir=MEMORY) as folder:
        crash(Path(folder), at, interrupt=interrupt)


@settings(max_examples=40, deadline=None)
@given(at=st.integers(0, 350), interrupt=st.integers(0, 60))
def test_killed_again_while_it_recovers(at: int, interrupt: int) -> None:
    killed_twice(at, interrupt)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@given(at=st.integers(0, 350), interrupt=st.integers(0, 100))
def test_killed_again_while_it_recovers_at_many_instants(at: int, interrupt: int) -> None:
    killed_twice(at, interrupt)


def test_killed_from_outside_at_random_instants(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311 - instants, no secrets
    (tmp_path / "store").mkdir()
    everything: dict[str, State] = {}
    for _ in range(20):
        ledger = Ledger()
        child = os.fork()
        if child == 0:
            try:
                day(tmp_path, ledger, takes=10_000)
            finally:
                os._exit(1)
        # Wait for its first word, then for a random moment more: whatever it is doing then is cut short.
        select.select([ledger.read], [], [], 60)
        select.select([], [], [], chance.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        _, how = os.waitpid(child, 0)
        assert os.WIFSIGNALED(how), "the child failed by itself"
        everything |= ledger.told()
        check(tmp_path, everything)
