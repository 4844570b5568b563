"""Device clocks mapped again, from the evidence's own pairs of stamp and arrival.

One device is one clock. Its readings are taken in the recorder's order of receipt, one map an incarnation of its
worker; the warm-up pairs feed the map and are no part of the take. The map is causal, so the times come out as they did
live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge import _core
from firsthand_edge.gate.figures import every
from firsthand_edge.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from firsthand_edge.gate.evidence import Columns
    from firsthand_edge.gate.figures import Int64
    from firsthand_edge.model import DeviceInfo

__all__ = ["Mapped", "map_device"]


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A stream's rows, warm-up included, with its clock mapped again; ABSENT where the row has no stamp."""

    device_ns: Int64
    clock_ns: Int64
    """Rig time of the stamped instant, before mid-exposure."""
    uncertainty_ns: Int64
    wraps: int
    splits: int


def map_device(device: DeviceInfo, samples: Mapping[str, Columns]) -> dict[str, Mapped]:
    """Maps one device clock from all its streams' readings, in order of receipt, one map an incarnation."""
    names = [stream.name for stream in device.streams if stream.name in samples]
    if not names:
        return {}
    sizes = [samples[name]["received"].size for name in names]

    def joined(column: str) -> Int64:
        columns = [samples[name][column] for name in names]
        return columns[0] if len(columns) == 1 else np.concatenate(columns)

    received, incarnation = joined("received"), joined("incarnation")
    ticks, arrival, domain = joined("device_ticks"), joined("arrival_ns"), joined("domain")
    # Another clock's stamps teach this clock's map nothing (sync.md section 1).
    usable = (ticks != ABSENT) & (domain == device.domain.value)
    device_ns, clock_ns, uncertainty = (np.full(received.size, ABSENT, dtype=np.int64) for _ in range(3))
    wraps = splits = 0
    for rows in _incarnations(received, incarnation, usable):
        mapped = _core.map_clock(
            ticks[rows],
            arrival[rows],
            bits=device.counter.bits,
            tick_num=device.counter.tick_num,
            tick_den=device.counter.tick_den,
            min_delay_ns=device.min_delay_ns,
            min_delay_bound_ns=device.min_delay_bound_ns or 0,
            identity=device.identity_map,
        )
        device_ns[rows], clock_ns[rows], uncertainty[rows] = mapped.device_ns, mapped.rig_ns, mapped.uncertainty_ns
        wraps += mapped.wraps
        splits += int(mapped.splits.size)
    out: dict[str, Mapped] = {}
    end = 0
    for name, size in zip(names, sizes, strict=True):
        own = slice(end, end + size)
        end += size
        out[name] = Mapped(device_ns[own], clock_ns[own], uncertainty[own], wraps, splits)
    return out


def _incarnations(
    received: Int64, incarnation: Int64, usable: np.ndarray[Any, np.dtype[np.bool_]]
) -> Iterator[Int64 | slice]:
    """The rows of each incarnation, by its number, in order of receipt; a slice where those are all rows."""
    if received.size == 0:
        return
    single = every(incarnation == incarnation[0])
    if single and every(usable) and every(received[1:] >= received[:-1]):
        yield slice(None)
        return
    for number in np.unique(incarnation[usable]):
        rows = np.flatnonzero(usable & (incarnation == number))
        yield rows[np.argsort(received[rows], kind="stable")]
