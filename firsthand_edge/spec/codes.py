"""The codes that can reject a take, in plain words: a spec may name them, and its briefing explains them.

The gate's rule set is held to this table by a test, so that a spec cannot name a rule that there is not.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REJECTING_CODES"]

REJECTING_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "picture.frozen": "a camera repeats one picture while its clock goes on",
        "record.overrun": "the rig did not keep up and samples were lost",
        "record.torn": "the recording was cut off by a crash or a power cut",
        "stamp.backwards": "a sensor's clock runs backwards",
        "stamp.domain": "a sensor's times come from another clock than the take began with",
        "stamp.duplicate": "too many samples of a sensor carry the same time",
        "stamp.future": "a sample claims to be from later than it arrived",
        "stamp.jump": "a sensor's clock jumps",
        "stamp.tai_utc": "two sensors, or one before and after a step, differ by whole seconds as TAI and UTC do",
        "stamp.unit": "a sensor's times are in another unit than it states",
        "stamp.unverified": "a sensor's times cannot be verified",
        "stamp.wrap": "a sensor's counter overflowed and was not carried on",
        "stream.early": "a sensor stopped too long before the end of the take",
        "stream.late": "a sensor began too long after the start of the take",
        "stream.lost": "a sensor fell silent, or its process died",
        "stream.rate": "a sensor ran at another rate than agreed",
        "sync.ceiling": "sensors disagree in time by more than the ceiling",
        "sync.missing": "too many pictures or samples are missing",
        "sync.no_ticks": "too little was recorded to judge it",
        "take.outcome_not_retained": "the attempt failed or nearly succeeded, and this collection keeps successes only",
        "trigger.doubled": "the cameras' trigger fired twice",
        "trigger.missed": "the cameras' trigger missed pulses",
        "trigger.rate": "the cameras' trigger ran at another rate than agreed",
    }
)
