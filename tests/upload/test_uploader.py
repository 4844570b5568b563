from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from firsthand_edge.errors import KeyRotated, StoreError
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import Spool, open_spool
from firsthand_edge.spool.states import State
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader
from tests.spool.takes import FOOTAGE, TORN, judged, sealed, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from firsthand_edge.spool.episode import Episode
    from firsthand_edge.upload.store import Receipt, StoreFile


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.load_or_create(tmp_path / "keys"))


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    (tmp_path / "store").mkdir()
    return DirectoryStore(tmp_path / "store", name="test")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_accepted_ones_leave_whole_and_rejected_ones_without_footage(spool: Spool, store: DirectoryStore) -> None:
    waiting, accepted, rejected = sealed(spool), judged(spool), judged(spool, TORN)
    done = Uploader(spool, store).run_once()
    assert (done.uploaded, done.reported, done.failures, done.set_aside) == ([accepted.id], [rejected.id], [], [])
    assert names(store.root / "episodes") == {accepted.id}
    assert names(store.root / "episodes" / accepted.id) == {
        "episode.mcap",
        "evidence.mcap",
        "verdict.json",
        "manifest.json",
    }
    assert (store.root / "episodes" / accepted.id / "episode.mcap").read_bytes() == FOOTAGE
    assert names(store.root / "rejected") == {rejected.id}
    assert names(store.root / "rejected" / rejected.id) == {"evidence.mcap", "verdict.json", "manifest.json"}
    footage = [path for path in store.root.rglob("*") if path.is_file() and path.read_bytes() == FOOTAGE]
    assert footage == [store.root / "episodes" / accepted.id / "episode.mcap"]
    assert {e.id: e.state for e in spool.episodes()} == {
        waiting.id: State.SEALED,
        accepted.id: State.UPLOADED,
        rejected.id: State.REJECTED,
    }
    receipt = json.loads((spool.root / "uploaded" / accepted.id / "receipt.json").read_bytes())
    assert (receipt["store"], receipt["side"]) == ("test", "episodes")
    mirror = store.root / "chains" / f"{spool.key.key_id}.jsonl"
    assert mirror.read_bytes() == spool.chain.path.read_bytes()
    assert check_chain(mirror.read_bytes(), spool.key.public).report.good


def test_a_second_pass_has_nothing_to_do(spool: Spool, store: DirectoryStore) -> None:
    judged(spool)
    judged(spool, TORN)
    Uploader(spool, store).run_once()
    rows = len(spool.chain.rows())
    done = Uploader(spool, store).run_once()
    assert (done.uploaded, done.reported, done.failures) == ([], [], [])
    assert len(spool.chain.rows()) == rows


def test_a_second_judgement_is_reported_too(spool: Spool, store: DirectoryStore) -> None:
    rejected = judged(spool, TORN)
    Uploader(spool, store).run_once()
    spool.judge_done(rejected, verdict(spool, rejected, TORN))
    assert Uploader(spool, store).run_once().reported == [rejected.id]
    assert "verdict-2.json" in names(store.root / "rejected" / rejected.id)
    assert restart(spool) == []


@pytest.mark.parametrize("zeros", [100, 1 << 20])
def test_k55_footage_whose_end_is_zeros_is_never_uploaded(spool: Spool, store: DirectoryStore, zeros: int) -> None:
    footage = bytes(range(1, 256)) * 5000
    bad, good = judged(spool, footage=footage), judged(spool)
    path = bad.path / "episode.mcap"
    path.write_bytes(footage[:-zeros] + bytes(zeros))
    done = Uploader(spool, store).run_once()
    assert (done.uploaded, done.set_aside) == ([good.id], [bad.id])
    assert [name for name, _ in done.failures] == [bad.id]
    assert not list((store.root / "episodes" / bad.id).iterdir())
    assert {e.id: e.state for e in spool.episodes()} == {bad.id: State.ASIDE, good.id: State.UPLOADED}


def test_an_episode_put_among_the_accepted_by_hand_does_not_leave(spool: Spool, store: DirectoryStore) -> None:
    rejected, waiting = judged(spool, TORN), sealed(spool)
    for episode in (rejected, waiting):
        episode.path.rename(spool.root / "accepted" / episode.id)
    done = Uploader(spool, store).run_once()
    assert done.uploaded == []
    assert set(done.set_aside) == {rejected.id, waiting.id}
    assert not (store.root / "episodes").exists()


def test_a_store_that_refuses_one_does_not_keep_the_others_back(spool: Spool, store: DirectoryStore) -> None:
    first, second = judged(spool), judged(spool)
    taken = store.root / "episodes" / first.id / "episode.mcap"
    taken.parent.mkdir(parents=True)
    taken.write_bytes(b"somebody else's")
    done = Uploader(spool, store).run_once()
    assert done.uploaded == [second.id]
    assert [(name, error.code) for name, error in done.failures] == [(first.id, "store.refused")]
    assert taken.read_bytes() == b"somebody else's"
    assert {e.id: e.state for e in spool.episodes()} == {first.id: State.ACCEPTED, second.id: State.UPLOADED}


