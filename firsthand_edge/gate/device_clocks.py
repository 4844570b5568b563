"""Device clocks mapped again, from the evidence's own pairs of stamp and arrival.

One device is one clock. Its readings are taken in the recorder's order of receipt, one map an incarnation of its
worker; the warm-up pairs feed the map and are no part of the take. The map is causal, so the times come out as they did
live.

Where a device's streams state how its exposures follow the trigger, those times are held against the recorded edges
(`firsthand_edge.clock.edges`): the edges then say what the times are off by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from firsthand_edge import _core
from firsthand_edge.clock.edges import COMPARED_MIN, after_edge, check
from firsthand_edge.clock.exposure import still_exposed
from firsthand_edge.gate.figures import every
from firsthand_edge.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from firsthand_edge.clock.edges import EdgeCheck
    from firsthand_edge.gate.evidence import Columns, Evidence
    from firsthand_edge.gate.figures import Int64
    from firsthand_edge.model import DeviceInfo, StreamInfo

__all__ = ["Mapped", "map_device"]

WARMUP: Final = 1
"""`warmup` of rows that were received outside of the take."""
UNBOUNDED_NS: Final = 1 << 60
"""The largest uncertainty that the core takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A stream's rows, warm-up included, with its clock mapped again; ABSENT where the row has no stamp."""

    device_ns: Int64
    clock_ns: Int64
    """Rig time of the stamped instant, before mid-exposure, by arrivals: as recorded."""
    uncertainty_ns: Int64
    """As the map states it, and what exposures add to it (`_exposures_vary_by`); as the trigger edges measure it, where
    they do."""
    wraps: int
    splits: int
    edge_check: EdgeCheck | None = None
    """What the trigger edges say of `clock_ns`; None where nobody asked or no edges were recorded."""


def map_device(device: DeviceInfo, evidence: Evidence) -> dict[str, Mapped]:
    """Maps one device clock from all its streams' readings, in order of receipt, one map an incarnation."""
    samples = evidence.samples
    streams = [stream for stream in device.streams if stream.name in samples]
    if not streams:
        return {}
    rows = _Rows.of(streams, samples)
    # Another clock's stamps teach this clock's map nothing (sync.md section 1).
    usable = (rows.ticks != ABSENT) & (rows.domain == device.domain.value)
    incarnations = list(_incarnations(rows.received, rows.incarnation, usable))
    edges = _edges(evidence) if any(stream.trigger_delay_ns is not None for stream in streams) else None
    pulses = None if edges is None or device.identity_map else _Pulses.of(streams, samples, edges, len(incarnations))
    times: tuple[Int64, ...] = ()
    wraps = splits = 0
    checks: list[EdgeCheck] = []
    varies_ns = 0 if device.identity_map else _exposures_vary_by(streams, samples)
    for chosen in incarnations:
        mapped, off_by, checked = _map(device, rows, chosen, pulses)
        if varies_ns and (checked is None or checked.compared < COMPARED_MIN):
            off_by = np.where(off_by == ABSENT, ABSENT, np.minimum(off_by + varies_ns, UNBOUNDED_NS))
        found = (mapped.device_ns, mapped.rig_ns, off_by)
        if isinstance(chosen, slice):  # all rows
            times = found
        else:
            times = times or _absent(rows.received.size)
            for column, values in zip(times, found, strict=True):
                column[chosen] = values
        wraps += mapped.wraps
        splits += int(mapped.splits.size)
        checks += [] if checked is None else [checked]
    device_ns, clock_ns, uncertainty = times or _absent(rows.received.size)
    # A worker that was restarted began a clock of its own; the longest says most.
    longest = max(checks, key=lambda found: found.compared, default=None)
    out: dict[str, Mapped] = {}
    end = 0
    for stream in streams:
        own = slice(end, end + samples[stream.name]["received"].size)
        end = own.stop
        out[stream.name] = Mapped(device_ns[own], clock_ns[own], uncertainty[own], wraps, splits, longest)
    return out


