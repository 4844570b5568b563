"""The link from a rejected episode to the take in its place: what may be linked, what is completed, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from firsthand_edge.daemon.agenda import Agenda
from firsthand_edge.daemon.recaptures import recapture_links, recaptured_by
from firsthand_edge.errors import CaptureInvalid
from firsthand_edge.model import Reason
from firsthand_edge.spec.capture import Capture
from firsthand_edge.spec.document import Spec, load_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.episode import Episode
from firsthand_edge.spool.manifest import SpecIdentity
from firsthand_edge.spool.spool import Spool
from tests.simulated import CONFIGS
from tests.spool.takes import manifest, record, verdict

SPEC: Spec = load_spec(CONFIGS / "sim-spec.toml")
FIRST = Capture(
    task="pour-water",
    cell="low-light",
    scene="kitchen-2",
    objects=("jug-2l", "cup-glass"),
    contributor="c-01",
    consent_record="r-01",
    batch="b-1",
    outcome="success",  # type: ignore[arg-type]  # as a plan says it
)
FROZEN = Reason("picture.frozen", "the pictures are the same")
FAILED = Reason("take.outcome_not_retained", "the attempt was a failure")


@pytest.fixture
def spool(tmp_path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.generate())


def made(
    spool: Spool, capture: Capture | None, *reasons: Reason, digest: str = SPEC.digest, judge: bool = True
) -> Episode:
    """A sealed episode, judged with these reasons against it."""
    episode = spool.begin("sim")
    record(episode)
    identity = SpecIdentity(id=SPEC.id, version=SPEC.version, digest=digest)
    episode = spool.seal(episode, manifest(episode, capture=capture, spec=identity))
    return spool.judge_done(episode, verdict(spool, episode, *reasons, spec=digest)) if judge else episode


def chosen(spool: Spool, tmp_path, **fields: Any) -> Capture:
    return Agenda(None, SPEC, spool, tmp_path).choose(fields).capture


def refused(spool: Spool, tmp_path, **fields: Any) -> str:
    with pytest.raises(CaptureInvalid) as caught:
        chosen(spool, tmp_path, **fields)
    [mistake] = caught.value.mistakes
    return str(mistake)


def again(episode: Episode, **changes: Any) -> Capture:
    return FIRST.model_copy(update={"recaptures": episode.id, "attempt": 2, **changes})


def test_what_is_not_said_is_taken_from_the_rejected_episode_but_its_outcome(spool, tmp_path):
    before = made(spool, FIRST, FROZEN)
    for named in (before.id, before.id[:14], "1"):
        capture = chosen(spool, tmp_path, recaptures=named)
        assert capture == FIRST.model_copy(update={"recaptures": before.id, "attempt": 2, "outcome": "unstated"})
    other = chosen(spool, tmp_path, recaptures=before.id, scene="kitchen-1", attempt=5, outcome="failure")
    assert (other.scene, other.attempt, other.outcome) == ("kitchen-1", 5, "failure")


def test_a_rejected_recapture_may_be_recaptured_and_so_may_the_first(spool, tmp_path):
    first = made(spool, FIRST, FROZEN)
    second = made(spool, again(first), FROZEN)
    assert recaptured_by(first.id, spool) is None
    assert chosen(spool, tmp_path, recaptures=first.id).attempt == 2
    assert chosen(spool, tmp_path, recaptures=second.id).attempt == 3
    third = made(spool, again(second, attempt=3))
    assert recapture_links(spool) == {first.id: [(second.id, False)], second.id: [(third.id, True)]}
    for episode in (first, second):
        assert recaptured_by(episode.id, spool) == third.id
        assert f"is recaptured already, by {third.id}, which was accepted" in refused(
            spool, tmp_path, recaptures=episode.id
        )


@pytest.mark.parametrize(
    ("changes", "fields", "says"),
    [
        ({"reasons": ()}, {}, "was accepted; only a rejected episode is recaptured"),
        ({"judge": False}, {}, "is sealed and not judged yet"),
        (
            {"reasons": (FAILED,)},
            {},
            "was rejected for take.outcome_not_retained, and the spec does not call for",
        ),
        ({"digest": "blake3:" + "5" * 64}, {}, "which is a different collection"),
        ({}, {"task": "pick-cup"}, "is of task pour-water, and this take is of task pick-cup"),
        ({}, {"cell": "daylight"}, "is of cell low-light, and this take is of cell daylight"),
        ({}, {"attempt": 1}, "is attempt 1, and this take says attempt 1"),
    ],
)
def test_what_cannot_be_recaptured_is_refused_before_anything_is_begun(spool, tmp_path, changes, fields, says):
    how = {"reasons": (FROZEN,), **changes}
    before = made(spool, FIRST, *how.pop("reasons"), **how)
    sentence = refused(spool, tmp_path, recaptures=before.id, **fields)
    assert sentence.startswith(f"recaptures: {before.id} ")
    assert says in sentence
    assert [episode.id for episode in spool.episodes()] == [before.id]


def test_one_reason_that_calls_for_recapture_is_enough(spool, tmp_path):
    before = made(spool, FIRST, FROZEN, FAILED)
    assert chosen(spool, tmp_path, recaptures=before.id).recaptures == before.id


def test_an_episode_that_is_not_there_and_every_other_mistake_come_at_once(spool, tmp_path):
    with pytest.raises(CaptureInvalid) as caught:
        chosen(spool, tmp_path, recaptures="sim-99", task="juggle", cell="moon", scene="kitchen-1", contributor="c-01")
    assert [mistake.split(":")[0] for mistake in caught.value.mistakes] == ["recaptures", "task", "cell"]
    assert "there is no episode 'sim-99'" in str(caught.value)


def test_an_episode_that_does_not_tell_what_it_captured_is_refused(spool, tmp_path):
    before = made(spool, None, FROZEN)
    fields = FIRST.model_dump(mode="json", exclude_none=True)
    assert "nothing tells what" in refused(spool, tmp_path, **{**fields, "recaptures": before.id})


@pytest.mark.parametrize(
    ("event", "stands"), [(Event.WITHDRAWN, False), (Event.DISCARDED, False), (Event.EXPIRED, True), (None, True)]
)
def test_a_recapture_that_was_taken_back_stands_in_nobody_s_place(spool, tmp_path, event, stands):
    first = made(spool, FIRST, FROZEN)
    later = made(spool, again(first))
    if event is Event.EXPIRED:
        later = spool.uploaded(later, {"store": "test"})
    if event is not None:
        spool.remove(later, event, "asked")
    assert recapture_links(spool) == {first.id: [(later.id, stands)]}
    assert recaptured_by(first.id, spool) == (later.id if stands else None)
    if stands:
        assert "is recaptured already" in refused(spool, tmp_path, recaptures=first.id)
    else:
        assert chosen(spool, tmp_path, recaptures=first.id).attempt == 2


def test_nothing_is_taken_over_from_what_was_withdrawn(spool, tmp_path):
    before = made(spool, FIRST, FROZEN)
    spool.remove(before, Event.WITHDRAWN, "asked")
    says = f"recaptures: {before.id} was withdrawn; nothing of it is taken over, say what this take captures"
    assert refused(spool, tmp_path, recaptures=before.id) == says
    fields = FIRST.model_dump(mode="json", exclude_none=True)
    assert "was withdrawn" in refused(spool, tmp_path, **{**fields, "recaptures": before.id, "attempt": 2})


@pytest.mark.parametrize("event", [Event.DISCARDED, Event.EXPIRED])
def test_a_rejected_one_whose_footage_is_gone_may_still_be_recaptured(spool, tmp_path, event):
    before = made(spool, FIRST, FROZEN)
    spool.remove(before, event, "asked")
    assert chosen(spool, tmp_path, recaptures=before.id).attempt == 2
    accepted = made(spool, FIRST)
    spool.remove(accepted, Event.DISCARDED, "asked")
    assert "was accepted; only a rejected" in refused(spool, tmp_path, recaptures=accepted.id)


def test_what_was_set_aside_is_no_target(spool, tmp_path):
    before = made(spool, FIRST, FROZEN)
    spool.set_aside(before, "asked")
    says = f"recaptures: {before.id} was set aside, so nothing tells what it captured"
    assert refused(spool, tmp_path, recaptures=before.id) == says


def test_what_cannot_be_read_links_nothing(spool):
    first = made(spool, FIRST, FROZEN)
    later = made(spool, again(first))
    (later.path / "manifest.json").write_bytes(b"{}")
    assert recapture_links(spool) == {}
