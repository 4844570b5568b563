"""Text that neither overflows nor breaks the document it stands in."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.gate.drawing.words import shortened, telling, text, width, wrapped


@given(st.text(max_size=80), st.text(max_size=20))
def test_whatever_a_name_holds_the_document_stays_one(words, title):
    root = ET.fromstring(f"<svg>{text(1, 2, words, 'small', title=title)}</svg>")  # noqa: S314 - our own words
    assert len(list(root)) == 1


@given(st.text(max_size=300), st.integers(20, 400))
def test_wrapped_lines_fit_and_lose_no_letter(words, room):
    lines = wrapped(words, room, 13)
    assert "".join("".join(lines).split()) == "".join(words.split())
    assert all(width(line, 13) <= room or len(line) == 1 for line in lines)


@given(st.text(max_size=60), st.integers(5, 40))
def test_a_shortened_name_fits_and_keeps_both_ends(name, most):
    short = shortened(name, most)
    assert len(short) <= most
    if len(name) > most:
        assert short[0] == name[0]
        assert short[-1] == name[-1]
        assert "\u2026" in short
    else:
        assert short == name


def test_names_are_told_apart_by_what_they_do_not_share():
    left = "/robot_0/left_arm/camera/color/image_raw/compressed"
    right = "/robot_0/right_arm/camera/color/image_raw/compressed"
    assert telling([left, right, "imu"]) == {left: "\u2026left_arm\u2026", right: "\u2026right_arm\u2026", "imu": "imu"}
    # What would be told from nothing else keeps all that it has.
    assert telling(["a/b", "b/c", "a/c"]) == {"a/b": "a/b", "b/c": "b/c", "a/c": "a/c"}
    assert telling(["/head", "head"]) == {"/head": "/head", "head": "head"}


@given(st.sets(st.text("ab/\u2026", max_size=9), max_size=6))
def test_no_two_names_become_one(names):
    told = telling(names)
    assert set(told) == names
    # A name may hold the sign of an ellipsis; then it may look like another one that was shortened.
    if not any("\u2026" in name for name in names):
        assert len(set(told.values())) == len(names)
