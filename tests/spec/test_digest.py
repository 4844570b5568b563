"""What the digest is over: every field and nothing else."""

from __future__ import annotations

import json
import random
import tomllib
from copy import deepcopy
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.model import Kind, StampPoint
from firsthand_edge.spec.document import Spec, parse_spec
from tests.collection import COLLECTION, SCHEMA
from tests.spec.whole import WHOLE, fields

CONFIGS = Path(__file__).parents[2] / "configs"
STREAMS = """
[[streams]]
name = "head"
kind = "triggered"
rate_hz = 60
[[streams]]
name = "wrist"
kind = "triggered"
rate_hz = 60
"""
SMALL = SCHEMA + 'id = "small"\ntitle = "Small"\nversion = 1\n' + STREAMS + COLLECTION

CHOICES: dict[str, tuple[Any, ...]] = {
    "streams.kind": tuple(Kind),
    "streams.stamp_domains": ("ptp", "device", "monotonic", "utc"),
    "streams.stamp_points": tuple(StampPoint),
    "streams.provenance": ("live", "derived"),
    "sync.statistic": ("max", "p99", "p99.9"),
    "delivery.format": ("rlds", "lerobot", "webdataset", "hdf5", "zarr", "rerun", "mcap", "wav", "jsonl"),
    "consent.bystanders": ("none", "consented", "anonymized"),
    "consent.withdrawal": ("until_delivery", "any_time"),
    "consent.language": ("en", "pt-BR"),
}
ONE_VALUE = {"schema"}
"""Fields that can say one thing only."""


def parse(text: str) -> Spec:
    return parse_spec(text.encode(), place="spec.toml")


