"""What the next take captures: the plan in order, also after a restart; by command instead; nothing is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from firsthand_edge.daemon.agenda import Agenda
from firsthand_edge.errors import ConfigInvalid, UsageError
from firsthand_edge.spec.document import Spec, load_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.plan import Plan, parse_plan
from firsthand_edge.spool.spool import Spool
from tests.simulated import CONFIGS

if TYPE_CHECKING:
    from pathlib import Path

SPEC: Spec = load_spec(CONFIGS / "sim-spec.toml")
COMMAND = {"task": "pick-cup", "cell": "daylight", "scene": "kitchen-1", "contributor": "c-09"}


def plan(*contributors: str, name: str = "plan.toml") -> Plan:
    takes = "".join(
        '[[takes]]\ntask = "pick-cup"\ncell = "daylight"\nscene = "kitchen-1"\nseconds = 2.5\n'
        f'contributor = "{contributor}"\n'
        for contributor in contributors
    )
    return parse_plan(f'schema = "firsthand.plan/1"\n{takes}'.encode(), SPEC, place=name)


@pytest.fixture
def spool(tmp_path) -> Spool:
    return Spool(tmp_path / "spool", KeyPair.generate())


def agenda(of: Plan | None, spool: Spool, state: Path, spec: Spec = SPEC) -> Agenda:
    return Agenda(of, spec, spool, state)


def begin(planned: Agenda) -> str:
    chosen = planned.choose(None)
    planned.begun(chosen)
    return chosen.capture.contributor


def test_the_plan_is_followed_in_order_and_then_used_up(spool, tmp_path):
    planned = agenda(plan("a", "b"), spool, tmp_path)
    first = planned.choose(None)
    assert (first.capture.contributor, first.name, first.position) == ("a", "plan.toml, take 1 of 2", 1)
    assert planned.choose(None) == first  # a take that could not be begun uses nothing up
    assert [begin(planned), begin(planned)] == ["a", "b"]
    with pytest.raises(UsageError, match=r"plan\.toml is used up: all of its 2 takes were begun; add takes"):
        planned.choose(None)
    planned.restart()
    assert begin(planned) == "a"


def test_a_command_uses_nothing_of_the_plan_up(spool, tmp_path):
    planned = agenda(plan("a"), spool, tmp_path)
    chosen = planned.choose(COMMAND)
    planned.begun(chosen)
    assert (chosen.capture.contributor, chosen.name, chosen.position) == ("c-09", "", None)
    assert begin(planned) == "a"


def test_without_a_plan_each_take_must_say_what_it_captures(spool, tmp_path):
    without = agenda(None, spool, tmp_path)
    with pytest.raises(UsageError, match=r"nothing says what this take captures; name a plan .* --task, --cell"):
        without.choose(None)
    without.restart()
    assert without.to_json() == {"plan": None, "next": None}
    assert not (tmp_path / "plan-progress.json").exists()


def test_who_starts_again_goes_on_where_the_plan_was(spool, tmp_path):
    begin(agenda(plan("a", "b", "c"), spool, tmp_path))
    assert begin(agenda(plan("a", "b", "c"), spool, tmp_path)) == "b"


def test_takes_may_be_added_and_changed_behind_those_that_were_begun(spool, tmp_path):
    planned = agenda(plan("a", "b"), spool, tmp_path)
    begin(planned)
    begin(planned)
    assert begin(agenda(plan("a", "b", "d"), spool, tmp_path)) == "d"


@pytest.mark.parametrize(
    "other", [plan("x", "b"), plan("a", "b", name="other.toml"), plan("b")], ids=["changed", "other name", "shorter"]
)
def test_another_plan_begins_with_its_first_take(spool, tmp_path, other):
    begin(agenda(plan("a", "b"), spool, tmp_path))
    assert begin(agenda(other, spool, tmp_path)) == other.takes[0].capture.contributor


def test_under_another_spec_a_plan_begins_anew(spool, tmp_path):
    begin(agenda(plan("a", "b"), spool, tmp_path))
    assert begin(agenda(plan("a", "b"), spool, tmp_path, SPEC.model_copy(update={"version": 2}))) == "a"


def test_status_says_what_comes_next(spool, tmp_path):
    planned = agenda(plan("a", "b"), spool, tmp_path)
    begin(planned)
    told = planned.to_json()
    assert told["plan"] == {"name": "plan.toml", "takes": 2, "begun": 1}
    assert (told["next"]["position"], told["next"]["seconds"]) == (2, 2.5)
    assert told["next"]["capture"]["contributor"] == "b"
    begin(planned)
    assert planned.to_json()["next"] is None


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b'{"begun":1}'])
def test_progress_that_was_damaged_is_told_and_nothing_is_guessed(spool, tmp_path, data):
    (tmp_path / "plan-progress.json").write_bytes(data)
    with pytest.raises(ConfigInvalid, match=r"plan-progress\.json .*\n.*nobody knows which take is next; remove it"):
        agenda(plan("a"), spool, tmp_path)


def test_progress_of_another_form_is_of_another_plan(spool, tmp_path):
    (tmp_path / "plan-progress.json").write_bytes(b'{"begun":true}\n')
    assert begin(agenda(plan("a"), spool, tmp_path)) == "a"
