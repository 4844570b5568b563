from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.restart import finish_steps, restart
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from tests.spool.takes import FOOTAGE, TORN, judged, manifest, record, sealed, torn, verdict

if TYPE_CHECKING:
    from pathlib import Path


def what(spool: Spool) -> list[str]:
    """What a restart finds; a second one finds nothing new."""
    found = [entry.what for entry in restart(spool)]
    assert restart(spool) == []
    assert check_chain(spool.chain.path.read_bytes(), spool.key.public).report.good
    return found


def where(spool: Spool, name: str) -> State:
    [episode] = [e for e in spool.episodes() if e.id == name]
    return episode.state


def copy_back(spool: Spool, name: str, now: State, was: State) -> None:
    """A crash between row and rename: the folder is still where it was."""
    (spool.root / now / name).rename(spool.root / was / name)


def test_a_clean_end_finds_nothing(spool: Spool) -> None:
    judged(spool)
    judged(spool, TORN)
    sealed(spool)
    assert what(spool) == []


def test_what_was_being_recorded_is_torn(spool: Spool) -> None:
    episode = spool.begin("sim")
    record(episode)
    assert what(spool) == ["torn"]
    assert where(spool, episode.id) is State.TORN
    assert (spool.root / "torn" / episode.id / "episode.mcap").read_bytes() == FOOTAGE


def test_an_empty_folder_is_removed(spool: Spool) -> None:
    spool.begin("sim")
    assert what(spool) == ["empty"]
    assert spool.episodes() == []


def test_a_durable_manifest_seals(spool: Spool) -> None:
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").write_bytes(manifest(episode).document(spool.key))
    assert what(spool) == ["step_finished"]
    assert where(spool, episode.id) is State.SEALED


def test_a_durable_manifest_of_a_torn_episode_seals_it_where_it_is(spool: Spool) -> None:
    episode = spool.begin("sim")
    record(episode)
    restart(spool)
    [episode] = spool.episodes(State.TORN)
    (episode.path / "manifest.json").write_bytes(manifest(episode, recovery={"kept": 1}).document(spool.key))
    assert what(spool) == ["step_finished"]
    assert where(spool, episode.id) is State.TORN
    assert spool.standing(episode).sealed


def test_a_durable_verdict_judges(spool: Spool) -> None:
    good, bad = sealed(spool), sealed(spool)
    (good.path / "verdict.json").write_bytes(verdict(spool, good).document(spool.key))
    (bad.path / "verdict.json").write_bytes(verdict(spool, bad, TORN).document(spool.key))
    assert what(spool) == ["step_finished", "step_finished"]
    assert where(spool, good.id) is State.ACCEPTED
    assert where(spool, bad.id) is State.REJECTED


@pytest.mark.parametrize(("now", "was"), [(State.SEALED, State.RECORDING), (State.SEALED, State.TORN)])
def test_a_row_without_its_rename_moves_the_folder(spool: Spool, now: State, was: State) -> None:
    episode = sealed(spool)
    copy_back(spool, episode.id, now, was)
    assert what(spool) == ["step_finished"]
    assert where(spool, episode.id) is now


def test_a_judged_row_without_its_rename(spool: Spool) -> None:
    accepted, rejected = judged(spool), judged(spool, TORN)
    copy_back(spool, accepted.id, State.ACCEPTED, State.SEALED)
    copy_back(spool, rejected.id, State.REJECTED, State.TORN)
    assert what(spool) == ["step_finished", "step_finished"]
    assert where(spool, accepted.id) is State.ACCEPTED
    assert where(spool, rejected.id) is State.REJECTED


def test_a_folder_ahead_of_the_chain_is_judged_before_it_goes_on(spool: Spool) -> None:
    episode = sealed(spool)
    copy_back(spool, episode.id, State.SEALED, State.ACCEPTED)
    assert what(spool) == ["step_finished"]
    assert where(spool, episode.id) is State.SEALED


