"""Panels for the tests of the drawing, measured and judged as in the product; and what their drawings hold."""

from xml.etree import ElementTree as ET

from firsthand_edge.gate import rules
from firsthand_edge.gate.drawing.panel import Panel
from firsthand_edge.gate.drawing.sheet import sheet
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report
from tests.gate.making import MS, figures, stream, ticks


def panel(*streams, title="A take", limits=None, **more):
    limits = limits or Limits()
    found = figures(*streams, limits=limits, **more)
    return Panel(title, report(found, rules.apply(found, limits), limits), found)


def bad(count=600, at=(300,), name="wrist", by=3 * MS):
    """A stream that is off at some ticks."""
    times = ticks(count)
    times[list(at)] += by
    return stream(name, times)


def drawn(shown):
    """The sheet of a panel as XML; None where there is none."""
    block = sheet(shown.report, shown.figures)
    return None if block is None else ET.fromstring(f"<svg>{block.svg}</svg>")  # noqa: S314 - our own words


def paths(svg, kind):
    """The paths of a class that draw something."""
    return [element.get("d") for element in svg.iter("path") if element.get("class") == kind and element.get("d")]


def rects(svg, kind):
    return [element for element in svg.iter("rect") if element.get("class") == kind]


def texts(svg):
    """All that is written, titles of elements included."""
    return ["".join(element.itertext()) for element in svg.iter("text")]
