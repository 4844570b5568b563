"""A document that sets every field there is, and the places of those fields."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

WHOLE = """\
schema = "firsthand.spec/1"
id = "whole"
title = "Everything that can be said"
version = 3
gap = "Liquids."

[population]
name = "Adults who cook"

[[population.screening]]
field = "age"
accepts = "18 or older"

[[population.screening]]
field = "handedness"
accepts = "any"

[capture]
tier = "head and wrists"

[[capture.geometry]]
stream = "head"
keep = "both hands"

[[capture.geometry]]
stream = "wrist"
keep = "thumb"

[[tasks]]
id = "pick-cup"
verb = "pick up"
noun = "cup"
success = "held"
failure = "fallen"
near_miss = "held at the second grasp"

[[tasks]]
id = "pour-water"
verb = "pour"
noun = "water"
success = "full"
failure = "spilt"
near_miss = "nearly full"

[[cells]]
id = "daylight"
title = "Daylight"
condition = "windows"
hours = 10.5
staffing_weeks = 1.5
tasks = ["pick-cup", "pour-water"]

[[cells]]
id = "low-light"
title = "Low light"
condition = "one lamp"
hours = 4
staffing_weeks = 2

[axes.scenes]
distinct = 2
open = false

[[axes.scenes.values]]
id = "kitchen-1"
title = "Narrow kitchen"
hours = 3.25

[[axes.scenes.values]]
id = "kitchen-2"
title = "Open kitchen"
hours = 3

[axes.tasks]
distinct = 2
open = true

[[axes.tasks.values]]
id = "pick-cup"
title = "Cups"
hours = 2

[axes.objects]
distinct = 5
open = true

[[axes.objects.values]]
id = "cup-1"
title = "Ceramic cup"
hours = 1

[axes.participants]
distinct = 4
open = true

[[axes.participants.values]]
id = "p-1"
title = "First"
hours = 1

[[streams]]
name = "head"
kind = "triggered"
rate_hz = 60
stamp_domains = ["ptp", "device"]
stamp_points = ["start", "middle"]

[[streams]]
name = "wrist"
kind = "triggered"
rate_hz = 30
decimate = 2
phase = 1
required = true

[[streams]]
name = "imu"
kind = "sampled"
rate_hz = 200.5

[[streams]]
name = "hand_pose"
kind = "interpolated"
rate_hz = 60
max_gap_ms = 50.5
provenance = "live"

[sync]
reference = "head"
ceiling_ms = 1.5
statistic = "p99.9"
guard_band = true
min_ticks = 60

[rules]
missing_ratio_max = 0.01
missing_run_max = 4
backwards_max = 1
duplicate_ratio_max = 0.002
jump_max = 1
wrap_max = 1
future_max = 1
rate_ratio_max = 0.03
trim_max_ms = 900
silence_max_ms = 400
frozen_run_max = 4
overrun_max = 1
near_ratio = 0.8

[reject]
recapture = true
recapture_except = ["record.torn", "picture.frozen"]
retain_failures = true

[acceptance]
test = "Played from end to end."
inspected_ratio = 0.1
failed_ratio_max = 0.02
reviewers = 2

[calibration]
reprojection_px_max = 0.5
epipolar_px_max = 0.8
rotation_deg_max = 0.1
translation_mm_max = 1
camera_imu_offset_ms_max = 1.5
age_hours_max = 12
every_session = true

[delivery]
format = "lerobot"
schema = "lerobot/v3.0"

[licence]
name = "Commercial licence 1"
owner = "the buyer"
commercial = true
perpetual = false
exclusive = true

[consent]
text = "I agree."
version = "7"
language = "en"
controller = "the collector"
purposes = ["training", "evaluation"]
every_session = true
bystanders = "consented"
withdrawal = "until_delivery"
withdraw_by = "A word."

[retention]
rejected_days = 30
uploaded_days = 2
withdrawn_days = 14
store_days = 700
consent_days = 1000
"""


def fields(model: type[BaseModel], place: str = "") -> Iterator[tuple[str, type[BaseModel], str]]:
    """Place without positions, owner and name of every field of `model` and of the models in it: `streams.rate_hz`."""
    for name, info in model.model_fields.items():
        alias = info.alias or name
        at = f"{place}.{alias}" if place else alias
        inner = next(_models(info.annotation), None)
        if inner is None:
            yield at, model, name
        else:
            yield from fields(inner, at)


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """`model` and all models within, each once for each place that it has."""
    yield model
    for info in model.model_fields.values():
        for inner in _models(info.annotation):
            yield from models(inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif typing.get_origin(annotation) in (tuple, types.UnionType, typing.Union, typing.Annotated):
        for part in typing.get_args(annotation):
            yield from _models(part)
