"""The quick reading of a row takes exactly the lines that the slow one takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import read_document
from firsthand_edge.spool.row import Row, read_row, sign_row

KEY = KeyPair.generate()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def fields(body: Any) -> dict[str, Any]:
    return {
        "at": {"boot": "b", "ns": 1},
        "body": body,
        "episode": None,
        "event": "sealed",
        "key_id": KEY.key_id,
        "n": 3,
        "prev": "blake3:0",
    }


def slow(line: bytes) -> bool:
    try:
        read_document(line + b"\n")
    except (ValueError, RecursionError):
        return False
    return True


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), JSON, max_size=4))
def test_every_row_is_read_back_and_its_signature_is_over_everything_else(body: dict[str, Any]) -> None:
    line = sign_row(fields(body), KEY)
    row = read_row(line)
    assert isinstance(row, Row)
    assert (row.n, row.body, row.line) == (3, body, line)
    assert row.signed[0] == canonical_bytes(fields(body))
    assert row.signed_by(KEY.public)
    assert not row.signed_by(KeyPair.generate().public)
    assert not row.signed_by(None)


@given(JSON, st.data())
def test_a_changed_line_is_a_row_only_where_it_is_canonical(body: Any, data: st.DataObject) -> None:
    line = bytearray(sign_row(fields({"b": body}), KEY))
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    row = read_row(bytes(line))
    if row is not None:
        assert slow(bytes(line))
        assert not row.signed_by(KEY.public)


@pytest.mark.parametrize(
    "change",
    [
        (b'"n":3', b'"n":3.0'),
        (b'"n":3', b'"n":-0'),
        (b'"n":3', b'"n":true'),
        (b'"n":3', b'"n":NaN'),
        (b'"n":3', b'"n":03'),
        (b'"n":3', b'"n": 3'),
        (b'"n":3', b'"n":3,"n":3'),
        (b'"n":3', b'"m":3'),
        (b'"episode":null', b'"episode":7'),
        (b'"body":{}', b'"body":[]'),
        (b'"body":{}', b'"body":' + b"[" * 20000 + b"]" * 20000),
        (b'"body":{}', b'"body":{"a":"\\u0041"}'),
        (b'"body":{}', b'"body":{"a":"\\ud800"}'),
        (b'"body":{}', b'"body":{"a":' + b"9" * 5000 + b"}"),
        (b'"sealed"', b'"\xff"'),
    ],
)
def test_another_spelling_is_no_row(change: tuple[bytes, bytes]) -> None:
    line = sign_row(fields({}), KEY)
    assert change[0] in line
    assert read_row(line.replace(*change)) is None


def test_a_signature_is_spelled_in_one_way() -> None:
    line = sign_row(fields({}), KEY)
    signature = json.loads(line)["sig"]
    row = read_row(line.replace(signature.encode(), signature.upper().encode()))
    assert row is not None
    assert not row.signed_by(KEY.public)
    assert read_row(line.replace(signature.encode(), signature[:-1].encode())) is None
