"""Everything that the core says of a take, as plain values: what tests compare."""

from __future__ import annotations

import numpy as np

from firsthand_edge import _core
from tests.sync import brute

STREAM_FIGURES = [
    "kind", "samples", "expected", "matched", "missing", "longest_missing_run", "longest_missing_first_tick",
    "first_missing_tick", "last_missing_tick", "extra", "trimmed", "duplicate", "backwards", "decimate", "phase",
    "first_ns", "last_ns", "uncertainty_ns", "offset_median_ns", "offset_p99_abs_ns", "offset_max_abs_ns",
]  # fmt: skip
RESIDUALS = [
    "ticks", "median_ns", "p99_ns", "p999_ns", "max_ns", "over_ceiling", "first_over_tick", "last_over_tick",
    "worst_tick", "worst_pair",
]  # fmt: skip
FIGURES = ["reference", "period_ns", "start_ns", "end_ns", "ticks", "absent", "trimmed_start", "trimmed_end"]


def int64(values):
    return np.array(values, dtype=np.int64)


def column(values):
    """A column of the core as ints, None where there is none."""
    return [None if v == brute.ABSENT else v for v in values.tolist()]


def told(figures):
    """Every figure and every series of `_core.Figures`, under the names of `brute.measure`."""
    return {
        **{name: getattr(figures, name) for name in FIGURES},
        "residual": {name: getattr(figures.residual, name) for name in RESIDUALS},
        "guarded": {name: getattr(figures.guarded, name) for name in RESIDUALS},
        "streams": {n: {f: getattr(row, f) for f in STREAM_FIGURES} for n, row in figures.streams.items()},
        "tick": figures.tick.tolist(),
        "reference_ns": figures.reference_ns.tolist(),
        "residual_ns": column(figures.residual_ns),
        "guarded_ns": column(figures.guarded_ns),
        "offset_ns": {name: column(figures.offset_ns(name)) for name in figures.streams},
    }


def measured(streams, reference, edges=None, **settings):
    """What the core says of the arguments of `brute.measure`, as what `brute.measure` returns."""
    arrays = ("times_ns", "trigger_index")
    figures = _core.measure(
        [_core.Stream(**{k: int64(v) if k in arrays and v is not None else v for k, v in s.items()}) for s in streams],
        reference=reference,
        edges_ns=None if edges is None else int64(edges),
        **settings,
    )
    return told(figures)


def agreed(streams, reference, edges=None, **settings):
    """The figures, after the core and the brute-force reading have agreed on all of them."""
    figures = measured(streams, reference, edges, **settings)
    assert figures == brute.measure(streams, reference, edges, **settings)
    for name, row in figures["streams"].items():
        if row["kind"] == "triggered":
            assert row["samples"] == row["matched"] + row["extra"] + row["duplicate"] + row["trimmed"], name
    return figures
