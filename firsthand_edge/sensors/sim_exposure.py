"""When the exposures of a simulated triggered stream begin and how long they last, faults of the trigger included.

An exposure has a slot: the number of the pulse that it is for, counted on by the device itself where it has lost the
pulses. Everything here follows from slots, the line and the fault script alone, so it does not depend on when a device
is asked. Times are true ones, ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from firsthand_edge.model import StampPoint
from firsthand_edge.sensors import faults as f
from firsthand_edge.sensors.sim_clock import scaled
from firsthand_edge.trigger.line import NEVER, Pulses

if TYPE_CHECKING:
    from firsthand_edge.sensors.configuration import SimStream
    from firsthand_edge.sensors.sim_link import Draws

__all__ = ["Schedule", "Train", "begins_ns", "lengths_ns", "slips", "stamped_after_ns"]

Int64 = npt.NDArray[np.int64]
_PPB = 1_000_000_000


class Train(NamedTuple):
    """A train of pulses and what goes wrong in it."""

    pulses: Pulses
    faults: tuple[f.Fault, ...]

    @property
    def start_ns(self) -> int:
        """Time of pulse 0."""
        return self.pulses.first_pulse_ns

    def within(self, fault: f.Fault, true_ns: Int64) -> npt.NDArray[np.bool_]:
        """Which of these instants the fault covers."""
        end_ns = fault.end_ns(self.start_ns)
        return (true_ns >= fault.begin_ns(self.start_ns)) & (true_ns < (NEVER if end_ns is None else end_ns))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Slots to the instants at which they fall due: the pulses, or from some slot on the device's own oscillator."""

    pulses: Pulses
    free_from: int | None = None
    """The first slot that follows no pulse; None: all follow them."""
    slow_ppb: int = 0
    """How much longer than the pulses' the period is from there on."""

    @classmethod
    def of(cls, train: Train) -> Schedule:
        """The schedule that a train's faults leave."""
        for fault in train.faults:
            if isinstance(fault, f.FreeRun):
                free_from = train.pulses.first_after(fault.begin_ns(train.start_ns))
                return cls(train.pulses, free_from, int(fault.ppm * 1000))
        return cls(train.pulses)

    def instants_ns(self, slots: Int64) -> Int64:
        """When these slots fall due, (n,) in and out."""
        out: Int64 = self.pulses.first_pulse_ns + slots * self.pulses.period_ns
        if self.free_from is not None:
            free_ns = np.maximum(slots - self.free_from, 0) * self.pulses.period_ns
            out = out + scaled(free_ns, self.slow_ppb)
        return out

    def instant_ns(self, slot: int) -> int:
        """When one slot falls due."""
        free = 0 if self.free_from is None else max(slot - self.free_from, 0) * self.pulses.period_ns
        return self.pulses.first_pulse_ns + slot * self.pulses.period_ns + free * self.slow_ppb // _PPB

    def count(self, now_ns: int) -> int:
        """How many slots fell due up to and including `now_ns`."""
        p = self.pulses
        if self.free_from is None or not p.first_pulse_ns or not p.period_ns:
            return p.count(now_ns)
        free_ns = p.first_pulse_ns + self.free_from * p.period_ns
        last_ns = min(now_ns, p.stop_ns - 1)
        if last_ns < free_ns:
            return p.count(now_ns)
        return self.free_from + (last_ns - free_ns) * _PPB // (p.period_ns * (_PPB + self.slow_ppb)) + 1

    def pulses_seen(self, slots: Int64) -> Int64:
        """The number of the pulse last seen at the input when each slot fell due, (n,) in and out."""
        if self.free_from is None:
            return slots
        since_ns = self.instants_ns(slots) - self.pulses.first_pulse_ns
        return np.where(slots < self.free_from, slots, since_ns // self.pulses.period_ns)


def lengths_ns(config: SimStream, train: Train, due_ns: Int64) -> Int64:
    """How long the exposures last that fell due at these instants, (n,) in and out, in whole microseconds."""
    out_us = np.full(len(due_ns), config.exposure_us, dtype=np.int64)
    for fault in train.faults:
        if isinstance(fault, f.Exposure):
            over_ns = int(fault.over_s * _PPB)
            gone_ns = np.clip(due_ns - fault.begin_ns(train.start_ns), 0, over_ns)
            out_us = out_us + (fault.to_us - config.exposure_us) * gone_ns // over_ns
    return out_us * 1000


def begins_ns(config: SimStream, train: Train, slots: Int64, *, due_ns: Int64, length_ns: Int64, draws: Draws) -> Int64:
    """When the exposures begin, (n,) ns.

    Args:
        config: The stream.
        train: Pulses and faults.
        slots: (n,) ascending.
        due_ns: (n,) when each fell due.
        length_ns: (n,) how long each lasts.
        draws: For what is random.
    """
    planned_ns = due_ns + config.trigger_delay_us * 1000
    out = planned_ns
    for fault in train.faults:
        match fault:
            case f.Offset():
                out = out + np.where(train.within(fault, planned_ns), fault.amount_us * 1000, 0)
            case f.Exposure() if fault.compensated:
                out = out + (config.exposure_us * 1000 - length_ns) // 2
            case f.Jitter():
                share = draws.shares(train.pulses.take, slots) * 2 - 1
                off_ns = (share * fault.amount_us * 1000).astype(np.int64)
                out = out + np.where(train.within(fault, planned_ns), off_ns, 0)
            case _:
                pass
    return out


def slips(train: Train, slots: Int64) -> tuple[npt.NDArray[np.bool_], Int64]:
    """What slipping makes of slots: which expose at all, and by how many each one's count of pulses lags; (n,) each."""
    happens, lag = np.ones(len(slots), np.bool_), np.zeros(len(slots), np.int64)
    for fault in train.faults:
        if isinstance(fault, f.Slip):
            first = train.pulses.first_after(fault.begin_ns(train.start_ns))
            slipped = slots >= first
            happens &= ~(slipped & (slots < first + fault.ticks))
            lag = lag + np.where(slipped, fault.ticks, 0)
    return happens, lag


def stamped_after_ns(config: SimStream, train: Train, length_ns: Int64) -> Int64:
    """From the beginning of each exposure to the instant that the device really stamps, (n,) in and out."""
    point = config.stamp_point
    for fault in train.faults:
        if isinstance(fault, f.WrongStampPoint):
            point = fault.stamps
    match point:
        case StampPoint.MIDDLE:
            return length_ns // 2
        case StampPoint.END | StampPoint.READOUT_START:
            return length_ns
        case _:
            return np.zeros_like(length_ns)
