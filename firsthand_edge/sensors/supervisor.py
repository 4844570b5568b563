"""Keeps one worker process a device: starts them, arms them together, and starts again those that die."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.errors import DeviceError, FirsthandError
from firsthand_edge.model import DeviceInfo
from firsthand_edge.process import Child, ProcessEnded
from firsthand_edge.sensors import lock
from firsthand_edge.sensors.page import CountersPage, StreamCounters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from firsthand_edge.process import Ticket
    from firsthand_edge.sensors.configuration import DeviceConfig

__all__ = ["Supervisor", "WorkerState"]

_NS_PER_S: Final = 1_000_000_000
_HANG_S: Final = 5.0
_OPEN_S: Final = 30.0
_ORPHAN_S: Final = 1.5
"""Workers of a killed owner are gone within 1 s; a new owner waits that long for them."""
_BACKOFF_S: Final = (0.05, 2.0)


class WorkerState(StrEnum):
    """Where a worker stands."""

    STOPPED = "stopped"
    OPENING = "opening"
    AWAY = "away"
    """The device could not be opened; tried again and again."""
    READY = "ready"
    ARMING = "arming"
    ARMED = "armed"
    GIVEN_UP = "given_up"
    """It died more often than the budget of restarts allows."""


class _Keeper:
    """One device, its worker of the moment, and its history."""

    def __init__(self, config: DeviceConfig, run_dir: Path, log_dir: Path) -> None:
        self.config = config
        self.name = config.name
        self.state = WorkerState.STOPPED
        self.info: DeviceInfo | None = None
        self.child: Child | None = None
        self.incarnation = -1
        self.cause = ""
        self.deaths_ns: deque[int] = deque()
        self.retry_s = _BACKOFF_S[0]
        self.next_ns = 0
        self.since_ns = 0
        self._run_dir = run_dir
        self._log_path = log_dir / f"{config.name}.log"
        self._ticket: Ticket | None = None
        self._page: CountersPage | None = None

    def spawn(self) -> None:
        self.incarnation += 1
        self.cause = ""
        self.child = Child(
            "firsthand_edge.sensors.worker",
            [self.name, str(self._run_dir), str(self.incarnation)],
            name=f"worker {self.name}",
            log_path=self._log_path,
        )
        self.post(WorkerState.OPENING, "open", config=self.config.model_dump_json())

    def post(self, state: WorkerState, command: str, **arguments: Any) -> None:
        """Asks the worker, without waiting. A dead one is found by whoever looks next."""
        if self.child is not None:
            self.state, self.since_ns = state, time.monotonic_ns()
            with contextlib.suppress(DeviceError):
                self._ticket = self.child.post(command, **arguments)

    def answer(self, timeout_s: float) -> Any:
        """The answer to what was posted last."""
        ticket, self._ticket = self._ticket, None
        if self.child is None or ticket is None:
            raise ProcessEnded(f"worker {self.name} is not running{self._because()}")
        return self.child.wait(ticket, timeout_s=timeout_s)

    @property
    def answered(self) -> bool:
        return self.child is not None and self._ticket is not None and self.child.answered(self._ticket)

    def opened(self, timeout_s: float) -> DeviceInfo:
        info = DeviceInfo.from_json(self.answer(timeout_s))
        self.info, self.state, self.retry_s = info, WorkerState.READY, _BACKOFF_S[0]
        return info

    def page(self) -> CountersPage | None:
        """Its counters; None before the device was opened for the first time."""
        if self._page is None and self.info is not None:
            self._page = CountersPage.open(self._run_dir, self.name)
        return self._page

    def forget_page(self) -> None:
        """A worker that starts may make its page anew."""
        if self._page is not None:
            self._page.close()
            self._page = None

    def _because(self) -> str:
        return f": {self.cause}" if self.cause else ""


class Supervisor:
    """Owner of all workers. One thread uses it; call `watch` ten times a second or more.

    Args:
        devices: Validated device tables of the rig file, in the order in which they start.
        run_dir: Sockets, pages and locks. Exists.
        log_dir: One log a device. Exists.
        restarts: How often a worker may die within `window_s` before it is given up.
        window_s: See `restarts`.
    """

    def __init__(
        self,
        devices: Sequence[DeviceConfig],
        *,
        run_dir: Path,
        log_dir: Path,
        restarts: int = 5,
        window_s: float = 60.0,
    ) -> None:
        self._run_dir = run_dir
        self._keepers = tuple(_Keeper(d, run_dir, log_dir) for d in devices)
        self._restarts = restarts
        self._window_ns = int(window_s * _NS_PER_S)
        self._epoch: int | None = None
        self._events: list[dict[str, Any]] = []

    def start(self, *, timeout_s: float = _OPEN_S) -> tuple[DeviceInfo, ...]:
        """Starts every worker and opens every device, all at once.

        Raises:
            DeviceError: A foreign worker holds a device, or several devices failed (all are named).
            FirsthandError: What the one device that failed said. Nothing is left running.
        """
        deadline = time.monotonic() + timeout_s
        for keeper in self._keepers:
            self._refuse_foreign(keeper)
        try:
            for keeper in self._keepers:
                keeper.spawn()
            return tuple(self._each("open", [k.opened for k in self._keepers], deadline))
        except BaseException:
            self.stop(timeout_s=1.0)
            raise

    def arm(self, epoch: int, *, timeout_s: float = 10.0) -> None:
        """Arms every device; returns when all are ready for the first pulse.

        Workers that are being restarted are waited for.

        Raises:
            DeviceError: A device is away or given up, does not arm, or is held by a foreign worker. None is left armed.
        """
        deadline = time.monotonic() + timeout_s
        while any(k.state in (WorkerState.OPENING, WorkerState.AWAY, WorkerState.STOPPED) for k in self._keepers):
            self._look()
            if time.monotonic() >= deadline:
                break
            time.sleep(0.005)
        for keeper in self._keepers:
            if keeper.state is not WorkerState.READY:
                raise DeviceError(
                    f"device {keeper.name} is {keeper.state}, not ready: {keeper.cause or 'disarm first'}"
                )
            self._refuse_foreign(keeper)
        self._epoch = epoch
        for keeper in self._keepers:
            keeper.post(WorkerState.ARMING, "arm", epoch=epoch)
        try:
            self._each("arm", [k.answer for k in self._keepers], deadline)
        except FirsthandError:
            self.disarm(drain_s=0.0)
            raise
        for keeper in self._keepers:
            keeper.state = WorkerState.ARMED

    def disarm(self, *, drain_s: float = 0.1, timeout_s: float = 5.0) -> None:
        """Disarms every device, all at once, after reading on for `drain_s`; then all end markers are sent.

        A worker that dies meanwhile is found by `watch`; the others are not disturbed.
        """
        self._epoch = None
        armed = [k for k in self._keepers if k.state in (WorkerState.ARMING, WorkerState.ARMED)]
        for keeper in armed:
            keeper.post(WorkerState.ARMED, "disarm", drain_s=drain_s)
        deadline = time.monotonic() + drain_s + timeout_s
        for keeper in armed:
            try:
                keeper.answer(max(0.0, deadline - time.monotonic()))
            except FirsthandError as error:
                keeper.cause = keeper.cause or str(error)
                if keeper.child is not None and keeper.child.alive:
                    keeper.child.kill()
            keeper.state = WorkerState.READY

    def watch(self) -> list[dict[str, Any]]:
        """Looks after the workers, without waiting, and returns what happened since the last call.

        Returns:
            Events `{"kind", "device", "incarnation", "monotonic_ns", ...}`: `worker_died` (with `cause`),
            `worker_back`, `device_away` (with `cause`), `worker_given_up` (with `cause`), `ended` (a recording is at
            its end).
        """
        self._look()
        out, self._events = self._events, []
        return out

    def counters(self) -> dict[str, StreamCounters]:
        """Counts per stream in the present epoch, also of dead workers."""
        out: dict[str, StreamCounters] = {}
        for keeper in self._keepers:
            page = keeper.page()
            if page is not None:
                out.update({name: page.counters(name) for name in page.streams})
        return out

    def states(self) -> dict[str, WorkerState]:
        """Where each device's worker stands."""
        return {k.name: k.state for k in self._keepers}

    def pids(self) -> dict[str, int]:
        """Process id of each device's worker; without those that do not run."""
        return {k.name: k.child.pid for k in self._keepers if k.child is not None and k.child.alive}

    def stop(self, *, timeout_s: float = 3.0) -> None:
        """Closes every device and ends its worker, last started first. Safe twice."""
        self._epoch = None
        for keeper in reversed(self._keepers):
            if keeper.state is not WorkerState.GIVEN_UP and keeper.child is not None and keeper.child.alive:
                keeper.post(WorkerState.STOPPED, "close")
        deadline = time.monotonic() + timeout_s
        for keeper in reversed(self._keepers):
            if keeper.child is not None:
                with contextlib.suppress(FirsthandError):
                    keeper.answer(max(0.0, deadline - time.monotonic()))
                keeper.child.stop(timeout_s=max(0.1, deadline - time.monotonic()))
                keeper.child = None
            keeper.forget_page()
            keeper.state, keeper.next_ns = WorkerState.STOPPED, 0

    def _each(self, what: str, answers: Sequence[Any], deadline: float) -> list[Any]:
        """Takes one answer a device; fails with all that failed, as itself when it is one."""
        out: list[Any] = []
        failures: list[FirsthandError] = []
        for keeper, answer in zip(self._keepers, answers, strict=True):
            try:
                out.append(answer(max(0.0, deadline - time.monotonic())))
            except FirsthandError as error:
                said = self._last_words(keeper)
                failures.append(DeviceError(said) if said and isinstance(error, ProcessEnded) else error)
        if len(failures) == 1:
            raise failures[0]
        if failures:
            sentences = "; ".join(str(e) for e in failures)
            raise DeviceError(f"{len(failures)} of {len(self._keepers)} devices did not {what}: {sentences}")
        return out

    def _last_words(self, keeper: _Keeper) -> str:
        if keeper.child is not None:
            for report in keeper.child.reports():
                self._heard(keeper, report)
        return keeper.cause

    def _refuse_foreign(self, keeper: _Keeper) -> None:
        deadline = time.monotonic() + _ORPHAN_S
        ours = keeper.child.pid if keeper.child is not None and keeper.child.alive else None
        while True:
            pid = lock.holder(self._run_dir, keeper.name)
            if pid in (None, ours):
                return
            if time.monotonic() >= deadline:
                raise DeviceError(
                    f"device {keeper.name} is held by process {pid}, which is not ours; end it, then start again"
                )
            time.sleep(0.01)

    def _event(self, keeper: _Keeper, kind: str, **more: Any) -> None:
        self._events.append(
            {
                "kind": kind,
                "device": keeper.name,
                "incarnation": keeper.incarnation,
                "monotonic_ns": time.monotonic_ns(),
                **more,
            }
        )

    def _heard(self, keeper: _Keeper, report: dict[str, Any]) -> None:
        match report.get("kind"):
            case "failed":
                keeper.cause = str(report["sentence"])
            case "ended":
                self._event(keeper, "ended", sentence=report["sentence"])

    def _look(self) -> None:
        for keeper in self._keepers:
            if keeper.state in (WorkerState.STOPPED, WorkerState.GIVEN_UP) and keeper.child is None:
                if keeper.state is WorkerState.STOPPED and keeper.next_ns and time.monotonic_ns() >= keeper.next_ns:
                    keeper.next_ns = 0
                    keeper.spawn()
                continue
            if keeper.child is None:
                continue
            for report in keeper.child.reports():
                self._heard(keeper, report)
            if not keeper.child.alive:
                self._bury(keeper)
            else:
                self._advance(keeper)

    def _bury(self, keeper: _Keeper) -> None:
        """A worker is dead: says why, and starts another unless it dies too often."""
        if keeper.child is None:
            return
        for report in keeper.child.reports():
            self._heard(keeper, report)
        how = keeper.child.stop(timeout_s=0.0)
        keeper.cause = f"{keeper.cause} ({how})" if keeper.cause else f"its worker ended with {how}"
        keeper.child = None
        keeper.state = WorkerState.STOPPED
        now_ns = time.monotonic_ns()
        self._event(keeper, "worker_died", cause=keeper.cause)
        keeper.deaths_ns.append(now_ns)
        while keeper.deaths_ns[0] < now_ns - self._window_ns:
            keeper.deaths_ns.popleft()
        if len(keeper.deaths_ns) > self._restarts:
            keeper.state = WorkerState.GIVEN_UP
            self._event(keeper, "worker_given_up", cause=keeper.cause)
        else:
            keeper.next_ns = now_ns

    def _advance(self, keeper: _Keeper) -> None:
        """Moves a living worker on towards the state that is wanted, or ends one that hangs."""
        now_ns = time.monotonic_ns()
        match keeper.state:
            case WorkerState.OPENING if keeper.answered:
                try:
                    keeper.opened(0.0)
                except FirsthandError as error:
                    keeper.state, keeper.cause = WorkerState.AWAY, str(error)
                    keeper.next_ns = now_ns + int(keeper.retry_s * _NS_PER_S)
                    if keeper.retry_s == _BACKOFF_S[0]:
                        self._event(keeper, "device_away", cause=keeper.cause)
                    keeper.retry_s = min(keeper.retry_s * 2, _BACKOFF_S[1])
                    return
                keeper.forget_page()
                if self._epoch is not None:
                    keeper.post(WorkerState.ARMING, "arm", epoch=self._epoch)
                else:
                    self._event(keeper, "worker_back")
            case WorkerState.OPENING if now_ns - keeper.since_ns > _OPEN_S * _NS_PER_S:
                keeper.cause = f"opening the device took more than {_OPEN_S:g} s and was ended"
                self._kill(keeper)
            case WorkerState.AWAY if now_ns >= keeper.next_ns:
                keeper.next_ns = 0
                keeper.post(WorkerState.OPENING, "open", config=keeper.config.model_dump_json())
            case WorkerState.ARMING if keeper.answered:
                try:
                    keeper.answer(0.0)
                except FirsthandError as error:
                    keeper.cause = str(error)
                    self._kill(keeper)
                    return
                keeper.state = WorkerState.ARMED
                self._event(keeper, "worker_back")
            case WorkerState.READY | WorkerState.ARMED:
                page = keeper.page()
                silent_ns = 0 if page is None or not page.beat_ns else now_ns - page.beat_ns
                if silent_ns > _HANG_S * _NS_PER_S:
                    keeper.cause = f"it gave no sign of life for {_HANG_S:g} s and was ended"
                    self._kill(keeper)

    def _kill(self, keeper: _Keeper) -> None:
        if keeper.child is not None:
            keeper.child.kill()
