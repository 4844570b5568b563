"""The sender as a process, when the rig's key was rotated although it ran: it opens the spool again and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.errors import UsageError
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.rotation import key_unused, rotate
from firsthand_edge.spool.spool import open_spool
from firsthand_edge.spool.states import State
from tests.spool.takes import judged

ROOT = Path(__file__).parents[2]


def test_a_sender_whose_key_was_rotated_goes_on_with_the_new_one(tmp_path: Path) -> None:
    state, store = tmp_path / "state", tmp_path / "store"
    store.mkdir()
    first = judged(open_spool(state, create=True))
    process = subprocess.Popen(
        [sys.executable, "-m", "firsthand_edge.daemon.uploadd", "--state", state, "--store", store, "--poll-s", "0.05"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stderr is not None
    said = []

    def until(event: str) -> dict[str, str]:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(json.loads(line))
            if said[-1]["event"] == event:
                return dict(said[-1])
        raise AssertionError(f"it ended without saying {event!r}: {said}")

    assert until("uploaded")["episode"] == first.id
    with pytest.raises(UsageError, match="the sender"), key_unused(state):
        raise AssertionError("not refused")
    done = rotate(open_spool(state, create=False), state / "keys")  # past the lock that `keys rotate` respects
    second = judged(open_spool(state, create=False))
    assert done.new.key_id in until("the rig has another key; opening its spool again")["why"]
    assert until("uploaded")["episode"] == second.id
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0
    spool = open_spool(state, create=False)
    assert [episode.state for episode in spool.episodes()] == [State.UPLOADED, State.UPLOADED]
    assert check_chain(spool.chain.path.read_bytes(), done.old.public).report.good
    assert (store / "chains" / f"{done.old.key_id}.jsonl").exists()
