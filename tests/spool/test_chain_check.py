"""What a stranger finds with a chain's bytes and one public key, and what he is told that he cannot know."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool import chain_check
from firsthand_edge.spool.chain import read_rows
from firsthand_edge.spool.chain_check import check_chain
from tests.spool.forging import forge, forge_rotation, grown, rotated

FIRST, SECOND, THIRD = (KeyPair.generate() for _ in range(3))
KEYS = pytest.mark.parametrize("key", [FIRST, SECOND], ids=["root", "later"])
LINES = Callable[[list[bytes]], list[bytes]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Nine rows: 0 to 4 by the first key (4 makes the second the rig's), 5 to 8 by the second."""
    path = tmp_path / "chain.jsonl"
    grown(path, FIRST, 3)
    rotated(path, FIRST, SECOND)
    grown(path, SECOND, 4, first=3)
    return path


def findings(data: bytes, key: KeyPair = FIRST, against: bytes | None = None) -> list[tuple[int, str]]:
    report = check_chain(data, key.public, against=against).report
    assert report.good == (not report.findings)
    return [(found.line, found.sentence) for found in report.findings]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@KEYS
def test_a_good_chain(path: Path, key: KeyPair) -> None:
    data = path.read_bytes()
    checked = check_chain(data, key.public)
    assert checked.report.findings == ()
    assert (checked.report.rows, checked.report.head) == (9, read_rows(data)[-1].digest)
    assert [one.public for one in checked.keyring.keys] == [FIRST.public, SECOND.public]
    assert sorted(checked.rows) == [f"e-{number}" for number in range(7)]
    assert [row.n for row in checked.rows["e-3"]] == [5]
    assert any("cut off the end" in sentence for sentence in checked.report.cannot_know)
    assert any("clock on the wall" in sentence for sentence in checked.report.cannot_know)
    vouched = [note for note in checked.report.notes if "older than the key given" in note]
    assert len(vouched) == (1 if key is SECOND else 0)


@pytest.mark.parametrize(
    ("change", "line", "sentence"),
    [
        (lambda ls: [*ls[:2], ls[2].replace(b'"number":1', b'"number":7'), *ls[3:]], 3, "changed after it was signed"),
        (lambda ls: [*ls[:2], ls[2].replace(b'"number":1', b'"number":7'), *ls[3:]], 4, "does not continue the row"),
        (lambda ls: [*ls[:2], *ls[3:]], 3, "1 row before it is missing"),
        (lambda ls: ls[3:], 1, "3 rows before it are missing"),
        (lambda ls: [*ls[:2], ls[3], ls[2], *ls[4:]], 4, "out of order"),
        (lambda ls: [*ls, ls[-1]], 10, "out of order or doubled"),
        (lambda ls: [*ls, ls[0]], 10, "out of order or doubled"),
        (lambda ls: [*ls, ls[4]], 10, "out of order or doubled"),
        (lambda ls: [*ls[:2], b"garbage\n", *ls[3:]], 3, "is damaged"),
        (lambda ls: [*ls[:2], b"\n", *ls[2:]], 3, "is damaged"),
        (lambda ls: [*ls[:-1], ls[-1][:-1]], 9, "is torn"),
        (lambda ls: [*ls[:4], *ls[5:]], 5, "1 row before it is missing"),
        (lambda ls: [*ls[:1], ls[0], *ls[1:]], 2, "out of order or doubled"),
        (lambda ls: [], 1, "begins with the row of its key"),
    ],
)
@KEYS
def test_edits_reordering_removal_and_doubles_are_found(
    path: Path, change: LINES, line: int, sentence: str, key: KeyPair
) -> None:
    found = findings(b"".join(change(lines_of(path))), key)
    assert any(at == line and sentence in text for at, text in found), found


@KEYS
def test_rows_of_a_key_that_never_was_the_rig_s(path: Path, key: KeyPair) -> None:
    for _ in range(3):
        forge(path, THIRD)
    assert findings(path.read_bytes(), key) == [
        (10, f"rows 9 to 11 are signed by key {THIRD.key_id}, not by {SECOND.key_id}")
    ]
    assert "e-9" not in check_chain(path.read_bytes(), key.public).rows


