"""A VRS file's stamps, with the public `vrs` package."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.channels import COARSE_NS, Channel, Recording, classify, float_ns, within_int64
from firsthand_edge.gate.figures import Grade
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["read_vrs"]


def read_vrs(path: Path) -> Recording:
    """Reads the stamps of every stream, record by record, as the package gives them.

    Raises:
        RecordingUnreadable: when the file is truncated or damaged.
        UsageError: when the package is not installed.
    """
    try:
        import pyvrs
    except ImportError as exc:
        raise UsageError(f"{path} is a VRS recording; install the package `vrs` to read it") from exc

    with _native_chatter() as said:
        try:
            reader = pyvrs.SyncVRSReader(str(path))
            channels = [_channel(reader, name) for name in sorted(reader.stream_ids)]
        except RecordingUnreadable:
            raise
        except Exception as exc:  # damaged bytes end the library in as many ways as there are
            why = str(exc) or type(exc).__name__
            raise RecordingUnreadable(f"{path} is truncated or damaged ({why}); name a whole VRS file") from exc
        # The library drops what an index promises and the file lacks, and tells only its log.
        complaint = _complaint(said())
    if complaint is not None:
        raise RecordingUnreadable(f"{path} is truncated or damaged ({complaint}); name a whole VRS file")
    coarse = [channel.name for channel in channels if channel.grade is Grade.FLOAT64]
    notes = [f"{name}: its records hold floats of seconds too coarse for a device's stamp" for name in coarse]
    return Recording("vrs", tuple(channels), tuple(notes))


def _channel(reader: Any, name: str) -> Channel:
    records = reader.filtered_by_fields(stream_ids={name}, record_types={"data"})
    device = str(reader.get_stream_info(name).get("device_name", ""))
    captured: list[int] = []
    floats: list[float] = []
    image = False
    for record in records:
        image = image or record.n_image_blocks > 0
        floats.append(float(record.timestamp))
        blocks = record.metadata_blocks if record.n_metadata_blocks else ()
        stamp = blocks[0].get("capture_timestamp_ns") if blocks else None
        if isinstance(stamp, int):
            captured.append(stamp)
    whole = bool(floats) and len(captured) == len(floats)
    values = captured if whole else [float_ns(value) for value in floats]
    beyond = (1 << 63) - 1
    times = within_int64(name, np.array([max(-beyond, min(beyond, value)) for value in values], dtype=np.int64))
    coarse = not whole and any(math.ulp(value) * 1e9 >= COARSE_NS for value in floats)
    return Channel(
        name,
        Kind.TRIGGERED if image else Kind.SAMPLED if "imu" in device.lower() else classify(times),
        times,
        "capture" if whole else "record",
        grade=Grade.FLOAT64 if coarse else Grade.DECLARED,
    )


@contextmanager
def _native_chatter() -> Iterator[Callable[[], str]]:
    """Keeps what the VRS library writes to the standard streams' descriptors off the terminal.

    Yields a function that gives what it said so far.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(said.fileno(), number)
            yield lambda: os.pread(said.fileno(), 65_536, 0).decode("utf-8", "replace")
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def _complaint(said: str) -> str | None:
    """The first warning or error in the VRS library's log, without colours and origin."""
    for line in said.splitlines():
        found = re.search(r"\[(?:WARNING|ERROR)\]: (.*)", re.sub(r"\x1b\[[0-9;]*m", "", line))
        if found is not None:
            return found[1].strip().rstrip(".")
    return None
