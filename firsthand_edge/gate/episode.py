"""An episode's evidence to figures: stamps mapped again, held against what was recorded live, and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firsthand_edge import _core
from firsthand_edge.clock.exposure import mid_exposure
from firsthand_edge.errors import CannotJudge
from firsthand_edge.gate.device_clocks import map_device
from firsthand_edge.gate.figures import (
    Death,
    DomainChange,
    Facts,
    Future,
    Grade,
    Loss,
    Stamps,
    edges_of,
    every,
    frozen_run,
    span_of,
)
from firsthand_edge.gate.matching import TakeStream, match
from firsthand_edge.model import ABSENT, Domain, Kind, StampPoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from firsthand_edge.clock.edges import EdgeCheck
    from firsthand_edge.gate.device_clocks import Mapped
    from firsthand_edge.gate.evidence import Columns, Evidence
    from firsthand_edge.gate.figures import Figures, Int64
    from firsthand_edge.gate.limits import Limits
    from firsthand_edge.model import DeviceInfo, StreamInfo
    from firsthand_edge.spec.document import Spec, StreamSpec

__all__ = ["figures_of"]

PICTURES = ("picture/", "video/", "raw/")


def figures_of(evidence: Evidence, spec: Spec, limits: Limits) -> Figures:
    """All figures of an episode.

    Args:
        evidence: What was recorded.
        spec: Which streams are judged, and how.
        limits: `trim_max_ns`, `silence_max_ns` and `ceiling_ns` enter the measurement.

    Raises:
        CannotJudge: when the re-derived times are not the recorded ones: then evidence or software was changed, and no
            verdict can be trusted.
    """
    period_ns = _period(evidence, spec)
    notes: list[str] = []
    streams: list[TakeStream] = []
    seen: set[str] = set()
    for device in evidence.devices:
        mapped = map_device(device, evidence)
        notes += _edge_notes(device, mapped)
        for info in device.streams:
            if info.name in mapped:
                reading = _Reading(evidence, device, info, spec.stream(info.name), limits, period_ns, notes)
                streams.append(reading.stream(evidence.samples[info.name], mapped[info.name]))
                seen.add(info.name)
    streams += [
        TakeStream(_absent(stream), np.empty(0, np.int64)) for stream in spec.streams if stream.name not in seen
    ]
    ticks_ns = _ticks(evidence, notes)
    return match(
        streams,
        ticks_ns=ticks_ns,
        reference=spec.sync.reference,
        period_ns=period_ns,
        limits=limits,
        edges=edges_of(evidence.edges_ns, period_ns) if evidence.edges_ns.size else None,
        torn=_torn(evidence),
        recorded=True,
        outcome=_outcome(evidence),
        notes=notes,
    )


def _absent(stream: StreamSpec) -> Facts:
    return Facts(
        stream.name,
        stream.kind,
        required=stream.required,
        period_ns=stream.period_ns,
        decimate=stream.decimate,
        grade=Grade.MAPPED,
        domain=Domain.PTP,
        future=Future(0),
        loss=Loss(),
        media="",
    )


def _period(evidence: Evidence, spec: Spec) -> int | None:
    """T: as the take says, else the reference's nominal period by the spec, else by its device."""
    stated = evidence.take.get("period_ns")
    if isinstance(stated, int) and stated > 0:
        return stated
    reference = spec.stream(spec.sync.reference)
    if reference is not None and reference.period_ns is not None:
        return reference.period_ns
    infos = (stream for device in evidence.devices for stream in device.streams)
    return next((info.period_ns for info in infos if info.name == spec.sync.reference), None)


def _ticks(evidence: Evidence, notes: list[str]) -> Int64 | None:
    """t_tick = edge + c of the recorded pulses; None without pulses, or without the rig's constant."""
    pulses = evidence.edges_ns[evidence.edges_ns != ABSENT]
    if not pulses.size:
        return None
    constant = evidence.take.get("tick_offset_ns")
    if not isinstance(constant, int):
        notes.append(
            "Trigger edges were recorded and do not number the ticks: the rig file states no trigger.mid_exposure_us."
        )
        return None
    ticks_ns: Int64 = pulses + np.int64(constant)
    return ticks_ns


