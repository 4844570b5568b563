from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from firsthand_edge import durable
from firsthand_edge.errors import ConfigInvalid, DiskError, DiskFull, EpisodeDamaged, UsageError
from firsthand_edge.model import Reason
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import signature_fault
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.spool import Spool, open_spool
from firsthand_edge.spool.states import State
from tests.spool.takes import TORN, judged, manifest, record, sealed, torn, verdict

FROZEN = Reason(code="picture.frozen", sentence="wrist_left shows one picture 40 times", stream="wrist_left")


def places(spool: Spool) -> list[tuple[State, str]]:
    return [(episode.state, episode.id) for episode in spool.episodes()]


def test_the_way_of_an_accepted_episode(spool: Spool) -> None:
    episode = spool.begin("sim")
    assert episode.path == spool.root / "recording" / episode.id
    record(episode)
    episode = spool.seal(episode, manifest(episode))
    assert (episode.state, episode.path.parent.name) == (State.SEALED, "sealed")
    document = verdict(spool, episode)
    episode = spool.judge_done(episode, document)
    assert episode.state is State.ACCEPTED
    episode = spool.uploaded(episode, {"schema": "firsthand.receipt/1", "store": "test"})
    assert places(spool) == [(State.UPLOADED, episode.id)]
    rows = spool.chain.rows(episode.id)
    assert [row.event for row in rows] == ["sealed", "judged", "uploaded"]
    manifest_digest = digest_bytes((episode.path / "manifest.json").read_bytes())
    assert rows[0].body["manifest"] == rows[1].body["manifest"] == rows[2].body["manifest"] == manifest_digest
    assert rows[1].body["document"] == digest_bytes((episode.path / "verdict.json").read_bytes())
    assert rows[2].body["receipt"] == digest_bytes((episode.path / "receipt.json").read_bytes())
    for name in ("manifest.json", "verdict.json", "receipt.json"):
        assert signature_fault(json.loads((episode.path / name).read_bytes()), spool.key.public) is None
    assert check_chain(spool.chain.path.read_bytes(), spool.key.public).report.good
    assert restart(spool) == []


def test_a_rejected_episode_carries_its_reasons_into_the_chain(spool: Spool) -> None:
    episode = judged(spool, FROZEN)
    assert episode.state is State.REJECTED
    row = spool.chain.rows(episode.id)[-1]
    committed = spool.committed(episode)
    assert committed.verdict is not None
    assert committed.verdict.reasons == ({**FROZEN.to_json(), "recapture": True},)
    [reason] = row.body["reasons"]
    assert (reason["code"], reason["stream"], reason["sentence"]) == (FROZEN.code, FROZEN.stream, FROZEN.sentence)


def test_a_torn_episode_is_sealed_where_it_is_and_never_accepted(spool: Spool) -> None:
    episode = torn(spool)
    assert episode.state is State.TORN
    with pytest.raises(UsageError, match="is never accepted"):
        spool.judge_done(episode, verdict(spool, episode))
    assert not (episode.path / "verdict.json").exists()
    episode = spool.judge_done(episode, verdict(spool, episode, TORN))
    assert episode.state is State.REJECTED
    with pytest.raises(UsageError, match="is never accepted"):
        spool.judge_done(episode, verdict(spool, episode))


def test_judged_again(spool: Spool) -> None:
    episode = judged(spool, FROZEN)
    spool.reported(episode, {"store": "test"})
    assert spool.standing(episode).reported
    episode = spool.judge_done(episode, verdict(spool, episode))
    assert episode.state is State.ACCEPTED
    episode = spool.judge_done(episode, verdict(spool, episode, FROZEN))
    assert episode.state is State.REJECTED
    assert {p.name for p in episode.path.glob("verdict*")} == {"verdict.json", "verdict-2.json", "verdict-3.json"}
    assert [row.event for row in spool.chain.rows(episode.id)] == [
        "sealed",
        "judged",
        "uploaded",
        "rejudged",
        "rejudged",
    ]
    assert not spool.standing(episode).reported
    assert restart(spool) == []


def test_a_manifest_of_another_episode_seals_nothing(spool: Spool) -> None:
    first, second = spool.begin("sim"), spool.begin("sim")
    record(first)
    with pytest.raises(UsageError, match="cannot seal"):
        spool.seal(first, manifest(second))


@pytest.mark.parametrize("damage", ["absent", "shorter", "longer"])
def test_files_that_are_not_as_the_manifest_says_are_not_sealed(spool: Spool, damage: str) -> None:
    episode = spool.begin("sim")
    record(episode)
    made = manifest(episode)
    path = episode.path / "episode.mcap"
    data = path.read_bytes()
    path.unlink() if damage == "absent" else path.write_bytes(data[:-1] if damage == "shorter" else data + b"+")
    with pytest.raises(EpisodeDamaged, match=r"episode\.mcap"):
        spool.seal(episode, made)
    assert places(spool) == [(State.RECORDING, episode.id)]


