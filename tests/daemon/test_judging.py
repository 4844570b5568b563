"""From closed files to a filed verdict: only the evidence that the manifest binds is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from firsthand_edge import _core
from firsthand_edge.daemon.judging import bind, judge_and_file, recover_torn, summary_of
from firsthand_edge.errors import CannotJudge, ChainBroken, EpisodeDamaged
from firsthand_edge.model import DeviceInfo
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.manifest import Ended
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from tests.simulated import record_take

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.spool.episode import Episode


@pytest.fixture
def spool(tmp_path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.generate())


def sealed(spool: Spool, folder: Path, *, number: int = 1) -> Episode:
    """A take of the simulated rig, sealed in the spool and not judged yet."""
    made = record_take(folder, seconds=4, number=number)
    episode = spool.begin("sim-01")
    for name in ("episode.mcap", "evidence.mcap"):
        (made / name).rename(episode.path / name)
    evidence = _core.read_evidence(episode.path / "evidence.mcap")
    manifest = bind(
        take={**json.loads(evidence["take"]), "episode": episode.id},
        devices=[DeviceInfo.from_json(d) for d in json.loads(evidence["devices"])],
        balance={},
        files={name: _core.digest_file(episode.path / name) for name in ("episode.mcap", "evidence.mcap")},
        ended=Ended(how="stopped"),
    )
    return spool.seal(episode, manifest)


def test_a_verdict_moves_the_episode_and_can_be_asked_for(spool, tmp_path):
    episode = sealed(spool, tmp_path, number=2)
    with pytest.raises(CannotJudge, match="not judged yet"):
        summary_of(spool, episode.id)
    summary = judge_and_file(spool, episode)
    assert summary["state"] == "rejected"
    assert [reason["code"] for reason in summary["report"]["reasons"]] == ["picture.frozen"]
    assert summary_of(spool, episode.id) == summary


@pytest.mark.parametrize(
    ("old", "new"), [(b"picture/png", b"qicture/png"), (b'"reorder_bound":0', b'"reorder_bound":9')]
)
def test_evidence_that_was_changed_after_sealing_gives_no_verdict(spool, tmp_path, old, new):
    episode = sealed(spool, tmp_path, number=2)
    path = episode.path / "evidence.mcap"
    data = path.read_bytes()
    changed = data.replace(old, new).replace(old.replace(b":", b": "), new.replace(b":", b": "))
    assert changed != data
    path.write_bytes(changed)
    with pytest.raises(EpisodeDamaged, match="it was changed after it was sealed"):
        judge_and_file(spool, episode)
    assert [e.state for e in spool.episodes()] == [State.SEALED]
    assert any("set aside" in said for said in recover_torn(spool))
    assert [e.state for e in spool.episodes()] == [State.ASIDE]


def test_a_good_take_waits_while_the_chain_is_broken_and_is_accepted_once_it_is_restored(spool, tmp_path):
    good, frozen = sealed(spool, tmp_path / "a"), sealed(spool, tmp_path / "b", number=2)
    copy = spool.chain.path.read_bytes()
    spool.chain.path.write_bytes(copy + b"no row\n")
    with pytest.raises(ChainBroken):
        judge_and_file(spool, good)
    said = recover_torn(spool)
    assert any(f"{good.id}: stays in sealed" in sentence for sentence in said)
    assert [spool.find(e.id).state for e in (good, frozen)] == [State.SEALED, State.REJECTED]
    spool.chain.path.write_bytes(copy)
    recover_torn(Spool(spool.root, spool.key))
    assert spool.find(good.id).state is State.ACCEPTED


def test_a_take_of_which_nothing_is_left_is_rejected_as_torn_with_a_whole_report(spool):
    episode = spool.begin("sim-01")
    (episode.path / "episode.mcap").write_bytes(b"")
    (episode.path / "evidence.mcap").write_bytes(b"\x89MCAP0\r\n\x00\x00")
    recover_torn(spool)
    report = summary_of(spool, episode.id)["report"]
    assert report["verdict"] == "rejected"
    assert "record.torn" in [reason["code"] for reason in report["reasons"]]
    for name in ("reference", "period_ns", "ceiling_ns", "statistic", "guard_band", "span", "residual_ns"):
        assert name in report
    assert {"clock.*", "consent.*", "calibration.*"} <= set(report["not_judged"])
