"""What a take captures: form, fit with the spec, every mistake at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firsthand_edge.errors import CaptureInvalid
from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.capture import Capture, Outcome, capture_mistakes, parse_capture
from firsthand_edge.spec.collection import Axis, AxisValue
from firsthand_edge.spec.document import Spec, load_spec
from tests.simulated import CONFIGS

GOOD: dict[str, Any] = {
    "task": "pick-cup",
    "cell": "daylight",
    "scene": "kitchen-1",
    "objects": ["cup-ceramic"],
    "contributor": "c-01",
}


SPEC: Spec = load_spec(CONFIGS / "sim-spec.toml")
"""The simulated rig's: three tasks, four cells, the axis of tasks closed, everything else open."""


def with_axes(**axes: Axis) -> Spec:
    return SPEC.model_copy(update={"axes": SPEC.axes.model_copy(update=axes)})


def shut(*listed: str) -> Axis:
    return Axis(values=tuple(AxisValue(id=name) for name in listed), distinct=1, open=False)


CLOSED: Spec = with_axes(
    scenes=shut("kitchen-1", "kitchen-2"), objects=shut("cup-ceramic", "cup-glass"), participants=shut("c-01", "c-02")
)
"""As `SPEC`, and no scene, object or contributor that is not listed."""


def mistakes(fields: dict[str, Any], spec: Spec = SPEC) -> list[str]:
    with pytest.raises(CaptureInvalid) as caught:
        parse_capture(fields, spec)
    assert caught.value.exit_status == 2
    return [str(mistake) for mistake in caught.value.mistakes]


def test_what_fits_is_taken_and_tags_the_four_axes() -> None:
    capture = parse_capture(GOOD, SPEC)
    assert capture_mistakes(capture, SPEC) == []
    assert (capture.outcome, capture.attempt, capture.recaptures) == (Outcome.UNSTATED, 1, None)
    assert capture.tags() == {
        "scenes": ("kitchen-1",),
        "tasks": ("pick-cup",),
        "objects": ("cup-ceramic",),
        "participants": ("c-01",),
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"task": "pick-cap"}, "task: the spec has no task `pick-cap`; did you mean `pick-cup`?"),
        ({"task": "juggle"}, "task: the spec has no task `juggle`; it has pick-cup, pour-water, open-jar"),
        ({"cell": "day-light"}, "cell: the spec has no cell `day-light`; did you mean `daylight`?"),
        (
            {"task": "open-jar", "cell": "failure-cases"},
            "cell: `failure-cases` does not take task `open-jar`; its tasks are pick-cup, pour-water",
        ),
        ({"outcome": "won"}, "outcome: must be one of success, failure, near_miss, unstated (it is 'won')"),
        ({"attempt": 0}, "attempt: input should be greater than or equal to 1 (it is 0)"),
        ({"attempt": "2"}, "attempt: must be a whole number (it is '2')"),
        ({"objects": ["cup-glass", "cup-glass"]}, "objects: has cup-glass twice"),
        ({"recaptures": "the last one"}, "recaptures: string should match pattern"),
        ({"stage": "trial"}, "stage: input should be 'pilot' or 'production'"),
        ({"contributor": "Ann Example"}, "contributor: string should match pattern"),
        ({"scene": None}, "scene: must be a text"),
        ({"wearer": "c-01"}, "wearer: is not known; a capture has task, cell"),
    ],
)
def test_what_does_not_fit_is_one_sentence(change: dict[str, Any], says: str) -> None:
    [mistake] = mistakes({**GOOD, **change}, SPEC)
    assert mistake.startswith(says)


def test_a_closed_axis_takes_what_it_lists_and_an_open_one_anything() -> None:
    parse_capture(GOOD, CLOSED)
    other = {**GOOD, "scene": "kitchen-9", "objects": ["cup-ceramic", "bowl"], "contributor": "c-99"}
    parse_capture(other, SPEC)
    assert [mistake.split(";")[0] for mistake in mistakes(other, CLOSED)] == [
        "scene: `kitchen-9` is not on the axis `scenes` of the spec, which is closed",
        "contributor: `c-99` is not on the axis `participants` of the spec, which is closed",
        "objects: `bowl` is not on the axis `objects` of the spec, which is closed",
    ]


def test_every_mistake_of_form_and_against_the_spec_comes_at_once() -> None:
    found = mistakes({"task": "juggle", "cell": "moon", "scene": "moon", "objects": [7], "attempt": -1}, CLOSED)
    assert [mistake.split(":")[0] for mistake in found] == [
        "objects.0",
        "contributor",
        "attempt",
        "task",
        "cell",
        "scene",
    ]


def test_a_task_that_the_axis_of_tasks_leaves_out_is_told() -> None:
    found = mistakes({**GOOD, "task": "open-jar"}, with_axes(tasks=shut("pick-cup", "pour-water")))
    assert [mistake.split(";")[0] for mistake in found] == [
        "task: `open-jar` is not on the axis `tasks` of the spec, which is closed"
    ]


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text(max_size=4), max_size=3))


@given(st.dictionaries(st.sampled_from([*Capture.model_fields, "other"]), VALUES))
def test_any_fields_give_a_capture_or_sentences(fields: dict[str, Any]) -> None:
    try:
        capture = parse_capture({**GOOD, **fields}, SPEC)
    except CaptureInvalid as exc:
        told = exc.mistakes
    else:
        told = ()
        assert capture_mistakes(capture, SPEC) == []
        canonical_bytes(capture.model_dump(mode="python"))
        assert Capture.model_validate(capture.model_dump(mode="json")) == capture
    assert bool(told) == (not _fits({**GOOD, **fields}))


def _fits(fields: dict[str, Any]) -> bool:
    try:
        return not capture_mistakes(Capture.model_validate(fields), SPEC)
    except ValidationError:
        return False


def test_a_capture_does_not_change() -> None:
    capture = Capture.model_validate(GOOD)
    with pytest.raises(ValidationError, match="frozen"):
        capture.task = "other"  # type: ignore[misc]
