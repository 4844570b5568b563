"""The briefing: nothing that the document says is left out, and it fits a terminal."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.cli.briefing import page, paragraphs, text_lines
from firsthand_edge.spec.briefing import Block, Chapter, briefing
from firsthand_edge.spec.codes import REJECTING_CODES
from firsthand_edge.spec.document import Spec, load_spec
from tests.spec.test_digest import SET, another, at, parse, whole, with_
from tests.spec.whole import WHOLE

CONFIGS = Path(__file__).parents[2] / "configs"
HEAD = {"id", "title", "version", "gap"}
"""What `spec show` says above the chapters."""


def words(spec: Spec) -> str:
    return " ".join(" ".join(text_lines("", [], briefing(spec))).split())


@pytest.mark.parametrize("place", [place for place in SET if place[0] not in HEAD], ids=str)
def test_every_field_that_is_changed_changes_the_page(place: tuple[Any, ...]) -> None:
    changed = Spec.model_validate(with_(whole(), place, another(place, at(whole(), place))))
    assert words(changed) != words(parse(WHOLE))


def chapter(spec: Spec, heading: str) -> list[Block]:
    (found,) = [chapter for chapter in briefing(spec) if chapter.heading == heading]
    return list(found.blocks)


def rejects(text: str) -> dict[str, list[str]]:
    """The bullets below each paragraph of the chapter on rejections."""
    found: dict[str, list[str]] = {}
    above = ""
    for block in chapter(parse(text), "What gets a take rejected"):
        if block.kind == "paragraph":
            above = block.text
        else:
            found.setdefault(above, []).append(block.text)
    return found


def test_every_rule_is_told_with_its_limit_and_whether_it_is_recorded_again() -> None:
    found = rejects(WHOLE)
    again, rest = found["Rejected, and recorded again, when:"], found["Rejected, and not recorded again, when:"]
    assert [text.split(" (")[0] for text in rest] == [REJECTING_CODES["picture.frozen"], REJECTING_CODES["record.torn"]]
    assert len(again) + len(rest) == len(REJECTING_CODES) - 1
    told = "\n".join(again + rest)
    assert "sensors disagree in time by more than the ceiling (1.5 ms, kept at 999 of 1000 ticks, counting what" in told
    assert "too many pictures or samples are missing (1 % of a sensor's at most, 4 in a row)" in told
    assert "take is recorded" not in told


def test_failures_are_asked_for_or_rejected() -> None:
    kept = "Failed attempts and near misses belong to the collection: do not repeat or hide them."
    not_kept = "Only successes belong to the collection: a failed attempt or near miss is rejected."
    without = WHOLE.replace("retain_failures = true", "retain_failures = false")
    assert chapter(parse(WHOLE), "What to do")[-1].text == kept
    assert chapter(parse(without), "What to do")[-1].text == not_kept
    outcome = REJECTING_CODES["take.outcome_not_retained"]
    assert outcome not in str(rejects(WHOLE))
    assert outcome in str(rejects(without))


@pytest.mark.parametrize("name", ["sim", "replay-aria"])
def test_it_fits_a_terminal(name: str) -> None:
    spec = load_spec(CONFIGS / f"{name}-spec.toml")
    lines = text_lines(spec.title, [spec.digest], briefing(spec))
    assert all(len(line) <= 80 for line in lines), [line for line in lines if len(line) > 80]
    assert all(line == line.rstrip() for line in lines)
    assert not any(a == b == "" for a, b in pairwise(lines))


KINDS = st.sampled_from(["paragraph", "quote", "entry", "bullet"])
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=200)
CHAPTERS = st.lists(
    st.builds(
        Chapter,
        TEXTS.filter(str.strip),
        st.lists(st.builds(Block, KINDS, TEXTS, st.text("a <>&", max_size=90), st.text("1 h", max_size=10))).map(tuple),
    ),
    max_size=3,
)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@given(CHAPTERS)
def test_any_text_is_a_page_with_every_word(chapters: list[Chapter]) -> None:
    made = page("A <title>", ["lead & more"], chapters)
    tags = Tags()
    tags.feed(made)
    assert tags.open == []
    said = "".join(tags.text.split())
    lines = "".join("".join(text_lines("t", [], chapters)).split())
    for part in chapters:
        for block in part.blocks:
            for text in (block.text, block.label if block.kind == "entry" else ""):
                for word in text.split():
                    assert word in said
                    assert word in lines


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    text = WHOLE.replace('"I agree."', '"<script>alert(1)</script> & <b>bold</b>"')
    made = page("t", [], briefing(parse(text)))
    assert "<script" not in made
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp;" in made
    assert "http" not in made
    assert "src=" not in made


def test_lines_of_a_text_are_paragraphs_of_a_page() -> None:
    assert paragraphs("a\nb\n\n c\n \nd") == ["a b", "c", "d"]
    block = Chapter("H", (Block("quote", "one\ntwo\n\nthree"),))
    assert text_lines("T", [], [block]) == ["T", "=", "", "H", "-", "  | one two", "  |", "  | three"]
