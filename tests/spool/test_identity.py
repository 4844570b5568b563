from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge.errors import UsageError
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool import chain
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.identity import EpisodeId, next_counter
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.spool import Spool
from tests.spool.kill import MEMORY
from tests.spool.takes import judged

KEY = KeyPair.generate()


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


def test_no_step_of_any_clock_makes_two_episodes_one(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks stand still, go back, and count another boot: names do not come from them."""
    times = iter([10**18, 10**18, 0, 5, 5, 3] * 40)
    for name in ("time", "time_ns", "monotonic", "monotonic_ns"):
        monkeypatch.setattr(time, name, lambda: next(times))
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _clock: next(times))
    monkeypatch.setattr(chain, "_boot_id", lambda: str(next(times)))
    names = [judged(spool).id for _ in range(12)]
    assert len(set(names)) == 12
    assert names == sorted(names)
    monkeypatch.undo()
    assert check_chain(spool.chain.path.read_bytes(), spool.key.public).report.good
    assert restart(spool) == []


def test_a_copied_spool_goes_on_with_other_names(spool: Spool, tmp_path: Path) -> None:
    """Two rigs of one disk image take the same numbers; the random bits tell their episodes apart."""
    judged(spool)
    shutil.copytree(spool.root, tmp_path / "copy")
    other = Spool(tmp_path / "copy", spool.key)
    ours, theirs = [judged(spool).id for _ in range(5)], [judged(other).id for _ in range(5)]
    assert [name[4:12] for name in ours] == [name[4:12] for name in theirs]
    assert not set(ours) & set(theirs)


def test_a_counter_that_was_lost_while_all_folders_left_numbers_after_the_chain_s_rows(spool: Spool) -> None:
    names = [judged(spool).id for _ in range(3)]
    for name in names:
        shutil.rmtree(spool.root / "accepted" / name)
    (spool.root / "counter").unlink()
    assert spool.begin("sim").id[4:12] == "00000004"


@given(st.lists(st.sampled_from(["begin", "lose", "back", "garbage", "judge"]), max_size=12))
@settings(max_examples=30, deadline=None)
def test_no_order_of_losses_gives_a_number_twice(acts: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        spool = Spool(Path(folder) / "spool", KEY)
        counter, seen = spool.root / "counter", 0
        for act in acts:
            if act == "lose":
                counter.unlink(missing_ok=True)
            elif act == "back":
                counter.write_text("1\n")
            elif act == "garbage":
                counter.write_bytes(b"\xff\x00")
            else:
                episode = judged(spool) if act == "judge" else spool.begin("sim")
                number = EpisodeId.parse(episode.id)
                assert number is not None
                assert number.counter > seen
                seen = number.counter
