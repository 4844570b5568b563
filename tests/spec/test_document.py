from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firsthand_edge.errors import SpecInvalid
from firsthand_edge.spec.document import Rules, Spec, StreamSpec, SyncSpec, load_spec, ms_to_ns, parse_spec

CONFIGS = Path(__file__).parents[2] / "configs"

MINIMAL = """\
id = "pick"
title = "Pick and place"
version = 1

[[streams]]
name = "head"
kind = "triggered"
rate_hz = 60

[[streams]]
name = "wrist"
kind = "triggered"
rate_hz = 60
"""


def parse(text: str) -> Spec:
    return parse_spec(text.encode(), place="spec.toml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(SpecInvalid) as caught:
        parse(text)
    assert caught.value.exit_status == 4
    return [str(m) for m in caught.value.mistakes]


def test_defaults_are_those_of_the_definitions() -> None:
    spec = parse(MINIMAL)
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


@given(st.decimals(min_value="0.001", max_value="1000000", allow_nan=False, places=5))
def test_period_is_rounded_half_up(rate: Decimal) -> None:
    stream = StreamSpec.model_validate({"name": "s", "kind": "sampled", "rate_hz": rate})
    assert stream.period_ns is not None
    exact = Fraction(10**9) / Fraction(rate)
    assert -Fraction(1, 2) < stream.period_ns - exact <= Fraction(1, 2)


def test_period_examples() -> None:
    def period(rate: str) -> int | None:
        return StreamSpec(name="s", kind="sampled", rate_hz=Decimal(rate)).period_ns  # type: ignore[arg-type]

    assert [period(r) for r in ("60", "60.0", "30", "1000", "800", "59.94")] == [
        16666667,
        16666667,
        33333333,
        1000000,
        1250000,
        16683350,
    ]
    assert StreamSpec(name="s", kind="event").period_ns is None  # type: ignore[arg-type]


def test_milliseconds_are_exact() -> None:
    assert ms_to_ns(Decimal("0.000001")) == 1
    with pytest.raises(ValueError, match="finer than one nanosecond"):
        ms_to_ns(Decimal("0.0000001"))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "# a comment\n\n" + t.replace(" = ", "   =   "),
        lambda t: t.replace("rate_hz = 60\n", "rate_hz = 60.000\n"),
        lambda t: t.replace('id = "pick"\ntitle = "Pick and place"', "title = 'Pick and place'\nid = 'pick'"),
        lambda t: t + "\n[sync]\nceiling_ms = 2.00\nmin_ticks = 30\n[rules]\nmissing_ratio_max = 0.0050\n",
        lambda t: t.replace("head", "X").replace("wrist", "head").replace("X", "wrist"),
        lambda t: t.replace("\n", "\r\n"),
    ],
)
def test_digest_survives_reformatting(change: Any) -> None:
    assert parse(change(MINIMAL)).digest == parse(MINIMAL).digest


def _changed_values() -> list[tuple[str, dict[str, Any]]]:
    base = parse(MINIMAL).model_dump()
    out: list[tuple[str, dict[str, Any]]] = []
    for section, model in (("sync", SyncSpec), ("rules", Rules)):
        for name in model.model_fields:
            value = base[section][name]
            other: Any
            if isinstance(value, bool):
                other = not value
            elif isinstance(value, int):
                other = value + 1
            elif isinstance(value, Decimal):
                other = value / 2
            else:
                other = "p99" if name == "statistic" else "wrist"
            out.append((f"{section}.{name}", {**base, section: {**base[section], name: other}}))
    streams = {"name": "w2", "kind": "sampled", "rate_hz": Decimal(50), "decimate": 2, "phase": 0}
    for name, value in {**streams, "max_gap_ms": Decimal(9), "required": False}.items():
        out.append((f"streams.{name}", {**base, "streams": [base["streams"][0], {**base["streams"][1], name: value}]}))
    out += [(name, {**base, name: value}) for name, value in (("id", "x"), ("title", "y"), ("version", 2))]
    return out


@pytest.mark.parametrize(("name", "changed"), _changed_values(), ids=lambda v: v if isinstance(v, str) else "")
def test_every_changed_criterion_changes_the_digest(name: str, changed: dict[str, Any]) -> None:
    assert Spec.model_validate(changed).digest != parse(MINIMAL).digest


def test_every_mistake_and_contradiction_at_once_with_its_line() -> None:
    found = mistakes(
        'id = "pick"\n'  # 1
        "version = 0\n"
        "colour = 1\n"
        "[sync]\n"
        'reference = "imu"\n'  # 5
        "ceiling_ms = -1\n"
        "[[streams]]\n"
        'name = "head"\n'
        'kind = "triggered"\n'
        'rate_hz = "60"\n'  # 10
        "[[streams]]\n"
        'name = "imu"\n'
        'kind = "sampled"\n'
        "decimate = 2\n"
        "[[streams]]\n"  # 15
        'name = "imu"\n'
        'kind = "event"\n'
        "rate_hz = 3\n"
        "max_gap_ms = 3\n"
    )
    assert [m.split(": ")[:2] for m in found] == [
        ["line 1", "title"],
        ["line 2", "version"],
        ["line 3", "colour"],
        ["line 6", "sync.ceiling_ms"],
        ["line 10", "streams[0].rate_hz"],
        ["line 11", "streams[1].rate_hz"],
        ["line 14", "streams[1].decimate"],
        ["line 16", "streams[2].name"],
        ["line 18", "streams[2].rate_hz"],
        ["line 19", "streams[2].max_gap_ms"],
    ]


