"""Coverage of spools in every state, held against the same figures computed by brute force from the raw files."""

from __future__ import annotations

import json
import math
import random
import secrets
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from firsthand_edge.qa.cover import cover
from firsthand_edge.qa.coverage import Coverage, State, coverage_bytes
from firsthand_edge.qa.places import find
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.spool.chain import Event
from tests.qa.episodes import Rig
from tests.qa.filled import Filled, at_random, spec_document

HOUR = 3_600_000_000_000


@pytest.fixture
def filled(tmp_path):
    return Filled(tmp_path / "a")


def covered(*rigs, given=None):
    return cover(find([rig.spool.root for rig in rigs]), given)


def cells(coverage, number=0):
    return {row.cell: row for row in coverage.collections[number].cells}


def raw_facts(root: Path) -> list[dict]:
    """Every episode, from its files and the chain's lines."""
    rows = [json.loads(line) for line in (root / "chain.jsonl").read_text().splitlines()]
    facts = []
    for folder in sorted(root.glob("*/sim-01-*")):
        mine = [row for row in rows if row["episode"] == folder.name]
        manifest = json.loads((folder / "manifest.json").read_text())
        judged = [row for row in mine if row["event"] in ("judged", "rejudged")]
        gone = any(row["event"] in ("withdrawn", "discarded", "damaged") for row in mine)
        verdict = None
        if judged and not gone:
            name = "verdict.json" if len(judged) == 1 else f"verdict-{len(judged)}.json"
            verdict = json.loads((folder / name).read_text())
        standing = "taken_back" if gone else "waiting" if verdict is None else verdict["verdict"]
        period = 0 if verdict is None else verdict["report"]["period_ns"] or 0
        facts.append(
            {
                "id": folder.name,
                "capture": manifest["capture"],
                "cell": (manifest["capture"] or {"cell": None})["cell"],
                "outcome": (manifest["capture"] or {"outcome": "untold"})["outcome"],
                "day": manifest["take"]["claimed_utc"][:10],
                "standing": standing,
                "ns": verdict["report"]["span"]["ticks"] * period if standing == "accepted" else 0,
                "codes": [] if standing != "rejected" else [reason["code"] for reason in verdict["reasons"]],
                "again": standing == "rejected" and any(reason["recapture"] for reason in verdict["reasons"]),
            }
        )
    return facts


def total(facts: list[dict]) -> int:
    return sum(fact["ns"] for fact in facts)


def brute(root: Path, spec) -> dict:
    """The figures of one collection from files alone: no code of the product, every sum written out."""
    facts = raw_facts(root)
    days = sorted(date.fromisoformat(f["day"]) for f in facts if f["day"] and f["standing"] != "taken_back")
    gone_by = (days[-1] - days[0]).days + 1 if days else None
    known = {cell.id: cell for cell in spec.cells}
    names = list(known) + ([None] if any(f["cell"] is None for f in facts) else [])
    by_cell = {name: [f for f in facts if f["cell"] == name] for name in names}
    rejects = {}
    for name, of in by_cell.items():
        judged = [f for f in of if f["standing"] in ("accepted", "rejected")]
        for code in {code for f in of for code in f["codes"]}:
            rejects[code, name] = (sum(code in f["codes"] for f in of), len(judged))
    return {
        "gone_by": gone_by,
        "cells": {name: brute_cell(of, known.get(name), gone_by) for name, of in by_cell.items()},
        "axes": brute_axes(facts),
        "rejects": rejects,
        "owed": brute_owed(facts),
    }


def brute_state(ns: int, target: int | None, due: int | None) -> str:
    if target is None:
        return "unknown"
    if ns >= target:
        return "full"
    if ns == 0:
        return "empty"
    return "unknown" if due is None else "thin" if ns < due else "on_schedule"


