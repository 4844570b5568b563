"""What takes capture and under which contract, with the real daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from firsthand_edge.cli.running import RunningRig
from firsthand_edge.errors import FirsthandError
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signed import add_signature
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.spool import open_spool
from tests.daemon.rigs import PLAN, RIG, SPEC, record, wait_ticks, write_rig

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.spool.manifest import Manifest

SUCCESSES_ONLY = SPEC.replace("retain_failures = true", "retain_failures = false").replace(
    "recapture = true", 'recapture = true\nrecapture_except = ["record.torn"]'
)


def manifest_of(rig: RunningRig, episode: str) -> Manifest:
    spool = open_spool(rig.state, create=False)
    return spool.committed(spool.find(episode)).manifest


def refused(rig: RunningRig, command: str, **arguments: Any) -> FirsthandError:
    with pytest.raises(FirsthandError) as caught:
        rig.call(command, timeout_s=30, **arguments)
    return caught.value


def codes(summary: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in summary["report"]["reasons"]]


def one_take(rig: RunningRig, outcome: str | None = None, **capture: Any) -> dict[str, Any]:
    rig.wait_ready()
    rig.begin(number=1, capture=capture or None)
    wait_ticks(rig, 60)
    summary: dict[str, Any] = rig.call("stop_take", timeout_s=60, **({} if outcome is None else {"outcome": outcome}))
    return summary


def test_what_a_take_captures_from_plan_and_command_to_manifest_and_verdict(tmp_path):
    path = write_rig(tmp_path, spec=SUCCESSES_ONLY, plan=PLAN.replace("times = 100", "times = 1\nseconds = 2"))
    with RunningRig(path, tmp_path / "s") as rig:
        # Before the first take: what comes next is said, and what does not fit begins nothing.
        status = rig.status()
        assert (status["capture"], status["plan"]["begun"], status["next"]["seconds"]) == (None, 0, 2.0)
        assert status["next"]["capture"]["task"] == "pick-cup"
        bad = {"task": "juggle", "cell": "moon", "scene": "kitchen-1", "contributor": "c-01", "attempt": 0}
        error = refused(rig, "start_take", number=1, capture=bad)
        assert (error.code, error.exit_status) == ("capture.invalid", 2)
        assert "has 3 mistakes" in str(error)
        for words in ("no task `juggle`", "no cell `moon`", "attempt: "):
            assert words in str(error)
        assert "field by field, and not as 'pick-cup'" in str(refused(rig, "start_take", capture="pick-cup"))
        spool = open_spool(rig.state, create=False)
        assert spool.episodes() == []

        # By the plan; whoever stops the take says how the attempt ended, and not in any word.
        rig.begin(number=1)
        wait_ticks(rig, 60)
        assert rig.status()["capture"]["outcome"] == "success"
        shown = subprocess.run(
            [sys.executable, "-m", "firsthand_edge.cli", "live", "--state", str(rig.state), "--seconds", "0.2"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        assert "take 1: pick-cup, daylight" in shown
        assert "ends as one of success, failure" in str(refused(rig, "stop_take", outcome="well"))
        assert rig.status()["phase"] == "recording"
        first = rig.call("stop_take", timeout_s=60, outcome="near_miss")
        assert (first["state"], codes(first)) == ("rejected", ["take.outcome_not_retained"])
        assert first["report"]["outcome"] == first["capture"]["outcome"] == "near_miss"
        assert rig.status()["capture"] is None

        # The plan is used up; the rejected take is recaptured by command, and only once.
        rig.wait_ready()
        assert "the plan plan.toml is used up: all of its 1 takes were begun" in str(refused(rig, "start_take"))
        second = one_take(rig, recaptures=first["episode"], outcome="success")
        assert second["state"] == "accepted", codes(second)
        rig.wait_ready()
        assert f"is recaptured already, by {second['episode']}" in str(
            refused(rig, "start_take", capture={"recaptures": first["episode"]})
        )
        rig.call("restart_plan", timeout_s=5)
        assert rig.status()["next"]["position"] == 1
        assert len(spool.episodes()) == 2
    before, after = (manifest_of(rig, summary["episode"]).capture for summary in (first, second))
    assert before is not None
    assert after is not None
    assert (before.outcome, before.attempt, before.recaptures) == ("near_miss", 1, None)
    assert (after.outcome, after.attempt, after.recaptures) == ("success", 2, first["episode"])
    assert after.tags() == before.tags()
    assert after.cell == before.cell
    shown = subprocess.run(
        [sys.executable, "-m", "firsthand_edge.cli", "episodes", "show", first["episode"], "--state", str(rig.state)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    ).stdout
    for words in (
        "task pick-cup, cell daylight, scene kitchen-1",
        "objects cup-1",
        "contributor c-01, consent record none",
        "attempt 1, outcome near_miss",
        f"recaptured by {second['episode']}, which was accepted",
        "signed by a throw-away key of this rig",
    ):
        assert words in shown


def captured(path: Path, state: Path) -> subprocess.CompletedProcess[str]:
    """The daemon as systemd starts it; for rigs that it refuses."""
    return subprocess.run(
        [sys.executable, "-m", "firsthand_edge.daemon.captured", "--rig", str(path), "--state", str(state)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_no_take_starts_under_a_spec_that_is_unsigned_altered_or_signed_by_another(tmp_path):
    party, stranger = KeyPair.generate(), KeyPair.generate()
    path = write_rig(tmp_path, rig=RIG.replace("throw_away_key = true", f'signers = ["{party.public.hex()}"]'))
    spec, state = tmp_path / "spec.toml", tmp_path / "s"

    def refusal() -> str:
        done = captured(path, state)
        assert done.returncode == 4, done.stderr
        assert "starts no takes" in done.stderr
        assert "Traceback" not in done.stderr
        assert json.loads((state / "run/last-words.json").read_text())["exit_status"] == 4
        return done.stderr

    assert "test version 1 is not signed" in refusal()
    add_signature(spec, stranger)
    assert f"key {party.key_id} has not signed test version 1" in refusal()
    add_signature(spec, party)
    signed = spec.read_text()
    spec.write_text(signed.replace("hours = 10", "hours = 11"))
    assert "the document was changed after it was signed" in refusal()
    spec.write_text("# as agreed\n\n" + signed.replace("hours = 10", "hours  =  10.0"))
    with RunningRig(path, state) as rig:
        summary = record(rig, seconds=1.0)
        assert rig.status()["spec"]["throw_away"] is False
    assert summary["state"] == "accepted", codes(summary)
    identity = manifest_of(rig, summary["episode"]).spec
    assert {one.public_key for one in identity.signatures} == {party.public.hex(), stranger.public.hex()}
    assert not identity.throw_away


def test_another_spec_is_another_collection_and_that_is_said(tmp_path):
    path, state = write_rig(tmp_path), tmp_path / "s"

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "firsthand_edge.cli", "run", "--rig", str(path), "--state", str(state)]
        return subprocess.run(
            [*command, "--takes", "1", "--seconds", "1"], capture_output=True, text=True, timeout=120, check=False
        )

    first = run()
    assert first.returncode == 0, first.stderr
    assert "different collection" not in first.stdout
    assert "pick-cup with cup-1, cell daylight, scene kitchen-1, by c-01" in first.stdout
    changed = SPEC.replace("version = 1", "version = 2", 1).replace("hours = 10", "hours = 20")
    (tmp_path / "spec.toml").write_text(changed)
    second = run()
    assert second.returncode == 0, second.stderr
    rows = [row for row in open_spool(state, create=False).chain.rows() if row.event == Event.SPEC]
    before, after = (row.body for row in rows)
    assert (before["version"], after["version"]) == (1, 2)
    [note] = [line for line in second.stdout.splitlines() if "this is a different collection" in line]
    assert before["digest"] in note
    assert after["digest"] in note
    assert "this is a different collection" in (state / "log/captured.log").read_text()