def whole() -> dict[str, Any]:
    return parse(WHOLE).model_dump(by_alias=True)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Places of everything in a document that is not a table or a list of tables."""
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*place, key))]
    if isinstance(value, tuple | list):
        return [leaf for index, inner in enumerate(value) for leaf in leaves(inner, (*place, index))]
    return [place]


def named(place: tuple[Any, ...]) -> str:
    return ".".join(part for part in place if isinstance(part, str))


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for part in place:
        document = document[part]
    return document


def thawed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: thawed(inner) for key, inner in value.items()}
    return [thawed(inner) for inner in value] if isinstance(value, tuple | list) else value


def with_(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = thawed(document)
    at(changed, place[:-1])[place[-1]] = value
    return changed


def another(place: tuple[Any, ...], value: Any) -> Any:
    """A value of the same field that is not `value`."""
    name = named(place)
    if name in CHOICES:
        return next(other for other in CHOICES[name] if other != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, Decimal):
        return value / 2
    assert isinstance(value, str)
    assert not isinstance(value, Enum)
    return value + "x"


SET = [place for place in leaves(whole()) if named(place) not in ONE_VALUE and at(whole(), place) is not None]


@pytest.mark.parametrize("place", SET, ids=str)
def test_every_field_changes_the_digest(place: tuple[Any, ...]) -> None:
    document = whole()
    value = at(document, place)
    changed = Spec.model_validate(with_(document, place, another(place, value)))
    assert changed.digest != parse(WHOLE).digest


def test_the_whole_document_sets_every_field_of_every_model() -> None:
    assert {named(place) for place in SET} | ONE_VALUE == {name for name, _, _ in fields(Spec)}


OPTIONAL = [
    (name, place)
    for name, model, field in fields(Spec)
    if not model.model_fields[field].is_required()
    for place in [next(p for p in SET if named(p) == name)]
]


@pytest.mark.parametrize(("name", "place"), OPTIONAL, ids=lambda value: value if isinstance(value, str) else "")
def test_a_field_left_out_is_its_default_and_no_other(name: str, place: tuple[Any, ...]) -> None:
    document = thawed(whole())
    while not isinstance(place[-1], str):
        place = place[:-1]
    del at(document, place[:-1])[place[-1]]
    without = Spec.model_validate(document)
    same = at(without.model_dump(by_alias=True), place) == at(whole(), place)
    assert (without.digest == parse(WHOLE).digest) is same


LISTS: list[tuple[Any, ...]] = [
    *(("tasks",), ("cells",), ("streams",), ("population", "screening"), ("capture", "geometry")),
    *(("axes", name, "values") for name in ("scenes", "tasks", "objects", "participants")),
    *(("consent", "purposes"), ("reject", "recapture_except"), ("cells", 0, "tasks")),
    *(("streams", 0, "stamp_domains"), ("streams", 0, "stamp_points")),
]


@pytest.mark.parametrize("place", LISTS, ids=str)
def test_a_row_less_changes_the_digest_and_another_order_does_not(place: tuple[Any, ...]) -> None:
    document = thawed(whole())
    rows = at(document, place)
    turned = Spec.model_validate(with_(document, place, rows[::-1]))
    assert turned.digest == parse(WHOLE).digest
    if len(rows) > 1 or place[0] == "axes":
        assert Spec.model_validate(with_(document, place, rows[1:])).digest != parse(WHOLE).digest


def test_all_lists_are_looked_at() -> None:
    def found(value: Any, place: tuple[Any, ...] = ()) -> set[str]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
        own = {named(place)} if isinstance(value, tuple) else set()
        return own.union(*(found(part, (*place, key)) for key, part in inner))

    assert found(whole()) == {named(place) for place in LISTS}


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "# a comment\n\n" + t.replace(" = ", "   =   "),
        lambda t: t.replace("rate_hz = 60\n", "rate_hz = 60.000\n"),
        lambda t: t.replace('id = "small"\ntitle = "Small"', "title = 'Small'\nid = 'small'"),
        lambda t: t + "\n[sync]\nceiling_ms = 2.00\nmin_ticks = 30\n[rules]\nmissing_ratio_max = 0.0050\n",
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace('"both hands"', '"""\nboth hands\n"""'),
        lambda t: t.replace('"pick up"', '"pi\\u0063k up"'),
        lambda t: t.replace("[axes.scenes]\ndistinct = 1\nopen = true", "[axes]\nscenes.open=true\nscenes.distinct=1"),
    ],
)
def test_digest_survives_reformatting(change: Any) -> None:
    assert change(SMALL) != SMALL
    assert parse(change(SMALL)).digest == parse(SMALL).digest


@given(st.randoms(use_true_random=False))
def test_digest_survives_any_order_of_sections(order: random.Random) -> None:
    """Every section that is no row of an array may stand anywhere after the top."""
    top, *rest = STREAMS_FIRST.split("\n\n")
    order.shuffle(rest)
    assert parse("\n\n".join([top, *rest])).digest == parse(WHOLE).digest


def _blocks(text: str) -> str:
    """`text` with arrays of tables and what belongs to them in one block each."""
    out: list[str] = []
    for block in text.strip().split("\n\n"):
        head = block.splitlines()[0].strip("[]").split(".")
        last = out[-1].splitlines()[0].strip("[]").split(".") if out else []
        if block.startswith("[[") and (head == last or head[:-1] == last or head[:-1] == last[:-1] != []):
            out[-1] += "\n" + block
        else:
            out.append(block)
    return "\n\n".join(out)


STREAMS_FIRST = _blocks(WHOLE)

DEFAULTS: dict[str, Any] = {
    "gap": None,
    "sync": {"reference": "head", "ceiling_ms": 2, "statistic": "max", "guard_band": False, "min_ticks": 30},
    "rules": {
        "missing_ratio_max": Decimal("0.005"),
        "missing_run_max": 3,
        "backwards_max": 0,
        "duplicate_ratio_max": Decimal("0.001"),
        "jump_max": 0,
        "wrap_max": 0,
        "future_max": 0,
        "rate_ratio_max": Decimal("0.02"),
        "trim_max_ms": 1000,
        "silence_max_ms": 500,
        "frozen_run_max": 3,
        "overrun_max": 0,
        "near_ratio": Decimal("0.9"),
    },
}
STREAM_DEFAULTS = {
    "rate_hz": None,
    "decimate": 1,
    "phase": None,
    "max_gap_ms": None,
    "required": True,
    "stamp_domains": None,
    "stamp_points": None,
    "provenance": None,
}
NUMBERS = {
    *("rate_hz", "max_gap_ms", "hours", "staffing_weeks", "ceiling_ms", "trim_max_ms", "silence_max_ms", "near_ratio"),
    *("missing_ratio_max", "duplicate_ratio_max", "rate_ratio_max", "inspected_ratio", "failed_ratio_max"),
    *("reprojection_px_max", "epipolar_px_max", "rotation_deg_max", "translation_mm_max", "age_hours_max"),
    "camera_imu_offset_ms_max",
}
"""Fields that are decimals, and so strings in the canonical form, also when a document writes an integer."""


def independent_digest(text: str) -> str:
    """The digest of a document by its published description, sharing nothing with the product but BLAKE3."""
    document = {**DEFAULTS, **tomllib.loads(text, parse_float=Decimal)}
    document["sync"] = {**DEFAULTS["sync"], **document["sync"]}
    document["rules"] = {**DEFAULTS["rules"], **document["rules"]}
    document["streams"] = [{**STREAM_DEFAULTS, **stream} for stream in document["streams"]]
    document["cells"] = [{"tasks": None, **cell} for cell in document["cells"]]
    for axis in document["axes"].values():
        axis["values"] = [{"title": "", "hours": None, **value} for value in axis.get("values", [])]
    document["reject"] = {"recapture_except": [], **document["reject"]}
    document["acceptance"] = {"reviewers": 1, **document["acceptance"]}
    document["calibration"] = {"epipolar_px_max": None, "camera_imu_offset_ms_max": None, **document["calibration"]}
    document["retention"] = {"store_days": None, "consent_days": None, **document["retention"]}

    def plain(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return sorted((plain("", inner) for inner in value), key=written)
        if key in NUMBERS and value is not None:
            whole_part, _, fraction = f"{Decimal(value):f}".partition(".")
            fraction = fraction.rstrip("0")
            return f"{whole_part}.{fraction}" if fraction else whole_part
        return value.strip() if isinstance(value, str) else value

    def written(value: Any) -> bytes:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()

    return "blake3:" + blake3(written(plain("", document))).hexdigest()


@pytest.mark.parametrize(
    "text",
    [WHOLE, SMALL, *((CONFIGS / f"{name}-spec.toml").read_text() for name in ("sim", "replay-aria"))],
    ids=["whole", "small", "sim", "replay-aria"],
)
def test_an_independent_implementation_agrees(text: str) -> None:
    assert parse(text).digest == independent_digest(text)


@given(
    title=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=50),
    hours=st.decimals(min_value="0.001", max_value=1000, places=3, allow_nan=False),
)
def test_an_independent_implementation_agrees_on_any_text_and_number(title: str, hours: Decimal) -> None:
    text = SMALL.replace('title = "Small"', f"title = {json.dumps(title, ensure_ascii=False)}")
    text = text.replace("hours = 10\n", f"hours = {hours}\n")
    spec = parse(text)
    assert spec.title == title
    assert spec.digest == independent_digest(text)


def test_parsing_twice_gives_one_document() -> None:
    assert parse(WHOLE) == parse(WHOLE)
    assert Spec.model_validate(deepcopy(whole())) == parse(WHOLE)
