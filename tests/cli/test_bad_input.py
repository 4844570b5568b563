"""Bad input: one clear sentence with the cause and the next step, a status that tells them apart, nothing lost."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.daemon.rigs import PLAN, RIG, SPEC, write_rig
from tests.simulated import record_take

if TYPE_CHECKING:
    from pathlib import Path


def firsthand(*arguments: object, cwd: Path | None = None, preexec=None) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "firsthand_edge.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        check=False,
        preexec_fn=preexec,
    )


def run_rig(folder: Path, path: Path, *more: object) -> subprocess.CompletedProcess[str]:
    """One take of a rig."""
    return firsthand("run", "--rig", path, "--state", folder / "s", "--takes", 1, *more)


def says(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """The status, and on stderr no traceback but the words."""
    assert done.returncode == status, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_malformed_rig_file(tmp_path):
    path = write_rig(
        tmp_path, rig=RIG.replace('timebase = "arb"', 'timebase = "local"').replace("seed = 3", "sede = 3")
    )
    done = run_rig(tmp_path, path, "--seconds", 1)
    says(done, 4, "rig.toml has 2 mistakes", "line 4: rig.timebase", "did you mean `seed`?")


def test_a_rig_file_that_is_no_toml(tmp_path):
    path = write_rig(tmp_path, rig="[rig\n")
    says(run_rig(tmp_path, path, "--seconds", 1), 4, "is not TOML", "line 1")


def test_a_rig_file_that_is_not_there(tmp_path):
    says(run_rig(tmp_path, tmp_path / "no.toml", "--seconds", 1), 4, "no.toml", "No such file")


def test_a_spec_that_contradicts_itself(tmp_path):
    spec = SPEC.replace('name = "wrist"', 'name = "head"') + '\n[sync]\nreference = "imu"\n'
    done = run_rig(tmp_path, write_rig(tmp_path, spec=spec), "--seconds", 1)
    says(done, 4, "spec.toml has", "head", "imu", "line")


def test_a_spec_that_nobody_signed(tmp_path):
    path = write_rig(tmp_path, rig=RIG.replace("throw_away_key = true", f'signers = ["{"1" * 64}"]'))
    done = run_rig(tmp_path, path, "--seconds", 1)
    says(done, 4, "spec.toml", "starts no takes", "test version 1 is not signed; sign it with")


def test_a_plan_with_mistakes(tmp_path):
    plan = PLAN.replace("pick-cup", "juggle").replace("kitchen-1", "the kitchen").replace("times = 100", "times = 0")
    done = run_rig(tmp_path, write_rig(tmp_path, plan=plan), "--seconds", 1)
    says(done, 4, "plan.toml has 3 mistakes", "line 4: takes[0].task", "no task `juggle`", "line 6", "line 10")
    done = run_rig(tmp_path, write_rig(tmp_path), "--plan", tmp_path / "none.toml")
    says(done, 4, "none.toml", "cannot be read (No such file or directory)")


BY_COMMAND = ("--task", "pick-cup", "--cell", "daylight", "--scene", "kitchen-1", "--contributor", "c-01")


def test_what_the_arguments_capture_is_held_against_the_spec_before_anything_starts(tmp_path):
    path = write_rig(tmp_path)
    done = run_rig(tmp_path, path, "--task", "juggle", "--cell", "moon", "--object", "a b", "--seconds", 1)
    says(
        done, 2, "has 5 mistakes", "scene: is missing", "contributor: is missing", "no task `juggle`", "no cell `moon`"
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--plan", "plan.toml", *BY_COMMAND], ["what the plan says or what --task says"]),
        (["--again", *BY_COMMAND], ["leave out --plan and --again"]),
        (["--recaptures", "1", "--takes", 2], ["one take stands in the place of an episode, and not 2"]),
        ([], ["take 1 of plan.toml has no length; say how long with --seconds"]),
        (BY_COMMAND, ["this take has no length"]),
        ([*BY_COMMAND, "--outcome", "well"], ["outcome"]),
        (["--takes", 0], ["--takes must be at least 1 (it is 0)"]),
        ([*BY_COMMAND, "--seconds", 0], ["--seconds must be above 0 and at most 86400 (it is 0)"]),
        ([*BY_COMMAND, "--seconds", -2], ["(it is -2)"]),
        ([*BY_COMMAND, "--seconds", "nan"], ["(it is nan)"]),
        ([*BY_COMMAND, "--seconds", 1e300], ["(it is 1e+300)"]),
    ],
)
def test_what_is_captured_must_be_said_once_and_whole(tmp_path, arguments, words):
    path = write_rig(tmp_path)
    says(firsthand("run", "--rig", path, "--state", tmp_path / "s", *arguments, cwd=tmp_path), 2, *words)
    assert not (tmp_path / "s").exists()


def test_a_rig_without_a_plan_wants_to_be_told_what_is_captured(tmp_path):
    path = write_rig(tmp_path, rig=RIG.replace('plan = "plan.toml"\n', ""))
    says(run_rig(tmp_path, path, "--seconds", 1), 2, "nothing says what is captured; name a plan with --plan")


def test_an_episode_that_cannot_be_recaptured(tmp_path):
    path = write_rig(tmp_path)
    says(
        run_rig(tmp_path, path, "--recaptures", "7", "--seconds", 1),
        2,
        "what is to be captured has 1 mistake:",
        "recaptures: there is no episode '7'",
    )


def replay(path: Path) -> str:
    """A rig file that replays the device `nose` of an episode."""
    head = RIG.split("[[device]]")[0].replace('"simulated"\nrate_hz = 60', '"replayed"')
    head = head.replace('why = "simulated"', 'why = "replayed"')
    return head + f'[[device]]\nname = "nose"\ndriver = "replay"\npath = "{path}"\n'


def test_a_device_that_is_not_there(tmp_path):
    episode = record_take(tmp_path, seconds=1)
    done = run_rig(tmp_path, write_rig(tmp_path, rig=replay(episode)))
    says(done, 5, "has no device nose; it has head, wrist_left")


def test_a_recording_to_be_replayed_that_is_not_there(tmp_path):
    done = run_rig(tmp_path, write_rig(tmp_path, rig=replay(tmp_path / "gone")))
    says(done, 3, "gone/evidence.mcap", "it is not there; check the path")


def test_a_truncated_recording(tmp_path):
    (tmp_path / "cut.mcap").write_bytes(b"\x89MCAP0\r\n" + bytes(100))
    says(firsthand("audit", tmp_path / "cut.mcap"), 3, "cut.mcap")
    (tmp_path / "cut.vrs").write_bytes(b"VisionRe" + bytes(50))
    says(firsthand("audit", tmp_path / "cut.vrs", "--reference", "214-1"), 3, "cut.vrs")


def test_a_recording_that_is_not_there(tmp_path):
    says(firsthand("audit", tmp_path / "no.mcap"), 3, "no.mcap")


def test_a_disk_that_takes_no_more_loses_nothing_that_was_durable(tmp_path):
    path = write_rig(tmp_path)

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    done = firsthand("run", "--rig", path, "--state", tmp_path / "s", "--takes", 1, "--seconds", 4, preexec=small_files)
    says(done, 6, "episode.mcap")
    torn = [p.name for s in ("torn", "rejected") for p in (tmp_path / "s/spool" / s).iterdir()]
    assert len(torn) == 1
    # With room again, the next start recovers it, says so, and records on.
    again = run_rig(tmp_path, path, "--seconds", 1)
    assert again.returncode == 0, again.stderr
    listed = firsthand("episodes", "list", "--state", tmp_path / "s").stdout.splitlines()
    assert "rejected" in listed[0]
    assert "record.torn" in listed[0]
    assert torn[0] in listed[0]
    assert "uploaded" in listed[1]


def test_a_store_that_cannot_be_made_is_told_before_the_first_take(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/store").write_text("not a directory")
    says(run_rig(tmp_path, write_rig(tmp_path), "--seconds", 1), 7, "s/store cannot be made (File exists)")


def test_a_store_that_is_not_mounted_loses_nothing(tmp_path):
    store = tmp_path / "disk/store"
    path = write_rig(tmp_path, rig=RIG.replace('directory = "store"', f'directory = "{store}"'))
    done = run_rig(tmp_path, path, "--seconds", 1)
    says(done, 7, f"the store {store} is not there; mount it", "stay on the rig: 1")
    assert len(list((tmp_path / "s/spool/accepted").iterdir())) == 1
    store.mkdir(parents=True)
    again = run_rig(tmp_path, path, "--seconds", 1)
    assert again.returncode == 0, again.stderr
    assert len(list((tmp_path / "s/spool/uploaded").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fly"], ["fly"]),
        (["run"], ["rig"]),
        (["run", "--rig", "x", "--takes", "many"], ["takes"]),
        (["episodes", "show", "1", "--state", "nowhere"], ["nowhere holds no spool"]),
        (["audit"], ["name a recording"]),
        (["audit", "--stream", "x"], ["x"]),
        (["audit", "--stream", "a=b.txt", "--ceiling-ms", "zwei"], ["zwei"]),
    ],
)
def test_wrong_usage(tmp_path, arguments, words):
    says(firsthand(*arguments, cwd=tmp_path), 2, *words)


def test_live_without_a_daemon(tmp_path):
    says(firsthand("live", "--state", tmp_path), 3, "no daemon publishes figures")


def test_a_state_directory_that_is_not_a_demo_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("years")
    says(firsthand("demo", "--rig", "configs/sim.toml", "--state", tmp_path), 2, "not an earlier demo")
    assert (tmp_path / "thesis.txt").read_text() == "years"
