"""One episode at several places is proved once."""

from __future__ import annotations

import shutil

from firsthand_edge.qa.proof import Outcome
from firsthand_edge.spool.chain import Event
from tests.qa.conftest import failed, outcomes
from tests.qa.test_prove import made_of, store


def test_copies_under_other_names_count_once_and_fail(made, tmp_path):
    root = store(made, tmp_path)
    for name in "abc":
        shutil.copytree(root / "episodes" / made.folder(1).name, root / "episodes" / name)
    proof = made.prove(root / "episodes")
    assert (proof.summary.accepted, proof.summary.failed, proof.summary.copies) == (2, 3, 3)
    assert proof.exit_status == 1
    twice = [episode for episode in proof.episodes if episode.outcome is Outcome.FAILED]
    assert all(failed(episode) == {"once"} for episode in twice)
    assert f"also at {root}/episodes/a" in twice[0].check("once").found
    assert "3" in proof.episodes[0].check("once").found


def test_the_place_that_is_proved_counts_whichever_is_named_first(made, tmp_path):
    bad = shutil.copytree(made.folder(1), tmp_path / "bad" / made.folder(1).name)
    (bad / "evidence.mcap").unlink()
    for paths in ((bad, made.folder(1)), (made.folder(1), bad)):
        proof = made.prove(*paths, chain=made.spool / "chain.jsonl")
        assert (proof.summary.accepted, proof.summary.failed) == (1, 1)
        by_folder = {episode.folder: episode for episode in proof.episodes}
        assert by_folder[str(made.folder(1))].outcome is Outcome.ACCEPTED


def test_a_chain_that_took_it_back_outweighs_an_older_one(rig, takes, tmp_path):
    kept = shutil.copytree(rig.add(takes[0]).path, tmp_path / "store" / "episodes" / rig.spool.find("1").id)
    chains = tmp_path / "store" / "chains"
    chains.mkdir()
    shutil.copy(rig.spool.chain.path, chains / f"{rig.spool.chain.name}.jsonl")
    rig.spool.remove(rig.spool.find("1"), Event.WITHDRAWN, "asked for")
    made = made_of(rig)
    assert outcomes(made.prove(tmp_path / "store")) == [Outcome.ACCEPTED]
    proof = made.prove(tmp_path / "store", rig.spool.root)
    assert (proof.summary.accepted, proof.summary.taken_back, proof.summary.copies) == (0, 1, 1)
    assert kept.is_dir()


def test_two_episodes_of_one_take_are_two(pristine):
    proof = pristine.prove()
    assert proof.summary.copies == 0
    assert all(not failed(episode) for episode in proof.episodes)