@KEYS
def test_a_row_of_a_key_that_was_given_up(path: Path, key: KeyPair) -> None:
    forge(path, FIRST)
    assert findings(path.read_bytes(), key) == [
        (10, f"row 9 is signed by key {FIRST.key_id}, which had been given up for {SECOND.key_id} before")
    ]


@KEYS
def test_a_row_of_a_key_that_was_not_yet_in_force(path: Path, key: KeyPair) -> None:
    forge(path, SECOND, n=2)
    assert any("came into force later, with row 5" in text for _, text in findings(path.read_bytes(), key))


@pytest.mark.parametrize(
    ("signer", "new", "why"),
    [
        (FIRST, THIRD, "which had been given up"),
        (THIRD, THIRD, "not proved to be signed by"),
        (SECOND, FIRST, "was the rig's before"),
    ],
)
@KEYS
def test_rotations_done_wrongly(path: Path, signer: KeyPair, new: KeyPair, why: str, key: KeyPair) -> None:
    forge_rotation(path, signer, new)
    forge(path, new)
    found = findings(path.read_bytes(), key)
    assert any(at == 10 and "makes no key the rig's" in text for at, text in found), found
    assert any(why in text for _, text in found), found


def test_a_key_given_that_the_chain_does_not_know(path: Path) -> None:
    [(line, sentence)] = findings(path.read_bytes(), THIRD)
    assert line == 1
    assert f"others than {THIRD.key_id}" in sentence
    assert f"key {FIRST.key_id} began this chain" in sentence
    assert check_chain(path.read_bytes(), THIRD.public).rows == {}


