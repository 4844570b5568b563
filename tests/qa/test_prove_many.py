"""Many episodes side by side: the same proofs in the same order, whatever dies on the way."""

from __future__ import annotations

import os

import pytest

from firsthand_edge.errors import SpecInvalid
from firsthand_edge.qa import prove_many
from firsthand_edge.qa.chains import Chains
from firsthand_edge.qa.places import find
from firsthand_edge.qa.proof import Outcome, proof_bytes
from firsthand_edge.qa.workers import Workers
from tests.qa.conftest import outcomes
from tests.qa.test_prove import made_of


class Bomb:
    """Ends the process that unpacks it, as a crash in compiled code would."""

    def __reduce__(self):
        return os._exit, (9,)


@pytest.fixture
def many(rig, takes):
    first = rig.spool.committed(rig.add(takes[0])).verdict
    for _ in range(75):
        rig.judge_like(rig.seal(takes[0]), first)
    rig.add(takes[1])
    return made_of(rig)


def test_workers_give_what_one_process_gives(many):
    alone = many.prove(footage=False, jobs=1)
    done = []
    together = prove_many.prove(find([many.spool]), many.asked(footage=False), jobs=2, progress=done.append)
    assert proof_bytes(together) == proof_bytes(alone)
    assert outcomes(together) == [Outcome.ACCEPTED] * 76 + [Outcome.REJECTED]
    assert done == sorted(done)
    assert done[-1] == 77


def test_an_episode_that_kills_its_worker_fails_alone(many):
    places = find([many.spool]).places[:40]
    chains = Chains((many.key,))
    work = [(place, chains.about(place.source, place.name)) for place in places]
    work[3] = (places[3], Bomb())
    proofs = list(Workers(many.asked(footage=False), 2, lambda _done: None).prove(work))
    assert [proof.outcome for proof in proofs].count(Outcome.FAILED) == 1
    assert [proof.outcome for proof in proofs].count(Outcome.ACCEPTED) == 39
    assert "made the process that examined it end" in proofs[3].checks[0].found


def test_a_spec_that_is_none_is_told_before_anything_is_proved(pristine):
    with pytest.raises(SpecInvalid):
        pristine.prove(spec=b"no spec at all")