def test_a_lost_chain_is_followed_forward_from_signed_documents(spool: Spool) -> None:
    accepted, rejected, waiting, cut = judged(spool), judged(spool, TORN), sealed(spool), torn(spool)
    spool.chain.path.unlink()
    assert what(spool) == ["step_finished"] * 6
    assert [e.state for e in spool.episodes()] == [State.ACCEPTED, State.REJECTED, State.SEALED, State.TORN]
    assert [e.id for e in spool.episodes()] == [accepted.id, rejected.id, waiting.id, cut.id]


def test_uncommitted_documents_of_another_key_count_for_nothing(spool: Spool, tmp_path: Path) -> None:
    stranger = Spool(tmp_path / "other", type(spool.key).generate())
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").write_bytes(manifest(episode).document(stranger.key))
    waiting = sealed(spool)
    (waiting.path / "verdict.json").write_bytes(verdict(spool, waiting).document(stranger.key))
    assert what(spool) == ["damaged", "torn", "damaged"]
    assert where(spool, episode.id) is State.TORN
    assert where(spool, waiting.id) is State.SEALED


def test_an_uncommitted_verdict_that_accepts_a_torn_episode_counts_for_nothing(spool: Spool) -> None:
    episode = torn(spool)
    (episode.path / "verdict.json").write_bytes(verdict(spool, episode).document(spool.key))
    assert what(spool) == ["damaged"]
    assert where(spool, episode.id) is State.TORN


@pytest.mark.parametrize("zeros", [0, 700])
def test_k55_an_uncommitted_manifest_without_content_is_moved_aside(spool: Spool, zeros: int) -> None:
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").write_bytes(bytes(zeros))
    assert what(spool) == ["damaged", "torn"]
    [found] = spool.episodes(State.TORN)
    assert (found.path / "manifest.json.aside").stat().st_size == zeros
    assert not (found.path / "manifest.json").exists()


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json"])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("accepted", [False, True])
def test_k55_a_committed_document_without_content_sets_the_episode_aside(
    spool: Spool, name: str, *, zeros: bool, accepted: bool
) -> None:
    episode = judged(spool) if accepted else judged(spool, TORN)
    other = judged(spool)
    path = episode.path / name
    path.write_bytes(bytes(path.stat().st_size) if zeros else b"")
    assert what(spool) == ["damaged"]
    assert where(spool, episode.id) is State.ASIDE
    assert where(spool, other.id) is State.ACCEPTED
    assert spool.chain.rows(episode.id)[-1].event == "damaged"


def test_k55_footage_whose_end_is_zeros_is_never_judged(spool: Spool) -> None:
    episode = sealed(spool)
    path = episode.path / "episode.mcap"
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    assert what(spool) == ["damaged"]
    assert where(spool, episode.id) is State.ASIDE


def test_k55_footage_of_another_size_is_never_uploaded(spool: Spool) -> None:
    episode = judged(spool)
    (episode.path / "episode.mcap").write_bytes(b"")
    assert what(spool) == ["damaged"]
    assert where(spool, episode.id) is State.ASIDE


def test_k55_files_that_were_never_finished_are_moved_aside(spool: Spool) -> None:
    episode = sealed(spool)
    (episode.path / ".verdict.json.0a1b2c3d.part").write_bytes(b"half")
    assert what(spool) == ["leftover"]
    assert where(spool, episode.id) is State.SEALED
    assert not list(episode.path.glob("*.part"))


def test_k54_what_was_never_recorded_is_never_counted(spool: Spool) -> None:
    for _ in range(8):
        spool.begin("sim")
    for episode in spool.episodes()[:6]:
        record(episode)
        spool.seal(episode, manifest(episode))
    assert what(spool) == ["empty", "empty"]
    assert len(spool.episodes()) == 6
    assert spool.find("6").state is State.SEALED
    assert spool.begin("sim").id[4:12] == "00000009"


