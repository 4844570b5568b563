"""Which chains a coverage relies on, and that neither order nor a file of anybody else changes a figure."""

from __future__ import annotations

import itertools
import shutil

import pytest

from firsthand_edge.qa.cover import cover
from firsthand_edge.qa.places import find
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import document_bytes, sign_document
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.rotation import rotate
from tests.qa.filled import Filled
from tests.spool.forging import forge


@pytest.fixture
def filled(tmp_path):
    return Filled(tmp_path / "a")


@pytest.fixture
def store(filled, tmp_path):
    """Two accepted episodes and a rejected one, with the chain as it was then."""
    filled.accepted()
    filled.accepted()
    filled.reject()
    root = tmp_path / "store"
    shutil.copytree(filled.spool.root / "accepted", root / "episodes")
    shutil.copytree(filled.spool.root / "rejected", root / "rejected")
    (root / "chains").mkdir()
    shutil.copy(filled.spool.chain.path, chain_of(root, filled))
    return root


def chain_of(root, filled):
    return root / "chains" / f"{filled.spool.chain.name}.jsonl"


def figures(coverage):
    return {
        row.cell: (row.validated_ns, row.accepted, row.rejected, row.taken_back)
        for collection in coverage.collections
        for row in collection.cells
    }


def covered(*paths, keys=()):
    return cover(find(list(paths)), keys=keys)


SECONDS = 600 * 16_666_667


def test_the_longest_copy_of_a_chain_decides_in_any_order_of_the_paths(filled, store):
    filled.spool.remove(filled.spool.find("1"), Event.WITHDRAWN, "asked for")
    expected = {"daylight": (SECONDS, 1, 1, 1)}
    paths = (filled.spool.root, store, store / "episodes")
    for order in itertools.permutations(paths):
        coverage = covered(*order)
        assert figures(coverage) == expected
        assert coverage.not_counted == ()
        assert sum("the longer one decides" in note for note in coverage.notes) == 1
        assert [chain.rows for chain in coverage.chains] == [8]
    assert figures(covered(store)) == {"daylight": (2 * SECONDS, 2, 1, 0)}


def test_two_histories_of_a_rig_count_nothing_in_any_order(filled, store):
    filled.accepted()
    forge(chain_of(store, filled), filled.spool.key, event="spec", episode=None)
    for order in ((filled.spool.root, store), (store, filled.spool.root)):
        coverage = covered(*order)
        assert (coverage.collections, coverage.chains) == ((), ())
        assert "two histories" in coverage.not_counted[0].why
        assert "from row 7 on" in coverage.not_counted[0].why
        assert len(coverage.not_counted) == 1 + 4 + 3


def test_a_chain_with_a_finding_counts_nothing_and_is_listed_first(filled, store):
    chain = chain_of(store, filled)
    chain.write_bytes(chain.read_bytes().replace(b'"verdict":"rejected"', b'"verdict":"accepted"'))
    coverage = covered(store)
    assert coverage.collections == ()
    assert coverage.not_counted[0].folder == str(chain)
    assert "was changed after it was signed" in coverage.not_counted[0].why
    assert len(coverage.not_counted) == 4


def test_a_broken_copy_beside_an_unbroken_one_is_listed_and_changes_no_figure(filled, store):
    broken = store / "chains" / "0.jsonl"
    broken.write_bytes(chain_of(store, filled).read_bytes().replace(b'"torn":false', b'"torn":true ', 1))
    coverage = covered(store)
    assert figures(coverage) == {"daylight": (2 * SECONDS, 2, 1, 0)}
    assert [row.folder for row in coverage.not_counted] == [str(broken)]


def test_what_the_rig_signed_in_a_broken_copy_keeps_its_episode_from_counting(filled, store):
    episode = filled.spool.find("1")
    filled.spool.remove(episode, Event.WITHDRAWN, "asked for")
    (store / "chains" / "0.jsonl").write_bytes(filled.spool.chain.path.read_bytes() + b"damage\n")
    coverage = covered(store)
    assert figures(coverage) == {"daylight": (SECONDS, 1, 1, 0)}
    assert any(episode.id in row.folder and "(withdrawn)" in row.why for row in coverage.not_counted)


def forged(filled, store):
    """A stranger's unbroken chain, by which the rejected episode was accepted after all; a signature for everything."""
    stranger, path = KeyPair.generate(), store / "chains" / "z.jsonl"
    [rejected] = (store / "rejected").iterdir()
    name = rejected.name
    forge(path, stranger, event="key", episode=None, body={"public_key": stranger.public.hex()})
    committed = filled.spool.committed(filled.spool.find("3"))
    body = {"manifest": committed.manifest_digest, "spec": filled.digest, "torn": False}
    forge(path, stranger, episode=name, body=body)
    good = filled.spool.committed(filled.spool.find("1")).verdict.model_copy(
        update={"episode": name, "manifest": committed.manifest_digest}
    )
    data = document_bytes(sign_document(good.model_dump(mode="json", by_alias=True), stranger))
    (rejected / "verdict.json").write_bytes(data)
    from firsthand_edge.spec.canonical import digest_bytes

    forge(path, stranger, event="judged", episode=name, body={"document": digest_bytes(data), "verdict": "accepted"})
    return stranger, path


