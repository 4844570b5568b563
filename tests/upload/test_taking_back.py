"""What was taken back on the rig, or judged bad after all, is not at the store: whenever that was, and after a kill."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from firsthand_edge.errors import StoreError
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.episode import Standing
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.store import Receipt, StoreFile
from firsthand_edge.upload.uploader import Uploader, barred
from tests.spool.takes import TORN, judged, verdict

ROOT = Path(__file__).parents[2]
FOOTAGE = b"f" * (5 << 20)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.load_or_create(tmp_path / "keys"))


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    (tmp_path / "store").mkdir()
    return DirectoryStore(tmp_path / "store", name="test")


def held(store: DirectoryStore) -> set[str]:
    """Files of episodes, by side and name; parts too."""
    files = (path for path in store.root.rglob("*") if path.is_file())
    return {f"{path.parent.parent.name}/{path.name}" for path in files if path.parent.name != "chains"}


class During(DirectoryStore):
    """A store during whose copying something happens, at the n-th time that it asks whether to stop."""

    def __init__(self, root: Path, happens: Callable[[], object], at: int) -> None:
        super().__init__(root)
        self.happens, self.at, self.asked = happens, at, 0

    def put(
        self, episode: str, files: Sequence[StoreFile], *, side: str, stopping: Callable[[], bool] = lambda: False
    ) -> Receipt:
        def asked() -> bool:
            self.asked += 1
            if self.asked == self.at:
                self.happens()
            return stopping()

        return super().put(episode, files, side=side, stopping=asked)


@pytest.mark.parametrize("at", range(1, 15))
@pytest.mark.parametrize("how", ["withdrawn", "discarded", "rejected"])
def test_taken_back_while_it_is_sent(spool: Spool, store: DirectoryStore, how: str, at: int) -> None:
    episode, other = judged(spool, footage=FOOTAGE), judged(spool)
    bad = verdict(spool, episode, TORN)

    def happens() -> None:
        if how == "rejected":
            spool.judge_done(episode, bad)
        else:
            spool.remove(spool.find(episode.id), Event(how), "asked")

    during = During(store.root, happens, at)
    done = Uploader(spool, during).run_once()
    assert during.asked >= at
    assert (done.uploaded, done.taken_back, done.failures) == ([other.id], [episode.id], [])
    assert not (store.root / "episodes" / episode.id).exists()
    assert spool.find(episode.id).state is (State.REJECTED if how == "rejected" else State.GONE)


def test_nothing_more_is_read_of_the_footage_once_it_was_taken_back(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool, footage=FOOTAGE)
    during = During(store.root, lambda: spool.remove(spool.find(episode.id), Event.WITHDRAWN, "asked"), 3)
    Uploader(spool, during).run_once()
    assert during.asked == 3


def test_the_chain_is_read_only_when_it_has_changed(
    spool: Spool, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(spool, footage=FOOTAGE)
    read = []
    real = Spool.proved
    monkeypatch.setattr(Spool, "proved", lambda self, episode: read.append(1) or real(self, episode))
    during = During(store.root, lambda: None, 0)
    assert Uploader(spool, during).run_once().uploaded
    assert during.asked > 8
    assert len(read) == 1


def test_evidence_of_a_rejected_one_that_is_withdrawn_while_it_is_sent(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool, TORN)
    during = During(store.root, lambda: spool.remove(spool.find(episode.id), Event.WITHDRAWN, "asked"), 3)
    done = Uploader(spool, during).run_once()
    assert (done.reported, done.taken_back, done.failures) == ([], [episode.id], [])
    assert held(store) == set()


# ---- between two passes, and after a kill


@pytest.mark.parametrize(
    ("event", "stays"),
    [
        (Event.WITHDRAWN, set()),
        (Event.EXPIRED, {f"episodes/{n}" for n in ("episode.mcap", "evidence.mcap", "verdict.json", "manifest.json")}),
    ],
)
def test_what_was_sent_goes_when_it_is_withdrawn_and_stays_when_it_expires_here(
    spool: Spool, store: DirectoryStore, event: Event, stays: set[str]
) -> None:
    episode = judged(spool)
    uploader = Uploader(spool, store)
    assert uploader.run_once().uploaded == [episode.id]
    spool.remove(spool.find(episode.id), event, "asked")
    done = uploader.run_once()
    assert (done.taken_back, done.failures) == ([] if stays else [episode.id], [])
    assert held(store) == stays
    assert uploader.run_once().taken_back == []


def test_evidence_that_was_reported_goes_when_it_is_withdrawn_also_late(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool, TORN)
    uploader = Uploader(spool, store)
    assert uploader.run_once().reported == [episode.id]
    spool.remove(spool.find(episode.id), Event.DISCARDED, "asked")
    uploader.run_once()
    assert "rejected/evidence.mcap" in held(store)
    spool.remove(spool.find(episode.id), Event.WITHDRAWN, "asked")
    assert uploader.run_once().taken_back == [episode.id]
    assert held(store) == set()


def killed_while_sending(tmp_path: Path, *, name: str) -> None:
    """A sender of its own that dies when the store has all bytes of a file and has not renamed it."""
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from firsthand_edge.spool.spool import open_spool\n"
        "from firsthand_edge.upload import directory\n"
        "from firsthand_edge.upload.uploader import Uploader\n"
        "real = directory._is\n"
        f"directory._is = lambda path, file: os._exit(9) if path.name.startswith('.{name}') else real(path, file)\n"
        "store = directory.DirectoryStore(Path(sys.argv[2]))\n"
        "Uploader(open_spool(Path(sys.argv[1]), create=False), store).run_once()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, tmp_path, tmp_path / "store"], cwd=ROOT, check=False)
    assert ended.returncode == 9


@pytest.mark.parametrize("name", ["episode.mcap", "manifest.json"])
@pytest.mark.parametrize("how", ["withdrawn", "discarded", "rejected"])
def test_a_sender_that_died_leaves_nothing_of_what_is_taken_back_then(
    spool: Spool, store: DirectoryStore, tmp_path: Path, name: str, how: str
) -> None:
    episode = judged(spool)
    killed_while_sending(tmp_path, name=name)
    assert any(file.endswith(".part") for file in held(store))
    if how == "rejected":
        spool.judge_done(episode, verdict(spool, episode, TORN))
    else:
        spool.remove(episode, Event(how), "asked")
    done = Uploader(spool, store).run_once()
    assert (done.taken_back, done.failures) == ([episode.id], [])
    assert not [file for file in held(store) if file.startswith("episodes/")]
    assert not list((store.root).rglob("*.part"))


def test_what_a_dead_sender_left_half_is_swept_whatever_became_of_the_episode(
    spool: Spool, store: DirectoryStore, tmp_path: Path
) -> None:
    episode = judged(spool)
    killed_while_sending(tmp_path, name="evidence.mcap")
    foreign = store.root / "episodes" / "other-00000001-0123456789abcdef"
    foreign.mkdir()
    (foreign / ".episode.mcap.01234567.part").write_bytes(b"of another rig that sends just now")
    spool.set_aside(episode, "asked")
    Uploader(spool, store).run_once()
    assert held(store) == {"episodes/episode.mcap", "episodes/.episode.mcap.01234567.part"}


# ---- what must not be removed


def test_a_broken_chain_takes_back_only_what_was_withdrawn(spool: Spool, store: DirectoryStore) -> None:
    """A row that is lost may be the one that says that the store has the footage, and that it only expired here."""
    expired, withdrawn = judged(spool), judged(spool)
    assert len(Uploader(spool, store).run_once().uploaded) == 2
    spool.remove(spool.find(expired.id), Event.EXPIRED, "its retention ended")
    spool.remove(spool.find(withdrawn.id), Event.WITHDRAWN, "asked")
    lines = spool.chain.path.read_bytes().splitlines(keepends=True)
    [at] = [n for n, line in enumerate(lines) if b'"event":"uploaded"' in line and expired.id.encode() in line]
    spool.chain.path.write_bytes(b"".join([*lines[:at], *lines[at + 1 :]]))
    done = Uploader(spool, store).run_once()
    assert done.taken_back == [withdrawn.id]
    assert (store.root / "episodes" / expired.id / "episode.mcap").exists()


def test_a_chain_that_breaks_while_something_is_sent_stops_it(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool, footage=FOOTAGE)

    def happens() -> None:
        with spool.chain.path.open("ab") as file:
            file.write(b"no row\n")

    done = Uploader(spool, During(store.root, happens, 3)).run_once()
    assert (done.uploaded, done.taken_back) == ([], [])
    assert [(name, error.code) for name, error in done.failures] == [("chain", "disk.chain_broken")]
    assert held(store) == set()
    assert spool.find(episode.id).state is State.ACCEPTED


def test_a_broken_chain_does_not_reach_the_store_s_copy(spool: Spool, store: DirectoryStore) -> None:
    judged(spool)
    assert not Uploader(spool, store).run_once().failures
    [copy] = (store.root / "chains").iterdir()
    before = copy.read_bytes()
    with spool.chain.path.open("ab") as file:
        file.write(b"no row\n")
    done = Uploader(spool, store).run_once()
    assert [(name, error.code) for name, error in done.failures] == [("chain", "disk.chain_broken")]
    assert copy.read_bytes() == before


def test_a_store_that_cannot_take_back_is_asked_again(spool: Spool, store: DirectoryStore) -> None:
    episode = judged(spool)
    uploader = Uploader(spool, store)
    uploader.run_once()
    spool.remove(spool.find(episode.id), Event.WITHDRAWN, "asked")
    moved = store.root.rename(store.root.with_name("unmounted"))
    [(name, error)] = uploader.run_once().failures
    assert (name, isinstance(error, StoreError)) == (episode.id, True)
    moved.rename(store.root)
    assert uploader.run_once().taken_back == [episode.id]
    assert held(store) == set()


def test_what_is_barred_from_a_store() -> None:
    sides = ("episodes", "rejected")
    gone = Standing(state=State.GONE, removed=True)
    assert barred(Standing(state=State.GONE, removed=True, withdrawn=True, uploaded=True), whole=False) == sides
    assert barred(gone, whole=True) == sides[:1]
    assert barred(Standing(state=State.REJECTED), whole=True) == sides[:1]
    for standing in (Standing(state=State.GONE, removed=True, uploaded=True), Standing(state=State.ASIDE)):
        assert barred(standing, whole=True) == ()
    for standing in (gone, Standing(state=State.REJECTED), Standing(state=State.ACCEPTED)):
        assert barred(standing, whole=False) == ()