def brute_cell(of: list[dict], cell, gone_by: int | None) -> dict:
    accepted = [f for f in of if f["standing"] == "accepted"]
    rejected = sum(f["standing"] == "rejected" for f in of)
    judged = len(accepted) + rejected
    ns, dated = total(accepted), total([f for f in accepted if f["day"]])
    target = due = None
    if cell is not None:
        target = math.ceil(Fraction(str(cell.hours)) * HOUR)
        if gone_by is not None:
            due = math.ceil(target * min(Fraction(1), Fraction(gone_by) / (Fraction(str(cell.staffing_weeks)) * 7)))
    left = (target or 0) - ns
    return {
        "state": brute_state(ns, target, due),
        "validated_ns": ns,
        "target_ns": target,
        "fill_ppm": None if target is None else math.floor(Fraction(ns, target) * 1_000_000),
        "due_ns": due,
        "per_day_ns": None if gone_by is None else math.floor(Fraction(dated, gone_by)),
        "days_to_full": math.ceil(Fraction(left) / Fraction(dated, gone_by)) if left > 0 and dated else None,
        "days": [
            {"day": day, "validated_ns": total([f for f in accepted if f["day"] == day])}
            for day in sorted({f["day"] for f in accepted if f["day"]})
        ],
        "undated_ns": ns - dated,
        "accepted": len(accepted),
        "rejected": rejected,
        "reject_ppm": math.floor(Fraction(rejected, judged) * 1_000_000) if judged else None,
        "waiting": sum(f["standing"] == "waiting" for f in of),
        "taken_back": sum(f["standing"] == "taken_back" for f in of),
        "outcomes": {
            outcome: (len(these), total(these))
            for outcome in ("success", "failure", "near_miss", "unstated", "untold")
            if (these := [f for f in accepted if f["outcome"] == outcome])
        },
    }


def brute_axes(facts: list[dict]) -> dict:
    out = {}
    for axis, key in (("scenes", "scene"), ("tasks", "task"), ("objects", "objects"), ("participants", "contributor")):
        sums: dict[str, list[int]] = {}
        for f in facts:
            if f["standing"] == "accepted" and f["capture"] is not None:
                for value in f["capture"][key] if key == "objects" else [f["capture"][key]]:
                    sums.setdefault(value, []).append(f["ns"])
        out[axis] = {value: (len(each), sum(each)) for value, each in sums.items()}
    return out


def brute_owed(facts) -> set[str]:
    """Rejected episodes to be recorded again without an accepted one behind them, and none before them that is such."""
    of = {f["id"]: f for f in facts if f["standing"] != "taken_back"}

    def before(name):
        capture = of[name]["capture"] if name in of else None
        return None if capture is None else capture["recaptures"]

    def ancestors(name):
        found = []
        while (name := before(name)) is not None and name not in found:
            found.append(name)
        return found

    owed = {
        name
        for name, f in of.items()
        if f["again"] and not any(other["standing"] == "accepted" and name in ancestors(i) for i, other in of.items())
    }
    return {name for name in owed if not owed & set(ancestors(name))}


def assert_equal_to_brute_force(filled: Filled) -> None:
    expected = brute(filled.spool.root, filled.spec)
    coverage = covered(filled, given=filled.spec)
    [collection] = coverage.collections
    assert coverage.not_counted == ()
    assert collection.days_gone_by == expected["gone_by"]
    found = {}
    for row in collection.cells:
        document = row.model_dump(mode="json")
        document["outcomes"] = {o["outcome"]: (o["episodes"], o["validated_ns"]) for o in document["outcomes"]}
        found[row.cell] = {name: document[name] for name in expected["cells"].get(row.cell, document)}
    assert found == expected["cells"]
    assert {
        axis.axis: {v.value: (v.accepted, v.validated_ns) for v in axis.values if v.accepted}
        for axis in collection.axes
    } == expected["axes"]
    for axis in collection.axes:
        assert axis.distinct == sum(1 for _, ns in expected["axes"][axis.axis].values() if ns)
    assert {
        (row.code, cell.cell): (cell.episodes, cell.judged) for row in collection.rejects for cell in row.cells
    } == expected["rejects"]
    assert {row.episode for row in collection.owed} == expected["owed"]


def campaign(filled: Filled, count: int) -> None:
    seed = secrets.randbits(32)
    at_random(filled, random.Random(seed), count)  # noqa: S311 - a campaign, no secret
    try:
        assert_equal_to_brute_force(filled)
    except AssertionError as exc:
        exc.add_note(f"seed {seed}, {count} episodes")
        raise


