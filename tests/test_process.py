import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsthand_edge.errors import ConfigInvalid, DeviceAbsent, DiskFull, FirsthandError, UsageError
from firsthand_edge.process import Child, ProcessEnded, ProcessSilent, describe_exit

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def make(tmp_path):
    children = []

    def start(mode="plain", *args):
        child = Child("tests.process_children", [mode, *args], name=mode, log_path=tmp_path / "log")
        children.append(child)
        return child

    yield start
    for child in children:
        child.stop(timeout_s=2)


def until(condition, timeout_s=10.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.005)


def gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def test_arguments_and_values_cross_unchanged(make):
    value = {"a": [1, -(2**63), 2**63], "b": b"\x00\xff", "c": "umlaut: \u00e4", "d": None, "e": 1.5, "n": {"x": True}}
    assert make().call("echo", timeout_s=20, **value) == value


def test_a_message_larger_than_the_pipe_crosses_both_ways(make):
    assert make().call("echo", timeout_s=20, big=b"\x5a" * 5_000_000) == {"big": b"\x5a" * 5_000_000}


@pytest.mark.parametrize(("kind", "error"), [("absent", DeviceAbsent), ("full", DiskFull), ("config", ConfigInvalid)])
def test_an_error_comes_back_as_its_own_class_with_its_sentence(make, kind, error):
    with pytest.raises(error) as caught:
        make().call("fail", timeout_s=20, kind=kind)
    assert type(caught.value) is error
    expected = {"absent": "device head is not there; plug it in", "full": "no room"}
    if kind in expected:
        assert str(caught.value) == expected[kind]
    else:
        assert "device.1: worse" in str(caught.value)
        assert caught.value.mistakes == ()


def test_a_bug_in_a_handler_is_told_and_survived(make):
    child = make()
    with pytest.raises(FirsthandError, match="fail failed with ValueError: a bug"):
        child.call("fail", timeout_s=20, kind="bug")
    assert child.call("echo", timeout_s=20) == {}
    assert "a bug" in child.log_path.read_text()


def test_an_unknown_command_names_the_known_ones(make):
    with pytest.raises(UsageError, match="no command dance; there are close, crash, echo"):
        make().call("dance", timeout_s=20)


def test_what_a_child_prints_goes_to_the_log_and_not_between_the_frames(make):
    child = make()
    assert child.call("shout", timeout_s=20) == "shouted"
    child.stop()
    log = child.log_path.read_text()
    assert "printed by python" in log
    assert "written to descriptor 1" in log


def test_work_goes_on_between_commands(make):
    child = make()
    first = child.call("turns", timeout_s=20)
    until(lambda: child.call("turns", timeout_s=5) > first + 3)


def test_many_children_work_at_once_on_posted_requests(make):
    children = [make() for _ in range(3)]
    for child in children:
        child.call("echo", timeout_s=20)
    begin = time.monotonic()
    tickets = [(child, child.post("sleep", seconds=0.4)) for child in children]
    for child, ticket in tickets:
        child.wait(ticket, timeout_s=5)
    assert time.monotonic() - begin < 1.1  # one after the other would be 1.2


def test_reports_arrive_in_order(make):
    child = make()
    child.call("report", timeout_s=20, n=100)
    assert [r["n"] for r in child.reports()] == list(range(100))
    assert child.reports_lost == 0


def test_a_slow_reader_of_reports_neither_stops_the_work_nor_loses_replies(make):
    child = make("chatty")
    ticket = child.post("turns")
    until(lambda: child.answered(ticket), 20)
    before = child.wait(ticket, timeout_s=20)
    # Nobody reads while the child reports far more than the pipe and its backlog hold.
    ticket = child.post("sleep", seconds=0.0)
    time.sleep(0.3)
    child.wait(ticket, timeout_s=5)
    after = child.call("turns", timeout_s=5)
    assert after > before
    numbers = [r["n"] for r in child.reports()]
    assert numbers == sorted(numbers)
    until(lambda: (child.reports(), child.reports_lost > 0)[1])


def test_no_answer_in_time_is_said_and_a_late_one_thrown_away(make):
    child = make()
    child.call("echo", timeout_s=20)
    with pytest.raises(ProcessSilent, match=r"did not answer within 0.05 s"):
        child.call("sleep", timeout_s=0.05, seconds=0.3)
    assert child.call("echo", timeout_s=5, x=1) == {"x": 1}


def test_a_segmentation_fault_is_named_and_traced_in_the_log(make):
    child = make()
    with pytest.raises(ProcessEnded, match=r"ended with signal 11 \(SIGSEGV\)"):
        child.call("crash", timeout_s=20)
    assert not child.alive
    assert child.exit_cause() == "signal 11 (SIGSEGV)"
    assert "Segmentation fault" in child.log_path.read_text()
    with pytest.raises(ProcessEnded):
        child.call("echo", timeout_s=5)


def test_an_exit_status_is_named(make):
    child = make()
    with pytest.raises(ProcessEnded, match="ended with status 3"):
        child.call("exit", timeout_s=20, status=3)


def test_sigkill_is_named(make):
    child = make()
    child.call("echo", timeout_s=20)
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not child.alive)
    assert child.exit_cause() == "signal 9 (SIGKILL)"


def test_stop_lets_the_child_close_and_is_safe_twice(make, tmp_path):
    child = make("plain", str(tmp_path / "marker"))
    child.call("echo", timeout_s=20)
    assert child.stop() == "status 0"
    assert child.stop() == "status 0"
    assert (tmp_path / "marker").read_text() == f"closed {child.pid}\n"
    with pytest.raises(ProcessEnded, match="was stopped"):
        child.call("echo", timeout_s=1)


def test_a_child_that_does_not_end_is_killed(make):
    child = make()
    child.call("echo", timeout_s=20)
    child.post("sleep", seconds=3600)
    begin = time.monotonic()
    assert child.stop(timeout_s=0.2) == "signal 9 (SIGKILL)"
    assert time.monotonic() - begin < 5


def test_an_interrupt_on_the_terminal_does_not_reach_a_child(make):
    child = make()
    child.call("echo", timeout_s=20)
    assert os.getpgid(child.pid) == child.pid
    os.kill(child.pid, signal.SIGINT)
    assert child.call("echo", timeout_s=5) == {}


def test_children_of_a_killed_owner_close_and_are_gone_within_a_second(tmp_path):
    log = tmp_path / "log"
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.process_owner", str(log), "plain", "hangs", "chatty"],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    )
    try:
        pids = [int(p) for p in owner.stdout.readline().split()]
        assert len(pids) == 3
        assert not any(gone(p) for p in pids)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    begin = time.monotonic()
    until(lambda: all(gone(p) for p in pids), 5)
    assert time.monotonic() - begin < 1.0
    assert (tmp_path / "log.plain").read_text() == f"closed {pids[0]}\n"
    assert (tmp_path / "log.chatty").read_text() == f"closed {pids[2]}\n"
    assert not (tmp_path / "log.hangs").exists()


@pytest.mark.parametrize(
    ("status", "words"), [(None, "still running"), (0, "status 0"), (-11, "signal 11 (SIGSEGV)"), (-99, "signal 99")]
)
def test_describe_exit(status, words):
    assert describe_exit(status) == words
