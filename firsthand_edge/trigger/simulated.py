"""The trigger of a simulated rig: counts pulses on a `TriggerLine`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import numpy as np

from firsthand_edge.errors import UsageError
from firsthand_edge.trigger.line import LINE_NAME, NEVER, TriggerLine
from firsthand_edge.trigger.seam import Edges

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SimulatedTrigger"]

_LEAD_NS: Final = 20_000_000
"""Pulse 0 and the stop lie this far ahead, so that every device reads of them before they happen."""


class SimulatedTrigger:
    """Writes `trigger.line` of a run directory. The first train switches the rig's power on.

    Args:
        run_dir: The run directory, which exists.
        monotonic_ns: The host's CLOCK_MONOTONIC.
    """

    def __init__(self, run_dir: Path, *, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._now_ns = monotonic_ns
        self._line = TriggerLine.create(run_dir / LINE_NAME)
        self._running = False

    def start(self, take: int, *, period_ns: int, first_pulse_ns: int | None = None) -> int:
        """Starts a train (see `Trigger.start`). Power comes on with the first train, 1 ms before its pulse 0.

        Raises:
            UsageError: A train runs already, the period is not positive, or pulse 0 lies in the past.
        """
        now_ns = self._now_ns()
        first_ns = now_ns + _LEAD_NS if first_pulse_ns is None else first_pulse_ns
        if self._running:
            raise UsageError(f"pulses of take {self._line.read().take} still run; stop them before take {take}")
        if period_ns <= 0:
            raise UsageError(f"a period of {period_ns} ns makes no train of pulses; give a positive one")
        if first_ns < now_ns:
            raise UsageError(f"pulse 0 would lie {now_ns - first_ns} ns in the past; give a later first_pulse_ns")
        power_on_ns = self._line.read().power_on_ns or first_ns - 1_000_000
        self._line.update(
            power_on_ns=power_on_ns, take=take, first_pulse_ns=first_ns, period_ns=period_ns, stop_ns=NEVER
        )
        self._running = True
        return first_ns

    def stop(self) -> Edges:
        """Ends the train 20 ms from now and returns all of its pulses, those last few included."""
        if not self._running:
            return Edges.none()
        self._running = False
        pulses = self._line.update(stop_ns=self._now_ns() + _LEAD_NS)
        index = np.arange(pulses.count(NEVER - 1), dtype=np.int64)
        return Edges(index, pulses.first_pulse_ns + index * pulses.period_ns)

    def close(self) -> None:
        """Stops a train that runs and unmaps the line. Safe twice."""
        if self._running:
            self.stop()
        self._line.close()
