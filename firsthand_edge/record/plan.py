"""What the recorder is told before a take: which streams are judged, against what, and how late a sample may be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firsthand_edge.spec.document import Spec

__all__ = ["recorder_plan"]


def recorder_plan(spec: Spec, *, period_ns: int | None, latency_ns: int, lossless: bool = False) -> str:
    """The plan of `_core.Intake`, as JSON.

    Args:
        spec: The contract in force.
        period_ns: Nominal period of the ticks (T); None where neither the rig nor the spec states one. There is no live
            monitor then, and the batch takes the median step.
        latency_ns: How late a sample may arrive and still count live.
        lossless: Samples wait for the disk instead of being counted as lost: a recording can wait, a camera cannot.
    """
    reference = next(s for s in spec.streams if s.name == spec.sync.reference)
    return json.dumps(
        {
            "reference": spec.sync.reference,
            "period_ns": period_ns or reference.period_ns,
            "ceiling_ns": spec.sync.ceiling_ns,
            "latency_ns": latency_ns,
            "lossless": lossless,
            "streams": [
                {
                    "name": stream.name,
                    "kind": stream.kind.value,
                    "period_ns": stream.period_ns,
                    "decimate": stream.decimate,
                    "phase": stream.phase,
                    "required": stream.required,
                }
                for stream in spec.streams
            ],
        },
        sort_keys=True,
    )