SECOND = '[[streams]]\nname = "x"\nkind = "{kind}"\n{more}\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            MINIMAL + '[sync]\nreference = "hed"\n',
            "no stream is called `hed`; name a required triggered one: head, wrist",
        ),
        (
            MINIMAL.replace('"head"\nkind = "triggered"', '"head"\nkind = "sampled"'),
            "only a triggered stream numbers ticks",
        ),
        (
            MINIMAL.replace("rate_hz = 60\n", "rate_hz = 60\nrequired = false\n", 1),
            "not required; the reference must be",
        ),
        (MINIMAL.replace("rate_hz = 60\n", "rate_hz = 60\ndecimate = 2\n", 1), "the reference has one for each"),
        (MINIMAL.replace("wrist", "head"), "`head` is there 2 times"),
        (MINIMAL + "[sync]\nceiling_ms = 0\n", "greater than 0"),
        (MINIMAL + "[sync]\nceiling_ms = 16.666667\n", "no residual could ever exceed it"),
        (MINIMAL + "[sync]\nceiling_ms = 0.00000001\n", "finer than one nanosecond"),
        (MINIMAL + '[sync]\nstatistic = "mean"\n', "'max', 'p99' or 'p99.9'"),
        (MINIMAL + "[rules]\nmissing_ratio_max = 1.5\n", "less than or equal to 1"),
        (MINIMAL + "[rules]\nmissing_run_max = 2.5\n", "integer"),
        (MINIMAL + "[rules]\nmissing_run_max = true\n", "integer"),
        (MINIMAL + "[rules]\nsilence_max_ms = 16\n", "already breaks rules.silence_max_ms"),
        (MINIMAL + "[rules]\nmising_ratio_max = 0\n", "unknown key"),
        (MINIMAL + SECOND.format(kind="sampled", more="rate_hz = 9\ndecimate = 2"), "is for triggered streams"),
        (MINIMAL + SECOND.format(kind="sampled", more=""), "sampled and required, so its rate must be stated"),
        (MINIMAL + SECOND.format(kind="interpolated", more=""), "add rate_hz, or max_gap_ms"),
        (
            MINIMAL + SECOND.format(kind="interpolated", more="rate_hz = 60\nmax_gap_ms = 9"),
            "every tick would be missing",
        ),
        (
            MINIMAL + SECOND.format(kind="triggered", more="decimate = 2\nphase = 2"),
            "must be below decimate, which is 2",
        ),
        (MINIMAL + SECOND.format(kind="triggered", more="rate_hz = 30"), "does not follow `head` at 60 Hz"),
        (MINIMAL + SECOND.format(kind="triggered", more="max_gap_ms = 30"), "is for interpolated streams"),
        (MINIMAL + SECOND.format(kind="event", more="rate_hz = 30"), "holds events, which have no rate"),
        (MINIMAL + SECOND.format(kind="dance", more=""), "'triggered', 'sampled', 'interpolated' or 'event'"),
        (MINIMAL + SECOND.format(kind="event", more="").replace('"x"', '"a/b"'), "pattern"),
        (MINIMAL[: MINIMAL.rindex("[[streams]]")], "a residual needs a second triggered or sampled stream"),
        ('id = "a"\ntitle = "b"\nversion = 1\nstreams = []\n', "at least 1 item"),
        ('id = "a"\nid = "b"\n', "is not TOML"),
    ],
)
def test_contradictions(text: str, sentence: str) -> None:
    found = mistakes(text)
    assert any(sentence in m for m in found), found


def test_events_and_loose_streams_need_no_rate() -> None:
    parse(MINIMAL + SECOND.format(kind="event", more=""))
    parse(MINIMAL + SECOND.format(kind="sampled", more="required = false"))
    parse(MINIMAL + SECOND.format(kind="interpolated", more="max_gap_ms = 30"))
    parse(MINIMAL + SECOND.format(kind="triggered", more="rate_hz = 30\ndecimate = 2\nphase = 1"))


def test_floats_cannot_be_exact_and_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be a number, exactly as written"):
        SyncSpec(ceiling_ms=2.5)  # type: ignore[arg-type]


def test_absent_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid, match=r"cannot be read \(No such file or directory\)"):
        load_spec(tmp_path / "absent.toml")


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


def test_the_replayed_recording_s_spec() -> None:
    spec = load_spec(CONFIGS / "replay-aria-spec.toml")
    assert spec.sync.reference == "214-1"
    assert spec.sync.min_ticks == 3
    assert {s.name for s in spec.required} == {"214-1", "1201-1", "1201-2", "211-1", "1202-1", "1202-2"}
    assert {s.name for s in spec.streams if not s.required} == {"1203-1", "247-1", "285-1", "285-2"}


@given(st.text())
def test_any_text_gives_a_sentence(text: str) -> None:
    with pytest.raises(SpecInvalid) as caught:
        parse_spec(b"= " + text.encode("utf-8", "surrogatepass"), place="any")
    assert caught.value.mistakes
