"""Recordings go through the same workers, recorder, gate, spool and store as live sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge import _core
from firsthand_edge.cli.running import RunningRig
from firsthand_edge.gate.verdict import examine
from tests.simulated import figures, record_take, replay_rig

if TYPE_CHECKING:
    from pathlib import Path


def replayed(folder: Path, episode: Path) -> tuple[dict, Path]:
    """Replays an episode; returns the summary and the folder of the episode that came of it."""
    with RunningRig(replay_rig(folder, episode), folder / "s") as rig:
        summary = rig.record(number=1, seconds=None, title="replay", view=rig.view())
    return summary, folder / "s" / "spool" / summary["state"] / summary["episode"]


def test_ten_minutes_of_the_simulated_rig_replay_with_the_same_verdict(tmp_path):
    episode = record_take(tmp_path, seconds=600)
    first = examine(episode / "evidence.mcap").report
    assert first["verdict"] == "accepted"
    assert first["residual_ns"]["ticks"] > 35_900
    _, folder = replayed(tmp_path, episode)
    again = examine(folder / "evidence.mcap").report
    assert figures(again) == figures(first)


def test_a_rejected_take_replays_as_rejected_for_the_same_reason(tmp_path):
    episode = record_take(tmp_path, seconds=4, number=4)
    first = examine(episode / "evidence.mcap").report
    summary, folder = replayed(tmp_path, episode)
    assert summary["state"] == "rejected"
    assert figures(examine(folder / "evidence.mcap").report) == figures(first)
    before, after = (_core.read_evidence(f / "evidence.mcap")["samples"] for f in (episode, folder))
    for stream, columns in before.items():
        taken = columns["warmup"] == 0
        again = after[stream]["warmup"] == 0
        for name in ("device_ticks", "arrival_ns", "sequence", "digest", "rig_ns"):
            assert (columns[name][taken] == after[stream][name][again]).all(), (stream, name)
