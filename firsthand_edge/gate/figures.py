"""What was measured, as frozen values: the only thing that rules see.

`Facts` are one stream's figures against itself and against its device; `Figures` add the match of all required streams,
as the core measured it. Indices are positions in arrival order within the take.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from firsthand_edge import _core
from firsthand_edge.model import ABSENT, Domain, Kind, StampPoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firsthand_edge.clock.edges import EdgeCheck

__all__ = [
    "TRIGGER",
    "Death",
    "DomainChange",
    "Edges",
    "Facts",
    "Figures",
    "Frozen",
    "Future",
    "Grade",
    "Int64",
    "Loss",
    "Silence",
    "Span",
    "Stamps",
    "Step",
    "edges_of",
    "every",
    "frozen_run",
    "span_of",
]

Int64: TypeAlias = npt.NDArray[np.int64]

TRIGGER = "trigger"
"""Name of the reference when the recorded trigger edges are it (sync.md section 3)."""


class Grade(StrEnum):
    """How a stream's times came to be, and so what they are worth."""

    NATIVE = "native"
    """Stamped in the rig's timebase, or in the one clock of a foreign recording."""
    MAPPED = "mapped"
    """A device counter mapped to the rig's timebase with a calibrated minimum delay."""
    ARRIVAL = "arrival"
    """A device counter mapped by arrivals alone: the minimum delay is unknown, so the times cannot be verified."""
    DECLARED = "declared"
    """Somebody's list or recording, taken at its word."""
    FLOAT64 = "float64"
    """As `declared`, and held as a float of seconds: the last digits are not the device's."""
    FLOAT32 = "float32"
    """As `float64`, in half the digits: within a quarter of an hour it resolves no better than 61 us."""
    RECEIVED = "received"
    """As `declared`, and the time at which somebody's recorder took the sample in, not when it was taken."""
    SENT = "sent"
    """As `declared`, and the time at which the sample was sent, not when it was taken."""
    SYNTHETIC = "synthetic"
    """Computed from the number of a row and a nominal rate: no clock was read, and nothing can be verified."""

    @property
    def at_its_word(self) -> bool:
        """Nothing in a recording of others could show that its times are wrong or right."""
        return self not in (Grade.NATIVE, Grade.MAPPED, Grade.ARRIVAL, Grade.SYNTHETIC)


@dataclass(frozen=True, slots=True)
class Step:
    """A step between two neighbours in arrival order that is not as it should be."""

    index: int
    step_ns: int
    expected_ns: int | None
    kind: str
    """`jump`, `wrap` or `tai_utc`."""
    detail: str


@dataclass(frozen=True, slots=True)
class Stamps:
    """A stream against itself, on unwrapped device stamps before mapping.

    `_core.StampScan`, several incarnations joined. Across two incarnations of a worker nothing is compared: each has
    its own counter.
    """

    samples: int = 0
    distinct: int = 0
    backwards: int = 0
    first_backwards: int | None = None
    largest_backwards_ns: int = 0
    late_by: int = 0
    duplicate: int = 0
    median_step_ns: int | None = None
    steps_gcd_ns: int = 0
    steps: tuple[Step, ...] = ()
    jump_count: int = 0
    wrap_count: int = 0
    tai_utc_count: int = 0
    sequence_gaps: int = 0

    @classmethod
    def of(cls, scan: _core.StampScan, *, start: int = 0) -> Self:
        """The figures of one scan whose first sample has position `start` in the take."""
        return cls(
            samples=scan.samples,
            distinct=scan.distinct,
            backwards=scan.backwards,
            first_backwards=None if scan.first_backwards is None else scan.first_backwards + start,
            largest_backwards_ns=scan.largest_backwards_ns,
            late_by=scan.late_by,
            duplicate=scan.duplicate,
            median_step_ns=scan.median_step_ns,
            steps_gcd_ns=scan.steps_gcd_ns,
            steps=tuple(Step(j.index + start, j.step_ns, j.expected_ns, j.kind, j.detail) for j in scan.jumps),
            jump_count=scan.jump_count,
            wrap_count=scan.wrap_count,
            tai_utc_count=scan.tai_utc_count,
            sequence_gaps=scan.sequence_gaps,
        )

    @classmethod
    def joined(cls, parts: Sequence[Stamps]) -> Stamps:
        """Incarnations of one stream, in order. The median step is the longest part's."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls()
        longest = max(parts, key=lambda part: part.samples)
        return cls(
            samples=sum(part.samples for part in parts),
            distinct=sum(part.distinct for part in parts),
            backwards=sum(part.backwards for part in parts),
            first_backwards=next((p.first_backwards for p in parts if p.first_backwards is not None), None),
            largest_backwards_ns=max(part.largest_backwards_ns for part in parts),
            late_by=max(part.late_by for part in parts),
            duplicate=sum(part.duplicate for part in parts),
            median_step_ns=longest.median_step_ns,
            steps_gcd_ns=int(np.gcd.reduce([part.steps_gcd_ns for part in parts])),
            steps=tuple(step for part in parts for step in part.steps),
            jump_count=sum(part.jump_count for part in parts),
            wrap_count=sum(part.wrap_count for part in parts),
            tai_utc_count=sum(part.tai_utc_count for part in parts),
            sequence_gaps=sum(part.sequence_gaps for part in parts),
        )

    def first(self, kind: str) -> Step | None:
        """The earliest step of that kind, None when there is none."""
        return next((step for step in self.steps if step.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Silence:
    """The longest stretch between two neighbouring samples, by time."""

    length_ns: int
    start_ns: int


@dataclass(frozen=True, slots=True)
class Span:
    """Where a stream runs, by its sorted times, repeats removed."""

    first_ns: int
    last_ns: int
    steps: int
    """Steps between distinct times: the mean period is `(last - first) / steps`."""
    periods: int
    """Periods that went by from first to last: every step divided by the median step, rounded halves up, at least 1.
    Unlike `steps` it does not shrink when samples are missing."""
    silence: Silence | None
    long_silences: tuple[Silence, ...] = ()
    """Every stretch longer than the limit on silence, the earliest 16."""


@dataclass(frozen=True, slots=True)
class DomainChange:
    """The first sample that another clock stamped."""

    index: int
    before: Domain
    after: Domain


@dataclass(frozen=True, slots=True)
class Future:
    """Samples mapped later than their own arrival by more than their uncertainty."""

    count: int
    first: int | None = None
    largest_ns: int = 0


@dataclass(frozen=True, slots=True)
class Frozen:
    """The longest run of equal payloads while stamps advance."""

    run: int
    first: int | None = None
    last: int | None = None
    start_ns: int | None = None
    """Times of the first and the last of the run, in the rig's timebase."""
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """Samples that were made and are not here, by the place where they were lost (the balance sheet's names)."""

    socket: int = 0
    queue: int = 0
    disk: int = 0

    @property
    def total(self) -> int:
        """All that back-pressure cost."""
        return self.socket + self.queue + self.disk


