from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand_edge.errors import DiskFull
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Chain, Event, read_rows, verify_chain

if TYPE_CHECKING:
    from pathlib import Path

KEY = KeyPair.generate()


def grown(path: Path, rows: int) -> Chain:
    chain = Chain(path, KEY)
    for number in range(rows):
        with chain.locked() as held:
            held.append(Event.SEALED, f"e-{number}", {"number": number})
    return chain


def found(path: Path) -> list[tuple[int, str]]:
    return [(f.line, f.sentence) for f in verify_chain(path, KEY.public).findings]


def test_rows_are_numbered_linked_and_signed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 5)
    rows = chain.rows()
    assert [row.n for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.event for row in rows] == ["key"] + ["sealed"] * 5
    assert rows[0].body == {"public_key": KEY.public.hex()}
    assert [row.prev for row in rows] == [None, *(row.digest for row in rows[:-1])]
    assert all(row.signed_by(KEY.public) for row in rows)
    report = verify_chain(chain.path, KEY.public)
    assert report.good
    assert (report.rows, report.head) == (6, rows[-1].digest)
    assert any("cut off the end" in sentence for sentence in report.cannot_know)


def test_rows_of_one_episode(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 12)
    assert [row.n for row in chain.rows("e-1")] == [2]


LINES = Callable[[list[bytes]], list[bytes]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda ls: [*ls[:2], ls[2].replace(b'"number":1', b'"number":7'), *ls[3:]], "changed after it was signed"),
        (lambda ls: [*ls[:2], *ls[3:]], "1 rows before it are missing"),
        (lambda ls: ls[3:], "3 rows before it are missing"),
        (lambda ls: [*ls[:2], ls[3], ls[2], *ls[4:]], "out of order"),
        (lambda ls: [*ls, ls[-1]], "out of order or doubled"),
        (lambda ls: [*ls[:2], b"garbage", *ls[3:]], "is damaged"),
        (lambda ls: [*ls[:2], b"", *ls[2:]], "is damaged"),
    ],
)
def test_edits_reordering_and_removal_are_found(tmp_path: Path, change: LINES, sentence: str) -> None:
    path = grown(tmp_path / "chain.jsonl", 5).path
    lines = change(path.read_bytes().splitlines())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    assert any(sentence in text for _, text in found(path)), found(path)


def test_a_row_of_another_key_is_found(tmp_path: Path) -> None:
    path = grown(tmp_path / "chain.jsonl", 1).path
    with Chain(path, KeyPair.generate()).locked() as held:
        held.append(Event.SEALED, "e-9", {})
    assert [line for line, _ in found(path)] == [3]


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_every_changed_byte_is_found(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "chain.jsonl"
    if not path.exists():
        grown(path, 3)
        (tmp_path / "whole").write_bytes(path.read_bytes())
    changed = bytearray((tmp_path / "whole").read_bytes())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(changed))
    assert not verify_chain(path, KEY.public).good


def test_a_cut_tail_is_the_one_thing_it_cannot_know(tmp_path: Path) -> None:
    path = grown(tmp_path / "chain.jsonl", 5).path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    report = verify_chain(path, KEY.public)
    assert report.good
    assert report.head != read_rows(b"".join(lines))[-1].digest


@pytest.mark.parametrize("kept", [1, 100, -3])
def test_a_torn_last_line_is_cut_off_and_kept(tmp_path: Path, kept: int) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    whole = chain.path.read_bytes()
    cut = whole.rindex(b"\n", 0, -1) + 1
    last = whole[cut:]
    chain.path.write_bytes(whole[:cut] + last[:kept])
    with chain.locked() as held:
        assert held.torn is not None
        assert "torn" in held.torn
        held.append(Event.SEALED, "e-2", {"number": 2})
    assert (tmp_path / "chain.torn").read_bytes() == last[:kept] + b"\n"
    assert not found(chain.path)
    assert [row.n for row in chain.rows()] == [0, 1, 2, 3]
    with chain.locked() as held:
        assert held.torn is None


def test_a_last_row_without_line_feed_is_completed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    whole = chain.path.read_bytes()
    chain.path.write_bytes(whole[:-1])
    with chain.locked() as held:
        assert held.torn is not None
    assert chain.path.read_bytes() == whole
    assert not (tmp_path / "chain.torn").exists()


@pytest.mark.parametrize("zeros", [bytes(700), bytes(699) + b"\n"])
def test_blocks_that_never_reached_the_disk_are_cut_off(tmp_path: Path, zeros: bytes) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    whole = chain.path.read_bytes()
    chain.path.write_bytes(whole + zeros)
    with chain.locked() as held:
        assert held.torn is not None
    assert chain.path.read_bytes() == whole


def test_a_whole_last_row_is_never_hidden_however_bad_it_is(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    with chain.path.open("ab") as file:
        file.write(b'{"n":4}\n')
    with chain.locked() as held:
        assert held.torn is None
        held.append(Event.SEALED, "e-3", {})
    assert [line for line, _ in found(chain.path)] == [5]
    assert [row.n for row in chain.rows()] == [0, 1, 2, 3, 5]


def test_an_append_that_the_disk_refuses_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = grown(tmp_path / "chain.jsonl", 2)
    before = chain.path.read_bytes()
    real = os.write

    def full(descriptor: int, data: Any) -> int:
        if len(data) < 50:
            raise OSError(28, "No space left on device")
        return real(descriptor, data[:40])

    with chain.locked() as held:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(DiskFull, match="free some space"):
            held.append(Event.SEALED, "e-2", {})
        monkeypatch.undo()
        assert chain.path.read_bytes() == before
        held.append(Event.SEALED, "e-2", {})
    assert not found(chain.path)


def test_rows_of_processes_never_interleave_also_when_they_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            chain = Chain(path, KEY)
            while True:
                with chain.locked() as held:
                    held.append(Event.SEALED, f"e-{number}", {"long": "x" * 3000})
                if len(chain.rows(f"e-{number}")) > 10:
                    os.kill(os.getpid(), signal.SIGKILL)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    with Chain(path, KEY).locked() as held:
        assert held.torn is None
    assert not found(path)
    assert len(Chain(path, KEY).rows()) == 45
