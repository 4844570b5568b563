"""Several chain files beside an episode: which one is believed, and that a file put there makes no genuine one fail."""

from __future__ import annotations

import shutil

import pytest

from firsthand_edge.qa.chains import proving_key
from firsthand_edge.qa.proof import Outcome
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.rotation import rotate
from tests.qa.conftest import failed, outcomes
from tests.qa.test_prove import made_of, store
from tests.spool.forging import forge, forge_rotation

ALL = [Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.REJECTED]


@pytest.fixture
def beside(made, tmp_path):
    """A store, its genuine chain and the place of another file beside it."""
    root = store(made, tmp_path)
    [chain] = (root / "chains").iterdir()
    return root, chain, root / "chains" / "0.jsonl"


def strangers_chain(path, made, *, rotate=False):
    """Of a key that nobody asked for; it speaks of episode 1, and may call the rig's key its own."""
    stranger = KeyPair.generate()
    forge(path, stranger, event="key", episode=None, body={"public_key": stranger.public.hex()})
    forge(path, stranger, event="sealed", episode=made.folder(1).name, body={"manifest": "blake3:" + "0" * 64})
    if rotate:
        forge_rotation(path, stranger, KeyPair.load(made.root / "keys"))
    else:
        forge(path, stranger, event="spec", episode=None, body={"id": made.key.hex()})


@pytest.mark.parametrize("rotate", [False, True])
def test_the_chain_of_a_stranger_makes_no_genuine_episode_fail(made, beside, rotate):
    root, chain, other = beside
    strangers_chain(other, made, rotate=rotate)
    proof = made.prove(root)
    assert outcomes(proof) == ALL
    assert [record.file for record in proof.chains] == [str(chain)]
    assert any(str(other) in note and "left aside" in note for note in proof.notes)


def test_a_broken_copy_makes_no_genuine_episode_fail(made, beside):
    root, chain, other = beside
    data = chain.read_bytes()
    other.write_bytes(data.replace(b'"verdict":"accepted"', b'"verdict":"rejected"'))
    proof = made.prove(root)
    assert outcomes(proof) == ALL
    assert any("was changed after it was signed" in note for note in proof.notes)
    chain.unlink()
    assert set(outcomes(made.prove(root))) == {Outcome.FAILED}


@pytest.mark.parametrize("cut", [0, 1, 3, 20, 300])
def test_a_beginning_of_the_chain_is_the_same_chain(made, beside, cut):
    root, chain, other = beside
    data = chain.read_bytes()
    other.write_bytes(data[: len(data) - cut])
    proof = made.prove(root)
    assert outcomes(proof) == ALL
    assert len(proof.chains) == 1
    assert any("the same history" in note for note in proof.notes)


def two_histories(rig, take, tmp_path, *, first_differs):
    """The chain of a rig, and another one that the same key signed."""
    episode = rig.add(take)
    shutil.copytree(rig.root / "spool" / "accepted", tmp_path / "store" / "episodes")
    chains = tmp_path / "store" / "chains"
    chains.mkdir()
    data = rig.spool.chain.path.read_bytes()
    (chains / "b.jsonl").write_bytes(data)
    lines = data.splitlines(keepends=True)
    keep = next(n for n, line in enumerate(lines) if b'"event":"judged"' in line) + (0 if first_differs else 1)
    (chains / "a.jsonl").write_bytes(b"".join(lines[:keep]))
    forge(chains / "b.jsonl", rig.spool.key, event="spec", episode=None)
    about = episode.id if first_differs else None
    forge(chains / "a.jsonl", rig.spool.key, event="discarded" if about else "spec", episode=about, body={"why": "x"})
    return tmp_path / "store"


def test_two_unbroken_chains_that_disagree_on_an_episode_fail_it(rig, takes, tmp_path):
    [proof] = made_of(rig).prove(two_histories(rig, takes[0], tmp_path, first_differs=True)).episodes
    assert failed(proof) == {"chain.whole"}
    assert "is unbroken too, and says otherwise of this episode" in proof.check("chain.whole").found


def test_two_histories_that_agree_on_an_episode_prove_it_and_are_told(rig, takes, tmp_path):
    proof = made_of(rig).prove(two_histories(rig, takes[0], tmp_path, first_differs=False))
    assert outcomes(proof) == [Outcome.ACCEPTED]
    assert len(proof.chains) == 2
    assert any("wrote two histories" in note for note in proof.notes)


def test_a_row_of_the_rig_stays_its_word_in_a_file_that_was_broken(rig, takes, tmp_path):
    """Whoever hides a withdrawal behind an older copy must not be helped by damage to the newer one."""
    episode = rig.add(takes[0])
    shutil.copytree(episode.path, tmp_path / "store" / "episodes" / episode.id)
    chains = tmp_path / "store" / "chains"
    chains.mkdir()
    shutil.copy(rig.spool.chain.path, chains / "old.jsonl")
    rig.spool.remove(episode, Event.WITHDRAWN, "asked for")
    (chains / "new.jsonl").write_bytes(rig.spool.chain.path.read_bytes() + b"damage\n")
    [proof] = made_of(rig).prove(tmp_path / "store").episodes
    assert failed(proof) == {"chain.whole"}
    assert "(withdrawn)" in proof.check("chain.whole").found


def test_of_several_keys_the_earliest_of_the_chain_proves_it(rig, takes):
    rig.add(takes[0])
    old, other = rig.spool.key.public, KeyPair.generate().public
    rotate(rig.spool, rig.root / "keys")
    new = KeyPair.load(rig.root / "keys").public
    data = rig.spool.chain.path.read_bytes()
    assert proving_key(data, (other, new, old)) == old
    assert proving_key(data, (other, new)) == new
    assert proving_key(data, (other,)) is None
    assert proving_key(b"", (other,)) is None
