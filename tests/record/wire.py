"""Fabricated devices and wire messages for the recorder, and public readers for what it wrote."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

from firsthand_edge import _core
from firsthand_edge.model import ABSENT, Counter, DeviceInfo, Domain, StampPoint, StreamInfo

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
START = 100 * SECOND
END = 1

RECORD = struct.Struct("<qqqqqIIB7x")


@dataclass(frozen=True)
class Wire:
    """One sample, as a worker sends it."""

    payload: bytes = b""
    sequence: int = 0
    device_ticks: int = ABSENT
    arrival_ns: int = ABSENT
    exposure_ns: int = 0
    trigger_index: int = ABSENT
    metadata: bytes = b""
    domain: Domain = Domain.DEVICE


def frames(samples: list[Wire]) -> tuple[int, bytes, bytes]:
    """Number of records, records, payload frame."""
    records = b"".join(
        RECORD.pack(
            s.sequence,
            s.trigger_index,
            s.device_ticks,
            s.arrival_ns,
            s.exposure_ns,
            len(s.payload),
            len(s.metadata),
            s.domain,
        )
        for s in samples
    )
    return len(samples), records, b"".join(s.payload + s.metadata for s in samples)


def push(
    intake: _core.Intake, stream: str, samples: list[Wire], *, epoch: int = 1, incarnation: int = 0, flags: int = 0
) -> None:
    """Sends one message."""
    intake.push(stream, incarnation, epoch, flags, *frames(samples))


def device(name: str, *streams: StreamInfo, **changes: Any) -> DeviceInfo:
    """A device whose stamps are rig time already, unless told otherwise."""
    info = DeviceInfo(
        name=name,
        driver="sim",
        model="m",
        serial="1",
        firmware="1",
        domain=Domain.DEVICE,
        counter=Counter(),
        streams=streams,
        identity_map=True,
        min_delay_bound_ns=0,
    )
    return replace(info, **changes)


def stream(name: str, media: str = "record", **changes: Any) -> StreamInfo:
    """A stream stamped at the instant of measurement."""
    info = StreamInfo(name=name, media=media, triggered=True, stamp_point=StampPoint.INSTANT, period_ns=16_666_667)
    return replace(info, **changes)


def plan(*streams: dict[str, Any], **changes: Any) -> str:
    """A plan whose reference is its first stream."""
    body = {
        "reference": streams[0]["name"] if streams else "none",
        "period_ns": 16_666_667,
        "ceiling_ns": 2_000_000,
        "latency_ns": 50_000_000,
        "streams": list(streams),
    }
    return json.dumps(body | changes)


def required(name: str, kind: str = "triggered", **changes: Any) -> dict[str, Any]:
    """A stream of a plan."""
    return {"name": name, "kind": kind, "period_ns": 16_666_667, "decimate": 1, "phase": 0, "required": True} | changes


def recorder(tmp_path: Path, *devices: DeviceInfo, plan: str = plan()) -> _core.Intake:
    """A recorder of those devices with its live page at `tmp_path / "live"`."""
    return _core.Intake(json.dumps([d.to_json() for d in devices]), plan=plan, live=tmp_path / "live")


def start(intake: _core.Intake, folder: Path, *, epoch: int = 1, **options: Any) -> Path:
    """Starts a take in a new folder."""
    folder.mkdir(parents=True)
    defaults: dict[str, Any] = {"take": '{"id": "t"}', "attachments": [("spec.toml", "application/toml", b"x = 1\n")]}
    intake.start_take(folder, epoch=epoch, **(defaults | options))
    return folder


@dataclass(frozen=True)
class Read:
    """One message as the public reader gives it."""

    topic: str
    schema: str
    sequence: int
    log_time: int
    publish_time: int
    message: Any


def read_episode(path: Path) -> list[Read]:
    """All messages in file order of log time, decoded by the public packages."""
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        return [
            Read(channel.topic, schema.name if schema else "", raw.sequence, raw.log_time, raw.publish_time, message)
            for schema, channel, raw, message in reader.iter_decoded_messages(log_time_order=False)
        ]


def counts(path: Path) -> dict[str, int]:
    """Messages per topic: read one by one, and equal to what the summary says."""
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        seen: dict[str, int] = {}
        times = []
        for _, channel, message in reader.iter_messages(log_time_order=False):
            seen[channel.topic] = seen.get(channel.topic, 0) + 1
            times.append(message.log_time)
        summary = reader.get_summary()
    assert summary is not None
    statistics = summary.statistics
    assert statistics is not None
    assert statistics.message_count == sum(seen.values())
    stated = {summary.channels[i].topic: n for i, n in statistics.channel_message_counts.items() if n}
    assert stated == seen
    if times:
        assert (statistics.message_start_time, statistics.message_end_time) == (min(times), max(times))
    return seen