def test_a_copy_of_an_episode_is_set_aside(spool: Spool) -> None:
    episode = judged(spool)
    shutil.copytree(episode.path, spool.root / "uploaded" / episode.id)
    assert what(spool) == ["doubled"]
    assert [(e.state, e.id) for e in spool.episodes()] == [(State.ACCEPTED, episode.id)]


def test_a_folder_that_is_nowhere_is_told_every_time(spool: Spool) -> None:
    episode = judged(spool)
    shutil.rmtree(episode.path)
    for _ in range(2):
        assert [(f.what, f.episode) for f in restart(spool)] == [("missing", episode.id)]


def test_what_is_no_episode_is_told_and_left(spool: Spool) -> None:
    (spool.root / "accepted" / "notes.txt").write_text("mine")
    assert [f.what for f in restart(spool)] == ["stranger"]
    assert (spool.root / "accepted" / "notes.txt").read_text() == "mine"


def test_a_torn_row_is_told_and_its_step_follows_from_the_folder(spool: Spool) -> None:
    episode = judged(spool)
    copy_back(spool, episode.id, State.ACCEPTED, State.SEALED)
    data = spool.chain.path.read_bytes()
    spool.chain.path.write_bytes(data[:-20])
    assert what(spool) == ["chain_torn", "step_finished"]
    assert where(spool, episode.id) is State.ACCEPTED


def test_the_sender_s_restart_leaves_the_recorder_s_episodes_alone(spool: Spool) -> None:
    recording, accepted, uploaded = spool.begin("sim"), judged(spool), judged(spool)
    record(recording)
    torn_one = spool.begin("sim")
    record(torn_one)
    torn_one.path.rename(spool.root / "torn" / torn_one.id)
    spool.uploaded(uploaded, {"store": "test"})
    copy_back(spool, uploaded.id, State.UPLOADED, State.ACCEPTED)
    assert [(f.what, f.episode) for f in finish_steps(spool)] == [("step_finished", uploaded.id)]
    assert [where(spool, e.id) for e in (recording, accepted, uploaded, torn_one)] == [
        State.RECORDING,
        State.ACCEPTED,
        State.UPLOADED,
        State.TORN,
    ]


@pytest.mark.parametrize(
    ("event", "old", "new"),
    [(b"judged", b'"verdict":"rejected"', b'"verdict":"accepted"'), (b"sealed", b'"torn":false', b'"torn":true')],
)
def test_a_row_that_was_changed_moves_nothing_and_a_person_decides(
    spool: Spool, event: bytes, old: bytes, new: bytes
) -> None:
    episode = judged(spool, TORN)
    good = judged(spool)
    lines = spool.chain.path.read_bytes().split(b"\n")
    named = (i for i, line in enumerate(lines) if episode.id.encode() in line)
    [at] = (i for i in named if b'"event":"' + event + b'"' in lines[i])
    lines[at] = lines[at].replace(old, new)
    assert new in lines[at]
    spool.chain.path.write_bytes(b"\n".join(lines))
    assert [entry.what for entry in restart(spool)] == ["chain_broken", "damaged"]
    assert where(spool, episode.id) is State.ASIDE
    assert where(spool, good.id) is State.ACCEPTED
    assert [entry.what for entry in restart(spool)] == ["chain_broken"]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_what_is_no_folder_is_a_stranger_and_stops_nothing(spool: Spool, state: State, kind: str) -> None:
    good = judged(spool)
    path = spool.root / state / "sim-00000042-0123456789abcdef"
    path.write_bytes(b"") if kind == "file" else path.symlink_to("nowhere")
    assert [entry.what for entry in restart(spool)] == ["stranger"]
    assert [episode.id for episode in spool.episodes()] == [good.id]


def test_a_manifest_that_is_a_folder_is_moved_out_of_the_way(spool: Spool) -> None:
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").mkdir()
    assert what(spool) == ["damaged", "torn"]
    assert where(spool, episode.id) is State.TORN
