"""The daemon with real workers, a real recorder and real signals."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from firsthand_edge import _core
from firsthand_edge.cli.running import RunningRig
from firsthand_edge.daemon.control import ControlClient
from firsthand_edge.errors import FirsthandError, UsageError
from firsthand_edge.sensors.page import CountersPage
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.spool import Spool
from tests.daemon.rigs import gone, record, running, until, wait_ticks, write_rig
from tests.interrupts import interrupts_reach_children


def spool_of(rig) -> Spool:
    return Spool(rig.state / "spool", KeyPair.load_or_create(rig.state / "keys"))


def codes(summary: dict) -> list[str]:
    return [reason["code"] for reason in summary["report"]["reasons"]]


def test_a_clean_take_is_accepted_and_every_column_of_its_balance_adds_up(tmp_path):
    with running(tmp_path) as rig:
        summary = record(rig, seconds=1.5)
        assert codes(summary) == []
        assert summary["state"] == "accepted"
        manifest = spool_of(rig).committed(spool_of(rig).find(summary["episode"])).manifest
    assert manifest.consent.state == "not_checked"
    assert manifest.capture is not None
    assert (manifest.capture.task, manifest.capture.objects, manifest.capture.outcome) == (
        "pick-cup",
        ("cup-1",),
        "success",
    )
    claimed = datetime.strptime(manifest.take.claimed_utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - claimed).total_seconds()) < 120
    assert manifest.take.name == "plan.toml, take 1 of 100"
    assert (manifest.spec.throw_away, len(manifest.spec.signatures)) == (True, 1)
    for name, row in manifest.balance.items():
        assert row.faults() == [], name
        assert row.exposures == row.durable > 0
    assert manifest.balance["head"].pulses == manifest.balance["head"].exposures


def test_on_a_broken_chain_takes_are_recorded_and_said_to_wait(tmp_path):
    with running(tmp_path) as rig:
        chain = rig.state / "spool" / "chain.jsonl"
        copy = chain.read_bytes()
        chain.write_bytes(copy + b"no row\n")
        for number in (1, 2):
            with pytest.raises(FirsthandError, match=r"recorded and sealed as test-01-.*, and waits: .*broken at line"):
                record(rig, number=number, seconds=1)
        spool = spool_of(rig)
        assert [episode.state for episode in spool.episodes()] == ["sealed", "sealed"]
    chain.write_bytes(copy)  # as the store has it: without the rows since
    with running(tmp_path) as rig:
        assert [episode.state for episode in spool_of(rig).episodes()] == ["accepted", "accepted"]


def test_another_process_reads_tick_figures_while_the_take_runs(tmp_path):
    with running(tmp_path) as rig:
        rig.begin(number=1)
        wait_ticks(rig, 30)
        script = (
            "import sys, json, pathlib; from firsthand_edge import _core; "
            "page = _core.LivePage(pathlib.Path(sys.argv[1])).read(); "
            "print(json.dumps([page['recording'], page['tick'], page['residual_ns'], sorted(page['streams'])]))"
        )
        out = subprocess.run(
            [sys.executable, "-c", script, str(rig.run_dir / "live")], capture_output=True, text=True, check=True
        ).stdout
        rig.call("stop_take", timeout_s=60)
    recording, tick, residual, streams = json.loads(out)
    assert recording
    assert tick >= 30
    assert 0 <= residual < 2_000_000
    assert streams == ["head", "imu", "wrist"]


def test_a_segfault_of_a_worker_costs_its_stream_and_nothing_else(tmp_path):
    with running(tmp_path) as rig:
        rig.begin(number=1)
        wait_ticks(rig, 30)
        pid = rig.call("status", timeout_s=5)["pids"]["wrist"]
        os.kill(pid, signal.SIGSEGV)
        until(lambda: rig.call("status", timeout_s=5)["pids"].get("wrist", pid) != pid, "a new worker")
        wait_ticks(rig, 150)
        summary = rig.call("stop_take", timeout_s=60)
        spool = spool_of(rig)
        episode = spool.find(summary["episode"])
        balance = spool.committed(episode).manifest.balance
        events = _core.read_evidence(episode.path / "evidence.mcap")["events"]
        second = record(rig, number=2, seconds=1.0)
    assert summary["state"] == "rejected"
    wrist = [r for r in summary["report"]["reasons"] if r.get("stream") == "wrist"]
    assert wrist, codes(summary)
    assert all(r.get("stream") == "wrist" for r in summary["report"]["reasons"])
    assert any("SIGSEGV" in str(r.get("cause", "")) for r in wrist)
    assert any("worker_died" in event for event in events)
    for name in ("head", "imu"):
        assert balance[name].exposures == balance[name].durable
        assert balance[name].faults() == []
    assert second["state"] == "accepted", codes(second)


def test_after_sigkill_nobody_is_left_and_the_take_is_recovered_and_rejected(tmp_path):
    with running(tmp_path) as rig:
        episode = rig.begin(number=1)
        wait_ticks(rig, 120)
        pids = rig.call("status", timeout_s=5)["pids"]
        rig.kill_daemon()
        until(lambda: all(gone(pid) for pid in pids.values()), "the end of all children", limit_s=3.0)
        rig.start_daemon()
        summary = rig.call("episode", timeout_s=10, episode=episode)
        assert summary["state"] == "rejected"
        assert "record.torn" in codes(summary)
        assert summary["report"]["span"]["ticks"] > 30
        assert summary["capture"]["task"] == "pick-cup"
        second = record(rig, number=2, seconds=1.0)
    assert second["state"] == "accepted", codes(second)
    assert [e.id for e in spool_of(rig).episodes()] == sorted([episode, second["episode"]])
    manifest = spool_of(rig).committed(spool_of(rig).find(second["episode"])).manifest
    assert manifest.take.name == "plan.toml, take 2 of 100"  # the torn one was begun, so it counts


def test_the_recorders_death_tears_the_take_and_the_next_one_works(tmp_path):
    with running(tmp_path) as rig:
        episode = rig.begin(number=1)
        wait_ticks(rig, 90)
        os.kill(rig.call("status", timeout_s=5)["pids"]["recorder"], signal.SIGKILL)
        until(lambda: rig.call("status", timeout_s=30)["phase"] != "recording", "the end of the take")
        assert "record.torn" in codes(rig.call("episode", timeout_s=10, episode=episode))
        assert record(rig, number=2, seconds=1.0)["state"] == "accepted"


def test_a_recorder_that_cannot_be_prepared_is_started_again_until_it_can(tmp_path):
    with running(tmp_path) as rig:
        page = rig.run_dir / "live"
        page.unlink()
        page.mkdir()  # where no page can be made, as on a disk that just filled up
        os.kill(rig.call("status", timeout_s=5)["pids"]["recorder"], signal.SIGKILL)
        until(lambda: rig.call("status", timeout_s=5)["phase"] == "unfit", "a rig that is unfit and says so")
        assert "live" in rig.call("status", timeout_s=5)["why"]
        page.rmdir()
        assert record(rig, number=1, seconds=1)["state"] == "accepted"


def test_sigterm_in_mid_take_seals_and_judges_it(tmp_path):
    with running(tmp_path) as rig:
        episode = rig.begin(number=1)
        wait_ticks(rig, 60)
        rig.close()
        assert spool_of(rig).find(episode).state == "accepted"


def test_one_daemon_a_state_directory(tmp_path):
    with running(tmp_path) as rig:
        second = subprocess.run(
            [
                sys.executable,
                "-m",
                "firsthand_edge.daemon.captured",
                "--rig",
                str(tmp_path / "rig.toml"),
                "--state",
                str(rig.state),
            ],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert second.returncode == UsageError.exit_status
    assert "another daemon runs on" in second.stderr


def test_takes_follow_one_another(tmp_path):
    with running(tmp_path) as rig:
        with pytest.raises(Exception, match="no take is running"):
            rig.call("stop_take", timeout_s=5)
        rig.begin(number=1)
        with pytest.raises(Exception, match="take 1 is running"):
            rig.call("start_take", timeout_s=5, number=2)
        with pytest.raises(Exception, match="does not know"):
            rig.call("fly", timeout_s=5)
        rig.call("stop_take", timeout_s=60)


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("rig.toml", 'name = "wrist"', 'name = "elbow"', "no device delivers wrist, which the spec requires"),
        (
            "spec.toml",
            'name = "wrist"\n',
            'name = "wrist"\nstamp_domains = ["ptp"]\n',
            "wrist of wrist is stamped by the clock `device`, and the spec takes ptp",
        ),
    ],
)
def test_a_rig_that_does_not_fit_its_spec_is_unfit_before_the_first_take(tmp_path, file, old, new, says):
    path = write_rig(tmp_path)
    (tmp_path / file).write_text((tmp_path / file).read_text().replace(old, new))
    done = subprocess.run(
        [sys.executable, "-m", "firsthand_edge.daemon.captured", "--rig", str(path), "--state", str(tmp_path / "s")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5
    assert says in done.stderr


def test_a_worker_that_hangs_costs_its_own_stream_only(tmp_path):
    with running(tmp_path) as rig:
        rig.begin(number=1)
        wait_ticks(rig, 60)
        pid = rig.call("status", timeout_s=5)["pids"]["wrist"]
        os.kill(pid, signal.SIGSTOP)
        summary = rig.call("stop_take", timeout_s=60)
    assert {reason.get("stream") for reason in summary["report"]["reasons"]} == {"wrist"}


def test_what_a_recorder_that_stands_still_costs_is_counted_where_it_is_lost(tmp_path):
    with running(tmp_path) as rig:
        rig.begin(number=1)
        wait_ticks(rig, 60)
        pid = rig.call("status", timeout_s=5)["pids"]["recorder"]
        os.kill(pid, signal.SIGSTOP)
        dropped = {}

        def overflown() -> bool:
            for name in ("head", "wrist"):
                page = CountersPage.open(rig.run_dir, name)
                dropped[name] = page.counters(name).dropped_socket
                page.close()
            return all(count > 10 for count in dropped.values())

        until(overflown, "drops at the full sockets", limit_s=30)
        os.kill(pid, signal.SIGCONT)
        summary = rig.call("stop_take", timeout_s=60)
        balance = spool_of(rig).committed(spool_of(rig).find(summary["episode"])).manifest.balance
    assert "record.overrun" in codes(summary)
    for name in ("head", "wrist"):
        assert balance[name].lost.socket >= dropped[name] > 10
    for name, row in balance.items():
        assert row.faults() == [], name


def test_a_take_that_was_closed_and_not_sealed_before_a_crash_is_torn_all_the_same(tmp_path):
    with running(tmp_path) as rig:
        kept = record(rig, seconds=1.0)["episode"]
    state = tmp_path / "again"
    folder = state / "spool/recording" / kept
    folder.mkdir(parents=True)
    for name in ("episode.mcap", "evidence.mcap"):
        shutil.copy(tmp_path / "s/spool/accepted" / kept / name, folder)
    with RunningRig(tmp_path / "rig.toml", state) as rig:
        summary = rig.call("episode", timeout_s=10, episode=kept)
        assert record(rig, number=2, seconds=1.0)["state"] == "accepted"
    assert summary["state"] == "rejected"
    assert codes(summary) == ["record.torn"]


def test_a_lost_key_is_told_and_nothing_is_touched(tmp_path):
    with running(tmp_path) as rig:
        kept = record(rig, seconds=1.0)["episode"]
    shutil.rmtree(tmp_path / "s/keys")
    with pytest.raises(FirsthandError, match="restore the key that signed") as caught, running(tmp_path):
        pass
    assert caught.value.exit_status == 4
    assert (tmp_path / "s/spool/accepted" / kept).is_dir()
    assert not (tmp_path / "s/keys").exists()


def test_whoever_finds_another_daemon_at_work_leaves_it_alone(tmp_path):
    with running(tmp_path) as rig:
        with pytest.raises(FirsthandError, match="another daemon runs on") as caught, running(tmp_path):
            pass
        assert caught.value.exit_status == UsageError.exit_status
        assert rig.call("status", timeout_s=5)["phase"] == "ready"


def test_a_take_that_the_daemon_gave_up_is_shown_with_its_reasons(tmp_path):
    with running(tmp_path) as rig:
        killer = threading.Timer(
            1.0, lambda: os.kill(rig.call("status", timeout_s=5)["pids"]["recorder"], signal.SIGKILL)
        )
        killer.start()
        summary = rig.record(number=1, seconds=20, title="take 1", view=rig.view())
        killer.join()
    assert summary["state"] == "rejected"
    assert "record.torn" in codes(summary)


@pytest.mark.parametrize("signals", [[signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT], 3 * [signal.SIGINT]])
def test_nobody_is_left_when_the_command_is_ended(tmp_path, signals):
    path = write_rig(tmp_path)
    command = [sys.executable, "-m", "firsthand_edge.cli", "run", "--rig", str(path), "--state", str(tmp_path / "s")]
    with interrupts_reach_children():
        done = subprocess.Popen([*command, "--seconds", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {}

    def recording() -> bool:
        with contextlib.suppress(FirsthandError), ControlClient(tmp_path / "s/run") as client:
            found.update(client.call("status", timeout_s=1.0))
        return found.get("phase") == "recording"

    until(recording, "a running take", limit_s=40)
    for number in signals:
        done.send_signal(number)
    done.wait(60)
    pids = [found["pid"], *found["pids"].values()]
    until(lambda: all(gone(pid) for pid in pids), "the end of the daemon and its children")
    assert [path.name for path in (tmp_path / "s/spool/recording").iterdir()] == []


def test_a_daemon_that_dies_while_its_answer_is_awaited_is_told_at_once(tmp_path):
    with running(tmp_path) as rig:
        rig.begin(number=1)
        wait_ticks(rig, 30)
        pids = rig.call("status", timeout_s=5)["pids"]
        os.kill(pids["recorder"], signal.SIGSTOP)  # so that `stop_take` has to wait
        killer = threading.Timer(0.5, lambda: os.kill(rig.daemon_pid, signal.SIGKILL))
        killer.start()
        with pytest.raises(FirsthandError, match="the daemon ended with status -9"):
            rig.call("stop_take", timeout_s=600)
        with contextlib.suppress(ProcessLookupError):  # the kernel may have ended it with its owner
            os.kill(pids["recorder"], signal.SIGKILL)


def test_a_recorder_that_hangs_in_the_warm_up_is_replaced(tmp_path):
    run_dir = tmp_path / "s/run"
    run_dir.mkdir(parents=True)
    command = [sys.executable, "-m", "firsthand_edge.daemon.captured", "--rig", str(write_rig(tmp_path))]
    daemon = subprocess.Popen(
        [*command, "--state", str(tmp_path / "s"), "--owned"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    seen = {}

    def status() -> dict:
        with contextlib.suppress(FirsthandError), ControlClient(run_dir) as client:
            seen.update(client.call("status", timeout_s=1.0))
        return seen

    until(lambda: status().get("phase") == "warming", "the warm-up")
    hung = seen["pids"]["recorder"]
    os.kill(hung, signal.SIGSTOP)
    until(lambda: status()["phase"] == "ready" and seen["pids"]["recorder"] != hung, "another recorder", limit_s=60)
    daemon.stdin.close()
    assert daemon.wait(30) == 0
