from __future__ import annotations

from firsthand_edge.spool.states import LEGAL, State, may_move


def test_every_state_says_where_it_leads() -> None:
    assert LEGAL.keys() == set(State)


def test_a_torn_episode_is_never_accepted_and_nothing_is_promoted_without_judgement() -> None:
    assert not may_move(State.TORN, State.ACCEPTED)
    assert not may_move(State.RECORDING, State.ACCEPTED)
    assert {s for s in State if may_move(s, State.UPLOADED)} == {State.ACCEPTED}
    assert {s for s in State if may_move(s, State.ACCEPTED)} == {State.SEALED, State.REJECTED}


def test_nothing_comes_back_from_gone() -> None:
    assert not LEGAL[State.GONE]
