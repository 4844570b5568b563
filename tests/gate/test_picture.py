"""A picture goes to a file by the ending of its name."""

import pytest

from firsthand_edge.errors import DiskError, UsageError
from firsthand_edge.gate.picture import refuse_undrawable, write_picture
from tests.gate.drawing.panels import bad, panel
from tests.gate.making import stream, ticks


@pytest.fixture(scope="module")
def shown():
    return panel(stream("head", ticks(60)), bad(60, at=[30]))


def test_a_page_and_an_image(shown, tmp_path):
    write_picture(tmp_path / "a.html", [shown], title="Two lists")
    assert "<h1>Two lists</h1>" in (tmp_path / "a.html").read_text()
    write_picture(tmp_path / "a.PNG", [shown])
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["a.svg", "a", "a.html.gz"])
def test_another_ending_is_refused(shown, tmp_path, name):
    with pytest.raises(UsageError, match=r"let the name end in \.html or \.png"):
        write_picture(tmp_path / name, [shown])
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text_reach_the_page(tmp_path):
    odd = panel(stream("head", ticks(60)), stream("wrist\x1b\x00", ticks(60)), title="\ud800\x07.mcap")
    write_picture(tmp_path / "a.html", [odd])
    write_picture(tmp_path / "a.png", [odd])
    refuse_undrawable(tmp_path / "a.png")


def test_a_folder_that_is_not_there(shown, tmp_path):
    with pytest.raises(DiskError, match="name a file in a folder that can"):
        write_picture(tmp_path / "no" / "a.html", [shown])
