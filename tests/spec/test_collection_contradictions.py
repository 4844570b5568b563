"""Tasks, cells, axes, population and geometry that cannot be true at once."""

from __future__ import annotations

import pytest

from tests.spec.test_document import mistakes, parse
from tests.spec.whole import WHOLE

TASK = WHOLE[WHOLE.index("[[tasks]]") : WHOLE.index("[[cells]]")]
CELL = '[[cells]]\nid = "{}"\ntitle = "T"\ncondition = "c"\nhours = 1\nstaffing_weeks = 1\n'


def value(axis: str, id_: str, more: str = "") -> str:
    return f'\n[[axes.{axis}.values]]\nid = "{id_}"\n{more}\n'


def changed(*changes: tuple[str, str], more: str = "") -> str:
    text = WHOLE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text + more


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        (
            changed(('field = "handedness"', 'field = "age"')),
            "population.screening[1].field",
            "`age` is there 2 times; name each screening field once",
        ),
        (
            changed(('id = "pour-water"', 'id = "pick-cup"')),
            "tasks[1].id",
            "`pick-cup` is there 2 times; name each task once",
        ),
        (
            changed(('verb = "pour"\nnoun = "water"', 'verb = "Pick up"\nnoun = "Cup"')),
            "tasks[1].noun",
            "`pick up cup` is there 2 times; name each pair of verb and noun once",
        ),
        (changed(more=CELL.format("daylight")), "cells[2].id", "`daylight` is there 2 times; name each cell once"),
        (
            changed(('tasks = ["pick-cup", "pour-water"]', 'tasks = ["pick-cup", "pick-cup"]')),
            "cells[0].tasks[1]",
            "`pick-cup` is in the list twice",
        ),
        (
            changed(('tasks = ["pick-cup", "pour-water"]', 'tasks = ["fly"]')),
            "cells[0].tasks[0]",
            "no task is called `fly`; name one of pick-cup, pour-water",
        ),
        (
            changed(
                ('tasks = ["pick-cup", "pour-water"]', 'tasks = ["pick-cup"]'),
                ("hours = 4\nstaffing_weeks = 2", 'hours = 4\nstaffing_weeks = 2\ntasks = ["pick-cup"]'),
            ),
            "tasks[1].id",
            "no cell is for `pour-water`; name it in a cell, or remove the task",
        ),
        (
            changed(('id = "kitchen-2"', 'id = "kitchen-1"')),
            "axes.scenes.values[1].id",
            "`kitchen-1` is there 2 times; name each value of axes.scenes once",
        ),
        (
            changed(("distinct = 2\nopen = false", "distinct = 3\nopen = false")),
            "axes.scenes.distinct",
            "asks for 3 different values, and the axis is closed with 2",
        ),
        (
            changed(
                (
                    "distinct = 4\nopen = true\n\n[[axes.participants.values]]",
                    "distinct = 4\nopen = false\n[x]\n[[x.y]]",
                )
            ),
            "axes.participants.open",
            "is false, and no value is named; name the values, or write open = true",
        ),
        (
            changed(("hours = 3.25", "hours = 14.75")),
            "axes.scenes.values[0].hours",
            "asks for 14.75 h, and all cells together have 14.5 h",
        ),
        (
            changed(("hours = 3.25", "hours = 11.75")),
            "axes.scenes.values",
            "ask for 14.75 h together, and all cells together have 14.5 h",
        ),
        (
            changed(more=value("participants", "p-2", "hours = 14")),
            "axes.participants.values",
            "ask for 15 h together",
        ),
        (
            changed(more=value("objects", "jug", "hours = 15")),
            "axes.objects.values[1].hours",
            "asks for 15 h, and all cells together have 14.5 h",
        ),
        (
            changed(more=value("tasks", "juggle-balls")),
            "axes.tasks.values[1].id",
            "no task is called `juggle-balls`; name one of pick-cup, pour-water",
        ),
        (
            changed(("distinct = 2\nopen = true", "distinct = 3\nopen = true")),
            "axes.tasks.distinct",
            "asks for 3 different tasks; the document has 2",
        ),
        (
            changed(("distinct = 2\nopen = true", "distinct = 1\nopen = false")),
            "tasks[1].id",
            "`pour-water` is no value of axes.tasks, which is closed; name it there, or open the axis",
        ),
        (
            changed(
                ('tasks = ["pick-cup", "pour-water"]', 'tasks = ["pour-water"]'),
                ('title = "Cups"\nhours = 2', "hours = 4.5"),
            ),
            "axes.tasks.values[0].hours",
            "`pick-cup` asks for 4.5 h, and the cells that are for it have 4 h",
        ),
        (
            changed(('stream = "head"\nkeep', 'stream = "chest"\nkeep')),
            "capture.geometry[0].stream",
            "no stream is called `chest`; name one of hand_pose, head, imu, wrist",
        ),
        (
            changed(("required = true", "required = false"), ("epipolar_px_max = 0.8\n", "")),
            "capture.geometry[1].stream",
            "`wrist` is not required",
        ),
        (
            changed(('stream = "wrist"\nkeep = "thumb"', 'stream = "head"\nkeep = "both hands"')),
            "capture.geometry[1].keep",
            "says the same of `head` as a row before; remove it",
        ),
    ],
)
def test_a_contradiction_is_one_sentence_at_its_place(text: str, place: str, sentence: str) -> None:
    found = [m.split(": ", 2)[1:] for m in mistakes(text)]
    assert any(at == place and sentence in said for at, said in found), found


def test_what_is_no_contradiction() -> None:
    parse(changed(more=value("objects", "jug", "hours = 14.5")))  # a take may hold several objects
    parse(changed(('stream = "wrist"\nkeep = "thumb"', 'stream = "head"\nkeep = "thumb"')))
    parse(changed(('tasks = ["pick-cup", "pour-water"]', 'tasks = ["pick-cup"]')))  # the other cell is for every task
    parse(changed(("hours = 3.25", "hours = 11.5")))  # exactly the budget


def test_nothing_is_said_of_what_cannot_be_read() -> None:
    """A row whose name cannot be read may be the one that is missed; one whose name can be read is not missed."""
    unnamed = mistakes(changed(('id = "pour-water"', "id = 7")))
    assert [m.split(": ")[1] for m in unnamed] == ["tasks[1].id"]
    named = mistakes(changed(('verb = "pour"', "verb = 7"), ('keep = "thumb"', "keep = 7")))
    assert [m.split(": ")[1] for m in named] == ["capture.geometry[1].keep", "tasks[1].verb"]
    (hours,) = mistakes(changed(("hours = 10.5", "hours = -1")))
    assert "cells[0].hours" in hours
