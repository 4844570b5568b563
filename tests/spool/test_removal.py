"""Removal: nothing goes before its row is durable, nothing that was to go stays, nothing else goes at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand_edge.errors import DiskError, DiskFull, EpisodeDamaged, UsageError
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.episode import Episode
from firsthand_edge.spool.folder_check import check_folders
from firsthand_edge.spool.removal import REMOVABLE
from firsthand_edge.spool.restart import finish_steps, restart
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import LEGAL, State
from tests.spool.takes import FOOTAGE, TORN, judged, record, sealed, torn, verdict

EVENTS = sorted(REMOVABLE)


def recording(spool: Spool) -> Episode:
    episode = spool.begin("sim")
    record(episode)
    return episode


def gone(spool: Spool) -> Episode:
    return spool.remove(judged(spool, TORN), Event.EXPIRED, "its retention ended")


MAKE: dict[State, Callable[[Spool], Episode]] = {
    State.RECORDING: recording,
    State.TORN: torn,
    State.SEALED: sealed,
    State.ACCEPTED: judged,
    State.REJECTED: lambda spool: judged(spool, TORN),
    State.UPLOADED: lambda spool: spool.uploaded(judged(spool), {"store": "test"}),
    State.GONE: gone,
    State.ASIDE: lambda spool: spool.set_aside(judged(spool), "asked"),
}


def footage(spool: Spool) -> list[Path]:
    return [path for path in spool.root.rglob("*") if path.is_file() and path.read_bytes() == FOOTAGE]


def agrees(spool: Spool) -> None:
    checked = check_chain(spool.chain.path.read_bytes(), spool.key.public)
    assert checked.report.good
    assert check_folders(spool.root, spool.chain.path, checked.rows, checked.keyring).findings == ()
    assert restart(spool) == []


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("event", EVENTS)
def test_from_every_state_it_removes_or_refuses(spool: Spool, state: State, event: Event) -> None:
    with spool.chain.locked():
        pass  # its first row is no removal's
    episode = MAKE[state](spool)
    before, rows = sorted(episode.path.iterdir()), len(spool.chain.rows())
    if state not in REMOVABLE[event]:
        with pytest.raises(UsageError, match=f"is {state} and cannot be {event}"):
            spool.remove(episode, event, "asked")
        assert (sorted(episode.path.iterdir()), len(spool.chain.rows())) == (before, rows)
        return
    removed = spool.remove(episode, event, "asked")
    assert (removed.state, removed.path) == (State.GONE, spool.root / "gone" / episode.id)
    assert state is State.GONE or State.GONE in LEGAL[state]
    row = spool.chain.rows(episode.id)[-1]
    assert (row.event, row.body["was"], row.body["why"]) == (event, state, "asked")
    assert footage(spool) == []
    kept = {path.name for path in removed.path.iterdir()}
    documents = {path.name for path in before} - {"episode.mcap", "evidence.mcap"}
    assert kept == documents | (set() if event is Event.WITHDRAWN else {"evidence.mcap"})
    agrees(spool)


def test_the_rules_of_removal() -> None:
    assert State.ACCEPTED not in REMOVABLE[Event.EXPIRED]
    assert State.UPLOADED not in REMOVABLE[Event.DISCARDED]
    assert REMOVABLE[Event.WITHDRAWN] == frozenset(State)


def test_other_events_remove_nothing(spool: Spool) -> None:
    with pytest.raises(UsageError, match="and not by damaged"):
        spool.remove(judged(spool), Event.DAMAGED, "asked")
    assert len(footage(spool)) == 1


def test_what_expired_is_withdrawn_later_with_its_evidence_and_only_once(spool: Spool) -> None:
    episode = gone(spool)
    assert (episode.path / "evidence.mcap").exists()
    episode = spool.remove(episode, Event.WITHDRAWN, "the contributor asked")
    assert {path.name for path in episode.path.iterdir()} == {"manifest.json", "verdict.json"}
    with pytest.raises(UsageError, match="was withdrawn before"):
        spool.remove(episode, Event.WITHDRAWN, "again")
    with pytest.raises(UsageError, match="is gone and cannot be discarded"):
        spool.remove(episode, Event.DISCARDED, "again")
    agrees(spool)


def test_only_documents_stay_whatever_else_lies_in_the_folder(spool: Spool) -> None:
    episode = judged(spool, TORN)
    spool.reported(episode, {"store": "test"})
    spool.judge_done(episode, verdict(spool, episode, TORN))
    (episode.path / "preview.jpg").write_bytes(b"a face")
    (episode.path / "episode.mcap.aside").write_bytes(FOOTAGE)
    (episode.path / "parts").mkdir()
    (episode.path / "parts" / "1").write_bytes(FOOTAGE)
    (episode.path / "verdict.txt").symlink_to(episode.path / "episode.mcap")
    removed = spool.remove(episode, Event.DISCARDED, "asked")
    assert {path.name for path in removed.path.iterdir()} == {
        "manifest.json",
        "verdict.json",
        "verdict-2.json",
        "receipt.json",
        "evidence.mcap",
    }


def test_copies_that_were_set_aside_go_too(spool: Spool) -> None:
    episode, other = judged(spool), judged(spool)
    for state in ("uploaded", "rejected"):
        shutil.copytree(episode.path, spool.root / state / episode.id)
    shutil.copytree(other.path, spool.root / "rejected" / f"{other.id}.aside")
    assert {found.what for found in restart(spool)} == {"doubled"}
    shutil.copytree(spool.root / "accepted" / episode.id, spool.root / "sealed" / episode.id)
    spool.remove(episode, Event.WITHDRAWN, "asked")
    assert [path.parent.name for path in footage(spool)] == [f"{other.id}.aside", other.id] or len(footage(spool)) == 2
    assert not [path for path in spool.root.rglob(f"{episode.id}*") if path.parent.name != "gone"]
    assert restart(spool) == []


def test_a_copy_that_is_put_back_is_removed_again(spool: Spool) -> None:
    episode = judged(spool)
    shutil.copytree(episode.path, spool.root.parent / "backup")
    spool.remove(episode, Event.WITHDRAWN, "asked")
    shutil.copytree(spool.root.parent / "backup", spool.root / "accepted" / episode.id)
    checked = check_chain(spool.chain.path.read_bytes(), spool.key.public)
    found = check_folders(spool.root, spool.chain.path, checked.rows, checked.keyring).findings
    assert any("lies in accepted and in gone" in one.sentence for one in found)
    assert {entry.what for entry in restart(spool)} == {"doubled", "removed"}
    assert footage(spool) == []
    agrees(spool)


@pytest.mark.parametrize("recorder", [True, False])
def test_footage_that_comes_back_into_its_folder_is_removed_by_every_start(spool: Spool, recorder: bool) -> None:
    episode = spool.remove(judged(spool), Event.DISCARDED, "asked")
    (episode.path / "episode.mcap").write_bytes(FOOTAGE)
    [found] = restart(spool) if recorder else finish_steps(spool)
    assert (found.what, footage(spool)) == ("removed", [])
    assert "episode.mcap" in found.sentence


@pytest.mark.parametrize("state", [State.SEALED, State.RECORDING])
@pytest.mark.parametrize("event", [Event.WITHDRAWN, Event.DISCARDED])
def test_a_row_without_the_rest_of_its_step_is_followed(spool: Spool, state: State, event: Event) -> None:
    episode = MAKE[state](spool)
    with spool.chain.locked() as chain:
        chain.append(event, episode.id, {"manifest": None, "was": state, "why": "asked"})
    assert {found.what for found in finish_steps(spool)} == {"step_finished", "removed"}
    assert footage(spool) == []
    assert spool.find(episode.id).state is State.GONE
    agrees(spool)


def test_nothing_is_deleted_before_the_row_is_durable(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    episode = judged(spool)

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(DiskFull):
            spool.remove(episode, Event.WITHDRAWN, "asked")
    assert len(footage(spool)) == 1
    assert spool.find(episode.id).state is State.ACCEPTED
    synced: list[str] = []
    real = os.fsync

    def unlink(path: object, **named: object) -> None:
        assert "chain.jsonl" in synced
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda d: (synced.append(Path(f"/proc/self/fd/{d}").readlink().name), real(d))[1])
        patched.setattr(os, "unlink", unlink)
        with pytest.raises(DiskError, match="cannot be deleted"):
            spool.remove(episode, Event.WITHDRAWN, "asked")
    assert [found.what for found in restart(spool)] == ["removed"]
    assert footage(spool) == []
    agrees(spool)


def test_changed_rows_keep_no_footage_here_against_a_person_s_will(spool: Spool) -> None:
    episode = judged(spool, TORN)
    data = spool.chain.path.read_bytes()
    spool.chain.path.write_bytes(data.replace(b'"verdict":"rejected"', b'"verdict":"accepted"'))
    with pytest.raises(EpisodeDamaged, match="was changed"):
        spool.remove(episode, Event.EXPIRED, "its retention ended")
    assert spool.remove(episode, Event.WITHDRAWN, "asked").state is State.GONE
    assert footage(spool) == []
    assert [found.what for found in restart(spool)] == ["chain_broken"]


def test_an_episode_that_is_not_there_any_more(spool: Spool) -> None:
    episode = judged(spool)
    spool.remove(episode, Event.DISCARDED, "asked")
    rows = len(spool.chain.rows())
    for act in (
        lambda: spool.remove(episode, Event.WITHDRAWN, "asked"),
        lambda: spool.set_aside(episode, "late"),
        lambda: spool.uploaded(episode, {"store": "test"}),
    ):
        with pytest.raises(DiskError, match="is gone and not accepted any more"):
            act()
    assert len(spool.chain.rows()) == rows


def test_a_judgement_after_the_removal_changes_nothing(spool: Spool) -> None:
    """No step makes such a row; one that is there anyway brings nothing back."""
    episode = spool.remove(judged(spool), Event.WITHDRAWN, "asked")
    with spool.chain.locked() as chain:
        chain.append(Event.REJUDGED, episode.id, {"verdict": "accepted", "document": "blake3:0"})
        chain.append(Event.DAMAGED, episode.id, {"was": "gone", "why": "asked"})
    assert spool.standing(episode).state is State.GONE
    assert restart(spool) == []


def test_a_removed_number_is_never_given_again(spool: Spool) -> None:
    episode = spool.remove(judged(spool), Event.WITHDRAWN, "asked")
    (spool.root / "counter").unlink()
    assert spool.begin("sim").id[4:12] == "00000002"
    assert episode.id[4:12] == "00000001"
