"""The document as a whole: everything wrong with it in one go, each with its line; hostile ones end in a sentence."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import SpecInvalid
from firsthand_edge.spec.document import Rules, Spec, SyncSpec, load_spec, parse_spec
from tests.spec.test_digest import SMALL
from tests.spec.whole import WHOLE, models

CONFIGS = Path(__file__).parents[2] / "configs"
SECTIONS = (
    *("population", "capture", "tasks", "cells", "axes", "streams", "reject", "acceptance"),
    *("calibration", "delivery", "licence", "consent", "retention"),
)
GIVEN = {"streams", "cells", "tasks", "axes", "reject", "retention"}
"""Those that the faulty document has."""


def parse(text: str) -> Spec:
    return parse_spec(text.encode(), place="spec.toml")


def mistakes(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(SpecInvalid) as caught:
        parse_spec(data, place="spec.toml")
    assert caught.value.exit_status == 4
    assert str(caught.value).startswith("spec.toml has ")
    return [str(m) for m in caught.value.mistakes]


def test_defaults_are_those_of_the_definitions() -> None:
    spec = parse(SMALL)
    assert spec.sync == SyncSpec(
        reference="head", ceiling_ms=Decimal(2), statistic="max", guard_band=False, min_ticks=30
    )
    assert spec.sync.ceiling_ns == 2_000_000
    rules = spec.rules
    assert (rules.missing_ratio_max, rules.missing_run_max) == (Decimal("0.005"), 3)
    assert (rules.backwards_max, rules.jump_max, rules.wrap_max, rules.future_max, rules.overrun_max) == (0, 0, 0, 0, 0)
    assert (rules.duplicate_ratio_max, rules.rate_ratio_max) == (Decimal("0.001"), Decimal("0.02"))
    assert (rules.trim_max_ns, rules.silence_max_ns) == (1_000_000_000, 500_000_000)
    assert (rules.frozen_run_max, rules.near_ratio) == (3, Decimal("0.9"))


def test_what_is_looked_up_by_name() -> None:
    spec = parse(WHOLE)
    task, cell, stream = spec.task("pick-cup"), spec.cell("low-light"), spec.stream("imu")
    assert task is not None
    assert cell is not None
    assert stream is not None
    assert (task.title, cell.title, stream.name) == ("pick up cup", "Low light", "imu")
    assert (spec.task("x"), spec.cell("x"), spec.stream("x")) == (None, None, None)


@pytest.mark.parametrize(
    ("recapture", "again", "not_again"),
    [("true", {"sync.ceiling"}, {"record.torn"}), ("false", {"record.torn"}, {"sync.ceiling"})],
)
def test_what_is_recorded_again(recapture: str, again: set[str], not_again: set[str]) -> None:
    reject = parse(WHOLE.replace("recapture = true", f"recapture = {recapture}")).reject
    assert {code for code in again | not_again if reject.recaptures(code)} == again


def test_every_section_is_asked_for() -> None:
    found = mistakes('schema = "firsthand.spec/1"\nid = "a"\ntitle = "b"\nversion = 1\n')
    assert found == sorted(f"line 1: {name}: is missing; add it" for name in SECTIONS)


@pytest.mark.parametrize("axis", ["scenes", "tasks", "objects", "participants"])
def test_no_axis_is_left_out_unseen(axis: str) -> None:
    (found,) = mistakes(SMALL.replace(f"[axes.{axis}]\ndistinct = 1\nopen = true\n", ""))
    assert found.endswith(f": axes.{axis}: is missing; add it")


FAULTY = """\
schema = "firsthand.spec/1"
id = "pick"
version = 0
colour = 1

[sync]
reference = "imu"
ceiling_ms = -1

[[streams]]
name = "head"
kind = "triggered"
rate_hz = "60"

[[streams]]
name = "imu"
kind = "sampled"
decimate = 2

[[streams]]
name = "imu"
kind = "event"
rate_hz = 3
max_gap_ms = 3

[[cells]]
id = "day"
title = "Day"
condition = ""
hours = 1
staffing_weeks = 1

[[cells]]
id = "day"
title = "Night"
condition = "dark"
hours = 0
staffing_weeks = 1
tasks = ["x", "x"]

[[tasks]]
id = "pick"
verb = "pick"
noun = "cup"
success = "a"
failure = "b"
near_mis = "c"

[[tasks]]
id = "pick-2"
verb = "<verb>"
noun = "cup"
success = "a"
failure = "b"
near_miss = "c"

