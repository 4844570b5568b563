"""Appending: rows of one process, of several, after torn tails, and across a rotation of the key."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firsthand_edge.errors import ConfigInvalid, DiskFull, KeyRotated
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Chain, Event, read_rows
from firsthand_edge.spool.chain_check import ChainReport, check_chain
from tests.spool import forging
from tests.spool.forging import forge_rotation, rotated

KEY, NEXT = KeyPair.generate(), KeyPair.generate()


def grown(path: Path, rows: int, key: KeyPair = KEY) -> Chain:
    return forging.grown(path, key, rows)


def checked(path: Path) -> ChainReport:
    return check_chain(path.read_bytes(), KEY.public).report


def found(path: Path) -> list[tuple[int, str]]:
    return [(f.line, f.sentence) for f in checked(path).findings]


def test_rows_are_numbered_linked_and_signed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 5)
    rows = chain.rows()
    assert [row.n for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row.event for row in rows] == ["key"] + ["sealed"] * 5
    assert rows[0].body == {"public_key": KEY.public.hex()}
    assert [row.prev for row in rows] == [None, *(row.digest for row in rows[:-1])]
    assert all(row.signed_by(KEY.public) for row in rows)
    report = checked(chain.path)
    assert report.good
    assert (report.rows, report.head) == (6, rows[-1].digest)


def test_rows_of_one_episode(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 12)
    assert [row.n for row in chain.rows("e-1")] == [2]


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


@pytest.mark.parametrize("other", [b"x", b"\x0b", b"}", b"{", b"\x00", b"\xff", b"xyz", b"}\x00\x00", b"\x00\n"])
def test_a_last_row_whose_line_feed_was_changed_is_completed_and_not_cut_off(tmp_path: Path, other: bytes) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    whole = chain.path.read_bytes()
    chain.path.write_bytes(whole[:-1] + other)
    with chain.locked() as held:
        assert held.torn is not None
        assert "completed" in held.torn
        assert chain.path.read_bytes() == whole
        held.append(Event.SEALED, "e-9", {})
    assert not (tmp_path / "chain.torn").exists()
    assert not found(chain.path)


def test_every_other_byte_in_place_of_the_last_line_feed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 1)
    whole = chain.path.read_bytes()
    for byte in set(range(256)) - {10}:
        chain.path.write_bytes(whole[:-1] + bytes([byte]))
        with chain.locked():
            pass
        assert chain.path.read_bytes() == whole, byte


@pytest.mark.parametrize("changes", [{"n": 7}, {"prev": "blake3:0"}])
@pytest.mark.parametrize("signer", [KEY, NEXT])
def test_a_last_line_that_does_not_continue_the_chain_is_no_row_to_complete(
    tmp_path: Path, signer: KeyPair, changes: dict[str, Any]
) -> None:
    chain = grown(tmp_path / "chain.jsonl", 2)
    whole = chain.path.read_bytes()
    forging.forge(chain.path, signer, **(changes if signer is KEY else {}))
    chain.path.write_bytes(chain.path.read_bytes()[:-1] + b"x")
    with chain.locked() as held:
        assert "cut off and kept" in (held.torn or "")
    assert chain.path.read_bytes() == whole


def test_a_first_row_whose_line_feed_was_changed_is_completed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 0)
    with chain.locked():
        pass
    whole = chain.path.read_bytes()
    chain.path.write_bytes(whole[:-1] + b"x")
    with Chain(chain.path, KEY).locked() as held:
        assert not held.empty
    assert chain.path.read_bytes() == whole


def test_a_line_that_moved_is_seen_although_the_file_grew(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 3)
    assert len(chain.names()) == 3
    lines = chain.path.read_bytes().splitlines(keepends=True)
    chain.path.write_bytes(b"".join([lines[0], lines[2], lines[3], lines[2], lines[2]]))
    assert sorted(chain.names()) == ["e-1", "e-2"]
    assert [row.n for row in chain.rows("e-1")] == [2, 2, 2]


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


def test_rows_of_one_episode_are_followed_as_the_file_grows_or_is_replaced(tmp_path: Path) -> None:
    chain, other = Chain(tmp_path / "chain.jsonl", KEY), Chain(tmp_path / "chain.jsonl", KEY)
    assert chain.rows("e-1") == []
    for number in range(3):
        with other.locked() as held:
            held.append(Event.JUDGED, "e-1", {"number": number})
            held.append(Event.JUDGED, "e-2", {"episode": "e-1"})
        assert [row.body["number"] for row in chain.rows("e-1")] == list(range(number + 1))
    lines = chain.path.read_bytes().splitlines(keepends=True)
    chain.path.write_bytes(b"".join(lines[:2]))
    assert len(chain.rows("e-1")) == 1
    chain.path.unlink()
    assert chain.rows("e-1") == []
    assert chain.keyring().current == KEY.public


def test_a_spec_is_the_last_row_that_is_signed(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 1)
    assert chain.last_spec() is None
    with chain.locked() as held:
        held.append(Event.SPEC, None, {"digest": "first"})
        held.append(Event.SPEC, None, {"digest": "second"})
    forging.forge(chain.path, NEXT, event="spec", episode=None, body={"digest": "third"})
    spec = chain.last_spec()
    assert spec is not None
    assert spec.body == {"digest": "second"}


# ---- which key


def test_whoever_still_holds_the_old_key_appends_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    stale = grown(path, 2)
    assert stale.keyring().current == KEY.public
    rotated(path, KEY, NEXT)
    before = path.read_bytes()
    for chain in (stale, Chain(path, KEY)):
        with pytest.raises(KeyRotated, match=r"was the rig's until row 3 .* start this process again"), chain.locked():
            raise AssertionError("the chain was handed out")
    assert path.read_bytes() == before
    grown(path, 1, NEXT)
    assert not found(path)


def test_the_step_that_rotates_appends_nothing_after_it(tmp_path: Path) -> None:
    with Chain(tmp_path / "chain.jsonl", KEY).locked() as held:
        held.append_rotation(NEXT)
        with pytest.raises(KeyRotated):
            held.append(Event.SEALED, "e-1", {})
    assert not found(tmp_path / "chain.jsonl")


def test_a_key_that_never_was_the_rig_s_appends_nothing(tmp_path: Path) -> None:
    path = grown(tmp_path / "chain.jsonl", 1).path
    with pytest.raises(ConfigInvalid, match=f"signed by key {KEY.key_id}"), Chain(path, NEXT).locked():
        raise AssertionError("the chain was handed out")


def test_a_forged_rotation_neither_lets_its_key_in_nor_shuts_the_rig_s_out(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 1)
    forge_rotation(chain.path, NEXT, NEXT)
    with pytest.raises(ConfigInvalid), Chain(chain.path, NEXT).locked():
        raise AssertionError("the chain was handed out")
    for held_by in (chain, Chain(chain.path, KEY)):
        with held_by.locked() as held:
            held.append(Event.SEALED, "e-2", {})
    assert chain.keyring().current == KEY.public
    assert {line for line, _ in found(chain.path)} == {3}


def test_a_first_row_that_proves_nothing_is_taken_for_the_key_at_hand_s(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", 2)
    data = chain.path.read_bytes()
    chain.path.write_bytes(b"x" + data[1:])
    grown(chain.path, 1)
    assert [line for line, _ in found(chain.path)] == [1, 2]


def test_a_first_row_that_proves_nothing_before_rotations_stops_everything(tmp_path: Path) -> None:
    path = grown(tmp_path / "chain.jsonl", 2).path
    rotated(path, KEY, NEXT)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(ConfigInvalid, match="restore the chain from the store's copy"), Chain(path, NEXT).locked():
        raise AssertionError("the chain was handed out")


# ---- several processes


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


def test_rows_of_processes_never_interleave_also_when_keys_are_rotated_and_processes_killed(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    keys = [KEY, *(KeyPair.generate() for _ in range(6))]
    grown(path, 0)
    with Chain(path, KEY).locked():
        pass
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if _append_until_the_last(path, keys, number) else 1
            finally:
                os._exit(status)
        children.append(child)
    for old, new in pairwise(keys):
        while len(read_rows(path.read_bytes())) < 12 * keys.index(new):
            pass
        rotated(path, old, new)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    assert not found(path)
    rows = read_rows(path.read_bytes())
    ring = Chain(path, keys[-1]).keyring()
    assert [key.public for key in ring.keys] == [key.public for key in keys]
    assert all(row.signed_by(ring.at(row.n)) for row in rows)
    assert [row.n for row in rows] == list(range(len(rows)))


def _append_until_the_last(path: Path, keys: list[KeyPair], number: int) -> bool:
    """Appends with one key until it is not the rig's any more, then goes on with the next; ends with the last."""
    for place, key in enumerate(keys):
        chain = Chain(path, key)
        try:
            for _ in range(10_000):
                with chain.locked() as held:
                    held.append(Event.SEALED, f"e-{number}", {"key": place, "long": "x" * 500})
                if place == len(keys) - 1:
                    return True
        except KeyRotated:
            continue
        return False
    return False