def test_chains_of_different_rigs_are_never_merged_for_one_episode(filled, store):
    stranger, path = forged(filled, store)
    coverage = covered(store)
    assert figures(coverage) == {"daylight": (2 * SECONDS, 2, 0, 0)}
    assert ["both speak of it" in row.why for row in coverage.not_counted] == [True]
    coverage = covered(store, keys=(filled.spool.key.public,))
    assert coverage.not_counted[0].folder == str(path)
    assert f"was begun by key {stranger.key_id}" in coverage.not_counted[0].why
    assert "is not the document that the chain names" in coverage.not_counted[1].why
    assert [(chain.name, chain.asked_for) for chain in coverage.chains] == [(filled.spool.key.key_id, True)]


def test_rows_that_nobody_signed_count_nothing(filled, store):
    from firsthand_edge.spec.canonical import canonical_bytes

    row = {"at": {"boot": "", "ns": 1}, "body": {}, "episode": filled.spool.find("1").id, "event": "withdrawn"}
    row |= {"key_id": "0" * 16, "n": 0, "prev": None, "sig": "0" * 128}
    (store / "chains" / "z.jsonl").write_bytes(canonical_bytes(row) + b"\n")
    coverage = covered(store)
    assert figures(coverage) == {"daylight": (2 * SECONDS, 2, 1, 0)}
    assert ["is no chain" in row.why for row in coverage.not_counted] == [True]


def test_only_rigs_count_of_which_a_key_was_given(filled, store, tmp_path):
    other = Filled(tmp_path / "other")
    other.accepted(cell="low-light")
    paths = (store, other.spool.root)
    assert figures(covered(*paths)).keys() == {"daylight", "low-light"}
    assert not any(chain.asked_for for chain in covered(*paths).chains)
    keys = (filled.spool.key.public, other.spool.key.public)
    assert covered(*paths, keys=keys).not_counted == ()
    coverage = covered(*paths, keys=keys[:1])
    assert figures(coverage).keys() == {"daylight"}
    assert "no key of its rig was given" in coverage.not_counted[0].why


def test_any_key_that_a_rig_had_proves_its_chain(filled):
    filled.accepted()
    old = filled.spool.key
    rotate(filled.spool, filled.root / "keys")
    new = KeyPair.load(filled.root / "keys")
    for key in (old.public, new.public):
        coverage = covered(filled.spool.root, keys=(key,))
        assert figures(coverage) == {"daylight": (SECONDS, 1, 0, 0)}
        assert coverage.not_counted == ()


def test_copies_under_any_name_count_once(filled, store):
    for name in "abc":
        shutil.copytree(store / "episodes" / filled.spool.find("1").id, store / "episodes" / name)
    coverage = covered(store)
    assert figures(coverage) == {"daylight": (2 * SECONDS, 2, 1, 0)}
    assert any("counts once" in note for note in coverage.notes)


def test_a_row_that_is_being_written_is_left_out_and_told(filled):
    filled.accepted()
    with filled.spool.chain.path.open("ab") as file:
        file.write(b'{"at":{"boot"')
    coverage = covered(filled.spool.root)
    assert figures(coverage) == {"daylight": (SECONDS, 1, 0, 0)}
    assert any("without a line feed" in note for note in coverage.notes)


@pytest.mark.parametrize("what", ["episode", "manifest", "spec", "cell", "verdict"])
def test_a_verdict_of_another_episode_manifest_spec_or_cell_counts_nothing(filled, what):
    """As a rig would sign it whose software is wrong: chain and digests agree."""
    episode = filled.seal()
    committed = filled.spool.committed(episode)
    filled.accepted()
    good = filled.spool.committed(filled.spool.find("2")).verdict
    fields = {"episode": episode.id, "manifest": committed.manifest_digest}
    other = {"episode": filled.spool.find("2").id, "manifest": good.manifest, "spec": "blake3:" + "0" * 64}
    wrong = {**other, "cell": "low-light", "verdict": "rejected"}[what]
    verdict = good.model_copy(update={**fields, what: wrong})
    from firsthand_edge.spec.canonical import digest_bytes

    data = document_bytes(sign_document(verdict.model_dump(mode="json", by_alias=True), filled.spool.key))
    (episode.path / "verdict.json").write_bytes(data)
    body = {"document": digest_bytes(data), "judgement": 1, "manifest": committed.manifest_digest, "reasons": []}
    with filled.spool.chain.locked() as held:
        held.append(Event.JUDGED, episode.id, {**body, "spec": filled.digest, "verdict": "accepted"})
    coverage = covered(filled.spool.root)
    assert figures(coverage) == {"daylight": (SECONDS, 1, 0, 0)}
    [row] = coverage.not_counted
    assert episode.id in row.folder
    assert "verdict.json" in row.why