[axes.scenes]
distinct = 2
open = false
[[axes.scenes.values]]
id = "kitchen"
hours = 300
[axes.tasks]
distinct = "many"
open = false
values = []
[axes.participants]
distinct = 1
open = true

[reject]
recapture = true
recapture_except = ["sync.cieling"]
retain_failures = true

[retention]
rejected_days = 0
uploaded_days = 1
withdrawn_days = -1
"""


def test_every_mistake_contradiction_and_placeholder_at_once_with_its_line() -> None:
    lines = FAULTY.splitlines()
    found = mistakes(FAULTY)
    numbers = [int(m.split(":")[0].removeprefix("line ")) for m in found]
    assert numbers == sorted(numbers)
    assert [(lines[n - 1], m.split(": ", 2)[1]) for n, m in zip(numbers, found, strict=True)] == [
        *((lines[0], name) for name in sorted({*SECTIONS, "title"} - GIVEN)),
        ("version = 0", "version"),
        ("colour = 1", "colour"),
        ("ceiling_ms = -1", "sync.ceiling_ms"),
        ('rate_hz = "60"', "streams[0].rate_hz"),
        ("[[streams]]", "streams[1].rate_hz"),
        ("decimate = 2", "streams[1].decimate"),
        ('name = "imu"', "streams[2].name"),
        ("rate_hz = 3", "streams[2].rate_hz"),
        ("max_gap_ms = 3", "streams[2].max_gap_ms"),
        ('condition = ""', "cells[0].condition"),
        ('id = "day"', "cells[1].id"),
        ("hours = 0", "cells[1].hours"),
        ('near_mis = "c"', "tasks[0].near_mis"),
        ('verb = "<verb>"', "tasks[1].verb"),
        ("[axes.scenes]", "axes.objects"),
        ("distinct = 2", "axes.scenes.distinct"),
        ('distinct = "many"', "axes.tasks.distinct"),
        ("open = false", "axes.tasks.open"),
        ('recapture_except = ["sync.cieling"]', "reject.recapture_except[0]"),
        ("withdrawn_days = -1", "retention.withdrawn_days"),
    ]
    told = "\n".join(found)
    assert "unknown key; did you mean `near_miss`?" in told
    assert "is not filled in yet: verb" in told
    assert "no rule has the code `sync.cieling`; did you mean `sync.ceiling`?" in told
    assert "asks for 2 different values, and the axis is closed with 1" in told


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("firsthand.spec/1", "firsthand.spec/9"), "line 1: schema: input should be 'firsthand.spec/1'"),
        (('schema = "firsthand.spec/1"\n', ""), "schema: is missing; add it"),
        (("version = 1", "version = 1.0"), "version: must be a whole number"),
        (('id = "small"', 'id = "../small"'), "pattern"),
        (('title = "Small"', 'title = "a\\u001bb"'), "title: holds the control character U+001B"),
        (('title = "Small"', "title = 2026-01-01"), "title: must be a text"),
        (("every_session = true", "every_session = 1"), "every_session: must be true or false"),
        (("inspected_ratio = 1", "inspected_ratio = 0"), "greater than 0"),
        (("inspected_ratio = 1", "inspected_ratio = 1.5"), "less than or equal to 1"),
        (("distinct = 1", "distinct = 0"), "greater than or equal to 1"),
        (('language = "en"', 'language = "English!"'), "pattern"),
        (('format = "mcap"', 'format = "floppy"'), "'rlds', 'lerobot', 'webdataset', 'hdf5', 'zarr', 'rerun', 'mcap'"),
        (('bystanders = "none"', 'bystanders = "some"'), "'none', 'consented' or 'anonymized'"),
        (('purposes = ["training of robots"]', "purposes = []"), "at least 1 item"),
        (("reprojection_px_max = 1\n", "reprojection_px_max = 0\n"), "greater than 0"),
        (("age_hours_max = 24", "age_hours_max = inf"), "must be a finite number"),
        (("hours = 10", "hours = 1e999999999"), "is too large"),
        (("hours = 10", "hours = 1e-999999999"), "is too fine"),
        (("[retention]", "[[retention]]"), "retention: must be a table"),
        (("rejected_days = 7", "rejected_days = 40000"), "less than or equal to 36500"),
    ],
)
def test_a_mistake_is_one_sentence_at_its_place(change: tuple[str, str], sentence: str) -> None:
    assert change[0] in SMALL
    found = mistakes(SMALL.replace(*change))
    assert any(sentence in m for m in found), found
    assert all(m.startswith("line ") for m in found)


def test_absent_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match=r"cannot be read \(No such file or directory\)"):
        load_spec(tmp_path / "absent.toml")
    with pytest.raises(SpecInvalid, match=r"cannot be read \(Is a directory\)"):
        load_spec(tmp_path)


def test_the_simulated_rig_s_spec() -> None:
    spec = load_spec(CONFIGS / "sim-spec.toml")
    assert spec.rules == Rules()
    assert {s.name: (s.kind.value, s.period_ns, s.decimate) for s in spec.streams} == {
        "head": ("triggered", 16666667, 1),
        "wrist_left": ("triggered", 16666667, 1),
        "wrist_right": ("triggered", 16666667, 1),
        "stereo_left": ("triggered", 16666667, 1),
        "stereo_right": ("triggered", 16666667, 1),
        "depth": ("triggered", 33333333, 2),
        "imu": ("sampled", 1000000, 1),
        "hand_pose": ("interpolated", 16666667, 1),
        "contact": ("event", None, 1),
        "action": ("event", None, 1),
    }
    assert {s.name for s in spec.streams if s.provenance == "live"} == {"hand_pose", "contact", "action"}
    assert {task.id for task in spec.tasks} == {"pick-cup", "pour-water", "open-jar"}
    assert {cell.id for cell in spec.cells} == {"daylight", "low-light", "cluttered", "failure-cases"}
    assert (spec.axes.scenes.open, spec.axes.tasks.open, spec.axes.participants.open) == (True, False, True)


def test_the_replayed_recording_s_spec() -> None:
    spec = load_spec(CONFIGS / "replay-aria-spec.toml")
    assert spec.sync.reference == "214-1"
    assert spec.sync.min_ticks == 3
    assert {s.name for s in spec.required} == {"214-1", "1201-1", "1201-2", "211-1", "1202-1", "1202-2"}
    assert {s.name for s in spec.streams if not s.required} == {"1203-1", "247-1", "285-1", "285-2"}
    assert [task.id for task in spec.tasks] == ["replay-recording"]
    assert [cell.id for cell in spec.cells] == ["recorded"]


def test_everything_is_frozen() -> None:
    assert all(model.model_config["frozen"] for model in models(Spec))
    assert all(model.model_config["extra"] == "forbid" for model in models(Spec))


@given(st.text())
def test_any_text_gives_a_sentence(text: str) -> None:
    with pytest.raises(SpecInvalid) as caught:
        parse_spec(b"= " + text.encode("utf-8", "surrogatepass"), place="any")
    assert caught.value.mistakes


HOSTILE = {
    "nested arrays": 'id = "a"\nx = ' + "[" * 100_000 + "]" * 100_000,
    "nested tables": 'id = "a"\nx = ' + "{a=" * 50_000 + "1" + "}" * 50_000,
    "a deep key": "x" + ".x" * 50_000 + " = 1",
    "a deep quoted key": '"x"' + '. "x"' * 50_000 + " = 1",
    "a long word": "x" * 1_000_000,
    "a deep header": "[x" + ".x" * 50_000 + "]",
    "a long integer": f"version = {'9' * 100_000}",
    "a long decimal": f"version = 0.{'9' * 100_000}",
    "a long text": f'title = "{"a" * 900_000}"',
    "unknown keys": "".join(f"k{i} = 1\n" for i in range(60_000)),
    "tasks": SMALL + '[[tasks]]\nid = "a"\n' * 30_000,
    "equal tasks": SMALL + 3000 * SMALL[SMALL.index("[[tasks]]") : SMALL.index("[[cells]]")],
    "many values": SMALL + "[[axes.scenes.values]]\n" * 30_000,
    "placeholders": SMALL + '[["<a>"]]\n' + "".join(f'k{i} = "<b>"\n' for i in range(40_000)),
    "a list of codes": SMALL.replace("recapture = true", f"recapture = true\nrecapture_except = {['x.y'] * 60_000}"),
    "lines of one value": SMALL.replace("recapture = true", "x = [\n" + "1,\n" * 200_000 + "]"),
    "not UTF-8": b"\xff" * 100_000,
    "zeros": bytes(100_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_end_in_a_sentence(name: str) -> None:
    data: Any = HOSTILE[name]
    data = data.encode() if isinstance(data, str) else data
    started = time.process_time()
    with pytest.raises(SpecInvalid) as caught:
        parse_spec(data, place="spec.toml")
    assert len(str(caught.value)) < 100_000
    assert time.process_time() - started < 10
