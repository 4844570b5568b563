"""The driver `sim`: devices that expose on the simulated trigger line and behave as real ones do.

Each has its own drifting, wrapping counter and delivers over a link that is late by a varying time. It says what such a
device says: ticks of its counter and, on receipt, the host's CLOCK_MONOTONIC. True time never leaves this module.
Equal seed and equal trigger line give equal samples, ticks and delays, whenever they are read.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from firsthand_edge.errors import DeviceAbsent, DeviceError
from firsthand_edge.model import ABSENT, Counter, DeviceInfo, Domain, Sample, StreamInfo
from firsthand_edge.sensors import faults as f
from firsthand_edge.sensors.seam import SensorSilent
from firsthand_edge.sensors.sim_clock import SimClock, Step, scaled
from firsthand_edge.sensors.sim_content import content_of
from firsthand_edge.sensors.sim_exposure import Schedule, Train, begins_ns, lengths_ns, slips, stamped_after_ns
from firsthand_edge.sensors.sim_link import Draws
from firsthand_edge.trigger.line import LINE_NAME, NEVER, Pulses, TriggerLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from firsthand_edge.sensors.configuration import SimDevice, SimStream

__all__ = ["SimSensor"]

Int64 = npt.NDArray[np.int64]
_NS_PER_S: Final = 1_000_000_000
_LOOK_NS: Final = 10_000_000
"""How long a device sleeps at most before it looks at the trigger line again."""


class _Delivery(NamedTuple):
    """A sample on its way; its payload is made when it arrives."""

    arrival_ns: int
    sequence: int
    trigger_index: int
    ticks: int
    exposure_ns: int
    number: int


def _stamp_info(config: SimStream, *, check_edges: bool) -> StreamInfo:
    return StreamInfo(
        name=config.name,
        media=content_of(config).media,
        triggered=config.triggered,
        stamp_point=config.stamp_point,
        period_ns=config.period_ns,
        offset_ns=config.offset_ns,
        has_trigger_index=config.has_trigger_index,
        trigger_delay_ns=config.trigger_delay_us * 1000 if check_edges and config.triggered else None,
    )


class _Track:
    """One stream: exposures become deliveries. Subclasses say when exposures happen."""

    def __init__(self, config: SimStream, device: SimDevice, position: int, clock: SimClock) -> None:
        self.config = config
        self.waiting: deque[_Delivery] = deque()
        self._content = content_of(config)
        self._draws = Draws(device, position)
        self._clock = clock
        self._arrival_ns = 0
        self._number = 0

    def reset(self, armed_ns: int) -> None:
        """Forgets everything; nothing before `armed_ns` is exposed."""
        raise NotImplementedError

    def follow(self) -> None:
        """A new train has begun."""

    def expose(self, train: Train, now_ns: int) -> None:
        """Makes the exposures that were due by `now_ns`."""
        raise NotImplementedError

    def next_ns(self, train: Train) -> int:
        """When something can be delivered or exposed next."""
        raise NotImplementedError

    def arrived(self, now_ns: int) -> Iterator[Sample]:
        """Samples whose arrival has come."""
        while self.waiting and self.waiting[0].arrival_ns <= now_ns:
            d = self.waiting.popleft()
            yield Sample(
                stream=self.config.name,
                sequence=d.sequence,
                device_ticks=d.ticks,
                domain=Domain.DEVICE,
                arrival_ns=d.arrival_ns,
                payload=self._content.payload(d.number),
                trigger_index=d.trigger_index,
                exposure_ns=d.exposure_ns,
            )

    def _deliver(
        self,
        train: Train,
        *,
        start_ns: Int64,
        length_ns: Int64,
        sequence: Int64,
        index: Int64 | None,
        number: Int64,
        delay_ns: Int64,
    ) -> None:
        """Stamps exposures and puts them on the link; all (n,), n >= 1, in order."""
        stamped_ns = start_ns + stamped_after_ns(self.config, train, length_ns)
        ticks = self._clock.ticks(stamped_ns, train.pulses.power_on_ns)
        # A link delivers in order: nothing overtakes what is before it.
        arrival_ns = np.maximum(np.maximum.accumulate(stamped_ns + delay_ns), self._arrival_ns)
        self._arrival_ns = int(arrival_ns[-1])
        lost = np.zeros(len(start_ns), np.bool_)
        twice = lost.copy()
        for fault in train.faults:
            if isinstance(fault, f.Drop):
                lost |= train.within(fault, start_ns) & (sequence % fault.every == 0)
            elif isinstance(fault, f.Repeat):
                twice |= train.within(fault, start_ns)
            elif isinstance(fault, f.Stall) and fault.mode == "repeat":
                stalled = train.within(fault, start_ns)
                if stalled.any():
                    before = int(np.argmax(stalled))
                    last = int(number[before - 1]) if before else self._number
                    number = np.where(stalled, last, number)
        self._number = int(number[-1])
        columns = (
            arrival_ns.tolist(),
            sequence.tolist(),
            [ABSENT] * len(ticks) if index is None else index.tolist(),
            ticks.tolist(),
            length_ns.tolist(),
            number.tolist(),
        )
        for i, delivery in enumerate(map(_Delivery._make, zip(*columns, strict=True))):
            if not lost[i]:
                self.waiting.append(delivery)
                if twice[i]:
                    self.waiting.append(delivery)

    def _happens(self, train: Train, start_ns: Int64) -> npt.NDArray[np.bool_]:
        """Which exposures a hanging or late device makes at all."""
        out = np.ones(len(start_ns), np.bool_)
        for fault in train.faults:
            if isinstance(fault, f.StartLate):
                out &= start_ns >= fault.begin_ns(train.start_ns)
            elif isinstance(fault, f.Stall) and fault.mode == "silence":
                out &= ~train.within(fault, start_ns)
        return out


class _Triggered(_Track):
    """Exposes on pulses."""

    def reset(self, armed_ns: int) -> None:
        self._armed_ns = armed_ns
        self._sequence = 0
        self._next = 0
        self.waiting.clear()

    def follow(self) -> None:
        self._next = 0

    def expose(self, train: Train, now_ns: int) -> None:
        pulses, schedule = train.pulses, Schedule.of(train)
        end = schedule.count(now_ns)
        missed, more = 0, 0
        for fault in train.faults:
            if isinstance(fault, f.MissFirst):
                missed = max(missed, fault.pulses)
                more = fault.pulses if fault.make_up else more
        if more and end == pulses.count(NEVER - 1):
            end += min(more, max(0, (now_ns - pulses.first_pulse_ns) // pulses.period_ns + 1 - end))
        begin = max(self._next, missed)
        if schedule.free_from is None:
            begin = max(begin, pulses.first_after(self._armed_ns))
        if end <= begin:
            return
        self._next = end
        slots = np.arange(begin, end, dtype=np.int64)
        if self.config.decimate > 1:
            slots = slots[slots % self.config.decimate == self.config.phase]
        due_ns = schedule.instants_ns(slots)
        happens, lag = slips(train, slots)
        happens &= due_ns >= self._armed_ns
        slots, due_ns, lag = slots[happens], due_ns[happens], lag[happens]
        if not len(slots):
            return
        length_ns = lengths_ns(self.config, train, due_ns)
        start_ns = begins_ns(self.config, train, slots, due_ns=due_ns, length_ns=length_ns, draws=self._draws)
        happens = self._happens(train, start_ns)
        slots, lag, length_ns, start_ns = slots[happens], lag[happens], length_ns[happens], start_ns[happens]
        if not len(slots):
            return
        sequence = np.arange(self._sequence, self._sequence + len(slots), dtype=np.int64)
        self._sequence += len(slots)
        self._deliver(
            train,
            start_ns=start_ns,
            length_ns=length_ns,
            sequence=sequence,
            index=schedule.pulses_seen(slots) - lag if self.config.has_trigger_index else None,
            number=(pulses.take << 32) + slots,
            delay_ns=self._draws.delays_ns(pulses.take, slots),
        )

    def next_ns(self, train: Train) -> int:
        pulses = train.pulses
        due_ns = self.waiting[0].arrival_ns if self.waiting else NEVER
        if not pulses.period_ns:
            return due_ns
        slot_ns = Schedule.of(train).instant_ns(self._next)
        return min(due_ns, slot_ns if slot_ns < pulses.stop_ns else NEVER)


class _FreeRunning(_Track):
    """Samples by the device's own clock, from power on; its number is its sequence."""

    def __init__(self, config: SimStream, device: SimDevice, position: int, clock: SimClock) -> None:
        super().__init__(config, device, position, clock)
        rate_ppb = int(device.drift_ppm * 1000)
        self._period_ns = config.period_ns or int(_NS_PER_S / (config.rate_hz or 1))
        self._phase_ns = device.seed * 7919 % self._period_ns
        self._rate_ppb = rate_ppb
        self._slow_ppb = rate_ppb * _NS_PER_S // (_NS_PER_S + rate_ppb)

    def reset(self, armed_ns: int) -> None:
        self._armed_ns = armed_ns
        self._next: int | None = None
        self._due_ns = 0
        self.waiting.clear()

    def _instants(self, pulses: Pulses, number: Int64) -> Int64:
        nominal_ns = self._phase_ns + number * self._period_ns
        if self.config.is_event:
            nominal_ns = nominal_ns + (self._draws.shares(0, number) * (self._period_ns * 0.9)).astype(np.int64)
        return pulses.power_on_ns + nominal_ns - scaled(nominal_ns, self._slow_ppb)

    def _number_at(self, pulses: Pulses, true_ns: int) -> int:
        elapsed_ns = true_ns - pulses.power_on_ns
        return max(0, (elapsed_ns + elapsed_ns * self._rate_ppb // _NS_PER_S - self._phase_ns) // self._period_ns)

    def _closing_ns(self, pulses: Pulses, number: int) -> int:
        """When the batch that holds this number is complete."""
        closing = (number // self.config.batch + 1) * self.config.batch - 1
        return int(self._instants(pulses, np.array([closing], np.int64))[0])

    def expose(self, train: Train, now_ns: int) -> None:
        pulses, batch = train.pulses, self.config.batch
        if not pulses.power_on_ns or now_ns < pulses.power_on_ns:
            return
        if self._next is None:
            self._next = self._number_at(pulses, max(self._armed_ns, pulses.power_on_ns))
            self._due_ns = self._closing_ns(pulses, self._next)
        if now_ns < self._due_ns:
            return
        end = (self._number_at(pulses, now_ns) + 2) // batch * batch
        while end > self._next and self._closing_ns(pulses, end - 1) > now_ns:
            end = (end - 1) // batch * batch
        if end <= self._next:
            return
        number = np.arange(self._next, end, dtype=np.int64)
        self._next = end
        self._due_ns = self._closing_ns(pulses, end)
        group = number // batch
        closing = (group + 1) * batch - 1
        start_ns = self._instants(pulses, number)
        delay_ns = self._draws.delays_ns(0, group)
        if batch > 1:
            delay_ns = self._instants(pulses, closing) - start_ns + delay_ns
        happens = self._happens(train, start_ns) & (start_ns >= self._armed_ns)
        if happens.any():
            self._deliver(
                train,
                start_ns=start_ns[happens],
                length_ns=np.full(int(happens.sum()), self.config.exposure_us * 1000, np.int64),
                sequence=number[happens],
                index=None,
                number=number[happens],
                delay_ns=delay_ns[happens],
            )

    def next_ns(self, train: Train) -> int:
        if not train.pulses.power_on_ns:
            return NEVER
        if self._next is None:
            return train.pulses.power_on_ns
        return min(self.waiting[0].arrival_ns if self.waiting else NEVER, self._due_ns)


class SimSensor:
    """A simulated device (see `SimDevice` for all that it can be told to be).

    Args:
        config: Its table in the rig file.
        run_dir: Holds the trigger line.
        monotonic_ns: CLOCK_MONOTONIC of the host, which is true time here.
        sleep: Waits for some seconds of that clock.
    """

    def __init__(
        self,
        config: SimDevice,
        run_dir: Path,
        *,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._run_dir = run_dir
        self._now_ns = monotonic_ns
        self._sleep = sleep
        self._line: TriggerLine | None = None
        self._tracks: tuple[_Track, ...] = ()
        self._armed_ns: int | None = None
        self._train = Train(Pulses(), ())

    def open(self) -> DeviceInfo:
        """Powers up: the clock has run since power on.

        Raises:
            DeviceAbsent: There is no trigger line, or a fault script has the device away.
        """
        self.close()
        c = self._config
        line = TriggerLine.open(self._run_dir / LINE_NAME)
        pulses = line.read()
        for fault in c.fault:
            if isinstance(fault, f.Die | f.ComeBack) and fault.befalls(pulses.take) and fault.for_s is not None:
                begin_ns, end_ns = fault.begin_ns(pulses.first_pulse_ns), fault.end_ns(pulses.first_pulse_ns) or 0
                if begin_ns <= self._now_ns() < end_ns:
                    line.close()
                    raise DeviceAbsent(f"device {c.name} is not there; plug it in again")
        self._clock = _clock_of(c)
        self._tracks = tuple(
            (_Triggered if s.triggered else _FreeRunning)(s, c, i, self._clock) for i, s in enumerate(c.stream)
        )
        self._line = line
        self._train = Train(Pulses(), ())
        return DeviceInfo(
            name=c.name,
            driver="sim",
            model="simulated device",
            serial=c.serial or f"SIM-{c.name}",
            firmware="1",
            domain=Domain.DEVICE,
            counter=Counter(c.counter_bits, c.tick_num, c.tick_den),
            streams=tuple(_stamp_info(s, check_edges=c.check_edges) for s in c.stream),
            min_delay_ns=c.min_delay_us * 1000,
            min_delay_bound_ns=None if c.min_delay_bound_us is None else c.min_delay_bound_us * 1000,
        )

    def arm(self) -> None:
        """Ready for the next pulse.

        Raises:
            DeviceError: It is not open.
        """
        if self._line is None:
            raise DeviceError(f"device {self._config.name} is not open; open it before arming")
        self._armed_ns = self._now_ns()
        for track in self._tracks:
            track.reset(self._armed_ns)

    def read(self, *, timeout_s: float) -> Sequence[Sample]:
        """See `Sensor.read`. Scripted faults happen here."""
        if self._line is None or self._armed_ns is None:
            raise DeviceError(f"device {self._config.name} is not armed; arm it before reading")
        deadline_ns = self._now_ns() + int(timeout_s * _NS_PER_S)
        while True:
            now_ns = self._now_ns()
            self._look(self._line.read())
            self._fail_as_scripted(now_ns)
            samples: list[Sample] = []
            for track in self._tracks:
                track.expose(self._train, now_ns)
                samples.extend(track.arrived(now_ns))
            if samples:
                if len(self._tracks) > 1:
                    samples.sort(key=attrgetter("arrival_ns"))
                return samples
            if now_ns >= deadline_ns:
                raise SensorSilent(f"device {self._config.name} delivered nothing within {timeout_s:g} s")
            until_ns = min(deadline_ns, now_ns + _LOOK_NS, *(track.next_ns(self._train) for track in self._tracks))
            self._sleep(max(1, until_ns - now_ns) / _NS_PER_S)

    def disarm(self) -> None:
        """Stops delivering; what is under way is lost."""
        self._armed_ns = None
        for track in self._tracks:
            track.waiting.clear()

    def close(self) -> None:
        """Powers down."""
        self.disarm()
        self._tracks = ()
        if self._line is not None:
            self._line.close()
            self._line = None

    def _look(self, pulses: Pulses) -> None:
        """Follows the line; a new train brings its faults."""
        before = self._train.pulses
        if pulses is before or pulses == before:
            return
        if (pulses.take, pulses.first_pulse_ns) == (before.take, before.first_pulse_ns):
            self._train = self._train._replace(pulses=pulses)
            return
        faults = tuple(fault for fault in self._config.fault if fault.befalls(pulses.take))
        self._train = Train(pulses, faults)
        for track in self._tracks:
            track.follow()
        # What was to happen to the clock after the last take's end never did.
        over_ns = min(before.stop_ns, pulses.first_pulse_ns)
        steps = [step for step in self._clock.steps if step.at_ns < over_ns]
        for fault in faults:
            step = _step_of(fault, fault.begin_ns(pulses.first_pulse_ns))
            if step is not None:
                steps.append(step)
                end_ns = fault.end_ns(pulses.first_pulse_ns)
                if end_ns is not None:
                    steps.append(Step(end_ns, -step.jump_ns, -step.rate_ppb, -step.ticks))
        self._clock.steps = steps

    def _fail_as_scripted(self, now_ns: int) -> None:
        for fault in self._train.faults:
            if isinstance(fault, f.Die | f.ComeBack):
                begin_ns = fault.begin_ns(self._train.start_ns)
                # A device that was armed after the moment is the one that came back.
                if (self._armed_ns or 0) < begin_ns <= now_ns:
                    if isinstance(fault, f.ComeBack):
                        raise DeviceAbsent(f"device {self._config.name} vanished from its bus; plug it in again")
                    _die(self._config.name, fault.how)


def _clock_of(c: SimDevice) -> SimClock:
    """The clock at power on; its ticks are what it counts, which need not be what it claims."""
    rate_ppb, tick_num, tick_den = int(c.drift_ppm * 1000), c.tick_num, c.tick_den
    for fault in c.fault:
        if isinstance(fault, f.WrongUnit):
            tick_num, tick_den = fault.counts_ns, 1
    if c.wrap_after_s is None:
        return SimClock(
            rate_ppb=rate_ppb, bits=c.counter_bits, tick_num=tick_num, tick_den=tick_den, start=c.counter_start
        )
    after_ns = int(c.wrap_after_s * _NS_PER_S)
    return SimClock.wrapping(after_ns, rate_ppb=rate_ppb, bits=c.counter_bits, tick_num=tick_num, tick_den=tick_den)


def _step_of(fault: f.Fault, at_ns: int) -> Step | None:
    match fault:
        case f.Jump():
            return Step(at_ns, jump_ns=int(fault.seconds * _NS_PER_S))
        case f.Drift():
            return Step(at_ns, rate_ppb=int(fault.ppm * 1000))
        case f.Wrap():
            return Step(at_ns, ticks=-(1 << fault.bits))
        case _:
            return None


def _die(device: str, how: str) -> NoReturn:
    """Dies in earnest."""
    match how:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            while True:
                time.sleep(3600)
    raise DeviceError(f"device {device} reports an internal error; switch it off and on again")
