"""Proofs of real episodes: what holds, what fails, what was not checked, and who is believed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from firsthand_edge.model import Reason, Verdict
from firsthand_edge.qa.proof import Outcome, Result
from firsthand_edge.spec.keys import KeyPair, key_id
from firsthand_edge.spec.signing import document_bytes, sign_document
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import open_spool
from firsthand_edge.spool.verdict_file import VerdictDocument
from tests.qa.conftest import failed, outcomes, skipped


def test_every_check_of_an_untouched_spool_holds(pristine):
    proof = pristine.prove()
    assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.REJECTED]
    for episode in proof.episodes:
        assert {check.result for check in episode.checks} == {Result.HOLDS}
        assert episode.signed_by == key_id(pristine.key) == episode.verdict.signed_by
    assert proof.exit_status == 1  # one is rejected
    assert pristine.one(1).outcome is Outcome.ACCEPTED
    assert [r.code for r in pristine.one(2).verdict.reasons] == ["picture.frozen"]
    assert pristine.one(2).claims["capture"]["scene"] == "kitchen-2"


def test_footage_is_left_out_when_asked_and_that_is_no_doubt(made):
    for path in made.spool.glob("*/*/episode.mcap"):
        path.write_bytes(b"nobody reads this")
    (made.folder(3) / "episode.mcap").unlink()
    proof = made.prove(footage=False)
    assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.REJECTED]
    assert skipped(proof.episodes[0]) == {"file:episode.mcap"}
    assert {Outcome.FAILED} == set(outcomes(made.prove()))


def store(made, tmp_path):
    """As the uploader leaves it: accepted whole, rejected without footage, the chain's copy by the key's name."""
    root = tmp_path / "store"
    for state, side in (("accepted", "episodes"), ("rejected", "rejected")):
        shutil.copytree(made.spool / state, root / side)
    (root / "chains").mkdir()
    shutil.copy(made.spool / "chain.jsonl", root / "chains" / f"{key_id(made.key)}.jsonl")
    for path in (root / "rejected").glob("*/episode.mcap"):
        path.unlink()
    return root


def test_a_store_proves_as_a_spool_does_and_footage_of_rejected_ones_is_not_checked(made, tmp_path):
    proof = made.prove(store(made, tmp_path))
    assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.REJECTED]
    assert skipped(proof.episodes[2]) == {"file:episode.mcap"}
    assert "stays on the rig" in proof.episodes[2].check("file:episode.mcap").found


def test_footage_of_an_accepted_episode_must_be_in_the_store(made, tmp_path):
    root = store(made, tmp_path)
    min((root / "episodes").glob("*/episode.mcap")).unlink()
    assert failed(made.prove(root).episodes[0]) == {"file:episode.mcap"}


def test_footage_of_a_rejected_episode_must_be_on_its_rig(made):
    (made.folder(2) / "episode.mcap").unlink()
    assert failed(made.one(2)) == {"file:episode.mcap"}


def test_without_a_chain_nothing_is_said_of_it_and_the_episode_is_not_wholly_proved(made, tmp_path):
    copy = shutil.copytree(made.folder(1), tmp_path / "elsewhere" / "a-copy")
    proof = made.prove(copy)
    assert proof.exit_status == 3
    assert proof.episodes[0].outcome is Outcome.UNKNOWN
    assert skipped(proof.episodes[0]) == {"folder", "chain.whole", "chain.sealed", "chain.judged", "chain.since"}
    assert "under another name" in proof.episodes[0].check("folder").found
    assert proof.chains == ()
    whole = made.prove(copy, chain=made.spool / "chain.jsonl")
    assert outcomes(whole) == [Outcome.ACCEPTED]


def test_a_copy_of_the_chain_that_is_older_than_the_episode_proves_nothing_either_way(made, tmp_path):
    root = store(made, tmp_path)
    [chain] = (root / "chains").iterdir()
    rows = chain.read_bytes().split(b"\n")
    chain.write_bytes(b"\n".join(rows[:5]) + b"\n")
    proof = made.prove(root)
    assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.UNKNOWN, Outcome.REJECTED]
    assert "older than the episode" in proof.episodes[1].check("chain.sealed").found


def test_a_rig_whose_own_chain_is_silent_of_an_episode_is_not_believed(made):
    path = made.spool / "chain.jsonl"
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:5]) + b"\n")
    proof = made.prove()
    assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.FAILED, Outcome.REJECTED]
    assert failed(proof.episodes[1]) == {"chain.sealed"}


def test_the_chain_of_another_rig_proves_nothing(made, rig, takes):
    rig.add(takes[0])
    proof = made.prove(made.folder(1), chain=rig.spool.chain.path)
    assert failed(proof.episodes[0]) == {"chain.whole"}
    shutil.copy(rig.spool.chain.path, made.spool / "chain.jsonl")
    assert set(outcomes(made.prove())) == {Outcome.FAILED}


def test_a_store_with_several_rigs_needs_their_keys_and_takes_each_chain_for_its_own(made, rig, takes, tmp_path):
    root = store(made, tmp_path)
    mine = rig.add(takes[0])
    shutil.copytree(mine.path, root / "episodes" / mine.id)
    shutil.copy(rig.spool.chain.path, root / "chains" / f"{rig.spool.chain.name}.jsonl")
    both = made.prove(root, keys=(made.key, rig.spool.key.public))
    assert sorted(o.value for o in outcomes(both)) == ["accepted"] * 3 + ["rejected"]
    assert {chain.name for chain in both.chains} == {key_id(made.key), rig.spool.chain.name}
    [stranger] = [e for e in made.prove(root).episodes if e.episode == mine.id]
    assert "manifest.signature" in failed(stranger)


def test_by_another_key_nothing_is_proved(made):
    other = KeyPair.generate()
    proof = made.prove(keys=(other.public,))
    assert set(outcomes(proof)) == {Outcome.FAILED}
    assert proof.episodes[0].claims == {}


def test_a_manifest_signed_again_by_another_key_fails(made):
    path = made.folder(1) / "manifest.json"
    other = KeyPair.generate()
    path.write_bytes(document_bytes(sign_document(json.loads(path.read_bytes()), other)))
    proof = made.one(1)
    assert {"manifest.signature", "chain.sealed"} <= failed(proof)
    assert skipped(proof) >= {"verdict.again"}  # nobody else's bytes reach the core
    assert proof.signed_by == other.key_id


def test_a_verdict_signed_again_by_another_key_fails(made):
    path = made.folder(1) / "verdict.json"
    path.write_bytes(document_bytes(sign_document(json.loads(path.read_bytes()), KeyPair.generate())))
    assert failed(made.one(1)) == {"verdict.signature", "chain.judged"}


@pytest.mark.parametrize("name", ["episode.mcap", "evidence.mcap", "manifest.json", "verdict.json"])
def test_files_swapped_between_two_episodes_of_one_take_fail_in_both(made, name):
    ours, theirs = made.folder(1) / name, made.folder(3) / name
    before, after = ours.read_bytes(), theirs.read_bytes()
    ours.write_bytes(after)
    theirs.write_bytes(before)
    if before == after:  # the footage of one take is one
        assert name == "episode.mcap"
        return
    assert made.one(1).outcome is made.one(3).outcome is Outcome.FAILED


def test_two_folders_that_change_their_names_fail(made):
    ours, theirs = made.folder(1), made.folder(3)
    aside = ours.with_name("aside")
    ours.rename(aside)
    theirs.rename(ours)
    aside.rename(theirs)
    for number in (1, 3):
        assert "folder" in failed(made.one(number))


def test_verdicts_of_a_later_judgement_are_in_force_and_older_ones_may_be_gone(rig, takes):
    sealed = rig.seal(takes[0])
    committed = rig.spool.committed(sealed)
    frozen = VerdictDocument.of(
        episode=sealed.id,
        manifest=committed.manifest_digest,
        spec=committed.manifest.spec.digest,
        core="0.0.1",
        cell=committed.manifest.capture.cell,
        verdict=Verdict(accepted=False, reasons=(Reason("picture.frozen", "an old core said so"),)),
        report={"schema": "firsthand.sync-report/1"},
        recaptures=lambda _code: True,
    )
    rejected = rig.spool.judge_done(sealed, frozen)
    made = made_of(rig)
    first = made.one(1)
    assert first.outcome is Outcome.FAILED  # the old core's word against the evidence
    assert "core 0.0.1 judged" in first.check("verdict.again").found
    filed = rig.judge(rejected)
    second = made.one(1)
    assert (second.outcome, second.verdict.file, second.verdict.judgement) == (Outcome.ACCEPTED, "verdict-2.json", 2)
    (filed.path / "verdict.json").unlink()
    assert made.one(1).outcome is Outcome.ACCEPTED
    # The old verdict put in the place of the new one, and the new one away: each is told by the chain.
    (filed.path / "verdict-2.json").rename(filed.path / "verdict.json")
    assert {"verdict.form", "chain.judged"} <= failed(made.one(1))


def made_of(rig):
    from tests.qa.conftest import Made

    return Made(rig.root, rig.spool.key.public, rig.signer, rig.spec_document)


def test_an_old_verdict_replayed_as_the_last_one_fails(rig, takes):
    first = rig.add(takes[0])
    again = rig.judge(first)
    made = made_of(rig)
    assert made.one(1).outcome is Outcome.ACCEPTED
    for path in again.path.glob("verdict*"):
        shutil.copy(path, again.path / "verdict-3.json")
    assert failed(made.one(1)) == {"chain.judged"}


def test_figures_of_another_core_version_are_compared_and_said(rig, takes):
    sealed = rig.seal(takes[0])
    committed = rig.spool.committed(sealed)
    from firsthand_edge.spool.judgement import judgement

    same = judgement(sealed.path, committed.manifest, committed.manifest_digest)
    rig.spool.judge_done(sealed, same.model_copy(update={"core": "9.9.9"}))
    proof = made_of(rig).one(1)
    assert proof.outcome is Outcome.ACCEPTED
    assert "core 9.9.9 judged" in proof.check("verdict.again").found


@pytest.mark.parametrize("core", ["same", "9.9.9"])
def test_a_figure_that_its_own_rig_signed_wrongly_is_found(rig, takes, core):
    sealed = rig.seal(takes[0])
    committed = rig.spool.committed(sealed)
    from firsthand_edge.spool.judgement import judgement

    honest = judgement(sealed.path, committed.manifest, committed.manifest_digest)
    better = {**honest.report, "residual_ns": {**honest.report["residual_ns"], "max": 1}}
    changes = {"report": better} if core == "same" else {"report": better, "core": core}
    rig.spool.judge_done(sealed, honest.model_copy(update=changes))
    proof = made_of(rig).one(1)
    assert "report.residual_ns.max: 1 here" in proof.check("verdict.again").found
    assert proof.outcome is (Outcome.FAILED if core == "same" else Outcome.UNKNOWN)


def test_one_recording_sealed_as_two_episodes_is_found(rig, takes):
    episode = rig.begin(takes[0])
    for path in episode.path.iterdir():
        path.unlink()
    shutil.copy(takes[0].folder / "evidence.mcap", episode.path)
    shutil.copy(takes[0].folder / "episode.mcap", episode.path)
    rig.judge(rig.spool.seal(episode, rig.manifest(episode, takes[0])))
    proof = made_of(rig).one(1)
    assert failed(proof) == {"evidence.binding"}
    assert "episode" in proof.check("evidence.binding").found


def test_a_manifest_that_claims_another_capture_than_its_evidence_is_found(rig, takes):
    from firsthand_edge.spec.capture import Outcome as Ended

    episode = rig.begin(takes[0])
    manifest = rig.manifest(episode, takes[0])
    other = manifest.capture.model_copy(update={"scene": "kitchen-9", "outcome": Ended.FAILURE})
    rig.judge(rig.spool.seal(episode, manifest.model_copy(update={"capture": other})))
    found = made_of(rig).one(1).check("evidence.binding")
    assert found.result is Result.FAILS
    assert "capture.scene" in found.found
    assert "capture.outcome" in found.found


def test_another_spec_fails_and_one_that_is_only_written_otherwise_holds(made):
    reformatted = b"# a comment\n" + made.spec.replace(b"ceiling_ms = 2.0", b"ceiling_ms    =   2.000")
    assert reformatted != made.spec
    assert made.one(1, spec=reformatted).outcome is Outcome.ACCEPTED
    other = made.spec.replace(b"ceiling_ms = 2.0", b"ceiling_ms = 2.5")
    proof = made.one(1, spec=other)
    assert failed(proof) == {"spec.document"}
    assert skipped(proof) >= {"spec.signatures", "spec.capture"}


def test_signers_that_are_asked_for_must_have_signed(made):
    assert made.one(1, signers=(made.signer.public,)).outcome is Outcome.ACCEPTED
    other = KeyPair.generate()
    proof = made.one(1, signers=(made.signer.public, other.public))
    assert failed(proof) == {"spec.signatures"}
    assert other.key_id in proof.check("spec.signatures").found


def test_a_signature_under_the_spec_that_does_not_hold_fails(rig, takes):
    episode = rig.begin(takes[0])
    manifest = rig.manifest(episode, takes[0])
    [signature] = manifest.spec.signatures
    forged = signature.model_copy(update={"ed25519": "0" * 128})
    spec = manifest.spec.model_copy(update={"signatures": (forged,)})
    rig.judge(rig.spool.seal(episode, manifest.model_copy(update={"spec": spec})))
    assert failed(made_of(rig).one(1)) == {"spec.signatures"}


def test_an_episode_that_is_not_judged_yet_is_unknown(rig, takes):
    rig.seal(takes[0])
    proof = made_of(rig).one(1)
    assert proof.outcome is Outcome.UNKNOWN
    assert proof.verdict is None
    assert "the evidence says accepted" in proof.check("verdict.again").found


@pytest.mark.parametrize("event", [Event.WITHDRAWN, Event.DISCARDED])
def test_what_the_chain_takes_back_is_taken_back(rig, takes, event):
    rig.spool.remove(rig.add(takes[0]), event, "asked for")
    proof = made_of(rig).prove()
    assert outcomes(proof) == [Outcome.TAKEN_BACK]
    assert proof.exit_status == 1
    assert f"{event.value} (row 3: asked for)" in proof.episodes[0].check("chain.since").found


def test_a_withdrawn_episode_that_still_lies_in_a_store_is_taken_back(rig, takes, tmp_path):
    kept = shutil.copytree(rig.add(takes[0]).path, tmp_path / "kept" / "copy")
    rig.spool.remove(rig.spool.find("1"), Event.WITHDRAWN, "asked for")
    [proof] = made_of(rig).prove(kept, chain=rig.spool.chain.path).episodes
    assert proof.outcome is Outcome.TAKEN_BACK


def test_footage_that_expired_takes_nothing_back(rig, takes):
    rig.spool.remove(rig.add(takes[1]), Event.EXPIRED, "its time is over")
    proof = made_of(rig).prove()
    assert outcomes(proof) == [Outcome.REJECTED]
    assert skipped(proof.episodes[0]) == {"file:episode.mcap"}


def test_what_was_set_aside_is_not_good(made):
    spool = open_spool(made.root, create=False)
    spool.set_aside(spool.find("1"), "a disk lied")
    assert made.one(1).outcome is Outcome.TAKEN_BACK


def test_after_a_rotation_old_and_new_key_both_prove_everything(rig, takes):
    rig.add(takes[0])
    old = rig.spool.key
    rotate(rig.spool, rig.root / "keys")
    rig.spool = open_spool(rig.root, create=False)
    rig.add(takes[0])
    new = rig.spool.key
    assert old.public != new.public
    made = made_of(rig)
    for key in (old.public, new.public):
        proof = made.prove(keys=(key,))
        assert outcomes(proof) == [Outcome.ACCEPTED, Outcome.ACCEPTED]
        assert [e.signed_by for e in proof.episodes] == [old.key_id, new.key_id]


def test_right_after_a_rotation_the_new_key_proves_everything(rig, takes):
    """It has signed no row of its own yet, only countersigned the one that made it the rig's."""
    rig.add(takes[0])
    old = rig.spool.key
    rotate(rig.spool, rig.root / "keys")
    new = KeyPair.load(rig.root / "keys")
    made = made_of(rig)
    for keys in ((new.public,), (old.public,), (new.public, old.public)):
        proof = made.prove(keys=keys)
        assert outcomes(proof) == [Outcome.ACCEPTED], keys
        assert proof.episodes[0].signed_by == old.key_id


