"""replay: a ten-minute episode of the simulated rig through workers, recorder, gate and spool, against its own length.

The episode is made in simulated time. What is timed is from the start of the take to the verdict, with nine worker
processes reading the recording, one socket a stream, the recorder writing both files and the gate judging; starting the
processes is not. The verdict must be that of the episode that was replayed.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.line import Line
from firsthand_edge.cli.running import RunningRig
from firsthand_edge.gate.verdict import examine
from tests.simulated import figures, record_take, replay_rig

if TYPE_CHECKING:
    from bench.dataset import Take

SECONDS = 600


def lines(_take: Take, *, rounds: int) -> list[Line]:
    """The line of the table: the median of up to three runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        episode = record_take(folder, seconds=SECONDS)
        before = figures(examine(episode / "evidence.mcap").report)
        spent = []
        with RunningRig(replay_rig(folder, episode), folder / "s") as rig:
            for number in range(1, min(rounds, 3) + 1):
                rig.wait_ready()
                start = time.perf_counter()
                rig.begin(number=number)
                while not rig.call("status", timeout_s=30)["over"]:
                    time.sleep(0.01)
                summary = rig.call("stop_take", timeout_s=120)
                spent.append(time.perf_counter() - start)
                again = folder / "s" / "spool" / summary["state"] / summary["episode"] / "evidence.mcap"
                assert figures(examine(again).report) == before
    return [
        Line(
            "replay", "10 min of the simulated rig, take to verdict", SECONDS / sorted(spent)[len(spent) // 2], "x", 20
        )
    ]
