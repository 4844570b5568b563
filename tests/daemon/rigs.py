"""Small simulated rigs of real processes, for tests of the daemon."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from firsthand_edge.cli.running import RunningRig
from tests.collection import COLLECTION, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = (
    SCHEMA
    + """
id = "test"
title = "Two cameras and an IMU"
version = 1
[[streams]]
name = "head"
kind = "triggered"
rate_hz = 60
[[streams]]
name = "wrist"
kind = "triggered"
rate_hz = 60
[[streams]]
name = "imu"
kind = "sampled"
rate_hz = 1000
"""
    + COLLECTION
)

RIG = """
[rig]
id = "test-01"
timebase = "arb"
[contract]
spec = "spec.toml"
plan = "plan.toml"
throw_away_key = true
[trigger]
kind = "simulated"
rate_hz = 60
mid_exposure_us = 2000
[consent]
state = "not_checked"
why = "simulated"
[store]
directory = "store"
[[device]]
name = "head"
driver = "sim"
seed = 1
drift_ppm = 40
[[device.stream]]
name = "head"
content = "picture"
rate_hz = 60
exposure_us = 2000
trigger_delay_us = 1000
stamp_point = "middle"
[[device]]
name = "wrist"
driver = "sim"
seed = 2
drift_ppm = -60
{fault}
[[device.stream]]
name = "wrist"
content = "picture"
rate_hz = 60
exposure_us = 2000
trigger_delay_us = 1000
stamp_point = "middle"
[[device]]
name = "imu"
driver = "sim"
seed = 3
drift_ppm = 25
[[device.stream]]
name = "imu"
content = "imu"
triggered = false
rate_hz = 1000
stamp_point = "instant"
batch = 10
"""


PLAN = """
schema = "firsthand.plan/1"
[[takes]]
task = "pick-cup"
cell = "daylight"
scene = "kitchen-1"
objects = ["cup-1"]
contributor = "c-01"
outcome = "success"
times = 100
"""


def write_rig(folder: Path, *, fault: str = "", rig: str = RIG, spec: str = SPEC, plan: str = PLAN) -> Path:
    """Writes rig file, spec and plan into `folder`; returns the rig file."""
    (folder / "spec.toml").write_text(spec)
    (folder / "plan.toml").write_text(plan)
    path = folder / "rig.toml"
    path.write_text(rig.replace("{fault}", fault))
    return path


@contextlib.contextmanager
def running(folder: Path, *, fault: str = "") -> Iterator[RunningRig]:
    """The rig, its daemon ready for a take."""
    with RunningRig(write_rig(folder, fault=fault), folder / "s") as rig:
        yield rig


def record(rig: RunningRig, *, number: int = 1, seconds: float) -> dict:
    """One take of so many seconds of the rig's own time; returns its summary."""
    rig.wait_ready()
    rig.begin(number=number)
    wait_ticks(rig, round(seconds * 60))
    return rig.call("stop_take", timeout_s=60)


def wait_ticks(rig: RunningRig, ticks: int, *, limit_s: float = 30.0) -> None:
    """Waits until the live monitor has finished so many ticks of the running take."""
    from firsthand_edge import _core

    page = _core.LivePage(rig.run_dir / "live")
    until(lambda: page.read()["recording"] and page.read()["tick"] >= ticks, f"{ticks} ticks", limit_s=limit_s)


def until(condition, what: str, *, limit_s: float = 20.0) -> None:
    """Waits until `condition()` holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {limit_s:g} s")
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether no process has this id; a dead child that nobody has waited for counts as gone."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state == "Z"
    return True
