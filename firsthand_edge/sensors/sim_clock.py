"""The clock of a simulated device: true time in, ticks of a drifting, wrapping, sometimes jumping counter out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SimClock", "Step", "scaled"]

Int64 = npt.NDArray[np.int64]
_PPB = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the clock that holds from `at_ns` (true time) on."""

    at_ns: int
    jump_ns: int = 0
    rate_ppb: int = 0
    ticks: int = 0


def scaled(elapsed_ns: Int64, ppb: int) -> Int64:
    """floor(elapsed * ppb / 10^9), (n,) in and out, without overflow: whole seconds and their rest apart."""
    whole, rest = np.divmod(elapsed_ns, _PPB)
    out: Int64 = whole * ppb + rest * ppb // _PPB
    return out


class SimClock:
    """Counts ticks of `tick_num / tick_den` ns from `start` at power on.

    Args:
        rate_ppb: How much faster than true time it runs, in parts per 10^9.
        bits: It wraps at 2**bits; 64 bits count as 63, for a wrap there takes centuries.
        start: Its value at power on.
    """

    def __init__(self, *, rate_ppb: int, bits: int, tick_num: int, tick_den: int, start: int) -> None:
        self._rate_ppb = rate_ppb
        self._mask = (1 << min(bits, 63)) - 1
        self._tick_num, self._tick_den = tick_num, tick_den
        self._start = start
        self.steps: list[Step] = []

    @classmethod
    def wrapping(cls, after_ns: int, *, rate_ppb: int, bits: int, tick_num: int, tick_den: int) -> SimClock:
        """A clock that wraps `after_ns` after power on, by its own count."""
        start = (1 << bits) - after_ns * tick_den // tick_num
        return cls(rate_ppb=rate_ppb, bits=bits, tick_num=tick_num, tick_den=tick_den, start=start)

    def device_ns(self, true_ns: Int64, power_on_ns: int) -> Int64:
        """What the clock has counted since power on, ns, unwrapped; (n,) in, (n,) out."""
        elapsed = true_ns - power_on_ns
        out = elapsed + scaled(elapsed, self._rate_ppb)
        for step in self.steps:
            since = true_ns - step.at_ns
            if step.jump_ns or step.rate_ppb:
                out = out + np.where(since >= 0, step.jump_ns + scaled(since, step.rate_ppb), 0)
        return out

    def ticks(self, true_ns: Int64, power_on_ns: int) -> Int64:
        """The raw counter at these instants, (n,) int64."""
        out = self.device_ns(true_ns, power_on_ns) * self._tick_den // self._tick_num + self._start
        for step in self.steps:
            if step.ticks:
                out = out + np.where(true_ns >= step.at_ns, step.ticks, 0)
        return out & self._mask