def test_a_manifest_is_immutable(spool: Spool) -> None:
    episode = sealed(spool)
    with pytest.raises(DiskError, match="sealed already"):
        spool.seal(episode, manifest(episode))
    torn_one = torn(spool)
    with pytest.raises(DiskError, match="sealed already"):
        spool.seal(torn_one, manifest(torn_one, recovery={"kept": 2}))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"episode": "sim-00000009-0123456789abcdef"}, "judges sim-00000009"),
        ({"manifest": "blake3:" + "0" * 64}, "judges sim-"),
        ({"spec": "blake3:" + "0" * 64}, "is bound to spec"),
    ],
)
def test_a_verdict_on_something_else_judges_nothing(spool: Spool, changes: dict[str, Any], why: str) -> None:
    episode = sealed(spool)
    with pytest.raises(UsageError, match=why):
        spool.judge_done(episode, verdict(spool, episode).model_copy(update=changes))
    assert places(spool) == [(State.SEALED, episode.id)]


def test_no_step_is_skipped(spool: Spool) -> None:
    recording = spool.begin("sim")
    record(recording)
    with pytest.raises(EpisodeDamaged, match="is not sealed"):
        spool.committed(recording)
    waiting = sealed(spool)
    with pytest.raises(DiskError, match="is sealed and not accepted"):
        spool.uploaded(waiting, {"store": "test"})
    rejected = judged(spool, FROZEN)
    with pytest.raises(DiskError, match="is rejected and not accepted"):
        spool.uploaded(rejected, {"store": "test"})
    accepted = judged(spool)
    spool.uploaded(accepted, {"store": "test"})
    with pytest.raises(DiskError, match="any more"):
        spool.uploaded(accepted, {"store": "test"})


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json"])
@pytest.mark.parametrize("content", [b"", None, b"{}\n"])
def test_documents_that_are_not_those_of_the_chain_bind_nothing(spool: Spool, name: str, content: bytes | None) -> None:
    episode = judged(spool)
    path = episode.path / name
    path.write_bytes(bytes(path.stat().st_size) if content is None else content)
    with pytest.raises(EpisodeDamaged, match=name):
        spool.committed(episode)


def test_a_changed_row_counts_for_nothing(spool: Spool) -> None:
    episode = judged(spool, FROZEN)
    data = spool.chain.path.read_bytes()
    spool.chain.path.write_bytes(data.replace(b'"verdict":"rejected"', b'"verdict":"accepted"'))
    with pytest.raises(EpisodeDamaged, match="was changed"):
        spool.standing(episode)


def test_find(spool: Spool) -> None:
    first, second = sealed(spool), judged(spool)
    assert spool.find(first.id) == first
    assert spool.find("2") == second
    assert spool.find(second.id[:14]) == second
    with pytest.raises(UsageError, match="means 2 episodes"):
        spool.find("sim-")
    for text in ("", "nothing", "3"):
        with pytest.raises(UsageError, match="there is no episode"):
            spool.find(text)


def test_episodes_by_state_and_counter(spool: Spool) -> None:
    accepted, rejected, other = judged(spool), judged(spool, FROZEN), judged(spool)
    assert spool.episodes() == [accepted, rejected, other]
    assert spool.episodes(State.ACCEPTED) == [accepted, other]
    assert spool.episodes(State.TORN) == []


def test_set_aside(spool: Spool) -> None:
    episode = spool.set_aside(judged(spool), "its footage has other bytes")
    assert places(spool) == [(State.ASIDE, episode.id)]
    assert (episode.path / "episode.mcap").exists()
    assert spool.chain.rows(episode.id)[-1].body == {"was": "accepted", "why": "its footage has other bytes"}
    assert restart(spool) == []