def test_a_store_that_is_not_there_ends_the_pass_and_loses_nothing(spool: Spool, tmp_path: Path) -> None:
    first, second = judged(spool), judged(spool)
    done = Uploader(spool, DirectoryStore(tmp_path / "absent")).run_once()
    assert [name for name, _ in done.failures] == [first.id]
    assert [e.id for e in spool.episodes(State.ACCEPTED)] == [first.id, second.id]


def test_a_cut_chain_is_refused_by_its_copy(spool: Spool, store: DirectoryStore) -> None:
    judged(spool)
    Uploader(spool, store).run_once()
    lines = spool.chain.path.read_bytes().splitlines(keepends=True)
    spool.chain.path.write_bytes(b"".join(lines[:-1]))
    done = Uploader(spool, store).run_once()
    assert [(name, error.code) for name, error in done.failures] == [("chain", "store.refused")]


def test_the_copy_of_the_chain_keeps_its_name_and_grows_across_rotations(
    spool: Spool, store: DirectoryStore, tmp_path: Path
) -> None:
    judged(spool)
    assert not Uploader(spool, store).run_once().failures
    first, name = spool.key, spool.chain.name
    for _ in range(2):
        rotate(open_spool(tmp_path, create=False), tmp_path / "keys")
        now = open_spool(tmp_path, create=False)
        judged(now)
        assert not Uploader(now, store).run_once().failures
    assert name == first.key_id != now.key.key_id
    assert names(store.root / "chains") == {f"{name}.jsonl"}
    mirror = (store.root / "chains" / f"{name}.jsonl").read_bytes()
    assert mirror == now.chain.path.read_bytes()
    assert check_chain(mirror, first.public).report.good
    assert check_chain(mirror, now.key.public).report.good


def test_a_sender_with_the_old_key_says_so_and_leaves_everything_where_it_is(
    spool: Spool, store: DirectoryStore, tmp_path: Path
) -> None:
    episode = judged(spool)
    rotate(open_spool(tmp_path, create=False), tmp_path / "keys")
    with pytest.raises(KeyRotated, match="start this process again"):
        Uploader(spool, store).run_once()
    now = open_spool(tmp_path, create=False)
    assert now.find(episode.id).state is State.ACCEPTED
    assert Uploader(now, store).run_once().uploaded == [episode.id]


def test_an_episode_withdrawn_meanwhile_is_not_called_uploaded_and_keeps_nobody_back(
    spool: Spool, store: DirectoryStore
) -> None:
    first, second = judged(spool), judged(spool)

    def withdraw() -> None:
        if spool.find(first.id).state is State.ACCEPTED:
            spool.remove(first, Event.WITHDRAWN, "asked")

    done = Uploader(spool, Meddling(store.root, withdraw)).run_once()
    assert (done.uploaded, done.taken_back, done.failures) == ([second.id], [first.id], [])
    assert spool.find(first.id).state is State.GONE
    assert names(store.root / "episodes") == {second.id}


def test_an_episode_withdrawn_while_its_damage_is_found_keeps_nobody_back(spool: Spool, store: DirectoryStore) -> None:
    first, second = judged(spool), judged(spool)
    (first.path / "episode.mcap").write_bytes(b"other")

    class Late(Spool):
        def set_aside(self, episode: Episode, why: str) -> Episode:
            self.remove(episode, Event.WITHDRAWN, "asked")
            return super().set_aside(episode, why)

    done = Uploader(Late(spool.root, spool.key), store).run_once()
    assert (done.uploaded, done.set_aside) == ([second.id], [])
    assert [(name, error.code) for name, error in done.failures] == [(first.id, "disk")]
    assert spool.find(first.id).state is State.GONE


class Meddling(DirectoryStore):
    """A store during whose work somebody judges the episode again."""

    def __init__(self, root: Path, meddle: Callable[[], object]) -> None:
        super().__init__(root)
        self._meddle = meddle

    def put(
        self, episode: str, files: Sequence[StoreFile], *, side: str, stopping: Callable[[], bool] = lambda: False
    ) -> Receipt:
        receipt = super().put(episode, files, side=side, stopping=stopping)
        self._meddle()
        return receipt


def test_an_episode_rejected_meanwhile_is_not_called_uploaded(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool)
    meddling = Meddling(store.root, lambda: spool.judge_done(episode, verdict(spool, episode, TORN)))
    done = Uploader(spool, meddling).run_once()
    assert (done.uploaded, done.taken_back, done.failures) == ([], [episode.id], [])
    assert spool.find(episode.id).state is State.REJECTED
    assert names(store.root / "episodes") == set()


def test_asked_to_stop_it_stops_between_blocks(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool, footage=b"f" * (5 << 20))
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    done = Uploader(spool, store, stopping=stopping).run_once()
    assert (done.uploaded, done.failures) == ([], [])
    assert spool.find(episode.id).state is State.ACCEPTED
    assert Uploader(spool, store).run_once().uploaded == [episode.id]


class Broken(DirectoryStore):
    """A store that cannot be written in the middle of a pass."""

    def put(
        self, episode: str, files: Sequence[StoreFile], *, side: str, stopping: Callable[[], bool] = lambda: False
    ) -> Receipt:
        raise StoreError("the store is read-only")


def test_one_failure_of_the_store_is_enough_for_a_pass(spool: Spool, store: DirectoryStore) -> None:
    judged(spool)
    judged(spool)
    assert len(Uploader(spool, Broken(store.root)).run_once().failures) == 1
