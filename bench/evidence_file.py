"""A take as our own evidence, written by the recorder's core: eight devices, each with a drifting clock of its own.

Counters are nanoseconds, off by some 60 ppm; arrivals are 1.2 ms late at least, with an exponential tail of 0.3 ms. A
sample's payload is one byte. Samples go in tenth by tenth of a second, so the live maps, the monitor and the writer do
what they do on a rig.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.dataset import EPOCH_NS, IMU_PERIOD_NS, PERIOD_NS
from firsthand_edge import _core
from firsthand_edge.model import ABSENT, Counter, Domain
from tests.collection import COLLECTION, SCHEMA
from tests.record.wire import device, plan, required, stream

if TYPE_CHECKING:
    from pathlib import Path

    from bench.dataset import Stamps, Take

TENTH = 100_000_000
WARM_UP = 40
"""Tenths of a second before the take, so that every map is settled."""
MIN_DELAY_NS = 1_200_000
RECORD = np.dtype(
    [
        ("sequence", "<i8"),
        ("trigger_index", "<i8"),
        ("device_ticks", "<i8"),
        ("arrival", "<i8"),
        ("exposure", "<i8"),
        ("payload", "<u4"),
        ("metadata", "<u4"),
        ("domain", "u1"),
        ("unused", "u1", (7,)),
    ]
)


def write(folder: Path, take: Take) -> Path:
    """Records the take into `folder`, which is made, and gives its evidence. The footage is removed."""
    streams = {"head": take.pictures[0]}
    streams |= {f"camera{number}": times for number, times in enumerate(take.pictures[1:], start=1)}
    streams["imu"] = take.imu
    devices = [_device(name) for name in streams]
    wanted = [required(name, "sampled" if name == "imu" else "triggered", period_ns=_period(name)) for name in streams]
    folder.mkdir(parents=True)
    intake = _core.Intake(
        json.dumps([info.to_json() for info in devices]), plan=plan(*wanted, lossless=True), live=folder.parent / "live"
    )
    sources = {name: _Source(number) for number, name in enumerate(streams)}
    for tenth in range(-WARM_UP, 0):
        begin = EPOCH_NS + tenth * TENTH
        for name, source in sources.items():
            source.push(intake, name, 0, np.arange(begin, begin + TENTH, _period(name)))
    assert all(intake.settled().values())
    about = {"episode": "bench", "clock": {"timebase": "arb"}, "period_ns": PERIOD_NS}
    spec = [("spec.toml", "application/toml", _spec(streams)), ("rig.toml", "application/toml", b"")]
    intake.start_take(folder, epoch=1, take=json.dumps(about), attachments=spec)
    cuts = EPOCH_NS + TENTH * np.arange(take.seconds * 10 + 2)
    bounds = {name: np.searchsorted(times, cuts) for name, times in streams.items()}
    for tenth, now in enumerate(cuts[:-1].tolist()):
        for name, source in sources.items():
            begin, end = bounds[name][tenth : tenth + 2]
            source.push(intake, name, 1, np.unique(streams[name][begin:end]))
        intake.advance(now)
    nothing = {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0}
    intake.stop_take(json.dumps({"balance": dict.fromkeys(streams, nothing)}))
    (folder / "episode.mcap").unlink()
    return folder / "evidence.mcap"


class _Source:
    """One device: its clock and its transport."""

    def __init__(self, number: int) -> None:
        self._random = np.random.default_rng(number)
        self._ppm = self._random.normal(0, 60)
        self._sent = 0

    def push(self, intake: _core.Intake, name: str, epoch: int, times: Stamps) -> None:
        """Sends the samples of those instants."""
        rows = np.zeros(times.size, RECORD)
        rows["sequence"] = np.arange(self._sent, self._sent + times.size)
        self._sent += times.size if epoch else 0
        since = times - EPOCH_NS
        rows["device_ticks"] = since + (since * self._ppm / 1e6).astype(np.int64) + WARM_UP * TENTH * 2
        tail = self._random.exponential(300_000, times.size).astype(np.int64)
        tail[::9] = 0
        rows["arrival"] = np.maximum.accumulate(times + MIN_DELAY_NS + tail) if times.size else times
        rows["trigger_index"], rows["payload"], rows["domain"] = ABSENT, 1, Domain.DEVICE.value
        intake.push(name, 0, epoch, 0, times.size, rows.tobytes(), bytes(times.size))


def _device(name: str) -> Any:
    own = stream(name, "record", period_ns=_period(name), triggered=name != "imu")
    return device(
        f"{name}_device",
        own,
        identity_map=False,
        min_delay_ns=MIN_DELAY_NS,
        min_delay_bound_ns=50_000,
        counter=Counter(bits=64),
    )


def _period(name: str) -> int:
    return IMU_PERIOD_NS if name == "imu" else PERIOD_NS


def _spec(streams: dict[str, Stamps]) -> bytes:
    rows = "".join(
        f'[[streams]]\nname = "{name}"\nkind = "{"sampled" if name == "imu" else "triggered"}"\n'
        f"rate_hz = {1000 if name == 'imu' else 60}\n"
        for name in streams
    )
    head = '\nid = "bench"\ntitle = "Seven cameras and an IMU"\nversion = 1\n'
    return (SCHEMA + head + rows + COLLECTION).encode()
