"""The seam for triggers: pulses stop before arming and start when every triggered stream has reported armed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Edges", "Trigger"]


@dataclass(frozen=True, slots=True)
class Edges:
    """The pulses of one train, as the trigger made them."""

    index: npt.NDArray[np.int64]
    """(n,) pulse number, the first is 0."""
    time_ns: npt.NDArray[np.int64]
    """(n,) rig time of the rising edge, ns."""

    @classmethod
    def none(cls) -> Edges:
        """No pulses: nobody triggers, or nobody counts."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))


class Trigger(Protocol):
    """A source of pulses. Take 0 is a preview: pulses run, nothing is kept."""

    def start(self, take: int, *, period_ns: int, first_pulse_ns: int | None = None) -> int:
        """Starts a train and returns the rig time of pulse 0, ns.

        Args:
            take: Number of the take in this run of the daemon, 0 for a preview.
            period_ns: Distance of pulses.
            first_pulse_ns: When pulse 0 comes; None for as soon as every device can have heard of it.
        """
        ...

    def stop(self) -> Edges:
        """Ends the train and returns all of its pulses. Safe when none runs: returns none."""
        ...

    def close(self) -> None:
        """Lets go of the hardware. Safe twice."""
        ...
