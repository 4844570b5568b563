"""The simulated trigger line: what a cable is on a real rig, a page of shared memory is between processes here.

One process writes it (the trigger), any number read it (simulated and replayed devices). Each write carries a check
sum, so a reader never acts on half of one.
"""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from firsthand_edge.errors import DeviceAbsent, DeviceError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LINE_NAME", "NEVER", "Pulses", "TriggerLine"]

LINE_NAME: Final = "trigger.line"
"""Name of the page in the run directory."""
NEVER: Final = 2**63 - 1

_MAGIC: Final = 0x454E494C47495246  # "FRIGLINE"
_LAYOUT: Final = struct.Struct("<QqqqqqQ")
_TRIES: Final = 1000
_PAUSE_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Pulses:
    """What the line says. Times are CLOCK_MONOTONIC, which is rig time on a simulated rig, in ns."""

    power_on_ns: int = 0
    """When the rig's devices got power and their counters began; 0: not yet."""
    take: int = 0
    """Number of the take that the train belongs to; 0: preview."""
    first_pulse_ns: int = 0
    """Time of pulse 0; 0: no train yet."""
    period_ns: int = 0
    stop_ns: int = NEVER
    """Pulses before this time happen; `NEVER` while the train runs."""

    def count(self, now_ns: int) -> int:
        """How many pulses happened up to and including `now_ns`."""
        if self.first_pulse_ns == 0 or self.period_ns == 0:
            return 0
        end_ns = min(now_ns + 1, self.stop_ns)
        return max(0, -((self.first_pulse_ns - end_ns) // self.period_ns))

    def first_after(self, time_ns: int) -> int:
        """Number of the first pulse at or after `time_ns`."""
        if self.period_ns == 0:
            return 0
        return max(0, -((self.first_pulse_ns - time_ns) // self.period_ns))


class TriggerLine:
    """The page itself. Make with `create` (the trigger) or `open` (a device)."""

    def __init__(self, memory: mmap.mmap, *, writable: bool) -> None:
        self._memory = memory
        self._writable = writable
        self._pulses = Pulses()
        if not writable:
            self._pulses = self.read()

    @classmethod
    def create(cls, path: Path) -> TriggerLine:
        """Makes the page anew: readers of an earlier one keep that one, which says nothing any more."""
        path.unlink(missing_ok=True)
        with path.open("x+b") as file:
            file.truncate(mmap.PAGESIZE)
            line = cls(mmap.mmap(file.fileno(), mmap.PAGESIZE), writable=True)
        line.write(Pulses())
        return line

    @classmethod
    def open(cls, path: Path) -> TriggerLine:
        """Opens what a trigger made.

        Raises:
            DeviceAbsent: There is no such page.
        """
        try:
            with path.open("rb") as file:
                return cls(mmap.mmap(file.fileno(), mmap.PAGESIZE, access=mmap.ACCESS_READ), writable=False)
        except (OSError, ValueError) as error:
            raise DeviceAbsent(f"no trigger line at {path} ({error}); start the trigger before the devices") from None

    def write(self, pulses: Pulses) -> None:
        """Publishes. Readers see all of it or none."""
        body = _LAYOUT.pack(
            _MAGIC, pulses.power_on_ns, pulses.take, pulses.first_pulse_ns, pulses.period_ns, pulses.stop_ns, 0
        )[:-8]
        self._memory[: _LAYOUT.size] = body + struct.pack("<Q", zlib.crc32(body))
        self._pulses = pulses

    def update(self, **changes: int) -> Pulses:
        """Publishes the last content with some fields changed; returns it."""
        self.write(replace(self._pulses, **changes))
        return self._pulses

    def read(self) -> Pulses:
        """The content now.

        Raises:
            DeviceError: The page holds something else.
        """
        if self._writable:
            return self._pulses
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)  # the writer may have lost its processor in mid-write
            data = self._memory[: _LAYOUT.size]
            magic, power_on, take, first, period, stop, check = _LAYOUT.unpack(data)
            if magic == _MAGIC and check == zlib.crc32(data[:-8]):
                return Pulses(power_on, take, first, period, stop)
        raise DeviceError("the trigger line holds no valid content; remove it from the run directory and start again")

    def close(self) -> None:
        """Unmaps the page. Safe twice."""
        self._memory.close()
