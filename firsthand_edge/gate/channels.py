"""Anybody's recording as channels of stamps, whatever file they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Int64

__all__ = [
    "COARSE_NS",
    "Channel",
    "Progress",
    "Recording",
    "StampSource",
    "classify",
    "float_ns",
    "kind_of",
    "within_int64",
]

StampSource = Literal["header", "log", "publish"]
Progress: TypeAlias = Callable[[int, int], object]
"""Told bytes done and bytes in all, some twenty times a second. What it raises ends the reading."""

IMAGE_SCHEMAS = frozenset({"Image", "CompressedImage", "RawImage", "CompressedVideo"})
IMU_SCHEMAS = frozenset({"Imu", "IMU", "IMUMeasurement"})
PICTURE_MEDIA = ("picture/", "video/", "raw/")
FEWEST_PERIODIC = 5
COARSE_NS = 64
"""A float of seconds that resolves no better than this has lost digits of the device's stamp."""
LARGEST_NS = 1 << 62
"""The year 2116; beyond it, differences would leave 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Channel:
    """One channel of a recording."""

    name: str
    kind: Kind
    """By what it is: pictures are triggered, IMUs sampled, other periodic ones interpolated, the rest events."""
    times_ns: Int64
    """(n,) int64 in the order of the file; taken as mid-exposure times."""
    stamps: str
    """Which times these are: `header`, `log`, `publish`; of VRS `capture`, `record`; of a data set `column`."""
    unstamped: int = 0
    """Samples that carry no stamp; they are not in `times_ns`."""
    grade: Grade = Grade.DECLARED
    period_ns: int | None = None
    """The nominal period that the recording states; None where it states none."""
    of_rows: bool = False
    """A data set's row clock: one time for all that is in a row, on a time axis of its own."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording's channels, in the order of their names, and what a reader of the report should know."""

    format: str
    """`mcap`, `bag`, `vrs` or `lerobot`."""
    channels: tuple[Channel, ...]
    notes: tuple[str, ...] = ()
    episode: int | None = None
    """Which episode of a data set this is."""

    def channel(self, name: str) -> Channel:
        """The channel of that name; a leading `/` may be left out.

        Raises:
            UsageError: listing the channels, when there is none.
        """
        for wanted in (name, f"/{name}"):
            for channel in self.channels:
                if channel.name == wanted:
                    return channel
        raise UsageError(f"the recording has no channel `{name}`; name one of: {self.described()}")

    def has(self, name: str) -> bool:
        """Whether there is a channel of that name; a leading `/` may be left out."""
        return any(channel.name in (name, f"/{name}") for channel in self.channels)

    def described(self) -> str:
        """Every channel with its kind and its number of samples, in one line."""
        rows = (f"{c.name} ({c.kind.value}, {count(c.times_ns.size, 'sample')})" for c in self.channels)
        return ", ".join(rows) or "none, it is empty"


def kind_of(schema: str, media: str, times_ns: Int64) -> Kind:
    """The kind of a channel by what its messages are.

    Args:
        schema: Name of the message type, `sensor_msgs/msg/Image` or `foxglove.CompressedImage`.
        media: Our own channels say what a payload is.
        times_ns: (n,) int64; of channels that are neither pictures nor an IMU, they decide.
    """
    last = schema.replace(".", "/").rsplit("/", 1)[-1]
    if last in IMAGE_SCHEMAS or media.startswith(PICTURE_MEDIA):
        return Kind.TRIGGERED
    if last in IMU_SCHEMAS or media == "imu":
        return Kind.SAMPLED
    return classify(times_ns)


def classify(times_ns: Int64) -> Kind:
    """The kind of a channel that is neither pictures nor an IMU: interpolated when it is periodic, else events.

    Periodic: at least five samples, and four of five steps within a factor of two of the median step.
    """
    if times_ns.size < FEWEST_PERIODIC:
        return Kind.EVENT
    steps = np.diff(np.sort(times_ns))
    median = int(np.sort(steps)[(steps.size + 1) // 2 - 1])
    near = int(((2 * steps >= median) & (steps <= 2 * median)).sum())
    return Kind.INTERPOLATED if median > 0 and 5 * near >= 4 * steps.size else Kind.EVENT


def within_int64(name: str, times_ns: Int64) -> Int64:
    """The times themselves. Raises RecordingUnreadable when a difference of them could leave 64 bits."""
    if times_ns.size and (int(times_ns.max()) >= LARGEST_NS or int(times_ns.min()) <= -LARGEST_NS):
        raise RecordingUnreadable(
            f"`{name}` holds a time after the year 2116; its stamps are not nanoseconds of any clock"
        )
    return times_ns


def float_ns(value: float, factor: int = 10**9) -> int:
    """The nearest nanosecond to a float, exactly, halves up. `factor`: nanoseconds of its unit."""
    exact = Fraction(value) * factor
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)
