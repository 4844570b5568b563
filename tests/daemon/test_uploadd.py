"""The sender as a process of its own: real arguments, real signals, real exit statuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from tests.spool.takes import TORN, judged

ROOT = Path(__file__).parents[2]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "state"


def spool_of(state: Path) -> Spool:
    return Spool(state / "spool", KeyPair.load_or_create(state / "keys"))


def start(state: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "firsthand_edge.daemon.uploadd",
            "--state",
            str(state),
            "--store",
            str(state.parent / "store"),
            *arguments,
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, str]]]:
    _, stderr = process.communicate(timeout=60)
    return process.returncode, [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]


def wait_for(process: subprocess.Popen[str], event: str) -> dict[str, str]:
    """Reads log lines until one has `event`."""
    assert process.stderr is not None
    for line in process.stderr:
        entry: dict[str, str] = json.loads(line)
        if entry["event"] == event:
            return entry
    raise AssertionError(f"the process ended without saying {event!r}")


def test_once_sends_what_waits(state: Path) -> None:
    spool = spool_of(state)
    accepted, rejected = judged(spool), judged(spool, TORN)
    status, lines = end(start(state, "--once"))
    assert status == 0
    assert [(line["event"], line["episode"]) for line in lines] == [
        ("uploaded", accepted.id),
        ("reported", rejected.id),
    ]
    assert spool.find(accepted.id).state is State.UPLOADED
    assert (state.parent / "store" / "episodes" / accepted.id / "episode.mcap").exists()
    assert not list((state.parent / "store" / "rejected").rglob("episode.mcap"))


def test_an_absent_store_has_its_own_exit_status(state: Path) -> None:
    spool = spool_of(state)
    episode = judged(spool)
    (state.parent / "store").rmdir()
    status, lines = end(start(state, "--once"))
    assert status == 7
    assert "mount it" in lines[-1]["why"]
    assert spool.find(episode.id).state is State.ACCEPTED


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_ends_cleanly(state: Path, signal_number: signal.Signals) -> None:
    spool = spool_of(state)
    episode = judged(spool)
    process = start(state, "--poll-s", "3600")
    assert wait_for(process, "uploaded")["episode"] == episode.id
    process.send_signal(signal_number)
    status, _ = end(process)
    assert status == 0


def test_it_looks_again(state: Path) -> None:
    spool = spool_of(state)
    judged(spool)
    process = start(state, "--poll-s", "0.05")
    wait_for(process, "uploaded")
    later = judged(spool)
    assert wait_for(process, "uploaded")["episode"] == later.id
    process.terminate()
    assert end(process)[0] == 0


def test_there_is_one_sender(state: Path) -> None:
    judged(spool_of(state))
    first = start(state, "--poll-s", "3600")
    wait_for(first, "uploaded")
    status, lines = end(start(state, "--once"))
    assert status == 2
    assert "another uploadd" in lines[-1]["why"]
    first.kill()
    first.communicate()
    assert end(start(state, "--once"))[0] == 0


def test_a_step_that_a_kill_cut_short_is_finished_at_start(state: Path) -> None:
    spool = spool_of(state)
    episode = judged(spool)
    assert end(start(state, "--once"))[0] == 0
    (spool.root / "uploaded" / episode.id).rename(spool.root / "accepted" / episode.id)
    recording = spool.begin("sim")
    (recording.path / "episode.mcap").write_bytes(b"being written")
    status, lines = end(start(state, "--once"))
    assert status == 0
    assert [(line["event"], line["what"]) for line in lines] == [("found at start", "step_finished")]
    assert spool.find(episode.id).state is State.UPLOADED
    assert spool.find(recording.id).state is State.RECORDING


@pytest.mark.parametrize("arguments", [[], ["--once", "--poll-s", "1"], ["--poll-s", "0"], ["--poll-s", "x"]])
def test_wrong_usage(state: Path, arguments: list[str]) -> None:
    assert end(start(state, *arguments))[0] == 2