def _edge_notes(device: DeviceInfo, mapped: Mapping[str, Mapped]) -> list[str]:
    """What the trigger edges say of a device's minimum delay, where it is not what the rig file states."""
    found = next((m.edge_check for m in mapped.values() if m.edge_check is not None), None)
    if found is None or found.compared == 0:
        return []
    notes = []
    if device.min_delay_bound_ns is None or found.contradicted:
        delay_us, bound_us = found.min_delay_ns(device.min_delay_ns) / 1000, found.spread_ns / 1000
        notes.append(
            f"{device.name}: by the trigger edges its minimum delay is {delay_us:.1f} us +- {bound_us:.1f} us "
            f"({found.compared} samples compared); state it as min_delay_us and min_delay_bound_us."
        )
    if found.refused:
        notes.append(
            f"{device.name}: {found.refused} of {found.pairs + found.refused} exposures are off the edge that caused "
            "them: it counts pulses wrongly, or exposes off its plan."
        )
    return notes


def _torn(evidence: Evidence) -> str | None:
    if evidence.recovery is not None:
        return "it was recovered after a crash or a power cut"
    return "it was never closed" if evidence.close is None else None


def _outcome(evidence: Evidence) -> str | None:
    """How the attempt ended: as was said when the take was closed, else at its start; None where nobody said."""
    capture = evidence.take.get("capture")
    closed = (evidence.close or {}).get("outcome")
    said = capture.get("outcome") if closed is None and isinstance(capture, dict) else closed
    return said if isinstance(said, str) else None


def _timebase(evidence: Evidence) -> str:
    """What the rig's timebase is (`ptp` or `arb`), as the take says."""
    clock = evidence.take.get("clock")
    return str(clock.get("timebase", "arb")) if isinstance(clock, dict) else "arb"


def _loss(evidence: Evidence, stream: str) -> Loss | None:
    """What back-pressure cost a stream, by the balance sheet of the close note; None where nobody counted."""
    row = (evidence.close or {}).get("balance", {}).get(stream)
    if not isinstance(row, dict):
        return None
    counts = [count for place in ("socket", "queue", "disk") if isinstance(count := row.get(f"lost_{place}"), int)]
    return Loss(*counts) if len(counts) == 3 else None


