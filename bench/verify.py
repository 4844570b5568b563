"""verify_episodes: proof of ten thousand episodes by a stranger, as the command that a person starts.

The episodes are three takes of the simulated rig, recorded in simulated time with just under 100 kB of evidence each,
and bound under ten thousand ids by the rig's own code: every one has evidence of its own, a signed manifest, a signed
verdict and its rows in one chain. What is timed is the whole process of `episodes verify --no-footage`: reading the
chain, digests, signatures, and every verdict judged again. Coverage of the same spool is timed beside it.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.line import Line
from tests.qa.episodes import Rig

if TYPE_CHECKING:
    from bench.dataset import Take

EPISODES = 10_000
EVIDENCE_BYTES = 100_000
COMMAND = (sys.executable, "-m", "firsthand_edge.cli")


def lines(_take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table: medians of up to three runs."""
    with tempfile.TemporaryDirectory() as name:
        rig = fill(Path(name))
        verify = ("episodes", "verify", str(rig.spool.root), "--key", rig.key, "--spec", str(rig.spec_path))
        proved, worked, covered = [], [], []
        for _ in range(min(rounds, 3)):
            spent, work, proof = timed(*verify, "--no-footage", "--json")
            assert proof["summary"]["accepted"] == EPISODES
            proved.append(spent)
            worked.append(work)
            spent, _, coverage = timed("coverage", str(rig.spool.root), "--json")
            assert sum(cell["accepted"] for cell in coverage["collections"][0]["cells"]) == EPISODES
            covered.append(spent)
    what = f"{EPISODES:,} episodes of <= 100 kB of evidence, without footage"
    return [
        Line("verify_episodes", f"proof of {what}", statistics.median(proved), "s", 60, at_most=True),
        Line("verify_episodes", "processor time of that, all processes", statistics.median(worked), "s"),
        Line(
            "verify_episodes", f"coverage of {EPISODES:,} episodes", statistics.median(covered), "s", 10, at_most=True
        ),
    ]


def fill(folder: Path) -> Rig:
    """A spool of accepted episodes."""
    rig = Rig(folder)
    takes = [
        rig.take(seconds=4.3),
        rig.take(seconds=4.2, scene="kitchen-2", contributor="sim-b"),
        rig.take(seconds=4.25, cell="low-light"),
    ]
    verdicts = []
    for number in range(EPISODES):
        take = takes[number % len(takes)]
        assert 0.9 * EVIDENCE_BYTES < len(take.evidence) <= EVIDENCE_BYTES
        sealed = rig.seal(take)
        if number < len(takes):
            verdicts.append(rig.spool.committed(rig.judge(sealed)).verdict)
        else:
            rig.judge_like(sealed, verdicts[number % len(takes)])
    return rig


def timed(*arguments: str) -> tuple[float, float, dict]:
    """Seconds on the clock and of processors that a command takes, workers included, and the document it prints."""
    before, start = processor_s(), time.perf_counter()
    done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, check=False)
    spent = time.perf_counter() - start
    assert done.returncode == 0, done.returncode
    return spent, processor_s() - before, json.loads(done.stdout)


def processor_s() -> float:
    """Of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
