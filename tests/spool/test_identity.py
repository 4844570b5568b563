from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import UsageError
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.identity import EpisodeId, next_counter
from firsthand_edge.spool.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path


@given(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,31}", fullmatch=True), st.integers(0, 10**12))
def test_parse_is_the_inverse_of_str(rig: str, counter: int) -> None:
    episode = EpisodeId.new(rig, counter)
    assert EpisodeId.parse(str(episode)) == episode


@pytest.mark.parametrize(
    "text", ["", "sim", "sim-1-0123456789abcdef", "sim-00000001-0123456789ABCDEF", "../sim-00000001"]
)
def test_other_names_are_no_episode(text: str) -> None:
    assert EpisodeId.parse(text) is None


@pytest.mark.parametrize("rig", ["", "Sim", "a/b", "..", "a" * 33, "-a"])
def test_a_rig_id_that_cannot_be_a_file_name_takes_no_number(spool: Spool, rig: str) -> None:
    with pytest.raises(UsageError, match="correct it in the rig file"):
        spool.begin(rig)
    assert not (spool.root / "counter").exists()


def test_order_by_name_is_order_by_counter() -> None:
    names = [str(EpisodeId.new("rig", counter)) for counter in range(0, 3000, 7)]
    assert names == sorted(names)


@pytest.mark.parametrize("content", [None, b"", bytes(8), b"-3\n", b"x", b"\xff", b"2\n"])
def test_a_lost_or_damaged_counter_numbers_nothing_twice(spool: Spool, content: bytes | None) -> None:
    for _ in range(5):
        spool.begin("sim")
    counter = spool.root / "counter"
    counter.unlink() if content is None else counter.write_bytes(content)
    assert EpisodeId.parse(spool.begin("sim").id) == EpisodeId("sim", 6, spool.episodes()[-1].id[-16:])


def test_the_number_is_taken_before_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "counter"
    assert [next_counter(path, seen=0) for _ in range(3)] == [1, 2, 3]
    assert next_counter(path, seen=41) == 42
    assert path.read_text() == "42\n"


def test_processes_that_begin_at_once_get_numbers_of_their_own(tmp_path: Path) -> None:
    key = KeyPair.load_or_create(tmp_path / "keys")
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                spool = Spool(tmp_path / "spool", key)
                for _ in range(10):
                    spool.begin("sim")
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    numbers = [EpisodeId.parse(e.id) for e in Spool(tmp_path / "spool", key).episodes()]
    assert sorted(n.counter for n in numbers if n is not None) == list(range(1, 61))
