"""`coverage` as a person calls it: the page, JSON, exit statuses, bad input."""

from __future__ import annotations

import json

import pytest

from firsthand_edge.cli import run
from firsthand_edge.cli.coverage_page import hours, percent
from firsthand_edge.qa.coverage import Coverage
from tests.qa.filled import Filled, spec_document


@pytest.fixture
def filled(tmp_path):
    filled = Filled(tmp_path / "rig")
    (tmp_path / "spec.toml").write_bytes(filled.document)
    return filled


def test_the_page(filled, tmp_path, capsys):
    for day in ("2026-11-30", "2026-12-01"):
        filled.accepted(ticks=4 * 3600 * 60, day=day, stage="pilot", objects=("cup-glass",), outcome="success")
    filled.accepted(ticks=24 * 3600 * 60, cell="low-light", scene="attic", stage="pilot")
    filled.accepted(ticks=30, cell="cluttered", stage="pilot", outcome="near_miss")
    rejected = filled.reject("picture.frozen", "sync.ceiling", cell="cluttered", stage="pilot")
    assert run(["coverage", str(filled.root), "--spec", str(tmp_path / "spec.toml")]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    for words in (
        "sim-kitchen version 1",
        "Stage pilot; 2 days, 2026-11-30 to 2026-12-01 by the rigs' clocks (a claim).",
        "daylight         [##........]   8:00:00  40:00 h   20.00 %   4:00:00 thin",
        "low-light        [##########]  24:00:00  24:00 h  100.00 %  12:00:00 full",
        "cluttered        [..........]   0:00:00  24:00 h    0.00 %   0:00:00 thin",
        "daylight is thin: at 1 week of staffing 11:25:42 is due by now, and 8:00:00 is",
        "daylight is full in 8 days at this speed.",
        "low-light is full: record elsewhere.",
        "failure-cases is thin: nothing is validated yet.",
        "Scenes: 2 of 6 different ones wanted",
        "not named up front",
        "near miss 1 (0:00:00)",
        "cluttered              1 of 2   50.00 %",
        "picture.frozen              cluttered              1 of 2   50.00 %",
        f"- {rejected.id}: pick-cup in cluttered, for picture.frozen,",
        "`firsthand-edge episodes verify`",
    ):
        assert words in page, words


def test_the_state_directory_is_as_for_the_other_commands(filled, capsys, monkeypatch):
    filled.accepted()
    assert run(["coverage", "--state", str(filled.root)]) == 0
    by_state = capsys.readouterr().out
    assert run(["coverage", str(filled.root)]) == 0
    assert capsys.readouterr().out == by_state
    assert "This spec is not at hand" in by_state
    monkeypatch.chdir(filled.root)
    (filled.root / "build").mkdir()
    (filled.root / "build" / "demo").symlink_to(filled.root)
    assert run(["coverage"]) == 0


def test_json_is_the_documented_form(filled, tmp_path, capsys):
    filled.accepted()
    assert run(["coverage", str(filled.root), "--spec", str(tmp_path / "spec.toml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "firsthand.coverage/1"
    Coverage.model_validate(document)


def test_collections_of_different_specs_are_said_to_be_different(tmp_path, capsys):
    pilot = Filled(tmp_path / "a")
    later = Filled(tmp_path / "b", spec_document(**{"ceiling_ms = 2.0": "ceiling_ms = 2.5"}))
    pilot.accepted(stage="pilot")
    later.accepted(stage="production")
    assert run(["coverage", str(pilot.root), str(later.root)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("2 specs of different digests are 2 collections;")
    assert "they are different collections" in " ".join(page.split())
    assert page.count("version 1\n") == 2


def test_what_cannot_be_counted_is_told_and_changes_the_exit_status(filled, capsys):
    (filled.accepted().path / "verdict.json").write_bytes(b"{}")
    assert run(["coverage", str(filled.root)]) == 3
    page = capsys.readouterr().out
    assert "Not counted" in page
    assert "verdict.json is not the document that the chain names" in " ".join(page.split())


def test_a_key_names_the_rigs_that_count(filled, capsys):
    filled.accepted()
    root = str(filled.root)
    assert run(["coverage", root, "--key", str(filled.root / "keys" / "rig.pub")]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert f"begun by key {filled.spool.key.key_id}, a key that was given." in page
    assert run(["coverage", root]) == 0
    assert "--key would say" in " ".join(capsys.readouterr().out.split())
    assert run(["coverage", root, "--key", "ab" * 32]) == 3
    page = " ".join(capsys.readouterr().out.split())
    assert page.startswith("No sealed episode is here that counts.")
    assert "no key of its rig was given with --key" in page


def test_without_a_chain_nothing_counts(filled, capsys, monkeypatch):
    from firsthand_edge.cli import coverage_page

    for _ in range(3):
        filled.accepted()
    filled.spool.chain.path.unlink()
    monkeypatch.setattr(coverage_page, "SHOWN", 2)
    assert run(["coverage", str(filled.root)]) == 3
    page = capsys.readouterr().out
    assert page.count("no chain lies beside it") == 2
    assert "- and 1 more; --json lists all" in page
    assert max(map(len, page.splitlines())) <= 80


def test_an_empty_spool_holds_nothing(filled, capsys):
    assert run(["coverage", str(filled.root)]) == 0
    assert capsys.readouterr().out.startswith("No sealed episode is here.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["nowhere"], 2, "nowhere is not there"),
        (["{root}", "--state", "{root}"], 2, "either paths or --state"),
        (["{root}", "--spec", "nowhere.toml"], 4, "nowhere.toml"),
        (["{root}", "--what"], 2, "--what"),
        ([__file__], 2, "is no folder"),
        (["{root}", "--key", "12"], 2, "12"),
    ],
)
def test_bad_input_is_one_sentence(filled, capsys, arguments, status, words):
    assert run(["coverage", *(argument.format(root=filled.root) for argument in arguments)]) == status
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("nanoseconds", "said"),
    [
        (None, "-"),
        (0, "0:00:00"),
        (59_999_999_999, "0:00:59"),
        (3_661_000_000_000, "1:01:01"),
        (10**18, "277777:46:40"),
    ],
)
def test_hours_are_rounded_down(nanoseconds, said):
    assert hours(nanoseconds) == said


@pytest.mark.parametrize(
    ("ppm", "said"), [(None, "-"), (0, "0.00 %"), (99, "0.00 %"), (999_999, "99.99 %"), (1_500_000, "150.00 %")]
)
def test_percent_is_rounded_down(ppm, said):
    assert percent(ppm) == said
