"""What a removal excuses: the rig's own footage, and nothing at a store. Evidence only where consent was withdrawn."""

from __future__ import annotations

import shutil

import pytest

from firsthand_edge.qa.proof import Outcome
from firsthand_edge.spool.chain import Event
from tests.qa.conftest import failed, outcomes, skipped
from tests.qa.test_prove import made_of


@pytest.fixture
def stored(rig, takes, tmp_path):
    """An accepted episode that lies in the store, and whose own copy the rig then deletes."""
    episode = rig.add(takes[0])
    store = tmp_path / "store"
    shutil.copytree(episode.path, store / "episodes" / episode.id)
    (store / "chains").mkdir()

    def remove(event):
        rig.spool.remove(rig.spool.find("1"), event, "its time is over")
        shutil.copy(rig.spool.chain.path, store / "chains" / f"{rig.spool.chain.name}.jsonl")

    return store, store / "episodes" / episode.id, remove


@pytest.mark.parametrize("name", ["episode.mcap", "evidence.mcap"])
@pytest.mark.parametrize("event", [Event.EXPIRED, Event.DISCARDED])
def test_what_the_rig_did_with_its_own_copy_excuses_no_file_that_a_store_lacks(rig, stored, name, event):
    store, folder, _ = stored
    removal(rig, event)
    shutil.copy(rig.spool.chain.path, store / "chains" / f"{rig.spool.chain.name}.jsonl")
    (folder / name).unlink()
    [proof] = made_of(rig).prove(store).episodes
    assert proof.outcome is Outcome.FAILED
    assert failed(proof) == {f"file:{name}"}


def removal(rig, event):
    """The row of a removal, as the rig appends it first."""
    episode = rig.spool.find("1")
    body = {"manifest": rig.spool.committed(episode).manifest_digest, "was": "uploaded", "why": "its time is over"}
    with rig.spool.chain.locked() as held:
        held.append(event, episode.id, body)


def test_nothing_is_excused_in_the_spool_before_it_lies_in_gone(rig, takes):
    folder = rig.add(takes[0]).path
    removal(rig, Event.EXPIRED)
    (folder / "episode.mcap").unlink()
    assert failed(made_of(rig).prove().episodes[0]) == {"file:episode.mcap"}


def test_in_gone_footage_is_excused_and_evidence_is_not(rig, takes):
    uploaded = rig.spool.uploaded(rig.add(takes[0]), {"store": "test"})
    gone = rig.spool.remove(uploaded, Event.EXPIRED, "its time is over").path
    made = made_of(rig)
    assert outcomes(made.prove()) == [Outcome.ACCEPTED]
    assert outcomes(made.prove(chain=rig.spool.chain.path)) == [Outcome.ACCEPTED]  # named, it stays the rig's own
    (gone / "evidence.mcap").unlink()
    assert failed(made.prove().episodes[0]) == {"file:evidence.mcap"}


def test_what_was_withdrawn_may_be_deleted_everywhere_and_is_never_accepted(rig, stored):
    store, folder, remove = stored
    remove(Event.WITHDRAWN)
    for name in ("episode.mcap", "evidence.mcap"):
        (folder / name).unlink()
    [proof] = made_of(rig).prove(store).episodes
    assert proof.outcome is Outcome.TAKEN_BACK
    assert {"file:episode.mcap", "file:evidence.mcap"} <= skipped(proof)
