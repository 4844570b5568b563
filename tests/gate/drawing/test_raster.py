"""A PNG is drawn with a typeface of its own, or the reader is told what to install."""

import struct
from pathlib import Path

import pytest

from firsthand_edge.errors import UsageError
from firsthand_edge.gate.drawing import raster
from firsthand_edge.gate.drawing.raster import png, refuse_without_renderer


def size(image):
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", image[16:24])


def svg(words, width=200, height=40):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif"><rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text x="4" y="20" font-size="14">{words}</text></svg>'
    )


def test_an_image_is_larger_than_the_drawing_by_half():
    assert size(png(svg("head"))) == (300, 60)


def test_letters_are_drawn_without_a_font_of_the_machine(monkeypatch):
    import resvg_py

    def alone(**arguments):
        return draw(**arguments, skip_system_fonts=True)

    draw = resvg_py.svg_to_bytes
    monkeypatch.setattr(resvg_py, "svg_to_bytes", alone)
    blank, written = png(svg("")), png(svg("wrist_left 3.0 ms"))
    assert len(written) > len(blank) + 500
    assert png(svg("wrist_left 3.1 ms")) != written


def test_what_is_too_large_is_drawn_smaller(monkeypatch):
    monkeypatch.setattr(raster, "MOST_PIXELS", 2_000)
    width, height = size(png(svg("head")))
    assert width * height <= 2_100


@pytest.mark.parametrize("lacking", ["resvg_py", raster.FONT])
def test_what_is_missing_is_named_with_what_to_do(monkeypatch, lacking):
    found = raster.find_spec
    monkeypatch.setattr(raster, "find_spec", lambda name: None if name == lacking else found(name))
    with pytest.raises(UsageError, match=r"pip install 'firsthand-edge\[plot\]'.*\.html"):
        refuse_without_renderer(Path("out.png"))
