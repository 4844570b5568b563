"""The image says all that the page says."""

from xml.etree import ElementTree as ET

from firsthand_edge.gate.drawing.poster import poster
from tests.gate.drawing.panels import bad, panel, texts
from tests.gate.making import stream, ticks


def drawn(*panels):
    return ET.fromstring(poster(panels).replace("xmlns=", "data-ns="))  # noqa: S314 - our own words


def said(*panels):
    return " ".join(texts(drawn(*panels)))


def test_it_holds_title_verdict_figures_sentences_and_what_was_not_judged():
    shown = panel(stream("head", ticks(600)), bad(), title="Take 7 <b>")
    shown.report["reasons"][0]["cause"] = "wrist jumped once"
    words = said(shown)
    assert "Take 7 <b>" in words
    assert "rejected" in words
    assert all(word in words for word in shown.report["reasons"][0]["sentence"].split())
    assert "Likely: wrist jumped once." in words
    assert "largest disagreement" in words
    assert "Not judged:" in words


def test_warnings_are_told():
    shown = panel(stream("head", ticks(600)), bad(by=1_900_000))
    assert "accepted" in said(shown)
    assert "sync.near" in said(shown)


def test_several_recordings_stand_below_one_another():
    one = panel(stream("head", ticks(60)), stream("wrist", ticks(60)))
    assert float(drawn(one, one).get("height")) > 1.9 * float(drawn(one).get("height")) - 60


def test_without_a_sample_it_still_says_why():
    assert "Nothing was matched (sync.no_ticks)" in said(panel(stream("head", ticks(0)), stream("wrist", ticks(0))))


def test_every_rule_of_its_style_is_plain():
    assert "var(" not in poster([panel(stream("head", ticks(60)), bad(60, at=[3]))])
