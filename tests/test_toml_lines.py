"""The line of every place of a document, held against the text itself and against a slow reading of it."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.toml_lines import lines_of

MULTI = '"""'
TEXT = rf"""# a comment [not.a.table]
title = "a # no comment [x]"   # one
"quoted key" . 'b' = 1
many = [
  1, # one
  [2, 3],
  {{ a = "x, ]", b = [4] }},

]
long = '''
[not.a.header]
key = 1
'''
quoted = "a \" b" # the end
text = '''it's ''five'' '''''
basic = {MULTI}a ""b"" \
   \\{MULTI}
last = 1979-05-27 07:32:00

[one.two]
three = {{ four.five = 6 }}
[[rows]] # the first
id = "a"
[[rows.inner]]
x = 1
[[rows.inner]]
x = 2
[rows.table]
y = 1
[[rows]] # the second
id = "b"
[[rows.inner]]
x = 3
"""


def line_of(fragment: str) -> int:
    (line,) = [n for n, row in enumerate(TEXT.splitlines(), start=1) if row.startswith(fragment)]
    return line


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ((), 1),
        (("title",), 2),
        (("quoted key",), 3),
        (("quoted key", "b"), 3),
        (("many",), 4),
        (("many", 0), 5),
        (("many", 1, 1), 6),
        (("many", 2, "a"), 7),
        (("many", 2, "b", 0), 7),
        (("many", 9), 4),
        (("long",), line_of("long")),
        (("quoted",), line_of("quoted")),
        (("text",), line_of("text")),
        (("basic",), line_of("basic")),
        (("last",), line_of("last")),
        (("one",), line_of("[one.two]")),
        (("one", "two", "three", "four", "five"), line_of("three")),
        (("one", "two", "absent"), line_of("[one.two]")),
        (("rows",), line_of("[[rows]] # the first")),
        (("rows", 0), line_of("[[rows]] # the first")),
        (("rows", 1), line_of("[[rows]] # the second")),
        (("rows", 0, "id"), line_of('id = "a"')),
        (("rows", 0, "inner", 1, "x"), line_of("x = 2")),
        (("rows", 0, "table", "y"), line_of("y = 1")),
        (("rows", 0, "table", "absent"), line_of("[rows.table]")),
        (("rows", 1, "id"), line_of('id = "b"')),
        (("rows", 1, "inner", 0, "x"), line_of("x = 3")),
        (("rows", 2), line_of("[[rows]] # the first")),
        (("absent", "more"), 1),
    ],
)
def test_each_place_is_found_on_its_line(place: tuple[Any, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert lines_of(TEXT, [place]) == [line]
    assert lines_of(TEXT.replace("\n", "\r\n"), [place, ("title",)]) == [line, 2]


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(found for key, part in inner for found in places(part, (*place, key)))]


def slow(text: str, place: tuple[Any, ...]) -> int:
    """The first line with which the text, cut off after it, parses and holds the place."""
    prefix = ""
    for number, line in enumerate(text.split("\n"), start=1):
        prefix += line + "\n"
        try:
            table: Any = tomllib.loads(prefix)
        except tomllib.TOMLDecodeError:
            continue
        try:
            for part in place:
                table = table[part]
        except (KeyError, IndexError, TypeError):
            continue
        return number
    raise AssertionError(place)


KEYS = st.one_of(
    st.text("ab1_-", min_size=1, max_size=3), st.text('a"\\ #[=é', min_size=1, max_size=4).map(lambda k: f"'{k}'")
)
SCALARS = st.one_of(
    st.integers().map(str),
    st.sampled_from(["true", "1.5", "inf", "1979-05-27 07:32:00", "1979-05-27T07:32:00Z", '""', "''", '"a # ] } ,"']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[ {', '.join(items)} ]"),
        st.dictionaries(KEYS, inner, max_size=3).map(
            lambda pairs: "{ " + ", ".join(f"{k} = {v}" for k, v in pairs.items()) + " }"
        ),
    ),
    max_leaves=6,
)
LINES = st.one_of(
    st.tuples(st.lists(KEYS, min_size=1, max_size=2), VALUES).map(lambda p: f"{'.'.join(p[0])} = {p[1]} # [c]"),
    st.lists(KEYS, min_size=1, max_size=3).map(lambda keys: f"[{' . '.join(keys)}]"),
    st.lists(KEYS, min_size=1, max_size=3).map(lambda keys: f"[[{'.'.join(keys)}]]"),
    st.sampled_from(["", "# comment = [", "   "]),
)


@given(st.lists(LINES, max_size=12))
def test_agrees_with_a_slow_reading(lines: list[str]) -> None:
    text = ""
    for line in lines:  # whatever does not fit what stands before is left out
        try:
            tomllib.loads(text + line + "\n")
        except tomllib.TOMLDecodeError:
            continue
        text += line + "\n"
    every = [place for place in places(tomllib.loads(text)) if place]
    assert lines_of(text, every) == [slow(text, place) for place in every]