def test_coverage_is_what_brute_force_finds(filled):
    campaign(filled, 60)


@pytest.mark.soak
def test_coverage_is_what_brute_force_finds_in_many_spools(tmp_path):
    for number in range(40):
        campaign(Filled(tmp_path / str(number)), 300)


def test_validated_is_judged_ticks_times_period_and_of_accepted_episodes_alone(filled):
    filled.accepted(ticks=600)
    filled.judge(filled.seal(), ticks=7, period_ns=None)
    filled.reject()
    filled.seal()
    row = cells(covered(filled))["daylight"]
    assert (row.validated_ns, row.accepted, row.rejected, row.waiting) == (600 * 16_666_667, 2, 1, 1)
    assert row.reject_ppm == 333_333


def test_the_last_judgement_counts(filled):
    first = filled.accepted(ticks=600)
    filled.judge(first, "sync.ceiling")
    second = filled.reject()
    filled.judge(second, ticks=10)
    row = cells(covered(filled))["daylight"]
    assert (row.validated_ns, row.accepted, row.rejected) == (10 * 16_666_667, 1, 1)


@pytest.mark.parametrize("event", [Event.WITHDRAWN, Event.DISCARDED])
def test_what_was_taken_back_counts_nowhere(filled, event):
    filled.spool.remove(filled.accepted(), event, "asked for")
    filled.spool.remove(filled.reject(), event, "asked for")
    coverage = covered(filled)
    row = cells(coverage)["daylight"]
    assert (row.validated_ns, row.accepted, row.rejected, row.taken_back) == (0, 0, 0, 2)
    [collection] = coverage.collections
    assert (collection.rejects, collection.owed, collection.days_gone_by) == ((), (), None)


def test_what_was_set_aside_counts_nowhere(filled):
    filled.spool.set_aside(filled.accepted(), "a disk lied")
    assert cells(covered(filled))["daylight"].validated_ns == 0


def test_footage_that_expired_still_counts_from_gone(filled):
    filled.spool.remove(filled.reject(), Event.EXPIRED, "its time is over")
    assert cells(covered(filled))["daylight"].rejected == 1


def test_a_torn_episode_never_counts_whatever_its_verdict_says(filled):
    episode = filled.seal(torn=True)
    filled.judge(episode, "record.torn")
    [collection] = covered(filled).collections
    assert collection.cells[0].rejected == 1
    assert [row.code for row in collection.rejects] == ["record.torn"]


