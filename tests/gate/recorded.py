"""Evidence as the recorder leaves it, made in simulated time: drifting, wrapping counters behind a delayed transport.

The recorded rig times are computed the live way, reading by reading with `_core.ClockMap`, so that the gate's way, a
whole clock at once, is held against it.
"""

import json
from dataclasses import dataclass, field, replace

import numpy as np

from firsthand_edge import _core
from firsthand_edge.gate.evidence import COLUMNS, Evidence
from firsthand_edge.model import ABSENT, Counter, DeviceInfo, Domain, StampPoint, StreamInfo
from tests.collection import COLLECTION, SCHEMA

MS = 1_000_000
SECOND = 10**9
P = 16_666_667
WARMUP = 240
"""Pulses before the take: four seconds, so that every map is settled."""
BEGIN = 5_000_000_000_000

SPEC = (
    SCHEMA
    + """
id = "test"
title = "A head and a wrist camera"
version = 1
[[streams]]
name = "head"
kind = "triggered"
rate_hz = 60
[[streams]]
name = "wrist"
kind = "triggered"
rate_hz = 60
"""
    + COLLECTION
)


@dataclass
class Camera:
    """One device with one stream. Lists are indexed by sample of the take, warm-up not included."""

    name: str
    count: int = 120
    bits: int = 32
    tick_num: int = 1000
    ppm: int = 0
    start_ticks: int | None = None
    min_delay_ns: int = 2 * MS
    bound_ns: int | None = 100_000
    jitter_ns: int = 3 * MS
    exposure_ns: int | list = 4 * MS
    point: StampPoint = StampPoint.START
    media: str = "picture/png"
    skew_ns: int = 0
    step_at: int | None = None
    step_ns: int = 0
    gone: list = field(default_factory=list)
    domains: list | None = None
    digests: list | None = None
    unstamped: list = field(default_factory=list)
    seed: int = 1
    identity: bool = False
    trigger_index: bool = False
    trigger_delay_ns: int | None = None
    """From the edge to the start of exposure, where its times are to be held against the edges."""
    sends_when_exposed: bool = False
    """Delays count from the end of an exposure, and with its 4 ms of warm-up `min_delay_ns` is right."""
    late_ns: int = 0
    """How much longer it is under way at least than its minimum delay says."""
    miscounts_from: int | None = None
    """From this sample of the take on its pulse count is one too low."""
    restart_at: int | None = None
    first: int = 0
    """First pulse of the take that it answers."""
    device: str | None = None
    """Streams of one device share its clock; the first one's clock is the device's."""

    def info(self):
        return DeviceInfo(
            name=self.device or f"{self.name}_device",
            driver="test",
            model="test",
            serial="1",
            firmware="1",
            domain=Domain.DEVICE,
            counter=Counter(self.bits, self.tick_num, 1),
            streams=(
                StreamInfo(
                    self.name,
                    self.media,
                    True,
                    self.point,
                    P,
                    has_trigger_index=self.trigger_index,
                    trigger_delay_ns=self.trigger_delay_ns,
                ),
            ),
            identity_map=self.identity,
            min_delay_ns=self.min_delay_ns,
            min_delay_bound_ns=self.bound_ns,
        )

    def rows(self):
        """Columns without `received` and `rig_ns`, warm-up first."""
        random = np.random.default_rng(self.seed)
        pulse = np.concatenate((np.arange(-WARMUP, 0), np.arange(self.first, self.first + self.count)))
        taken = np.concatenate((np.full(WARMUP, -1), np.arange(self.count)))
        exposure = np.full(pulse.size, 4 * MS, dtype=np.int64)
        exposure[WARMUP:] = self.exposure_ns
        middle = BEGIN + P * pulse + self.skew_ns  # every exposure is centred on its tick
        halves = {"start": -1, "end": 1, "readout_start": 1}.get(self.point.value, 0)
        truth = middle + halves * (exposure // 2)
        clock = truth + (truth - BEGIN) * self.ppm // 1_000_000
        if self.step_at is not None:
            clock[WARMUP + self.step_at :] += self.step_ns
        base = 0 if self.start_ticks is None else self.start_ticks - int(clock[WARMUP] // self.tick_num)
        ticks = clock // self.tick_num + base
        if self.identity:
            ticks = truth
        ticks = ticks if self.bits == 64 else ticks % 2**self.bits
        arrival = truth + exposure + self.min_delay_ns + random.integers(0, self.jitter_ns, pulse.size)
        arrival[::7] = truth[::7] + exposure[::7] + self.min_delay_ns  # the lower envelope is met often
        arrival += self.late_ns
        # One-sided delay counts from the stamped instant on.
        arrival -= exposure
        if self.sends_when_exposed:
            share = {"start": 2, "middle": 1}.get(self.point.value, 0)
            arrival += (exposure - 4 * MS) * share // 2
        arrival = np.maximum.accumulate(arrival)
        domain = np.full(pulse.size, int(Domain.DEVICE), dtype=np.int64)
        if self.domains is not None:
            domain[WARMUP:] = self.domains
        digest = np.arange(pulse.size, dtype=np.int64)
        if self.digests is not None:
            digest[WARMUP:] = self.digests
        ticks = ticks.astype(np.int64)
        ticks[[WARMUP + i for i in self.unstamped]] = ABSENT
        incarnation = np.zeros(pulse.size, dtype=np.int64)
        if self.restart_at is not None:
            incarnation[WARMUP + self.restart_at :] = 1
        slipped = (taken >= (pulse.size if self.miscounts_from is None else self.miscounts_from)).astype(np.int64)
        kept = ~np.isin(taken, self.gone)
        columns = {
            "incarnation": incarnation,
            "epoch": (taken >= 0).astype(np.int64),
            "warmup": (taken < 0).astype(np.int64),
            "sequence": np.arange(pulse.size, dtype=np.int64),
            "trigger_index": pulse - slipped if self.trigger_index else np.full(pulse.size, ABSENT, dtype=np.int64),
            "device_ticks": ticks,
            "arrival_ns": arrival,
            "exposure_ns": exposure,
            "domain": domain,
            "size": np.full(pulse.size, 10, dtype=np.int64),
            "digest": digest,
        }
        return {name: column[kept].astype(np.int64) for name, column in columns.items()}


def mapped_live(device, streams):
    """Mid-exposure rig times of a device's streams, in order of receipt, as the recorder maps them."""
    points = {stream.name: stream.stamp_point.value for stream in device.streams}
    out = {name: np.full(rows["received"].size, ABSENT, dtype=np.int64) for name, rows in streams.items()}
    readings = sorted((int(r), name, i) for name, rows in streams.items() for i, r in enumerate(rows["received"]))
    maps = {}
    for _, name, i in readings:
        rows = streams[name]
        if rows["device_ticks"][i] == ABSENT or rows["domain"][i] != device.domain.value:
            continue
        incarnation = int(rows["incarnation"][i])
        if incarnation not in maps:
            maps[incarnation] = _core.ClockMap(
                bits=device.counter.bits,
                tick_num=device.counter.tick_num,
                tick_den=1,
                min_delay_ns=device.min_delay_ns,
                min_delay_bound_ns=device.min_delay_bound_ns or 0,
                identity=device.identity_map,
            )
        rig, _ = maps[incarnation].push(int(rows["device_ticks"][i]), int(rows["arrival_ns"][i]))
        if rig == ABSENT:
            continue
        half = int(rows["exposure_ns"][i]) // 2
        out[name][i] = rig + {"start": half, "end": -half, "readout_start": -half}.get(points[name], 0)
    return out


def devices_of(cameras):
    """The devices that cameras are streams of."""
    devices = {}
    for camera in cameras:
        info = camera.info()
        known = devices.get(info.name)
        devices[info.name] = info if known is None else replace(known, streams=known.streams + info.streams)
    return list(devices.values())


def raw(*cameras, spec=SPEC, take=None, close=None, recovery=None, events=(), edges=None):
    """The dictionary of `_core.read_evidence`."""
    rows = {camera.name: camera.rows() for camera in cameras}
    arrivals = np.concatenate([rows[c.name]["arrival_ns"] for c in cameras])
    places = np.empty(arrivals.size, dtype=np.int64)
    places[np.argsort(arrivals, kind="stable")] = np.arange(arrivals.size)
    begin = 0
    for camera in cameras:
        size = rows[camera.name]["arrival_ns"].size
        rows[camera.name]["received"] = places[begin : begin + size]
        begin += size
    for device in devices_of(cameras):
        for name, times in mapped_live(device, {s.name: rows[s.name] for s in device.streams}).items():
            rows[name]["rig_ns"] = times
    balance = {c.name: {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0} for c in cameras}
    edges = np.empty(0, np.int64) if edges is None else edges
    return {
        "take": json.dumps({"episode": "test-1", "clock": {"timebase": "arb"}} if take is None else take),
        "devices": json.dumps([device.to_json() for device in devices_of(cameras)]),
        "close": json.dumps({"balance": balance}) if close is None else close or None,
        "recovery": recovery,
        "attachments": {"spec.toml": spec.encode(), "rig.toml": b""},
        "events": [json.dumps(event) for event in events],
        "edges": {"index": np.arange(edges.size, dtype=np.int64), "time_ns": edges},
        "ticks": {name: np.empty(0, np.int64) for name in ("tick", "reference_ns", "residual_ns")},
        "samples": {camera.name: {name: rows[camera.name][name] for name in COLUMNS} for camera in cameras},
    }


def evidence(*cameras, **rest):
    """Parsed evidence of a take."""
    return Evidence.parse(raw(*cameras, **rest), place="a test")
