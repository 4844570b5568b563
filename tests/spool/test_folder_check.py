"""What does not agree between folders and chain is told, and nothing is touched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.chain_check import CheckedChain, check_chain
from firsthand_edge.spool.folder_check import FolderReport, check_folders
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from tests.spool.takes import FOOTAGE, TORN, judged, manifest, record, sealed, torn, verdict


def chain_of(spool: Spool) -> CheckedChain:
    return check_chain(spool.chain.path.read_bytes(), spool.key.public)


def look(spool: Spool, checked: CheckedChain | None = None) -> FolderReport:
    checked = chain_of(spool) if checked is None else checked
    return check_folders(spool.root, spool.chain.path, checked.rows, checked.keyring)


def test_a_whole_day_agrees(spool: Spool) -> None:
    accepted, rejected, discarded = judged(spool), judged(spool, TORN), judged(spool)
    sealed(spool)
    torn(spool)
    for _ in range(2):
        spool.reported(rejected, {"store": "test"})
        rejected = spool.judge_done(rejected, verdict(spool, rejected, TORN))
    spool.uploaded(accepted, {"store": "test"})
    spool.remove(discarded, Event.DISCARDED, "asked")
    aside = spool.set_aside(judged(spool), "asked")
    (aside.path / "manifest.json").write_bytes(b"")
    record(spool.begin("sim"))
    assert look(spool) == FolderReport(episodes=7, unbound=1, findings=())


def _moved(spool: Spool, to: str) -> None:
    episode = judged(spool)
    episode.path.rename(spool.root / to / episode.id)


def _judged_twice(spool: Spool) -> None:
    episode = judged(spool, TORN)
    spool.judge_done(episode, verdict(spool, episode, TORN))
    (episode.path / "verdict.json").unlink()


def _put(spool: Spool, state: State) -> None:
    with spool.chain.locked():
        pass
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").write_bytes(manifest(episode).document(spool.key))
    if state is not State.RECORDING:
        episode.path.rename(spool.root / state / episode.id)


BREAK: dict[str, Callable[[Spool], object]] = {
    "its folder is nowhere": lambda spool: shutil.rmtree(judged(spool).path),
    "is in rejected, and row 2 says accepted": lambda spool: _moved(spool, "rejected"),
    "lies in accepted and in gone": lambda spool: shutil.copytree(
        (episode := judged(spool)).path, spool.root / "gone" / episode.id
    ),
    "manifest.json has digest": lambda spool: (judged(spool).path / "manifest.json").write_bytes(b"{}\n"),
    "manifest.json is not there, and row 1 names it": lambda spool: (judged(spool).path / "manifest.json").unlink(),
    "verdict.json has digest": lambda spool: (judged(spool, TORN).path / "verdict.json").write_bytes(b"{}\n"),
    "verdict.json is not there, and row 2 names it": _judged_twice,
    "receipt.json has digest": lambda spool: (
        spool.uploaded(judged(spool), {"store": "test"}).path / "receipt.json"
    ).write_bytes(b"{}\n"),
    "was removed by row 3, and episode.mcap is still here": lambda spool: (
        spool.remove(judged(spool), Event.DISCARDED, "asked").path / "episode.mcap"
    ).write_bytes(FOOTAGE),
    "is in accepted, and no row of the chain names it": lambda spool: _put(spool, State.ACCEPTED),
    "is in gone, and no row of the chain names it": lambda spool: _put(spool, State.GONE),
    "has a manifest in recording, and no row": lambda spool: _put(spool, State.RECORDING),
    "has a manifest in torn, and no row": lambda spool: _put(spool, State.TORN),
}


@pytest.mark.parametrize("sentence", BREAK)
def test_each_disagreement_is_told_and_nothing_is_touched(spool: Spool, sentence: str) -> None:
    BREAK[sentence](spool)
    before = {path: path.stat().st_mtime_ns for path in spool.root.rglob("*")}
    report = look(spool)
    assert any(sentence in found.sentence for found in report.findings), report.findings
    assert {path: path.stat().st_mtime_ns for path in spool.root.rglob("*")} == before


def test_a_row_that_was_changed_moves_no_folder(spool: Spool) -> None:
    judged(spool, TORN)
    data = spool.chain.path.read_bytes()
    spool.chain.path.write_bytes(data.replace(b'"verdict":"rejected"', b'"verdict":"accepted"'))
    assert [found.sentence for found in look(spool).findings] == ["is in rejected, and row 1 says sealed"]


def test_steps_that_are_taken_meanwhile_are_no_findings(spool: Spool) -> None:
    """The chain was read, then the rig went on: what seems wrong is looked at again with the rig at rest."""
    first, second = judged(spool), sealed(spool)
    before = chain_of(spool)
    spool.uploaded(first, {"store": "test"})
    spool.judge_done(second, verdict(spool, second, TORN))
    judged(spool)
    assert look(spool, before).findings == ()
    shutil.rmtree(spool.find(first.id).path)
    assert [found.episode for found in look(spool, before).findings] == [first.id]


def test_it_needs_no_right_to_write(spool: Spool) -> None:
    judged(spool)
    checked = chain_of(spool)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            real = os.open

            def reading(path: str, flags: int, *more: int, **named: int) -> int:
                assert flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0
                return real(path, flags, *more, **named)

            os.open = reading  # type: ignore[assignment]
            (Path(spool.root) / "accepted" / "x").exists()
            status = 0 if look(spool, checked).findings == () else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert restart(spool) == []
