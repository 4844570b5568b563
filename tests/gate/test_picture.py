"""The picture is one page that stands alone, and hides no tick that was over the ceiling."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from firsthand_edge.gate import rules
from firsthand_edge.gate.charts import PLOT, Series, chart
from firsthand_edge.gate.figures import Frozen
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.picture import Panel, render
from firsthand_edge.gate.report import report
from firsthand_edge.model import Kind
from tests.gate.making import MS, START, P, figures, stream, ticks


def panel(*streams, title="A take"):
    found = figures(*streams)
    verdict = rules.apply(found, Limits())
    return Panel(title, report(found, verdict, Limits()), Series.of(found))


def bad(count=600, at=(300,)):
    times = ticks(count)
    times[list(at)] += 3 * MS
    return stream("wrist", times)


class Checker(HTMLParser):
    """Counts open elements and collects what would be loaded."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})
    LOOSE = frozenset({"th", "td", "tr", "li", "p"})

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [v for k, v in attrs if k in ("src", "href", "data", "action") and not v.startswith("#")]
        if tag not in self.VOID | self.LOOSE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.LOOSE:
            assert self.open, tag
            assert self.open.pop() == tag


def test_the_page_stands_alone_and_is_well_formed():
    page = render(
        [panel(stream("head", ticks(600)), bad()), panel(stream("head", ticks(60)), stream("wrist", ticks(60)))]
    )
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loads == []
    assert "script" not in checker.tags
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme:dark" in page


def test_it_says_the_verdict_and_the_reasons():
    page = render([panel(stream("head", ticks(600)), bad(), title="Take 7 <b>")])
    assert "rejected" in page
    assert "sync.ceiling" in page
    assert "Take 7 &lt;b&gt;" in page
    assert "3.0 ms" in page


def test_many_takes_begin_with_a_table():
    takes = [panel(stream("head", ticks(60)), stream("wrist", ticks(60)), title=f"Take {i}") for i in range(3)]
    page = render(takes)
    assert page.count("<table>") == 1
    assert 'href="#p3"' in page
    assert "3 recordings: 3 accepted, 0 rejected." in page


def test_a_take_without_a_match_has_no_chart_and_says_why():
    page = render([panel(stream("head", ticks(60)), stream("wrist", ticks(60) + 37 * 10**9))])
    assert "<svg" not in page
    assert "Nothing was matched (stamp.tai_utc)" in page


def svg_of(*streams):
    shown = panel(*streams)
    return ET.fromstring(chart(shown.series, ceiling_ns=2 * MS, reference="head"))  # noqa: S314 - our own words


def paths(svg, kind):
    return [element.get("d") for element in svg.iter("path") if element.get("class") == kind]


def test_one_bad_tick_among_36000_is_drawn():
    svg = svg_of(stream("head", ticks(36_000)), bad(36_000, at=[12_345]))
    residual, wrist = paths(svg, "over")
    assert re.fullmatch(r"M\d+ [\d.]+V[\d.]+", residual)
    assert re.fullmatch(r"M\d+ [\d.]+V[\d.]+", wrist)


def test_a_long_take_is_no_larger_than_the_screen_needs():
    rng = np.random.default_rng(3)
    jitter = rng.integers(-MS, MS, 36_000)
    svg = chart(
        panel(stream("head", ticks(36_000)), stream("wrist", ticks(36_000) + jitter)).series,
        ceiling_ns=2 * MS,
        reference="head",
    )
    assert len(svg) < 60 * PLOT


def test_missing_and_absent_ticks_are_marked():
    svg = svg_of(stream("head", np.delete(ticks(100), [20])), stream("wrist", np.delete(ticks(100), [50, 51])))
    marks = paths(svg, "rug")
    assert [mark.count("M") for mark in marks] == [1, 2]


def test_an_interpolated_stream_is_a_bar():
    glove = stream("glove", ticks(80, period=14 * MS, start=START - 14 * MS), kind=Kind.INTERPOLATED)
    shown = panel(stream("head", ticks(60)), stream("wrist", ticks(60)), glove)
    drawn = chart(shown.series, ceiling_ns=2 * MS, reference="head")
    assert "interpolated, 0 of 60 missing" in drawn


@pytest.mark.parametrize("count", [1, 2, 31])
def test_short_takes_can_be_drawn(count):
    assert "<svg" in render([panel(stream("head", ticks(count)), stream("wrist", ticks(count)))])


def test_a_gap_of_a_year_draws_no_more_than_a_row_of_marks():
    times = np.concatenate((ticks(40), ticks(40, start=START + 10**9 * 86_400 * 365)))
    svg = svg_of(stream("head", times), stream("wrist", times))
    assert paths(svg, "rug")[0].count("M") <= PLOT
    assert "ticks absent" in "".join(element.text or "" for element in svg.iter("text"))


def test_the_time_axis_has_a_few_round_steps():
    svg = svg_of(stream("head", ticks(600)), stream("wrist", ticks(600)))
    steps = [element.text for element in svg.iter("text") if (element.text or "").endswith(" s")]
    assert steps == ["0 s", "2 s", "4 s", "6 s", "8 s"]


def test_a_decimated_stream_is_expected_at_its_ticks():
    series = panel(stream("head", ticks(60)), stream("depth", ticks(60)[::2], decimate=2)).series
    assert series.expected("depth").sum() == 30
    assert series.absent == 0


def test_pictures_that_stood_still_are_marked():
    still = Frozen(9, 10, 18, START + 10 * P, START + 18 * P)
    page = render([panel(stream("head", ticks(60)), stream("wrist", ticks(60), frozen=still, media="picture/png"))])
    assert page.count('<rect class="frozen"') == 1
    moving = Frozen(1, 0, 0, START, START)
    page = render([panel(stream("head", ticks(60)), stream("wrist", ticks(60), frozen=moving, media="picture/png"))])
    assert '<rect class="frozen"' not in page