def test_a_first_row_put_in_by_another_is_found_by_the_right_key(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    grown(other, THIRD, 0)
    with (grown(other, THIRD, 1)).locked():
        pass
    lines = lines_of(path)
    data = b"".join([lines_of(other)[0], *lines[1:]])
    found = findings(data, FIRST)
    assert found[0][0] == 1
    assert any("row 0 makes no key the rig's" in text for _, text in found)
    assert [at for at, _ in found if at > 2] == [], "the rest of the chain is still proved by its own key"


def test_a_foreign_history_that_ends_in_the_right_key_is_not_vouched_for(tmp_path: Path) -> None:
    """Anybody can write a history and name somebody else's public key as its next one."""
    path = tmp_path / "chain.jsonl"
    grown(path, THIRD, 3)
    forge_rotation(path, THIRD, FIRST)
    [(line, sentence)] = findings(path.read_bytes(), FIRST)
    assert (line, "has signed no row yet" in sentence) == (5, True)


def test_a_key_that_has_signed_nothing_but_its_own_rotation_vouches_for_what_is_before(path: Path) -> None:
    rotated(path, SECOND, THIRD)
    checked = check_chain(path.read_bytes(), THIRD.public)
    assert checked.report.good
    assert any("its countersignature links to them" in note for note in checked.report.notes)
    lines = lines_of(path)
    changed = b"".join([*lines[:6], lines[6].replace(b'"number":4', b'"number":9'), *lines[7:]])
    assert {at for at, _ in findings(changed, THIRD)} == {7, 8}


def test_a_countersignature_is_good_in_its_own_history_only(path: Path, tmp_path: Path) -> None:
    """Taken from a real rotation, and put at the end of a foreign history of the same length."""
    body = read_rows(path.read_bytes())[4].body
    foreign = tmp_path / "foreign.jsonl"
    grown(foreign, THIRD, 3)
    forge(foreign, THIRD, event="key", episode=None, body=dict(body))
    found = findings(foreign.read_bytes(), SECOND)
    assert found
    assert "another rig's, or the key is wrong" in found[0][1]


def test_the_real_rows_after_a_foreign_history_do_not_continue_it(path: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.jsonl"
    grown(foreign, THIRD, 3)
    forge_rotation(foreign, THIRD, SECOND)
    data = b"".join([*lines_of(foreign), *lines_of(path)[5:]])
    assert any(at == 6 and "does not continue" in text for at, text in findings(data, SECOND))


def test_many_rows_are_checked_by_threads_with_the_same_findings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(path, THIRD)
    changed = path.read_bytes().replace(b'"number":1', b'"number":8')
    before = check_chain(changed, FIRST.public)
    monkeypatch.setattr(chain_check, "BATCH", 2)
    assert check_chain(changed, FIRST.public) == before
    assert not before.report.good


# ---- every byte


def flipped(data: bytes, place: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= mask
    return bytes(changed)


@given(place=st.integers(0, 10**6), mask=st.integers(1, 255), key=st.sampled_from([FIRST, SECOND]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
def test_every_changed_byte_is_found(path: Path, place: int, mask: int, key: KeyPair) -> None:
    data = path.read_bytes()
    assert findings(flipped(data, place % len(data), mask), key)


@given(start=st.integers(0, 10**6), length=st.integers(1, 2000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_every_removed_piece_is_found(path: Path, start: int, length: int) -> None:
    """But for whole rows at the end, which no bytes can tell."""
    data = path.read_bytes()
    start %= len(data)
    left = data[:start] + data[start + length :]
    if not left or not data.startswith(left) or not left.endswith(b"\n"):
        assert findings(left)


@pytest.mark.soak
@KEYS
def test_every_bit_of_every_byte(path: Path, key: KeyPair) -> None:
    data = path.read_bytes()
    chance = random.Random(9)  # noqa: S311 - which bits, no secrets
    for place in range(len(data)):
        masks = [1 << bit for bit in range(8)] + [chance.randint(1, 255) for _ in range(8)]
        assert all(findings(flipped(data, place, mask), key) for mask in masks), place


# ---- a copy


@KEYS
def test_a_cut_tail_is_what_only_a_copy_tells(path: Path, key: KeyPair) -> None:
    lines = lines_of(path)
    copy, cut = b"".join(lines), b"".join(lines[:7])
    assert findings(cut, key) == []
    assert findings(cut, key, against=copy) == [(8, "is missing: 2 rows were cut off the end; the copy holds 9 rows")]


def test_a_tail_cut_off_with_a_rotation_in_it(path: Path) -> None:
    lines = lines_of(path)
    copy, cut = b"".join(lines), b"".join(lines[:4])
    assert findings(cut, against=copy) == [(5, "is missing: 5 rows were cut off the end; the copy holds 9 rows")]


@KEYS
def test_a_copy_that_is_older_or_equal_agrees(path: Path, key: KeyPair) -> None:
    data = path.read_bytes()
    older = b"".join(lines_of(path)[:6])
    checked = check_chain(data, key.public, against=older)
    assert checked.report.good
    assert any("has not seen 3 of those here" in sentence for sentence in checked.report.cannot_know)
    equal = check_chain(data, key.public, against=data)
    assert equal.report.good
    assert any("all of them the same" in note for note in equal.report.notes)


def test_a_second_history_diverges_from_the_copy(path: Path) -> None:
    copy = path.read_bytes()
    path.write_bytes(b"".join(lines_of(path)[:7]))
    grown(path, SECOND, 4, first=40)
    assert findings(path.read_bytes()) == []
    assert findings(path.read_bytes(), against=copy) == [
        (8, "differs from the copy, and both are signed: the holder of the key wrote two histories")
    ]


def test_it_is_said_whether_the_chain_or_the_copy_was_changed(path: Path) -> None:
    data = path.read_bytes()
    changed = data.replace(b'"number":1', b'"number":7')
    assert any("it was rewritten here" in text for _, text in findings(changed, against=data))
    assert findings(data, against=changed) == [
        (3, "differs from the copy, whose row is not signed as it should be: the copy was changed")
    ]
    assert findings(data, against=data + b"more\n") == [
        (10, "is missing: 1 row was added to the copy, not signed as rows of this chain are; the copy holds 10 rows")
    ]


def test_the_head_is_the_digest_of_the_last_line(path: Path) -> None:
    lines = path.read_bytes().splitlines()
    assert check_chain(path.read_bytes(), FIRST.public).report.head == digest_bytes(lines[-1])
    assert check_chain(b"", FIRST.public).report.head is None