def test_a_document_of_a_key_that_was_given_up_before_fails(rig, takes):
    old = rig.spool.key
    rotate(rig.spool, rig.root / "keys")
    rig.spool = open_spool(rig.root, create=False)
    path = rig.add(takes[0]).path / "verdict.json"
    path.write_bytes(document_bytes(sign_document(json.loads(path.read_bytes()), old)))
    assert failed(made_of(rig).one(1)) == {"verdict.signature", "chain.judged"}


def test_a_torn_take_proves_as_rejected(rig, takes):
    from firsthand_edge.spool.restart import restart

    began = rig.begin(takes[0])
    restart(rig.spool)
    [torn] = [e for e in rig.spool.episodes() if e.id == began.id]
    rig.judge(rig.spool.seal(torn, rig.manifest(torn, takes[0], recovery={"kept": 1})))
    proof = made_of(rig).one(1)
    assert proof.outcome is Outcome.REJECTED
    assert [reason.code for reason in proof.verdict.reasons] == ["record.torn"]


def test_what_nothing_vouches_for_is_named(made):
    (made.folder(1) / "note.txt").write_text("hello")
    (made.folder(1) / "verdict-1.json").write_text("{}")
    proof = made.one(1)
    assert proof.outcome is Outcome.ACCEPTED
    assert proof.check("others").found.startswith("note.txt, verdict-1.json:")


