"""Episodes of the rig of `configs/sim.toml`, made in simulated time."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from firsthand_edge import _core
from firsthand_edge.daemon.rig import LoadedRig, load_rig
from firsthand_edge.record.plan import recorder_plan
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.testing.simulated_time import SimulatedRig, record_simulated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from firsthand_edge.sensors.configuration import SimDevice

CONFIGS = Path(__file__).parents[1] / "configs"
CAPTURE = {"task": "pick-cup", "cell": "daylight", "scene": "kitchen-1", "contributor": "sim-a"}
"""What the takes that are made here capture."""
REPLAY_HEAD = """
[rig]
id = "replay-01"
timebase = "arb"
[contract]
spec = "sim-spec.toml"
plan = "sim-plan.toml"
throw_away_key = true
[trigger]
kind = "replayed"
rate_hz = 60
mid_exposure_us = 5000
[consent]
state = "not_checked"
why = "replayed"
[store]
directory = "store"
"""


def sim_rig() -> LoadedRig:
    """The rig of the demo."""
    return load_rig(CONFIGS / "sim.toml")


def with_devices(
    loaded: LoadedRig,
    devices: Sequence[SimDevice],
    *,
    spec_document: bytes | None = None,
    rate_hz: Decimal | None = None,
    edges_number_ticks: bool = True,
) -> LoadedRig:
    """The rig with other devices.

    Args:
        loaded: The rig.
        devices: Instead of its own.
        spec_document: Instead of its own.
        rate_hz: Of the pulses, instead of its own.
        edges_number_ticks: Whether it states `trigger.mid_exposure_us`; otherwise its reference stream numbers them.
    """
    changes: dict[str, object] = {} if rate_hz is None else {"rate_hz": rate_hz}
    if not edges_number_ticks:
        changes["mid_exposure_us"] = None
    trigger = loaded.file.trigger.model_copy(update=changes)
    file = loaded.file.model_copy(update={"device": tuple(devices), "trigger": trigger})
    document = loaded.spec_document if spec_document is None else spec_document
    return replace(loaded, file=file, spec=parse_spec(document, place="spec.toml"), spec_document=document)


def record_take(
    folder: Path,
    *,
    seconds: float,
    number: int = 1,
    bypass_clock_maps: bool = False,
    loaded: LoadedRig | None = None,
    warm_up_s: float = 3.0,
) -> Path:
    """Records take `number` into `folder / "episode"` and returns that folder.

    Args:
        folder: Of the test; exists.
        seconds: Length in simulated time.
        number: Fault scripts of the rig file go by it.
        bypass_clock_maps: Take every device's unwrapped counter for rig time, as a careless recorder would.
        loaded: The rig; None for that of the demo.
        warm_up_s: Length of the preview before it.
    """
    if loaded is None:
        loaded = sim_rig()
    rig = SimulatedRig(loaded.file.device, folder / "run")
    infos = [replace(info, identity_map=bypass_clock_maps) for info in rig.infos]
    plan = recorder_plan(loaded.spec, period_ns=loaded.period_ns, latency_ns=150_000_000)
    intake = _core.Intake(json.dumps([i.to_json() for i in infos]), plan=plan, live=folder / "live")
    directory = folder / "episode"
    directory.mkdir()
    record_simulated(
        rig,
        intake,
        directory=directory,
        seconds=seconds,
        period_ns=loaded.period_ns or 0,
        number=number,
        warm_up_s=warm_up_s,
        take={
            "episode": f"sim-01-{number:08d}-0123456789abcdef",
            "rig": "sim-01",
            "number": number,
            "software": {"version": _core.__version__, "commit": "unknown"},
            "spec": {"id": loaded.spec.id, "version": loaded.spec.version, "digest": loaded.spec.digest},
            "capture": CAPTURE,
            "consent": {"state": "not_checked", "why": "simulated"},
            "clock": {"timebase": "arb", "source": "simulated"},
            "period_ns": loaded.period_ns,
            "tick_offset_ns": loaded.tick_offset_ns,
        },
        attachments=[
            ("spec.toml", "application/toml", loaded.spec_document),
            ("rig.toml", "application/toml", loaded.document),
        ],
    )
    rig.close()
    return directory


def replay_rig(folder: Path, episode: Path) -> Path:
    """A rig file that replays every device of an episode of the simulated rig, as fast as it can."""
    for name in ("sim-spec.toml", "sim-plan.toml"):
        shutil.copy(CONFIGS / name, folder)
    devices = "".join(
        f'[[device]]\nname = "{device.name}"\ndriver = "replay"\npath = "{episode}"\npace = "fast"\n'
        for device in sim_rig().file.device
    )
    path = folder / "replay.toml"
    path.write_text(REPLAY_HEAD + devices)
    return path


def figures(report: dict) -> dict:
    """What a replay must give again: everything but which take and which samples were lost where."""
    return {
        key: report[key] for key in ("span", "residual_ns", "guarded_ns", "streams", "verdict", "reasons", "warnings")
    }


def spec_of_streams(streams: Sequence[dict]) -> bytes:
    """The spec of the demo with other streams; the first is the reference."""
    text = (CONFIGS / "sim-spec.toml").read_text()
    # These limit stereo pairs, and cameras against IMUs, which other streams need not have.
    text = re.sub(r"(?m)^(epipolar_px_max|camera_imu_offset_ms_max) = .*$", "", text)
    parts = re.split(r"(?m)^(?=\[)", text)
    kept = "".join(part for part in parts if not part.startswith(("[[streams]]", "[[capture.geometry]]")))
    rows = "".join("[[streams]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in row.items()) for row in streams)
    name = streams[0]["name"]
    geometry = f'[[capture.geometry]]\nstream = "{name}"\nkeep = "both hands"\n'
    return (kept.replace('reference = "head"', f'reference = "{name}"') + rows + geometry).encode()