@pytest.mark.parametrize("step", ["begin", "seal", "judge", "upload"])
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    episode = spool.begin("sim") if step == "seal" else sealed(spool) if step == "judge" else judged(spool)
    if step == "seal":
        record(episode)
    made = manifest(episode) if step == "seal" else None
    judgement = verdict(spool, episode) if step == "judge" else None

    def take() -> Any:
        if step == "begin":
            return spool.begin("sim")
        if step == "seal":
            assert made is not None
            return spool.seal(episode, made)
        if step == "judge":
            assert judgement is not None
            return spool.judge_done(episode, judgement)
        return spool.uploaded(episode, {"store": "test"})

    def full(descriptor: int, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = places(spool)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(DiskFull, match="free some space"):
            take()
    assert places(spool) == before
    take()
    assert not list(spool.root.rglob("*.part*"))
    assert check_chain(spool.chain.path.read_bytes(), spool.key.public).report.good


def test_folders_are_made_once(spool: Spool, tmp_path: Path) -> None:
    assert {p.name for p in spool.root.iterdir()} == {s.value for s in State}
    Spool(spool.root, spool.key)


@pytest.mark.parametrize("step", ["seal", "judge", "upload"])
def test_a_step_is_document_row_rename_folders_each_durable_before_the_next(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    trace: list[str] = []
    real_fsync, real_rename = os.fsync, durable.rename_new

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        name = "folder" if path.name == episode.id else "document" if path.suffix == ".part" else path.name
        trace.append(f"fsync {name}")
        real_fsync(descriptor)

    def rename(source: Path, target: Path) -> None:
        trace.append("rename folder" if target.name == episode.id else "rename document")
        real_rename(source, target)

    if step == "seal":
        episode = spool.begin("sim")
        record(episode)
        made = manifest(episode)
        with spool.chain.locked():
            pass  # its first row is not this step's
        come, left = "sealed", "recording"
    elif step == "judge":
        episode = sealed(spool)
        judgement = verdict(spool, episode)
        come, left = "accepted", "sealed"
    else:
        episode = judged(spool)
        come, left = "uploaded", "accepted"
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(durable, "rename_new", rename)
    if step == "seal":
        spool.seal(episode, made)
    elif step == "judge":
        spool.judge_done(episode, judgement)
    else:
        spool.uploaded(episode, {"store": "test"})
    assert trace == [
        "fsync document",
        "rename document",
        "fsync folder",
        "fsync chain.jsonl",
        "rename folder",
        f"fsync {come}",
        f"fsync {left}",
    ]


def test_a_key_that_did_not_sign_the_chain_is_refused(spool: Spool) -> None:
    judged(spool)
    with pytest.raises(ConfigInvalid, match=f"signed by key {spool.key.key_id}"):
        Spool(spool.root, KeyPair.generate())


def test_no_key_is_made_beside_a_chain(tmp_path: Path) -> None:
    spool = open_spool(tmp_path, create=True)
    judged(spool)
    assert open_spool(tmp_path, create=False).key.key_id == spool.key.key_id
    (tmp_path / "keys" / "rig.key").unlink()
    for create in (True, False):
        with pytest.raises(ConfigInvalid, match="restore the key"):
            open_spool(tmp_path, create=create)
    assert not (tmp_path / "keys" / "rig.key").exists()


def test_where_no_rig_ever_was_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no spool"):
        open_spool(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []


def spec_of(digest: str, **changes: Any) -> dict[str, Any]:
    return {"id": "kitchen", "version": 1, "digest": digest, "signers": ["0" * 16], "throw_away": False, **changes}


def test_a_spec_is_a_row_once_and_another_one_is_told(spool: Spool) -> None:
    assert spool.adopt_spec(spec_of("blake3:1")) is None
    assert spool.adopt_spec(spec_of("blake3:1")) is None
    judged(spool)
    before = spool.adopt_spec(spec_of("blake3:2"))
    assert before is not None
    assert before.body == spec_of("blake3:1")
    assert Spool(spool.root, spool.key).adopt_spec(spec_of("blake3:2")) is None
    back = spool.adopt_spec(spec_of("blake3:1"))
    assert back is not None
    assert back.body["digest"] == "blake3:2"
    specs = [row for row in spool.chain.rows() if row.event == "spec"]
    assert [row.body["digest"] for row in specs] == ["blake3:1", "blake3:2", "blake3:1"]
    assert all(row.episode is None for row in specs)
    assert restart(spool) == []


def test_a_state_directory_opened_by_several_at_first_start_has_one_key(tmp_path: Path) -> None:
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                spool = open_spool(tmp_path / "rig", create=True)
                judged(spool)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
    spool = open_spool(tmp_path / "rig", create=False)
    assert check_chain(spool.chain.path.read_bytes(), spool.key.public).report.good
    assert len(spool.episodes(State.ACCEPTED)) == 6
    assert sorted(p.name for p in (tmp_path / "rig" / "keys").iterdir()) == ["rig.key", "rig.pub"]


@pytest.mark.parametrize("changes", [{"signers": ["1" * 16]}, {"throw_away": True}])
def test_who_signed_a_spec_is_a_row_and_no_other_collection(spool: Spool, changes: dict[str, Any]) -> None:
    assert spool.adopt_spec(spec_of("blake3:1")) is None
    assert spool.adopt_spec(spec_of("blake3:1", **changes)) is None
    last = spool.chain.last_spec()
    assert last is not None
    assert last.body == spec_of("blake3:1", **changes)
    assert spool.adopt_spec(spec_of("blake3:1", **changes)) is None
    assert len([row for row in spool.chain.rows() if row.event == "spec"]) == 2
    before = spool.adopt_spec(spec_of("blake3:2"))
    assert before is not None
    assert before.body == spec_of("blake3:1", **changes)


@pytest.mark.parametrize("copy_in", [State.RECORDING, State.SEALED, State.UPLOADED, State.ASIDE])
def test_an_episode_in_two_folders_is_found_where_the_chain_says(spool: Spool, copy_in: State) -> None:
    episode = judged(spool, TORN)
    shutil.copytree(episode.path, spool.root / copy_in / episode.id)
    for text in (episode.id, episode.id[:15], "1"):
        assert spool.find(text) == episode
