"""What judging needs of an episode and no picture: `evidence.mcap`, read and checked for shape."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from firsthand_edge import _core
from firsthand_edge.errors import RecordingUnreadable
from firsthand_edge.gate.figures import every
from firsthand_edge.model import DeviceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from firsthand_edge.gate.figures import Int64

__all__ = ["COLUMNS", "Columns", "Evidence"]

COLUMNS = (
    "received",
    "incarnation",
    "epoch",
    "warmup",
    "sequence",
    "trigger_index",
    "device_ticks",
    "arrival_ns",
    "exposure_ns",
    "domain",
    "size",
    "digest",
    "rig_ns",
)

Columns: TypeAlias = "Mapping[str, Int64]"
"""One stream's samples: equal-length (n,) int64 columns by name (`COLUMNS`), in order of receipt.

A column may be made each time it is asked for: ask once, and let go of it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What `evidence.mcap` holds, parsed and not yet judged."""

    take: Mapping[str, Any]
    devices: tuple[DeviceInfo, ...]
    close: Mapping[str, Any] | None
    """None when the take was never closed."""
    recovery: Mapping[str, Any] | None
    attachments: Mapping[str, bytes]
    events: tuple[Mapping[str, Any], ...]
    edges_ns: Int64
    samples: Mapping[str, Columns]
    edges_index: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    """Number of each pulse of `edges_ns`, as the trigger counted."""

    @classmethod
    def read(cls, path: Path, progress: Callable[[int, int], object] | None = None) -> Self:
        """Reads `evidence.mcap`.

        Args:
            path: The file.
            progress: Told bytes read and bytes in all.

        Raises:
            RecordingUnreadable: when it is not one, or is damaged.
        """
        return cls.parse(_core.read_evidence(path, progress=progress), place=str(path))

    @classmethod
    def parse(cls, raw: Mapping[str, Any], *, place: str) -> Self:
        """From the core's dictionary (`_core.read_evidence`).

        Args:
            raw: What the core read.
            place: What to call the evidence in messages.

        Raises:
            RecordingUnreadable: when a document in it is not what this version writes.
        """
        try:
            return cls(
                take=_document(raw["take"]),
                devices=_devices(raw["devices"]),
                close=None if raw["close"] is None else _document(raw["close"]),
                recovery=None if raw["recovery"] is None else _document(raw["recovery"]),
                attachments=dict(raw["attachments"]),
                events=tuple(_document(event) for event in raw["events"]),
                edges_ns=raw["edges"]["time_ns"],
                edges_index=raw["edges"]["index"],
                samples={name: _in_order(columns) for name, columns in raw["samples"].items()},
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise RecordingUnreadable(
                f"{place} is not evidence that this version reads ({type(exc).__name__}: {exc}); "
                "judge it with the version that recorded it"
            ) from exc


@lru_cache(maxsize=16)
def _devices(text: str) -> tuple[DeviceInfo, ...]:
    """A rig describes its devices in the same words, take after take."""
    return tuple(DeviceInfo.from_json(device) for device in json.loads(text))


def _document(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise TypeError(f"expected a JSON object, found {text[:40]!r}")
    return document


def _in_order(columns: Mapping[str, Int64]) -> Columns:
    missing = set(COLUMNS).difference(columns.keys())
    if missing:
        raise KeyError(min(missing))
    received = columns["received"]
    if every(received[1:] >= received[:-1]):  # as the recorder wrote them
        return columns
    order = np.argsort(received, kind="stable")
    return {name: columns[name][order] for name in COLUMNS}
