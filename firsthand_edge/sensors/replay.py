"""The driver `replay`: a recording behaves as the devices that made it, with its own stamps and its own arrivals.

It waits on the trigger line as a simulated device does: a preview plays the warm-up pairs of an episode of ours (a
foreign recording has none), a take plays the recording from its beginning, and its end is reported.
"""

from __future__ import annotations

import time
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Protocol

from firsthand_edge.errors import DeviceError
from firsthand_edge.model import ABSENT
from firsthand_edge.sensors.seam import DeviceEnded, SensorSilent
from firsthand_edge.sensors.transport import BATCH_MAX
from firsthand_edge.trigger.line import LINE_NAME, TriggerLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from firsthand_edge.model import DeviceInfo, Sample
    from firsthand_edge.sensors.configuration import ReplayDevice

__all__ = ["Recording", "ReplaySensor", "make_replay"]

_NS_PER_S: Final = 1_000_000_000
_LOOK_S: Final = 0.01


class Recording(Protocol):
    """What one replayed device reads from."""

    def open(self) -> DeviceInfo:
        """Opens it.

        Raises:
            RecordingUnreadable: It is missing, foreign, truncated or damaged.
        """
        ...

    def warm_up(self) -> Iterator[Sample]:
        """Pairs that were recorded before the take, without payloads."""
        ...

    def samples(self) -> Iterator[Sample]:
        """The take, in recorded order of receipt."""
        ...

    @property
    def start_ns(self) -> int | None:
        """Earliest arrival of the take over all devices, on the recording's clock, ns; None: of the first sample."""
        ...

    def close(self) -> None:
        """Closes it. Safe before `open`, and twice."""
        ...


def make_replay(config: ReplayDevice, run_dir: Path) -> ReplaySensor:
    """The player of a configured recording, by the recording's kind."""
    recording: Recording
    if config.is_vrs:
        from firsthand_edge.sensors.replay_vrs import VrsRecording

        recording = VrsRecording(config)
    else:
        from firsthand_edge.sensors.replay_episode import EpisodeRecording

        recording = EpisodeRecording(config)
    return ReplaySensor(config, recording, run_dir)


class ReplaySensor:
    """Plays a recording, at its own pace or as fast as it is taken.

    Args:
        config: Its table in the rig file.
        recording: What it plays.
        run_dir: Holds the trigger line.
        monotonic_ns: CLOCK_MONOTONIC of the host: it paces the replay and stamps nothing.
        sleep: Waits for some seconds of that clock.
    """

    def __init__(
        self,
        config: ReplayDevice,
        recording: Recording,
        run_dir: Path,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._recording = recording
        self._run_dir = run_dir
        self._now_ns = monotonic_ns
        self._sleep = sleep
        self._line: TriggerLine | None = None
        self._armed_ns: int | None = None
        self._playing: Iterator[Sample] | None = None
        self._ahead: Sample | None = None
        self._is_take = False
        self._host_start_ns = 0
        self._start_ns: int | None = None
        self._last_ns = 0

    def open(self) -> DeviceInfo:
        """Opens the recording.

        Raises:
            DeviceAbsent: There is no trigger line to wait on.
            RecordingUnreadable: The recording cannot be played.
        """
        self.close()
        line = TriggerLine.open(self._run_dir / LINE_NAME)
        try:
            info = self._recording.open()
        except BaseException:
            line.close()
            raise
        self._line = line
        return info

    def arm(self) -> None:
        """Back to the beginning; plays when the next train starts.

        Raises:
            DeviceError: It is not open.
        """
        if self._line is None:
            raise DeviceError(f"device {self._config.name} is not open; open it before arming")
        self._armed_ns = self._now_ns()
        self._playing = self._ahead = None

    def read(self, *, timeout_s: float) -> Sequence[Sample]:
        """See `Sensor.read`.

        Raises:
            SensorSilent: No train has started, or the next sample is not due yet.
            DeviceEnded: The take, or the warm-up in a preview, was played to its end, or this player was started in
                the middle of it.
        """
        if self._line is None or self._armed_ns is None:
            raise DeviceError(f"device {self._config.name} is not armed; arm it before reading")
        deadline_ns = self._now_ns() + int(timeout_s * _NS_PER_S)
        while True:
            now_ns = self._now_ns()
            if self._playing is None:
                self._begin(self._line, self._armed_ns)
            if self._playing is not None:
                samples = self._fast() if self._config.pace == "fast" else self._due(now_ns)
                if samples:
                    return samples
                if self._ahead is None:
                    what = "recording" if self._is_take else "warm-up"
                    raise DeviceEnded(f"the {what} of device {self._config.name} is at its end")
            if now_ns >= deadline_ns:
                raise SensorSilent(f"device {self._config.name} delivered nothing within {timeout_s:g} s")
            wait_ns = min(deadline_ns - now_ns, int(_LOOK_S * _NS_PER_S))
            if self._ahead is not None:
                wait_ns = min(wait_ns, self._due_ns(self._ahead) - now_ns)
            self._sleep(max(1, wait_ns) / _NS_PER_S)

    def disarm(self) -> None:
        """Stops playing."""
        self._armed_ns = None
        self._playing = self._ahead = None

    def close(self) -> None:
        """Closes the recording."""
        self.disarm()
        self._recording.close()
        if self._line is not None:
            self._line.close()
            self._line = None

    def _begin(self, line: TriggerLine, armed_ns: int) -> None:
        pulses = line.read()
        if pulses.first_pulse_ns == 0 or pulses.first_pulse_ns > self._now_ns():
            return
        if pulses.first_pulse_ns < armed_ns:
            if pulses.take and self._now_ns() < pulses.stop_ns:
                raise DeviceEnded(
                    f"device {self._config.name} was started in the middle of take {pulses.take}, which is not replayed"
                )
            return
        self._is_take = pulses.take > 0
        self._playing = self._recording.samples() if self._is_take else self._recording.warm_up()
        self._ahead = next(self._playing, None)
        self._host_start_ns = pulses.first_pulse_ns
        self._start_ns = self._recording.start_ns if self._is_take else None
        self._last_ns = 0

    def _fast(self) -> Sequence[Sample]:
        if self._playing is None or self._ahead is None:
            return ()
        out = list(islice(chain((self._ahead,), self._playing), BATCH_MAX))
        self._ahead = next(self._playing, None)
        return out

    def _due(self, now_ns: int) -> Sequence[Sample]:
        out: list[Sample] = []
        while self._ahead is not None and len(out) < BATCH_MAX and self._due_ns(self._ahead) <= now_ns:
            out.append(self._ahead)
            self._last_ns = self._recorded_ns(self._ahead)
            self._ahead = None if self._playing is None else next(self._playing, None)
        return out

    def _recorded_ns(self, sample: Sample) -> int:
        """When it came, on the recording's clock; with neither arrival nor usable stamp, with the one before it."""
        if sample.arrival_ns != ABSENT:
            return sample.arrival_ns
        if sample.device_ticks != ABSENT and sample.domain.name != "DEVICE":
            return sample.device_ticks
        return self._last_ns

    def _due_ns(self, sample: Sample) -> int:
        recorded_ns = self._recorded_ns(sample)
        if self._start_ns is None and recorded_ns:
            self._start_ns = recorded_ns
        return self._host_start_ns + max(0, recorded_ns - (self._start_ns or recorded_ns))
