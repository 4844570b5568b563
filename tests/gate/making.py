"""Takes for the tests of the gate: times in, facts and figures out, measured by the core as in the product."""

from dataclasses import replace

import numpy as np

from firsthand_edge import _core
from firsthand_edge.gate.figures import Facts, Stamps, span_of
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.matching import TakeStream, match
from firsthand_edge.model import Kind

MS = 1_000_000
P = 16_666_667
"""A period of 60 Hz."""
START = 1_764_537_600_000_000_000


def ticks(count, *, period=P, start=START):
    """(count,) int64 times, one a period."""
    return start + period * np.arange(count, dtype=np.int64)


def stream(name, times, *, kind=Kind.TRIGGERED, phase=None, max_gap_ns=None, limits=None, **facts):
    """A stream of a take with everything that times alone tell."""
    times = np.asarray(times, dtype=np.int64)
    limits = limits or Limits()
    scan = _core.scan_stamps(times, period_ns=facts.get("period_ns"), silence_max_ns=limits.silence_max_ns)
    return TakeStream(
        Facts(
            name,
            kind,
            **{
                "samples": int(times.size),
                "stamps": Stamps.of(scan),
                "span": span_of(times, silence_max_ns=limits.silence_max_ns),
                **facts,
            },
        ),
        times,
        phase=phase,
        max_gap_ns=max_gap_ns,
    )


def figures(*streams, reference="head", period=P, limits=None, **rest):
    """The figures of a take of these streams."""
    return match(streams, reference=reference, period_ns=period, limits=limits or Limits(), **rest)


def alone(name="head", **facts):
    """Figures of one stream that nothing but its facts is known of."""
    count = facts.pop("samples", 100)
    return figures(stream(name, ticks(count), **facts), reference=name)


def with_facts(found, name, **changes):
    """The same figures with other facts of one stream."""
    return replace(found, streams=tuple(replace(f, **changes) if f.name == name else f for f in found.streams))