def test_episodes_of_the_first_version_are_read_and_what_they_cannot_say_is_said(tmp_path, pristine):
    from firsthand_edge.qa.places import find
    from firsthand_edge.qa.prove_many import prove
    from tests.spool.test_version1 import KEY

    spool = shutil.copytree(Path(__file__).parents[1] / "spool" / "version1", tmp_path / "spool")
    proof = prove(find([spool]), pristine.asked(keys=(KEY.public,)))
    assert len(proof.episodes) == 6
    for episode in proof.episodes:
        assert episode.check("manifest.form").found.startswith("firsthand.manifest/1")
        for name in ("manifest.signature", "chain.whole", "chain.sealed"):
            assert episode.check(name).result is Result.HOLDS, name
        assert failed(episode) >= {"spec.document"}  # they are of another document than the one given here
        assert episode.check("spec.capture").excused


def test_what_was_never_sealed_is_no_fraud(rig, takes):
    from firsthand_edge.spool.restart import restart

    torn = rig.begin(takes[0])
    restart(rig.spool)
    discarded = rig.begin(takes[0])
    rig.spool.remove(discarded, Event.DISCARDED, "the wearer stumbled")
    found = {e.folder.rsplit("/", 1)[-1]: e for e in made_of(rig).prove().episodes}
    assert found[torn.id].outcome is Outcome.UNKNOWN
    assert "not recovered yet" in found[torn.id].check("manifest.form").found
    assert found[discarded.id].outcome is Outcome.TAKEN_BACK
    assert "discarded before it was sealed" in found[discarded.id].check("manifest.form").found
