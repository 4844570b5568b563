"""The manual's page names every field of every model, with its default; every model explains its fields."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from firsthand_edge.spec.codes import REJECTING_CODES
from firsthand_edge.spec.document import Spec
from firsthand_edge.spec.explained import explanations, first_sentence
from tests.spec.whole import fields, models

PAGE = (Path(__file__).parents[2] / "docs" / "spec.md").read_text()
HEADINGS = {
    "": "### Top",
    "population": "### `[population]`",
    "capture": "### `[capture]`",
    "tasks": "### `[[tasks]]`",
    "cells": "### `[[cells]]`",
    "axes": "### `[axes.scenes]`",
    "streams": "### `[[streams]]`",
    **{name: f"### `[{name}]`" for name in ("sync", "rules", "reject", "acceptance", "calibration", "delivery")},
    **{name: f"### `[{name}]`" for name in ("licence", "consent", "retention")},
}
FIELDS = [(place, model, name) for place, model, name in fields(Spec)]


def chapter(place: str) -> str:
    """What the page says below the heading of the section that `place` is in."""
    section = place.split(".", maxsplit=1)[0] if "." in place else ""
    begin = PAGE.index(HEADINGS[section])
    return re.split(r"\n##+ ", PAGE[begin + 3 :], maxsplit=1)[0]


@pytest.mark.parametrize(("place", "model", "name"), FIELDS, ids=[place for place, _, _ in FIELDS])
def test_every_field_is_on_the_page_with_its_default(place: str, model: type, name: str) -> None:
    rows = re.findall(rf"^\| `{place.rsplit('.', 1)[-1]}` \| (.+) \| (.+) \| (.*)\|$", chapter(place), re.MULTILINE)
    assert rows, place
    info = model.model_fields[name]  # type: ignore[attr-defined]
    if info.is_required():
        assert all(row[2].strip() == "" for row in rows)
    elif isinstance(info.default, bool | int | Decimal) or (isinstance(info.default, str) and info.default):
        default = str(info.default).lower().removesuffix(".0")
        assert all(row[2].strip() == default for row in rows)
    else:
        assert all(row[2].strip() for row in rows)


@pytest.mark.parametrize("model", set(models(Spec)), ids=lambda model: model.__name__)
def test_every_model_explains_each_of_its_fields(model: type) -> None:
    assert set(explanations(model)) == set(model.model_fields)  # type: ignore[attr-defined]
    assert all(len(text) > 8 for text in explanations(model).values())


def test_every_code_is_on_the_page_and_in_the_manual() -> None:
    listed = re.search(r"^Codes: (.*?)\. The manual", PAGE, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`([^`]+)`", listed[1])) == set(REJECTING_CODES)


def test_first_sentences() -> None:
    assert first_sentence("One. Two.") == "One"
    assert first_sentence("One 2.5 three; four") == "One 2.5 three"
    assert first_sentence("`sync.ceiling`: the limit") == "`sync.ceiling`: the limit"


def test_examples_of_the_page_are_what_the_commands_say() -> None:
    """The sentences, that is; digests and keys are examples."""
    from firsthand_edge.errors import SpecInvalid
    from firsthand_edge.spec.document import parse_spec
    from firsthand_edge.spec.template import template
    from tests.spec.test_template import ANSWERS, PLACEHOLDER

    text = PLACEHOLDER.sub(lambda m: f"{m[1]} = {ANSWERS.get(m[1], chr(34) + 'word' + chr(34))}", template().decode())
    text = text.replace("hours = 10", 'hours = "<validated hours that are budgeted>"')
    text = text.replace('reference = "head"', 'reference = "heat"')
    text = text.replace("recapture_except = []", 'recapture_except = ["record.tron"]')
    with pytest.raises(SpecInvalid) as caught:
        parse_spec(text.encode(), place="kitchen.toml")
    for mistake in caught.value.mistakes:
        assert mistake in PAGE, mistake
    assert len(caught.value.mistakes) == 3
