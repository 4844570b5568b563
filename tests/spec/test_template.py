"""The start of a spec: all that is wrong with it is what has to be filled in, and filling that in is enough."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

from firsthand_edge.spec.document import Spec, parse_spec
from firsthand_edge.spec.template import template
from tests.spec.test_document import mistakes
from tests.spec.whole import fields

ANSWERS = {
    "distinct": "1",
    "hours": "10",
    "staffing_weeks": "1.5",
    "recapture": "true",
    "retain_failures": "false",
    "inspected_ratio": "0.1",
    "failed_ratio_max": "0",
    "reprojection_px_max": "0.5",
    "rotation_deg_max": "0.1",
    "translation_mm_max": "1",
    "age_hours_max": "12",
    "every_session": "true",
    "commercial": "true",
    "perpetual": "true",
    "exclusive": "false",
    "format": '"mcap"',
    "language": '"en"',
    "bystanders": '"none"',
    "withdrawal": '"until_delivery"',
    "rejected_days": "7",
    "uploaded_days": "1",
    "withdrawn_days": "30",
    "purposes": '["training"]',
}
PLACEHOLDER = re.compile(r'^(\w+) = \[?"<[^"]*>"\]?', re.MULTILINE)


def test_all_that_is_wrong_is_what_is_not_filled_in() -> None:
    text = template().decode()
    found = mistakes(text)
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if PLACEHOLDER.match(line)]
    assert [int(m.split(":")[0].removeprefix("line ")) for m in found] == lines
    assert all(": is not filled in yet: " in m for m in found)
    assert len(found) == 50


def test_filled_in_it_is_a_spec() -> None:
    text = PLACEHOLDER.sub(lambda m: f"{m[1]} = {ANSWERS.get(m[1], chr(34) + 'word' + chr(34))}", template().decode())
    spec = parse_spec(text.encode(), place="spec.toml")
    assert spec.sync.reference == "head"
    assert set(ANSWERS) <= {m[1] for m in PLACEHOLDER.finditer(template().decode())}


def test_filled_in_without_its_comments_it_is_the_same_spec() -> None:
    text = PLACEHOLDER.sub(lambda m: f"{m[1]} = {ANSWERS.get(m[1], chr(34) + 'word' + chr(34))}", template().decode())
    bare = "\n".join(line.split("  # ")[0] for line in text.splitlines() if not line.startswith("#"))
    assert parse_spec(bare.encode(), place="a") == parse_spec(text.encode(), place="b")


def test_every_field_is_in_it_at_least_as_a_comment() -> None:
    text = template().decode()
    named = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE))
    wanted = {place.rsplit(".", 1)[-1] for place, _, _ in fields(Spec)}
    assert wanted - named == {"phase", "max_gap_ms"}  # of decimated and interpolated streams, in the manual


def test_limits_that_it_writes_out_are_the_defaults() -> None:
    table = tomllib.loads(template().decode())
    spec = Spec.model_fields
    for section in ("sync", "rules"):
        default = spec[section].default.model_dump(mode="json")
        assert {k: str(v) for k, v in table[section].items()} == {
            k: str(v) if not isinstance(table[section][k], float) else str(float(v)) for k, v in default.items()
        }


def test_it_is_a_file_of_the_package() -> None:
    assert files("firsthand_edge.spec").joinpath("template.toml").is_file()
    assert template().startswith(b"# A skill spec")
    assert all(len(line) <= 120 for line in template().decode().splitlines())
