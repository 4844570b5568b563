"""What the documentation of the library shows is what it does."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["python.md", "plot.md"])
def test_every_example_runs_and_prints_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8")
    assert found.attempted > 5
    assert found.failed == 0


def test_every_field_of_a_report_is_documented():
    from dataclasses import fields

    from firsthand_edge.api.report import Offset, Report, Residual, Span, Stream
    from firsthand_edge.api.stamps import StreamStamps
    from firsthand_edge.gate.pairs import Pair

    text = (DOCS / "python.md").read_text(encoding="utf-8")
    for kind in (Report, Residual, Span, Stream, Offset, Pair, StreamStamps):
        for field in fields(kind):
            assert field.name.startswith("_") or field.name == "name" or f"`{field.name}`" in text, field.name