@dataclass(frozen=True, slots=True)
class Death:
    """A worker process that ended within the take."""

    device: str
    how: str
    """What the supervisor said: `its worker ended with signal 11 (SIGSEGV)`; empty when nobody knows."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of one stream. What could not be measured is None and its rule is listed as not judged."""

    name: str
    kind: Kind
    required: bool = True
    samples: int = 0
    """Samples with a stamp, up to a change of domain."""
    unstamped: int = 0
    media: str | None = None
    grade: Grade = Grade.DECLARED
    stamp_point: StampPoint = StampPoint.MIDDLE
    period_ns: int | None = None
    """The stated nominal period."""
    decimate: int = 1
    stamps: Stamps = field(default_factory=Stamps)
    has_sequence: bool = False
    has_arrival: bool = False
    reorder_bound: int = 0
    span: Span | None = None
    domain: Domain | None = None
    """None where nothing says whose clock stamped (a plain list)."""
    domain_change: DomainChange | None = None
    future: Future | None = None
    frozen: Frozen | None = None
    loss: Loss | None = None
    deaths: tuple[Death, ...] = ()
    device: str | None = None
    incarnations: int = 1
    uncertainty_ns: int = 0
    edge_check: EdgeCheck | None = None
    """What the trigger edges say of the device's times; None where they were not asked."""
    wraps: int = 0
    """How often the device's counter wrapped; unwrapped, so a note and no fault."""
    splits: int = 0
    """How often a step of the device clock split its map."""

    @property
    def judged(self) -> bool:
        """Required, and of a kind that is matched."""
        return self.required and self.kind is not Kind.EVENT


