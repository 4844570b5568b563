"""The page stands alone: well formed, nothing loaded, no script, for light, dark and paper; bounded for ten hours."""

from html.parser import HTMLParser

import numpy as np

from firsthand_edge.gate.drawing.page import page
from firsthand_edge.gate.drawing.style import DARK, LIGHT, SHEET, resolved
from tests.gate.drawing.panels import bad, panel
from tests.gate.making import MS, stream, ticks


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


def written(*panels):
    return page(panels, title="A page")


def test_the_page_stands_alone_and_is_well_formed():
    found = written(
        panel(stream("head", ticks(600)), bad()), panel(stream("head", ticks(60)), stream("wrist", ticks(60)))
    )
    checker = Checker()
    checker.feed(found)
    assert checker.open == []
    assert checker.loads == []
    assert "script" not in checker.tags
    assert "url(" not in found
    assert "@import" not in found
    assert "prefers-color-scheme:dark" in found
    assert "@media print" in found


def test_it_says_the_verdict_the_reasons_and_their_causes():
    shown = panel(stream("head", ticks(600)), bad(), title="Take 7 <b>")
    shown.report["reasons"][0]["cause"] = "wrist jumped once & came back"
    found = written(shown)
    assert "rejected" in found
    assert "sync.ceiling" in found
    assert "Take 7 &lt;b&gt;" in found
    assert "3.0 ms" in found
    assert "Likely: wrist jumped once &amp; came back." in found


def test_a_cause_that_the_sentence_tells_is_not_told_twice():
    shown = panel(stream("head", ticks(600)), bad())
    reason = shown.report["reasons"][0]
    reason["cause"] = reason["sentence"][:20]
    assert written(shown).count(reason["sentence"][:20]) == 1


def test_many_takes_begin_with_a_table():
    takes = [panel(stream("head", ticks(60)), stream("wrist", ticks(60)), title=f"Take {i}") for i in range(3)]
    found = written(*takes)
    assert found.count("<table>") == 1
    assert 'href="#p3"' in found
    assert "3 recordings: 3 accepted, 0 rejected." in found


def test_where_nothing_was_matched_it_says_why():
    found = written(panel(stream("head", ticks(60)), stream("wrist", ticks(60) + 37 * 10**9)))
    assert "Nothing was matched (stamp.tai_utc), so there are no residuals to draw." in found
    found = written(panel(stream("head", ticks(0)), stream("wrist", ticks(0))))
    assert "Nothing was matched (sync.no_ticks)" in found
    assert "<svg" not in found


def test_ten_hours_of_eight_streams_stay_below_a_megabyte_and_a_half():
    rng = np.random.default_rng(3)
    count = 200_000  # the size goes by columns, not by ticks
    shown = panel(
        *(
            stream("head" if n == 0 else f"camera_{n}", ticks(count) + rng.integers(-3 * MS, 3 * MS, count))
            for n in range(8)
        )
    )
    longer, shorter = len(written(shown)), len(written(panel(*(stream(n, ticks(60)) for n in ("head", "wrist")))))
    assert shorter < 60_000
    assert longer < 500_000


def test_every_colour_is_there_in_light_and_in_dark():
    assert set(LIGHT) == set(DARK)
    assert "var(" not in resolved(SHEET, LIGHT)


def luminance(colour):
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_what_is_written_can_be_read_on_either_ground():
    for palette in (LIGHT, DARK):
        for name in ("ink", "soft", "trace", "bad", "gap", "good", "warn"):
            one, other = sorted((luminance(palette[name]), luminance(palette["card"])))
            assert (other + 0.05) / (one + 0.05) >= 4.5, name  # WCAG 2.1, level AA