def _deaths(evidence: Evidence, device: str) -> tuple[Death, ...]:
    return tuple(
        Death(device, str(event.get("cause", "")))
        for event in evidence.events
        if event.get("kind") == "worker_died" and event.get("device") == device
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """One stream of one device, on its way to figures."""

    evidence: Evidence
    device: DeviceInfo
    info: StreamInfo
    spec: StreamSpec | None
    limits: Limits
    tick_ns: int | None
    """T."""
    notes: list[str]

    def stream(self, rows: Columns, mapped: Mapped) -> TakeStream:
        taken = _rows(rows["warmup"] == 0)
        domain = rows["domain"][taken]
        change = self._domain_change(domain)
        stamped = rows["device_ticks"][taken] != ABSENT
        ours = stamped & (domain == self.device.domain.value)
        if change is not None:
            ours[change.index :] = False
        own = _rows(ours)

        def kept(column: Int64) -> Int64:
            return column[taken][own]

        times = self._times(kept(mapped.clock_ns), kept(rows["exposure_ns"]), kept(rows["rig_ns"]), ours)
        placed = times != ABSENT
        if not every(placed):
            self._note_beyond(placed, ours)
            ours[own] = placed
            own, times = _rows(ours), times[placed]
        exposure_ns, incarnation = kept(rows["exposure_ns"]), kept(rows["incarnation"])
        device_ns, uncertainty = kept(mapped.device_ns), kept(mapped.uncertainty_ns)
        incarnations = _numbers(incarnation)
        period_ns = self._period()
        sequence, arrival = _or_none(kept(rows["sequence"])), _or_none(kept(rows["arrival_ns"]))
        facts = Facts(
            self.info.name,
            self.spec.kind if self.spec is not None else Kind.EVENT,
            required=self.spec is not None and self.spec.required,
            samples=int(times.size),
            unstamped=int((~stamped).sum()),
            media=self.info.media,
            grade=self._grade(mapped.edge_check),
            edge_check=mapped.edge_check,
            stamp_point=self.info.stamp_point,
            period_ns=period_ns,
            stamps=self._stamps(
                device_ns, incarnation, incarnations, sequence=sequence, arrival_ns=arrival, period_ns=period_ns
            ),
            has_sequence=sequence is not None,
            has_arrival=arrival is not None,
            decimate=self.spec.decimate if self.spec is not None else 1,
            reorder_bound=self.info.reorder_bound,
            span=span_of(times, silence_max_ns=self.limits.silence_max_ns),
            domain=self.device.domain,
            domain_change=change,
            future=self._future(arrival, times, uncertainty),
            frozen=frozen_run(kept(rows["digest"]), device_ns, times) if self.info.media.startswith(PICTURES) else None,
            loss=_loss(self.evidence, self.info.name),
            deaths=_deaths(self.evidence, self.device.name),
            device=self.device.name,
            incarnations=len(incarnations),
            uncertainty_ns=int(uncertainty.max()) if uncertainty.size else 0,
            wraps=mapped.wraps,
            splits=mapped.splits,
        )
        return TakeStream(
            facts,
            times,
            phase=self.spec.phase if self.spec is not None else None,
            max_gap_ns=self.spec.max_gap_ns if self.spec is not None else None,
            trigger_index=self._trigger_index(facts, kept(rows["trigger_index"])),
            exposure_ns=exposure_ns if (exposure_ns > 0).any() else None,
        )

    def _note_beyond(self, placed: npt.NDArray[np.bool_], ours: npt.NDArray[np.bool_]) -> None:
        """Says which of `ours` have no time, though the device stamped them: the core knows none beyond int64."""
        counter = self.device.counter
        first = int(np.flatnonzero(ours)[int((~placed).argmax())])
        self.notes.append(
            f"{self.info.name}: {int((~placed).sum())} of {placed.size} samples, the first sample {first}, have no "
            f"time: their counter stands beyond 292 years of ns at {counter.tick_num}/{counter.tick_den} ns a tick; "
            "state the tick that the device counts"
        )

    def _domain_change(self, domain: Int64) -> DomainChange | None:
        """The first sample that another clock stamped than the device declares."""
        declared = self.device.domain
        others = np.flatnonzero(domain != declared.value)
        if others.size == 0:
            return None
        index = int(others[0])
        return DomainChange(index, declared, Domain(int(domain[index])))

    def _times(self, clock_ns: Int64, exposure_ns: Int64, recorded: Int64, ours: npt.NDArray[np.bool_]) -> Int64:
        """Mid-exposure times of the rows `ours`, equal to the recorded ones or not judged at all."""
        point = self.info.stamp_point
        # An unknown stamp point is `stamp.unverified`; its instants are matched as they stand, so that figures can be
        # shown.
        known = StampPoint.MIDDLE if point is StampPoint.UNKNOWN else point
        times = mid_exposure(clock_ns, exposure_ns, known, self.info.offset_ns)
        if not every(clock_ns != ABSENT):
            times = np.where(clock_ns == ABSENT, ABSENT, times)
        if every(times == recorded):
            return recorded
        differs = np.flatnonzero(times != recorded)
        first = int(differs[0])
        index = int(np.flatnonzero(ours)[first])
        where = (
            f"{self.info.name}: sample {index} was recorded at {int(recorded[first])} ns of rig time and its stamps "
            f"give {int(times[first])} ns ({differs.size} of {times.size} samples differ)"
        )
        loss = _loss(self.evidence, self.info.name)
        if _torn(self.evidence) is None and (loss is None or loss.total <= self.limits.overrun):
            raise CannotJudge(
                f"{where}; the evidence or the software was changed since, so no verdict can be trusted. Judge it "
                "with the version that recorded it"
            )
        # A cut or an overrun can cost pairs that the live map had seen; such a take is rejected whatever its times. A
        # loss that the spec lets pass is no excuse: the take could be accepted on times that nobody can derive.
        self.notes.append(f"{where}; times are as recorded, pairs of its clock are lost")
        return recorded

    def _grade(self, edge_check: EdgeCheck | None) -> Grade:
        if self.device.identity_map:
            return Grade.NATIVE
        disproved = edge_check is not None and edge_check.contradicted
        return Grade.ARRIVAL if self.device.min_delay_bound_ns is None or disproved else Grade.MAPPED

    def _period(self) -> int | None:
        stated = self.spec.period_ns if self.spec is not None else None
        return stated if stated is not None else self.info.period_ns

    def _future(self, arrival_ns: Int64 | None, times_ns: Int64, uncertainty_ns: Int64) -> Future | None:
        """Later than its own arrival; None where no arrival is in the stamps' timebase."""
        native_ptp = self.device.identity_map and _timebase(self.evidence) != "arb"
        if native_ptp or (arrival_ns is None and times_ns.size):
            return None
        if arrival_ns is None:
            return Future(0)
        beyond = times_ns - uncertainty_ns
        beyond -= arrival_ns
        beyond[arrival_ns == ABSENT] = 0
        late = np.flatnonzero(beyond > 0)
        return Future(int(late.size), int(late[0]), int(beyond.max())) if late.size else Future(0)

    def _stamps(
        self,
        device_ns: Int64,
        incarnation: Int64,
        incarnations: Sequence[int],
        *,
        sequence: Int64 | None,
        arrival_ns: Int64 | None,
        period_ns: int | None,
    ) -> Stamps:
        """What the stream says against itself, one scan an incarnation."""
        parts: list[Stamps] = []
        for number in incarnations:
            mine = incarnation == number
            rows, start = _rows(mine), int(mine.argmax())
            scan = _core.scan_stamps(
                device_ns[rows],
                sequence=None if sequence is None else sequence[rows],
                arrival_ns=None if arrival_ns is None else arrival_ns[rows],
                period_ns=period_ns,
                tick_ns=self.tick_ns,
                silence_max_ns=self.limits.silence_max_ns,
            )
            parts.append(Stamps.of(scan, start=start))
        return Stamps.joined(parts)

    def _trigger_index(self, facts: Facts, index: Int64) -> Int64 | None:
        """The hardware pulse count; void for a take in which the worker was restarted (sync.md section 3.6)."""
        if not self.info.has_trigger_index or facts.incarnations > 1 or facts.deaths:
            return None
        return None if (index == ABSENT).any() else index


def _rows(chosen: npt.NDArray[np.bool_]) -> Int64 | slice:
    """The rows where `chosen` is true; a slice, which copies nothing, where they are neighbours."""
    count = int(np.count_nonzero(chosen))
    if count == 0:
        return slice(0, 0)
    first = int(chosen.argmax())
    if every(chosen[first : first + count]):
        return slice(first, first + count)
    return np.flatnonzero(chosen)


def _numbers(incarnation: Int64) -> list[int]:
    """The incarnations of a stream, in the order in which they came."""
    if incarnation.size and every(incarnation == incarnation[0]):
        return [int(incarnation[0])]
    return list(dict.fromkeys(incarnation.tolist()))


def _or_none(column: Int64) -> Int64 | None:
    """A column that the device filled, or None."""
    if column.size == 0 or (column[0] == ABSENT and every(column == ABSENT)):
        return None
    return column
