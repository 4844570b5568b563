"""What differs between two documents: nothing exactly when their digests agree; otherwise every field, by place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.spec.differences import Difference, Group, differences
from firsthand_edge.spec.document import Spec
from tests.spec.test_digest import SET, SMALL, another, at, named, parse, whole, with_
from tests.spec.whole import WHOLE


def between(old: str, new: str) -> list[tuple[str, str, str | None, str | None]]:
    return [(d.group.value, d.place, d.old, d.new) for d in differences(parse(old), parse(new))]


def test_one_document_however_it_is_written() -> None:
    assert differences(parse(WHOLE), parse("# a comment\n" + WHOLE.replace("hours = 4\n", "hours = 4.000\n"))) == ()


@pytest.mark.parametrize("place", SET, ids=str)
def test_every_field_that_is_changed_is_told_by_its_place(place: tuple[Any, ...]) -> None:
    changed = Spec.model_validate(with_(whole(), place, another(place, at(whole(), place))))
    found = differences(parse(WHOLE), changed)
    *tables, last = named(place).split(".")
    assert found
    for difference in found:
        assert difference.place.startswith(tables[0] if tables else last)
        assert difference.old != difference.new
        if difference.means:  # a field; else a row that goes by another name now
            assert difference.place.split(".")[-1] == last
        else:
            assert last in ("id", "name", "field", "stream")


@given(st.lists(st.sampled_from(SET), max_size=4), st.booleans())
def test_something_differs_exactly_when_the_digests_do(places: list[tuple[Any, ...]], reverse: bool) -> None:
    document = whole()
    for place in places:
        document = with_(document, place, another(place, at(document, place)))
    if reverse:
        document = {k: tuple(v[::-1]) if isinstance(v, list | tuple) else v for k, v in document.items()}
    changed = Spec.model_validate(document)
    assert (differences(parse(WHOLE), changed) == ()) == (changed.digest == parse(WHOLE).digest)


def test_lists_that_read_alike_and_are_not() -> None:
    one = WHOLE.replace('purposes = ["training", "evaluation"]', 'purposes = ["evaluation, training"]')
    assert [d[1] for d in between(WHOLE, one)] == ["consent.purposes"]


def test_groups_and_sentences() -> None:
    new = (
        WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = 2.0")
        .replace('title = "Daylight"', 'title = "Day"')
        .replace("hours = 10.5", "hours = 12")
        .replace('condition = "windows"', 'condition = "windows, no lamp"')
        .replace("recapture = true", "recapture = false")
        .replace("perpetual = false", "perpetual = true")
        .replace("consent_days = 1000\n", "")
        .replace('success = "held"', 'success = "held high"')
        .replace('gap = "Liquids."\n', "")
    )
    assert between(WHOLE, new) == [
        ("criteria", "tasks[pick-cup].success", "held", "held high"),
        ("criteria", "cells[daylight].condition", "windows", "windows, no lamp"),
        ("criteria", "sync.ceiling_ms", "1.5", "2"),
        ("criteria", "reject.recapture", "yes", "no"),
        ("cells and targets", "cells[daylight].hours", "10.5", "12"),
        ("terms", "licence.perpetual", "no", "yes"),
        ("terms", "retention.consent_days", "1000", None),
        ("wording", "gap", "Liquids.", None),
        ("wording", "cells[daylight].title", "Daylight", "Day"),
    ]
    (first, *_) = differences(parse(WHOLE), parse(WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = 2.0")))
    assert first.to_json() == {
        "group": "criteria",
        "place": "sync.ceiling_ms",
        "old": "1.5",
        "new": "2",
        "means": "`sync.ceiling`: the chosen statistic of the residual may reach this and not exceed it",
    }


def test_whole_rows_come_and_go() -> None:
    stream = '\n[[streams]]\nname = "depth"\nkind = "triggered"\nrate_hz = 60\n'
    assert between(SMALL, SMALL + stream) == [
        ("criteria", "streams[depth]", None, "name depth, kind triggered, rate_hz 60, decimate 1, required yes")
    ]
    assert between(SMALL + stream, SMALL)[0][2:] == (
        "name depth, kind triggered, rate_hz 60, decimate 1, required yes",
        None,
    )
    renamed = between(WHOLE, WHOLE.replace('id = "low-light"', 'id = "dusk"'))
    assert [d[:2] for d in renamed] == [("cells and targets", "cells[low-light]"), ("cells and targets", "cells[dusk]")]


def test_two_things_that_one_camera_must_keep() -> None:
    second = WHOLE.replace('stream = "wrist"\nkeep = "thumb"', 'stream = "head"\nkeep = "cup"')
    places = [d[1] for d in between(WHOLE, second)]
    assert places == ["capture.geometry[wrist]", "capture.geometry[head, 2]"]
    assert between(second, second.replace('keep = "cup"', 'keep = "cups"')) == [
        ("criteria", "capture.geometry[head, 2].keep", "cup", "cups")
    ]


def test_a_difference_is_a_frozen_value() -> None:
    difference = Difference(Group.TERMS, "x", "1", None, "")
    assert difference == Difference(Group.TERMS, "x", "1", None, "")
    with pytest.raises(AttributeError):
        difference.place = "y"  # type: ignore[misc]
