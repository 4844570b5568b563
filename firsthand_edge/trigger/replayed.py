"""The trigger of a replayed rig: starts the players together and gives back the edges that were recorded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from firsthand_edge.trigger.line import LINE_NAME, NEVER, TriggerLine
from firsthand_edge.trigger.seam import Edges

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ReplayedTrigger"]


class ReplayedTrigger:
    """Makes no pulses. Players wait on the line for a take to start; its edges are those of the recording.

    Args:
        run_dir: The run directory, which exists.
        recording: Folder of an episode of ours, whose `evidence.mcap` holds the edges; None where none were recorded.
        monotonic_ns: The host's CLOCK_MONOTONIC.

    Raises:
        RecordingUnreadable: The evidence cannot be read.
    """

    def __init__(
        self, run_dir: Path, *, recording: Path | None = None, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._now_ns = monotonic_ns
        self._edges = Edges.none()
        if recording is not None:
            from firsthand_edge._core import read_evidence

            edges = read_evidence(recording / "evidence.mcap")["edges"]
            self._edges = Edges(edges["index"], edges["time_ns"])
        self._line = TriggerLine.create(run_dir / LINE_NAME)
        self._take = 0

    def start(self, take: int, *, period_ns: int, first_pulse_ns: int | None = None) -> int:
        """Lets the players begin; returns when, in CLOCK_MONOTONIC of this host, ns."""
        first_ns = self._now_ns() if first_pulse_ns is None else first_pulse_ns
        power_on_ns = self._line.read().power_on_ns or first_ns
        self._line.update(
            power_on_ns=power_on_ns, take=take, first_pulse_ns=first_ns, period_ns=period_ns, stop_ns=NEVER
        )
        self._take = take
        return first_ns

    def stop(self) -> Edges:
        """The recorded edges, for a take; none for a preview."""
        if self._line.read().stop_ns == NEVER:
            self._line.update(stop_ns=self._now_ns())
        return self._edges if self._take else Edges.none()

    def close(self) -> None:
        """Unmaps the line. Safe twice."""
        self._line.close()
