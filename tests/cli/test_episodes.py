"""`episodes judge`: the same verdict, another one, and filing that."""

from __future__ import annotations

import pytest

from firsthand_edge.cli import run
from firsthand_edge.model import Reason, Verdict
from firsthand_edge.spool.judgement import judgement
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import open_spool
from firsthand_edge.spool.verdict_file import VerdictDocument
from tests.qa.episodes import Rig


@pytest.fixture(scope="module")
def take(tmp_path_factory):
    return Rig(tmp_path_factory.mktemp("take")).take(seconds=0.7)


def judge(rig: Rig, episode: str, *more: str) -> int:
    return run(["episodes", "judge", episode, "--state", str(rig.root), *more])


def test_the_same_verdict_comes_again_also_after_a_rotation(tmp_path, take, capsys):
    rig = Rig(tmp_path)
    episode = rig.add(take)
    assert judge(rig, episode.id, "--file") == 0
    assert "equal in every field to verdict.json" in capsys.readouterr().out
    rotate(rig.spool, tmp_path / "keys")
    assert judge(rig, episode.id) == 0
    assert not list(episode.path.glob("verdict-*"))


def test_another_verdict_is_told_and_filed_when_asked_to(tmp_path, take, capsys):
    rig = Rig(tmp_path)
    episode = rig.seal(take)
    committed = rig.spool.committed(episode)
    right = judgement(episode.path, committed.manifest, committed.manifest_digest)
    wrong = VerdictDocument.of(
        episode=episode.id,
        manifest=right.manifest,
        spec=right.spec,
        core="0.0.1",
        cell=right.cell,
        verdict=Verdict(accepted=False, reasons=(Reason(code="sync.ceiling", sentence="an older core was wrong"),)),
        report=right.report,
        recaptures=lambda _: True,
    )
    rig.spool.judge_done(episode, wrong)
    assert judge(rig, episode.id) == 3
    said = capsys.readouterr()
    assert "DIFFERS FROM verdict.json" in said.out
    assert "compare core versions (0.0.1 then" in said.err
    assert judge(rig, episode.id, "--file") == 0
    assert "filed; the episode is accepted" in capsys.readouterr().out
    spool = open_spool(rig.root, create=False)
    assert spool.find(episode.id).state.value == "accepted"
    assert [row.event for row in spool.chain.rows(episode.id)] == ["sealed", "judged", "rejudged"]
    assert judge(rig, episode.id) == 0
    assert "equal in every field to verdict-2.json" in capsys.readouterr().out
