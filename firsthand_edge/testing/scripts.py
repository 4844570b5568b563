"""Ready-made fault scripts: one for each kind of fault, at times and sizes that a short take shows."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from firsthand_edge.model import StampPoint
from firsthand_edge.sensors.faults import (
    ComeBack,
    Die,
    Drift,
    Drop,
    Exposure,
    Fault,
    FreeRun,
    Jitter,
    Jump,
    MissFirst,
    Offset,
    Repeat,
    Slip,
    Stall,
    StartLate,
    Wrap,
    WrongStampPoint,
    WrongUnit,
)

__all__ = ["SCRIPTS"]

_EARLY: Final = Decimal("0.5")
_WHILE: Final = Decimal("0.5")

SCRIPTS: Final[dict[str, tuple[Fault, ...]]] = {
    "drop": (Drop(kind="drop", at_s=_EARLY, for_s=_WHILE, every=2),),
    "stall_repeat": (Stall(kind="stall", mode="repeat", at_s=_EARLY, for_s=_WHILE),),
    "stall_silence": (Stall(kind="stall", mode="silence", at_s=_EARLY, for_s=_WHILE),),
    "repeat": (Repeat(kind="repeat", at_s=_EARLY, for_s=_WHILE),),
    "jitter": (Jitter(kind="jitter", amount_us=4000, at_s=_EARLY, for_s=_WHILE),),
    "drift": (Drift(kind="drift", ppm=Decimal(500), at_s=_EARLY),),
    "wrap": (Wrap(kind="wrap", bits=31, at_s=_EARLY),),
    "jump_tai": (Jump(kind="jump", seconds=Decimal(37), at_s=_EARLY),),
    "jump_back": (Jump(kind="jump", seconds=Decimal("-0.6"), at_s=_EARLY),),
    "jump_small": (Jump(kind="jump", seconds=Decimal("0.012"), at_s=_EARLY),),
    "offset": (Offset(kind="offset", amount_us=5000),),
    "delay_step": (Offset(kind="offset", amount_us=5000, at_s=_EARLY),),
    "free_run": (FreeRun(kind="free_run", ppm=Decimal(2000)),),
    "slip": (Slip(kind="slip", ticks=1, at_s=_EARLY),),
    "unit": (WrongUnit(kind="unit", counts="ms"),),
    "stamp_point": (WrongStampPoint(kind="stamp_point", stamps=StampPoint.END),),
    "exposure": (Exposure(kind="exposure", to_us=3000, at_s=_EARLY),),
    "start_late": (StartLate(kind="start_late", at_s=_EARLY),),
    "miss_first": (MissFirst(kind="miss_first", pulses=1),),
    "miss_first_equal_counts": (MissFirst(kind="miss_first", pulses=1, make_up=True),),
    "die": (Die(kind="die", how="segfault", at_s=_EARLY),),
    "come_back": (ComeBack(kind="come_back", at_s=_EARLY, for_s=_WHILE),),
}
"""Name to script; give one to the `fault` of a `SimDevice`."""