def test_cells_are_thin_or_full_by_budget_and_schedule(tmp_path):
    """Budgets of an hour; a week of staffing: a seventh is due after a day, all after seven."""
    smaller = {"40": "1", "24": "1", "12": "1", "35": "0.1", "20": "0.1"}
    document = spec_document(**{f"\nhours = {hours}\n": f"\nhours = {less}\n" for hours, less in smaller.items()})
    filled = Filled(tmp_path, document)
    weeks = {cell.id: cell.staffing_weeks for cell in filled.spec.cells}
    assert weeks["daylight"] == 1
    second = 1_000_000_000

    def add(cell, seconds, **tags):
        filled.judge(filled.seal(cell=cell, **tags), ticks=seconds, period_ns=second)

    add("daylight", 514)  # an hour / 7 is 514.29 s
    states = {name: row.state for name, row in cells(covered(filled, given=filled.spec)).items()}
    assert states == dict.fromkeys(weeks, State.EMPTY) | {"daylight": State.THIN}
    add("daylight", 1)
    row = cells(covered(filled, given=filled.spec))["daylight"]
    assert (row.state, row.due_ns) == (State.ON_SCHEDULE, 514_285_714_286)
    assert row.per_day_ns == 515 * second
    assert row.days_to_full == 6  # 3085 s at 515 s a day
    add("low-light", 3599)
    add("low-light", 1)
    row = cells(covered(filled, given=filled.spec))["low-light"]
    assert (row.state, row.fill_ppm, row.days_to_full) == (State.FULL, 1_000_000, None)
    add("low-light", 1800)
    assert cells(covered(filled, given=filled.spec))["low-light"].fill_ppm == 1_500_000
    add("cluttered", 1, day="2027-11-30")
    row = cells(covered(filled, given=filled.spec))["daylight"]
    assert (row.state, row.due_ns, row.per_day_ns) == (State.THIN, HOUR, 515 * second // 366)


def test_nearly_full_is_not_full(tmp_path):
    filled = Filled(tmp_path)
    filled.judge(filled.seal(), ticks=40 * HOUR - 1, period_ns=1)
    row = cells(covered(filled, given=filled.spec))["daylight"]
    assert (row.fill_ppm, row.state, row.days_to_full) == (999_999, State.ON_SCHEDULE, 1)


def test_episodes_without_a_day_count_and_have_no_speed(filled):
    filled.accepted(ticks=1, day="")
    row = cells(covered(filled, given=filled.spec))["daylight"]
    assert (row.undated_ns, row.per_day_ns, row.due_ns, row.days) == (16_666_667, None, None, ())
    assert row.state is State.UNKNOWN


def test_an_episode_whose_capture_nobody_told_has_a_row_of_its_own(filled):
    filled.accepted(cell=None)
    filled.accepted()
    rows = cells(covered(filled, given=filled.spec))
    assert rows[None].validated_ns == rows["daylight"].validated_ns
    assert (rows[None].listed, rows[None].target_ns, rows[None].outcomes[0].outcome) == (False, None, "untold")


def test_axes_keep_their_own_counts_and_objects_count_each(filled):
    filled.accepted(ticks=2, objects=("cup-glass", "jug-2l"), scene="somewhere-else")
    [collection] = covered(filled, given=filled.spec).collections
    axes = {axis.axis: axis for axis in collection.axes}
    objects = {row.value: row for row in axes["objects"].values}
    assert objects["cup-glass"].validated_ns == objects["jug-2l"].validated_ns == 2 * 16_666_667
    assert objects["cup-ceramic"].validated_ns == 0
    assert (axes["objects"].distinct, axes["objects"].distinct_target) == (2, 12)
    scenes = {row.value: row for row in axes["scenes"].values}
    assert (scenes["somewhere-else"].listed, scenes["kitchen-1"].target_ns) == (False, 20 * HOUR)
    assert next(row.title for row in axes["tasks"].values if row.value == "pick-cup") == "pick up cup"


def test_recapture_is_owed_until_an_accepted_episode_stands_in(filled):
    def owed():
        [collection] = covered(filled, given=filled.spec).collections
        return {row.episode: row.tried for row in collection.owed}

    first = filled.reject("picture.frozen")
    assert owed() == {first.id: ()}
    second = filled.reject("sync.ceiling", recaptures=first.id)
    assert owed() == {first.id: (second.id,)}
    third = filled.seal(recaptures=second.id)
    assert owed() == {first.id: (second.id, third.id)}
    done = filled.judge(third)
    assert owed() == {}
    filled.spool.remove(done, Event.WITHDRAWN, "asked for")
    assert owed() == {first.id: (second.id,)}


def test_what_the_spec_does_not_want_again_is_not_owed(filled):
    unwanted = [
        code
        for code in ("record.torn", "take.outcome_not_retained", "sync.no_ticks")
        if not filled.spec.reject.recaptures(code)
    ]
    assert unwanted, "the example spec excepts some code"
    filled.reject(unwanted[0])
    [collection] = covered(filled, given=filled.spec).collections
    assert collection.owed == ()


def test_specs_of_different_digests_are_never_summed(tmp_path):
    pilot = Filled(tmp_path / "pilot")
    changed = Filled(tmp_path / "production", spec_document(**{"ceiling_ms = 2.0": "ceiling_ms = 2.5"}))
    pilot.accepted(ticks=1, stage="pilot")
    changed.accepted(ticks=2, stage="production")
    coverage = covered(pilot, changed)
    assert [row.cells[0].validated_ns for row in coverage.collections] == [16_666_667, 2 * 16_666_667]
    assert len(coverage.different) == 2
    assert "the pilot was measured against" in coverage.different[1]
    assert "different collections" in coverage.different[1]
    same = Filled(tmp_path / "more")
    same.accepted(ticks=3, stage="production")
    coverage = covered(pilot, same)
    assert coverage.different == ()
    assert coverage.collections[0].stages == ("pilot", "production")
    assert coverage.collections[0].cells[0].validated_ns == 4 * 16_666_667


def test_no_total_stands_anywhere(filled):
    filled.accepted()
    document = json.loads(coverage_bytes(covered(filled, given=filled.spec)))
    assert document["schema"] == "firsthand.coverage/1"
    assert Coverage.model_validate(document) == covered(filled, given=filled.spec)
    assert set(document["collections"][0]) == {
        "spec",
        "stages",
        "first_day",
        "last_day",
        "days_gone_by",
        "cells",
        "axes",
        "rejects",
        "owed",
    }
    assert set(document) == set(Coverage.model_json_schema(by_alias=True)["properties"])

    def floats(value):
        if isinstance(value, dict):
            return any(map(floats, value.values()))
        return any(map(floats, value)) if isinstance(value, list) else isinstance(value, float)

    assert not floats(document)


def test_a_spec_that_is_given_is_told_before_anything_is_recorded(filled):
    [collection] = covered(filled, given=filled.spec).collections
    assert {row.state for row in collection.cells} == {State.EMPTY}
    assert collection.cells[0].target_ns == 40 * HOUR
    assert collection.spec.document == "given"
    assert covered(filled).collections == ()


def test_targets_come_from_the_evidence_when_no_spec_is_given(tmp_path, takes):
    rig = Rig(tmp_path)
    rig.add(takes[0])
    [collection] = covered(rig).collections
    assert (collection.spec.document, collection.cells[0].target_ns) == ("evidence", 40 * HOUR)
    episode = rig.spool.find("1")
    rig.spool.remove(episode, Event.WITHDRAWN, "asked for")
    [collection] = covered(rig).collections
    assert (collection.spec.document, collection.spec.title) == (None, None)
    assert [row.target_ns for row in collection.cells] == [None]


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json"])
@pytest.mark.parametrize("content", [b"", b"{}", b"garbage", b"[" * 100_000, None])
def test_documents_that_are_not_those_of_the_chain_are_not_counted_and_told(filled, name, content):
    good, bad = filled.accepted(), filled.accepted()
    path = bad.path / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    coverage = covered(filled)
    [row] = coverage.not_counted
    assert bad.id in row.folder
    assert row.why
    assert cells(coverage)["daylight"].accepted == 1
    assert good.path.is_dir()


def test_without_a_chain_nothing_counts_and_that_is_said(filled):
    filled.accepted()
    filled.spool.chain.path.unlink()
    coverage = covered(filled)
    assert coverage.collections == ()
    assert ["no chain lies beside it" in row.why for row in coverage.not_counted] == [True]


def test_an_episode_at_two_places_counts_once(filled, tmp_path):
    import shutil

    filled.accepted()
    shutil.copytree(filled.spool.root / "accepted", tmp_path / "store" / "episodes")
    (tmp_path / "store" / "chains").mkdir()
    shutil.copy(filled.spool.chain.path, tmp_path / "store" / "chains" / f"{filled.spool.chain.name}.jsonl")
    coverage = cover(find([filled.spool.root, tmp_path / "store"]))
    assert cells(coverage)["daylight"].accepted == 1
    assert any("counts once" in note for note in coverage.notes)
    assert cells(cover(find([tmp_path / "store"])))["daylight"].accepted == 1


def test_a_budget_finer_than_a_nanosecond_is_rounded_up():
    from firsthand_edge.qa.tally import _hours_ns

    assert _hours_ns(Decimal("0.0000000000001")) == 1
    assert _hours_ns(Decimal("1.5")) == 5_400_000_000_000
    assert _hours_ns(None) is None


def test_the_example_spec_is_one(filled):
    assert parse_spec(filled.document, place="spec").digest == filled.digest
