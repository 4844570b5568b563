"""The set that everything is timed on: seven 60 Hz streams and a 1 kHz IMU, as a rig would record them.

Jitter is normal, 0.4 ms for a picture and 20 us for the IMU; each partner of the reference is off by a constant of
0.2 ms or so; 0.1 % of all samples are lost and 0.02 % of the pictures come twice. Equal arguments give equal stamps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Stamps = npt.NDArray[np.int64]

EPOCH_NS = 1_700_000_000_000_000_000
PERIOD_NS = 16_666_667
IMU_PERIOD_NS = 1_000_000
CEILING_NS = 2_000_000


@dataclass(frozen=True, slots=True)
class Take:
    """Stamps in ns, in order, with repeats. `pictures[0]` is the reference."""

    seconds: int
    pictures: tuple[Stamps, ...]
    imu: Stamps

    @property
    def label(self) -> str:
        """How long it is, for people."""
        return f"{self.seconds / 3600:g} h" if self.seconds >= 3600 else f"{self.seconds / 60:g} min"


def _lossy(rng: np.random.Generator, times: npt.NDArray[np.float64], repeats: float) -> Stamps:
    kept = times[rng.random(times.size) > 0.001].astype(np.int64)
    twice = kept[rng.random(kept.size) < repeats]
    times: Stamps = np.sort(np.concatenate([kept, twice])) + EPOCH_NS
    times.flags.writeable = False  # as the columns of a recording are; nobody needs to copy them
    return times


def take(seconds: int, *, seed: int = 0) -> Take:
    """A take of so many seconds."""
    rng = np.random.default_rng(seed)
    grid = np.arange(seconds * 60) * (1e9 / 60)
    pictures = []
    for stream in range(7):
        constant = rng.normal(0, 0.2e6) if stream else 0.0
        pictures.append(_lossy(rng, grid + rng.normal(0, 0.4e6, grid.size) + constant, 0.0002))
    millis = np.arange(seconds * 1000) * 1e6
    return Take(seconds, tuple(pictures), _lossy(rng, millis + rng.normal(0, 2e4, millis.size), 0.0))
