"""The seam for devices: what a driver must do, and nothing about how its samples travel on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from firsthand_edge.errors import DeviceError, DeviceSilent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.model import DeviceInfo, Sample

__all__ = ["DeviceEnded", "Sensor", "SensorSilent"]

SensorSilent = DeviceSilent
"""What `Sensor.read` raises when nothing came in time. It is no fault: an event stream is silent most of the time."""


class DeviceEnded(DeviceError):
    """A device has nothing more to say in this arming and never will: a recording is at its end."""

    code = "device.ended"


@runtime_checkable
class Sensor(Protocol):
    """One device, owned by one worker. It reports what the device said; `clock` interprets.

    The order of calls is `open`, then any number of `arm` ... `read` ... `disarm`, then `close`. One thread calls.
    """

    def open(self) -> DeviceInfo:
        """Connects, configures, and says what it found.

        Raises:
            DeviceAbsent: It is not there.
            DeviceError: It is there and not as it must be.
            RecordingUnreadable: A recording that cannot be played.
        """
        ...

    def arm(self) -> None:
        """Makes ready for the first pulse; returns when it is. Nothing is delivered before this."""
        ...

    def read(self, *, timeout_s: float) -> Sequence[Sample]:
        """Samples that arrived since the last call, at least one, per stream in order of arrival.

        Raises:
            SensorSilent: Nothing came within `timeout_s`.
            DeviceEnded: Nothing will come any more.
            DeviceError: The device failed; the worker ends with this as the cause.
        """
        ...

    def disarm(self) -> None:
        """Stops delivering. What has not been read is thrown away. Safe when not armed."""
        ...

    def close(self) -> None:
        """Lets go of the device. Safe before `open`, and twice."""
        ...