@dataclass(frozen=True, slots=True)
class Edges:
    """The recorded trigger pulses: count, distinct steps that are wrong, and the mean."""

    pulses: int
    period_ns: int | None
    missed: int
    """Pulses that the steps say should have been there."""
    first_missed: int | None
    doubled: int
    """Pulses within half a period of the one before."""
    first_doubled: int | None
    span_ns: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that was measured of one take or recording."""

    reference: str
    streams: tuple[Facts, ...]
    """The reference first, then by name."""
    sync: _core.Figures | None = None
    """None when nothing was matched: no reference, or `withheld`."""
    withheld: str | None = None
    """The code of the finding across which nothing is matched."""
    edges: Edges | None = None
    torn: str | None = None
    """What recovery found, in words; None for a take that was closed."""
    recorded: bool = False
    """The figures come from an evidence file, so there is an episode that can be torn."""
    outcome: str | None = None
    """How the attempt at the task ended, as whoever recorded it said last (`firsthand_edge.spec.capture.Outcome`);
    None where the evidence does not tell."""
    notes: tuple[str, ...] = ()
    columns: Mapping[str, tuple[Int64, Int64 | None]] = field(default_factory=dict, compare=False, repr=False)
    """By stream: (n,) times of the samples in arrival order and, where the device tells them, (n,) exposures, ns."""

    def since_ns(self, stream: str, sample: int) -> int | None:
        """When a sample was taken: since the first tick, or since the earliest exposure where nothing was matched.

        None where its time is not known.
        """
        times_ns, _ = self.columns.get(stream, (None, None))
        exposing = [facts for facts in self.judged if facts.kind is Kind.TRIGGERED]
        firsts = [facts.span.first_ns for facts in exposing if facts.span is not None]
        if times_ns is None or not 0 <= sample < times_ns.size or not firsts:
            return None
        matched = self.sync is not None and self.sync.reference_ns.size > 0
        start_ns = int(self.sync.reference_ns[0]) if self.sync is not None and matched else min(firsts)
        return int(times_ns[sample]) - start_ns

    def stream(self, name: str) -> Facts:
        """The facts of `name`. Raises KeyError when there is no such stream."""
        for facts in self.streams:
            if facts.name == name:
                return facts
        raise KeyError(name)

    @property
    def judged(self) -> tuple[Facts, ...]:
        """The streams that are matched: required, no events."""
        return tuple(facts for facts in self.streams if facts.judged)

    @property
    def required(self) -> tuple[Facts, ...]:
        """The streams that rules look at."""
        return tuple(facts for facts in self.streams if facts.required)


def span_of(times_ns: Int64, *, silence_max_ns: int) -> Span | None:
    """Where a stream runs.

    Args:
        times_ns: (n,) int64, times of one timebase in any order.
        silence_max_ns: Stretches longer than this are kept.
    """
    if times_ns.size == 0:
        return None
    ordered = _distinct(times_ns)
    first, last = int(ordered[0]), int(ordered[-1])
    steps = ordered[1:] - ordered[:-1]
    if steps.size == 0:
        return Span(first, last, 0, 0, None)
    median = _core.quantile(steps, 1, 2) or 1  # distinct times are some way apart
    longest = int(steps.argmax())
    periods = int(steps.size)
    if 2 * int(steps[longest]) >= 3 * median:  # a shorter step is one period: nothing to divide
        long = steps[steps >= median + (median + 1) // 2]
        whole, rest = np.divmod(long, median)
        periods += int((whole - 1 + (rest >= median - rest)).sum())
    over = np.flatnonzero(steps > silence_max_ns)[:16]
    return Span(
        first,
        last,
        int(steps.size),
        periods,
        Silence(int(steps[longest]), int(ordered[longest])),
        tuple(Silence(int(steps[i]), int(ordered[i])) for i in over),
    )


def every(mask: npt.NDArray[np.bool_]) -> bool:
    """Whether every entry of `mask` is true; what `mask.all()` says, at a fraction of its cost for short columns."""
    return int(np.count_nonzero(mask)) == mask.size


def _distinct(times_ns: Int64) -> Int64:
    """`times_ns` sorted, repeats removed. Mostly they are that already: then nothing is sorted and nothing copied."""
    if every(times_ns[1:] > times_ns[:-1]):
        return times_ns
    ordered = np.sort(times_ns)
    first = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def frozen_run(digest: Int64, stamps_ns: Int64, times_ns: Int64) -> Frozen:
    """The longest run of neighbours with equal payload whose stamps advance; the earliest on ties.

    A repeated stamp is a duplicate of its sample, not a frozen picture, so it does not lengthen a run.

    Args:
        digest: (n,) int64 of the payloads in arrival order.
        stamps_ns: (n,) int64 of their stamps, on the device's clock.
        times_ns: (n,) int64 of their times, in the rig's timebase.
    """
    if digest.size == 0:
        return Frozen(0)
    advances = np.ones(digest.size, dtype=np.bool_)
    advances[1:] = stamps_ns[1:] > np.maximum.accumulate(stamps_ns)[:-1]
    kept = np.flatnonzero(advances)
    shown = digest[kept]
    bounds = np.concatenate(([0], np.flatnonzero(shown[1:] != shown[:-1]) + 1, [kept.size]))
    starts, lengths = bounds[:-1], bounds[1:] - bounds[:-1]
    longest = int(lengths.argmax())
    first = int(kept[starts[longest]])
    last = int(kept[starts[longest] + lengths[longest] - 1])
    return Frozen(int(lengths[longest]), first, last, int(times_ns[first]), int(times_ns[last]))


def edges_of(times_ns: Int64, period_ns: int | None) -> Edges:
    """Figures of the recorded pulses. Without a nominal period nothing is missed or doubled.

    Args:
        times_ns: (n,) int64, pulses in order of their count.
        period_ns: Nominal period of the trigger.
    """
    ordered = np.sort(times_ns[times_ns != ABSENT])
    span = int(ordered[-1] - ordered[0]) if ordered.size else 0
    if period_ns is None or ordered.size < 2:
        return Edges(int(ordered.size), period_ns, 0, None, 0, None, span)
    steps = np.diff(ordered)
    skipped = np.maximum(1, (2 * steps + period_ns) // (2 * period_ns)) - 1
    doubled = np.flatnonzero(2 * steps < period_ns)
    missed = np.flatnonzero(skipped > 0)
    return Edges(
        int(ordered.size),
        period_ns,
        int(skipped.sum()),
        int(missed[0]) + 1 if missed.size else None,
        int(doubled.size),
        int(doubled[0]) + 1 if doubled.size else None,
        span,
    )
