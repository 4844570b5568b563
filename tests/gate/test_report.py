"""The report has every field that sync.md section 7 names, whatever was measured."""

import json

import pytest

from firsthand_edge.gate import rules
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report, report_bytes
from firsthand_edge.model import Kind
from firsthand_edge.spec.document import parse_spec
from tests.collection import COLLECTION, SCHEMA
from tests.gate.making import MS, P, figures, stream, ticks

TOP = (
    "schema reference period_ns ceiling_ns statistic guard_band span residual_ns streams verdict reasons warnings "
    "not_judged"
)
SPAN = "start_ns end_ns ticks absent trimmed_start trimmed_end"
RESIDUAL = "ticks median p99 max over_ceiling worst_tick worst_pair"
ROW = (
    "kind samples expected matched missing longest_missing_run extra trimmed duplicate backwards rate_hz "
    "uncertainty_ns offset_ns"
)


def written(found, limits=None):
    limits = limits or Limits()
    return json.loads(report_bytes(report(found, rules.apply(found, limits), limits)))


@pytest.fixture
def good():
    times = ticks(60)
    times[17] += MS
    return written(
        figures(
            stream("head", ticks(60)),
            stream("wrist", times),
            stream("button", ticks(60)[:3], kind=Kind.EVENT),
        )
    )


def test_every_field_is_there(good):
    assert set(TOP.split()) <= set(good)
    assert set(SPAN.split()) <= set(good["span"])
    assert set(RESIDUAL.split()) <= set(good["residual_ns"])
    for name in ("head", "wrist"):
        assert set(ROW.split()) <= set(good["streams"][name])
        assert {"median", "p99_abs", "max_abs"} <= set(good["streams"][name]["offset_ns"])


def test_figures(good):
    assert (good["verdict"], good["period_ns"], good["reference"]) == ("accepted", P, "head")
    residual = good["residual_ns"]
    assert (residual["max"], residual["worst_tick"], residual["worst_pair"]) == (MS, 17, ["head", "wrist"])
    assert good["streams"]["wrist"]["rate_hz"] == 60.0
    assert list(good["streams"]) == ["head", "button", "wrist"]
    assert "expected" not in good["streams"]["button"]


def test_nothing_matched_keeps_its_shape():
    found = written(figures(stream("head", ticks(60)), stream("wrist", ticks(60) + 37 * 10**9)))
    assert found["verdict"] == "rejected"
    assert found["span"]["ticks"] == found["residual_ns"]["ticks"] == 0
    assert found["residual_ns"]["max"] is None
    assert found["reasons"][0]["pair"] == ["head", "wrist"]
    assert set(RESIDUAL.split()) <= set(found["residual_ns"])


def test_reasons_say_code_sentence_measured_and_limit():
    found = written(figures(stream("head", ticks(60)), stream("wrist", ticks(60) + 3 * MS)))
    (reason,) = found["reasons"]
    assert reason["code"] == "sync.ceiling"
    assert {
        "sentence",
        "stream",
        "pair",
        "first_tick",
        "last_tick",
        "measured",
        "limit",
        "unit",
        "rule_version",
    } <= set(reason)


def test_the_same_figures_are_the_same_bytes():
    def once():
        found = figures(stream("head", ticks(60)), stream("wrist", ticks(60) + 3 * MS))
        return report_bytes(report(found, rules.apply(found, Limits()), Limits()))

    assert once() == once()


def test_limits_are_the_specs():
    document = f"""{SCHEMA}
id = "x"
title = "x"
version = 1
[sync]
ceiling_ms = 1.25
statistic = "p99.9"
guard_band = true
min_ticks = 7
[rules]
missing_ratio_max = 0.25
missing_run_max = 11
backwards_max = 1
duplicate_ratio_max = 0.125
jump_max = 2
wrap_max = 3
future_max = 4
rate_ratio_max = 0.5
trim_max_ms = 10
silence_max_ms = 600
frozen_run_max = 12
overrun_max = 5
near_ratio = 0.75
[[streams]]
name = "head"
kind = "triggered"
[[streams]]
name = "wrist"
kind = "triggered"
{COLLECTION.replace("retain_failures = true", "retain_failures = false")}"""
    limits = Limits.of_spec(parse_spec(document.encode(), place="a test"))
    default = Limits()
    changed = {name: getattr(limits, name) for name in Limits.__slots__}
    assert all(changed[name] != getattr(default, name) for name in Limits.__slots__), changed
    assert (limits.ceiling_ns, limits.trim_max_ns, limits.silence_max_ns) == (1_250_000, 10_000_000, 600_000_000)
    plain = document.split("[sync]", maxsplit=1)[0] + "[[streams]]" + document.split("[[streams]]", 1)[1]
    plain = plain.replace("retain_failures = false", "retain_failures = true")
    assert Limits.of_spec(parse_spec(plain.encode(), place="a test")) == default


def test_samples_without_a_stamp_are_told():
    found = written(figures(stream("head", ticks(60), unstamped=1), stream("wrist", ticks(60))))
    assert found["notes"] == ["head: 1 sample carries no stamp and cannot be judged; 60 do."]


def test_a_name_that_is_no_utf8_is_valid_json(good):
    text = report_bytes({"file": "w\udcff.txt", "é": 1}).decode("utf-8")
    assert json.loads(text) == {"file": "w\udcff.txt", "é": 1}
    assert "é" in text
