"""The plan file: expanded in order, every mistake at once with its line, and documented field by field."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import PlanInvalid
from firsthand_edge.spec.capture import Outcome
from firsthand_edge.spec.document import Spec, load_spec
from firsthand_edge.spec.plan import Plan, PlanEntry, PlanFile, load_plan, parse_plan
from tests.simulated import CONFIGS

DOCS = Path(__file__).parents[2] / "docs"
SPEC: Spec = load_spec(CONFIGS / "sim-spec.toml")
HEAD = 'schema = "firsthand.plan/1"\n'
TAKE = '[[takes]]\ntask = "pick-cup"\ncell = "daylight"\nscene = "kitchen-1"\ncontributor = "c-01"\n'


def parse(text: str) -> Plan:
    return parse_plan(text.encode(), SPEC, place="plan.toml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(PlanInvalid) as caught:
        parse(text)
    assert caught.value.exit_status == 4
    return [str(mistake) for mistake in caught.value.mistakes]


def test_takes_come_in_order_each_as_often_as_it_says() -> None:
    plan = parse(
        HEAD + 'stage = "pilot"\nbatch = "b-1"\n' + TAKE + "times = 2\nseconds = 2.5\n" + TAKE + 'outcome = "failure"\n'
        'stage = "production"\nobjects = ["cup-glass"]\n'
    )
    assert [take.position for take in plan.takes] == [1, 2, 3]
    first, second, third = (take.capture for take in plan.takes)
    assert first == second
    assert (first.stage, first.batch, first.outcome, first.attempt) == ("pilot", "b-1", Outcome.UNSTATED, 1)
    assert (third.stage, third.batch, third.outcome) == ("production", "b-1", Outcome.FAILURE)
    assert third.objects == ("cup-glass",)
    assert [take.seconds for take in plan.takes] == [Decimal("2.5"), Decimal("2.5"), None]
    assert "attempt" not in first.model_fields_set  # so that a recapture may still count it


def test_the_plans_of_the_project_fit_their_specs() -> None:
    sim = load_plan(CONFIGS / "sim-plan.toml", SPEC)
    assert sim.name == "sim-plan.toml"
    assert len({take.capture.cell for take in sim.takes}) == 4
    assert all(take.seconds for take in sim.takes)
    load_plan(CONFIGS / "replay-aria-plan.toml", load_spec(CONFIGS / "replay-aria-spec.toml"))


def test_a_plan_may_name_its_spec_and_is_then_held_to_it() -> None:
    parse(HEAD + f'spec = "{SPEC.digest}"\n' + TAKE)
    [mistake] = mistakes(HEAD + f'spec = "blake3:{"0" * 64}"\n' + TAKE)
    assert mistake.startswith(f"line 2: spec: the spec in force is `sim-kitchen` version 1, {SPEC.digest}")


def test_every_mistake_at_once_with_its_line() -> None:
    found = mistakes(
        'schema = "firsthand.plan/2"\n'  # 1
        'spec = "latest"\n'
        'stage = "trial"\n'
        "speed = 3\n"
        "[[takes]]\n"  # 5
        'task = "pick-cap"\n'
        'cell = "daylight"\n'
        'seen = "kitchen-1"\n'
        'contributor = "Ann Example"\n'
        'outcome = "won"\n'  # 10
        "times = 0\n"
        "[[takes]]\n"
        'task = "open-jar"\n'
        'cell = "failure-cases"\n'
        'scene = "kitchen-1"\n'  # 15
        'contributor = "c-01"\n'
        "seconds = 0\n"
        'recaptures = "sim-01-00000002-0123456789abcdef"\n'
        "times = 2\n"
    )
    assert [mistake.split(": ")[:2] for mistake in found] == [
        ["line 1", "schema"],
        ["line 2", "spec"],
        ["line 3", "stage"],
        ["line 4", "speed"],
        ["line 6", "takes[0].task"],
        ["line 8", "takes[0].seen"],
        ["line 9", "takes[0].contributor"],
        ["line 10", "takes[0].outcome"],
        ["line 11", "takes[0].times"],
        ["line 14", "takes[1].cell"],
        ["line 17", "takes[1].seconds"],
        ["line 19", "takes[1].times"],
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD, "takes: is missing"),
        (HEAD + "takes = []\n", "takes: is empty"),
        (TAKE, "schema: is missing"),
        (HEAD + TAKE.replace('scene = "kitchen-1"\n', ""), "takes[0].scene: is missing"),
        (HEAD + TAKE + "seconds = 86401\n", "less than or equal to 86400"),
        (HEAD + TAKE + "attempt = 1.5\n", "takes[0].attempt"),
        (HEAD + "takes = 3\n", "takes: must be a list"),
        ("schema =\n", "is not TOML"),
    ],
)
def test_what_is_wrong_is_told(text: str, says: str) -> None:
    assert any(says in mistake for mistake in mistakes(text)), mistakes(text)


def test_a_plan_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlanInvalid, match=r"cannot be read \(No such file or directory\)"):
        load_plan(tmp_path / "absent.toml", SPEC)


def test_what_was_begun_is_named_by_what_it_captures_and_not_by_how_it_is_written() -> None:
    short, long = parse(HEAD + TAKE), parse(HEAD + "# more\n" + TAKE.replace(" = ", "   = ") + TAKE)
    assert short.digest(1) == long.digest(1)
    assert short.digest(1) != long.digest(2)
    assert parse(HEAD + TAKE.replace("c-01", "c-02")).digest(1) != short.digest(1)


@given(st.text())
def test_any_text_gives_a_sentence(text: str) -> None:
    with pytest.raises(PlanInvalid) as caught:
        parse_plan(b"= " + text.encode("utf-8", "surrogatepass"), SPEC, place="any")
    assert caught.value.mistakes


def test_every_field_is_in_the_manual() -> None:
    page = (DOCS / "capture.md").read_text()
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", page, flags=re.MULTILINE))
    fields = {field.alias or name for model in (PlanFile, PlanEntry) for name, field in model.model_fields.items()}
    assert fields <= rows, fields - rows
