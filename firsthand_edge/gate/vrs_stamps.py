"""A VRS file's stamps, with the public `vrs` package."""

from __future__ import annotations

import math
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.channels import COARSE_NS, Channel, Recording, classify, float_ns, within_int64
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.vrs_records import LARGEST, VrsDamaged, read_streams
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.gate.vrs_records import VrsStream

__all__ = ["read_vrs"]


def read_vrs(path: Path) -> Recording:
    """Reads the stamps of every stream, record by record, as the package gives them.

    Raises:
        RecordingUnreadable: when the file is truncated or damaged.
        UsageError: when the package is not installed.
    """
    if find_spec("pyvrs") is None:
        raise UsageError(f"{path} is a VRS recording; install the package `vrs` to read it")
    try:
        streams, said = read_streams(path)
    except VrsDamaged as exc:
        raise _damaged(path, str(exc)) from exc
    # The library drops what an index promises and the file lacks, and tells only its log.
    complaint = _complaint(said)
    if complaint is not None:
        raise _damaged(path, complaint)
    for stream in streams:
        if not np.isfinite(np.frombuffer(stream.record_s)).all():
            raise _damaged(path, f"a record of {stream.name} has a time that is no number")
    channels = [_channel(stream) for stream in streams]
    coarse = [channel.name for channel in channels if channel.grade is Grade.FLOAT64]
    notes = [f"{name}: its records hold floats of seconds too coarse for a device's stamp" for name in coarse]
    return Recording("vrs", tuple(channels), tuple(notes))


def _damaged(path: Path, why: str) -> RecordingUnreadable:
    return RecordingUnreadable(f"{path} is truncated or damaged ({why}); name a whole VRS file")


def _channel(stream: VrsStream) -> Channel:
    floats: list[float] = np.frombuffer(stream.record_s).tolist()
    captured = np.frombuffer(stream.capture_ns, np.int64)
    whole = bool(floats) and captured.size == len(floats)
    recorded = [] if whole else [max(-LARGEST, min(LARGEST, float_ns(value))) for value in floats]
    times = within_int64(stream.name, captured if whole else np.array(recorded, np.int64))
    coarse = not whole and any(math.ulp(value) * 1e9 >= COARSE_NS for value in floats)
    imu = "imu" in stream.device.lower()
    return Channel(
        stream.name,
        Kind.TRIGGERED if stream.image else Kind.SAMPLED if imu else classify(times),
        times,
        "capture" if whole else "record",
        grade=Grade.FLOAT64 if coarse else Grade.DECLARED,
    )


def _complaint(said: str) -> str | None:
    """The first warning or error in the VRS library's log, without colours and origin."""
    for line in said.splitlines():
        found = re.search(r"\[(?:WARNING|ERROR)\]: (.*)", re.sub(r"\x1b\[[0-9;]*m", "", line))
        if found is not None:
            return found[1].strip().rstrip(".")
    return None
