"""push: one sample into the live monitor from Python, as a rig of seven 60 Hz streams and a 1 kHz IMU delivers them.

The rival is what one writes by hand: a deque a stream, bisection among the stamps around a tick, and a tick that is
final once every stream has passed half a period after it. It must give the ticks and residuals that the core gives.
ROS 2's `message_filters.ApproximateTimeSynchronizer` is not on PyPI, nor runs without rclpy, and is not measured.

Rules of the figures: a mean is over 1,000 pushes in a row with the loop around them; ticks are asked for between two
of those, outside of the timing. A paced push comes 1 ms after the one before, when its caches have cooled down.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

from bench.dataset import CEILING_NS, EPOCH_NS, IMU_PERIOD_NS, PERIOD_NS, Take
from bench.dataset import take as rig
from bench.line import Line
from firsthand_edge import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

CALLS = 1000
"""Pushes in a mean."""
LATENCY_NS = 150_000_000
SECONDS = 600
"""Of the take that is pushed: as many means as a p99 needs."""
PACED = 2000
SILENT_S = 30
ABSENT = -(2**63)
END = 2**63 - 1

Push = tuple[int, int]
"""Stream and time."""


def pushes(recorded: Take) -> list[Push]:
    """The samples of a take in the order of their stamps; the IMU is the last stream."""
    columns = (*recorded.pictures, recorded.imu)
    return [(at, t) for t, at in sorted((t, at) for at, times in enumerate(columns) for t in times.tolist())]


def monitor(streams: int) -> _core.Monitor:
    """The core's."""
    rows = [(f"s{i}", "triggered", PERIOD_NS, 1, 0) for i in range(streams - 1)]
    rows.append(("imu", "sampled", IMU_PERIOD_NS, 1, 0))
    return _core.Monitor(
        rows, reference="s0", period_ns=PERIOD_NS, latency_ns=LATENCY_NS, ceiling_ns=CEILING_NS, keep=False
    )


class ByHand:
    """The same with a deque a stream, in Python: nearest samples within half a period, no competition for them."""

    def __init__(self, streams: int) -> None:
        self.held: list[deque[int]] = [deque() for _ in range(streams)]
        self.reach = [(PERIOD_NS - 1) // 2] * (streams - 1) + [IMU_PERIOD_NS]

    def push(self, stream: int, time_ns: int) -> None:
        """Takes a sample in."""
        self.held[stream].append(time_ns)

    def advance(self, now_ns: int) -> list[tuple[int, int | None]]:
        """Time and residual of the ticks that became final."""
        ticks = []
        reference = self.held[0]
        while reference:
            t = reference[0]
            passed = all(own and own[-1] - t >= (PERIOD_NS + 1) // 2 for own in self.held)
            if not passed and now_ns - LATENCY_NS < t + PERIOD_NS // 2:
                break
            reference.popleft()
            if reference and reference[0] == t:
                continue
            offsets = [0]
            for own, reach in zip(self.held[1:], self.reach[1:], strict=True):
                while len(own) > 1 and own[1] <= t:
                    own.popleft()
                near = [own[at] - t for at in range(max(0, bisect_left(own, t) - 1), min(len(own), 2))]
                nearest = min(near, key=abs, default=None)
                if nearest is not None and abs(nearest) <= reach:
                    offsets.append(nearest)
            ticks.append((t, max(offsets) - min(offsets) if len(offsets) > 1 else None))
        return ticks


def check(events: Sequence[Push], streams: int) -> None:
    """The rival and the core say the same of every tick, up to the end that only the core is told of."""
    own, rival = monitor(streams), ByHand(streams)
    ours, theirs = [], []
    for at, (stream, t) in enumerate(events):
        own.push(stream, t)
        rival.push(stream, t)
        if at % 100 == 0:
            ours += own.advance(t)
            theirs += rival.advance(t)
    assert len(theirs) > 1000
    for (_, t, residual, _), (theirs_t, theirs_residual) in zip(ours, theirs, strict=True):
        assert (t, residual) == (theirs_t, ABSENT if theirs_residual is None else theirs_residual)


def means(events: Sequence[Push], streams: int) -> list[float]:
    """Of each 1,000 pushes, ns a push."""
    own = monitor(streams)
    out = []
    for start in range(0, len(events) - CALLS + 1, CALLS):
        chunk = events[start : start + CALLS]
        push, clock = own.push, time.perf_counter_ns
        begin = clock()
        for stream, t in chunk:
            push(stream, t)
        out.append((clock() - begin) / CALLS)
        own.advance(chunk[-1][1])
    return out


def paced(events: Sequence[Push], streams: int) -> list[int]:
    """Of single pushes, one a millisecond, ns each."""
    own = monitor(streams)
    out = []
    for stream, t in events[:PACED]:
        time.sleep(0.001)
        begin = time.perf_counter_ns()
        own.push(stream, t)
        out.append(time.perf_counter_ns() - begin)
        own.advance(t)
    return out


def whole(events: Sequence[Push], candidate: _core.Monitor | ByHand) -> float:
    """Pushes and the ticks that they make final, asked for after every tenth: ns a push."""
    push, advance = candidate.push, candidate.advance
    begin = time.perf_counter_ns()
    for start in range(0, len(events), 10):
        for stream, t in events[start : start + 10]:
            push(stream, t)
        advance(t)
    return (time.perf_counter_ns() - begin) / len(events)


def rank(values: Sequence[float], num: int, den: int) -> float:
    """The order statistic of sync.md section 4."""
    return sorted(values)[(len(values) * num + den - 1) // den - 1]


def lines(_take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table, on a take of its own."""
    recorded = rig(SECONDS)
    events = pushes(recorded)
    streams = len(recorded.pictures) + 1
    check(events[:200_000], streams)
    calls = means(events, streams)

    # One camera falls silent for half a minute, then comes back.
    gone, back = EPOCH_NS + 20 * 1_000_000_000, EPOCH_NS + (20 + SILENT_S) * 1_000_000_000
    silent = [(stream, t) for stream, t in events if stream != 3 or not gone <= t < back]
    before = [at for at, (_, t) in enumerate(silent) if t < gone][-1] // CALLS
    after = [at for at, (_, t) in enumerate(silent) if t < back][-1] // CALLS + 1
    drops = means(silent[: (after + before) * CALLS], streams)
    worse = rank(drops[before:], 1, 2) / rank(drops[:before], 1, 2)

    single = paced(events, streams)
    some = events[:100_000]
    ours = [whole(some, monitor(streams)) for _ in range(min(rounds, 5))]
    theirs = [whole(some, ByHand(streams)) for _ in range(min(rounds, 5))]
    return [
        Line("push", "one sample: p99 of 1,000-call means", rank(calls, 99, 100) / 1000, "us", 0.5, at_most=True),
        Line("push", "one sample: median of 1,000-call means", rank(calls, 1, 2) / 1000, "us"),
        Line("push", "one sample each ms: p99", rank(single, 99, 100) / 1000, "us", 15, at_most=True),
        Line("push", "one sample each ms: median", rank(single, 1, 2) / 1000, "us"),
        Line("push", f"a stream silent for {SILENT_S} s, then and after / before", worse, "x", 1.25, at_most=True),
        Line("push", "sample and the ticks it makes final, mean", rank(ours, 1, 2) / 1000, "us"),
        Line("push", "the same by hand (deque, bisect) / core", rank(theirs, 1, 2) / rank(ours, 1, 2), "x"),
    ]