def _exposures_vary_by(streams: Sequence[StreamInfo], samples: Mapping[str, Columns]) -> int:
    """By how much the least delay of a device's pictures may change, ns, because they are sent when they are exposed.

    `min_delay` counts from the stamped instant and holds for one length of exposure.
    """
    varies_ns = 0
    for stream in streams:
        exposure = samples[stream.name]["exposure_ns"]
        rest = still_exposed(exposure[exposure > 0], stream.stamp_point)
        if rest.size:
            varies_ns = max(varies_ns, int(rest.max()) - int(rest.min()))
    return min(varies_ns, UNBOUNDED_NS)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The columns of a device's streams, one stream after the other."""

    received: Int64
    incarnation: Int64
    ticks: Int64
    arrival: Int64
    domain: Int64

    @classmethod
    def of(cls, streams: Sequence[StreamInfo], samples: Mapping[str, Columns]) -> Self:
        names = ("received", "incarnation", "device_ticks", "arrival_ns", "domain")
        return cls(*(_joined([samples[stream.name][name] for stream in streams]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class _Pulses:
    """What the rows of a device say of the pulses that caused them, and the edges that were recorded."""

    after_edge_ns: Int64
    trigger_index: Int64
    edge_index: Int64
    edge_ns: Int64

    @classmethod
    def of(
        cls,
        streams: Sequence[StreamInfo],
        samples: Mapping[str, Columns],
        edges: tuple[Int64, Int64],
        incarnations: int,
    ) -> Self:
        after, index = [], []
        for stream in streams:
            columns = samples[stream.name]
            # Edges are of the take; what a preview's pulses caused has none. A worker that was restarted within a take
            # rejoins by time (sync.md section 3.6).
            shift = None
            if stream.triggered and stream.trigger_delay_ns is not None:
                shift = after_edge(stream.stamp_point, stream.trigger_delay_ns, columns["exposure_ns"])
            nothing = np.full(columns["received"].size, ABSENT, dtype=np.int64)
            after.append(nothing if shift is None else np.where(columns["warmup"] == WARMUP, ABSENT, shift))
            index.append(columns["trigger_index"] if stream.has_trigger_index and incarnations == 1 else nothing)
        return cls(_joined(after), _joined(index), *edges)


def _map(
    device: DeviceInfo, rows: _Rows, chosen: Int64 | slice, pulses: _Pulses | None
) -> tuple[_core.MappedClock, Int64, EdgeCheck | None]:
    """One incarnation: its map, what its times are off by, and what the edges say of them."""
    counter = device.counter
    calibrated = device.min_delay_bound_ns is not None
    delay, bound = device.min_delay_ns, device.min_delay_bound_ns or 0
    ticks, arrival = rows.ticks[chosen], rows.arrival[chosen]
    if pulses is None:
        mapped = _core.map_clock(
            ticks,
            arrival,
            bits=counter.bits,
            tick_num=counter.tick_num,
            tick_den=counter.tick_den,
            min_delay_ns=delay,
            min_delay_bound_ns=bound,
            identity=device.identity_map,
        )
        return mapped, mapped.uncertainty_ns, None
    fitted = _core.map_clock_by_edges(
        ticks,
        arrival,
        pulses.after_edge_ns[chosen],
        trigger_index=pulses.trigger_index[chosen],
        edge_index=pulses.edge_index,
        edge_ns=pulses.edge_ns,
        calibrated=calibrated,
        bits=counter.bits,
        tick_num=counter.tick_num,
        tick_den=counter.tick_den,
        min_delay_ns=delay,
        min_delay_bound_ns=bound,
    )
    mapped = fitted.by_arrival
    checked, off_by = check(
        mapped.rig_ns,
        mapped.uncertainty_ns,
        fitted.rig_ns,
        fitted.uncertainty_ns,
        calibrated=calibrated,
        pairs=fitted.pairs,
        refused=fitted.refused,
        unpaired=fitted.unpaired,
    )
    return mapped, off_by, checked


def _absent(rows: int) -> tuple[Int64, ...]:
    return tuple(np.full(rows, ABSENT, dtype=np.int64) for _ in range(3))


def _joined(columns: Sequence[Int64]) -> Int64:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _edges(evidence: Evidence) -> tuple[Int64, Int64] | None:
    """Index and time of the recorded pulses; None where there are none, or where they do not rise as pulses do."""
    index, times = evidence.edges_index, evidence.edges_ns
    rises = index.size > 0 and every(index[1:] > index[:-1]) and every(times[1:] > times[:-1])
    return (index, times) if rises and int(index[0]) != ABSENT and int(times[0]) != ABSENT else None


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
