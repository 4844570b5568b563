import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
import zmq

from firsthand_edge.errors import DeviceAbsent, DeviceError
from firsthand_edge.sensors.configuration import SimDevice
from firsthand_edge.sensors.supervisor import Supervisor, WorkerState
from firsthand_edge.sensors.transport import bind, decode, decode_samples
from firsthand_edge.trigger.simulated import SimulatedTrigger

ROOT = Path(__file__).resolve().parents[2]
PERIOD_NS = 16_666_667


def device(name, *faults, **more):
    streams = more.pop("stream", [{"name": name, "content": "picture", "rate_hz": 60, "exposure_us": 2000}])
    return SimDevice.model_validate(
        {
            "driver": "sim",
            "name": name,
            "seed": len(name),
            "min_delay_us": 3000,
            "spike_share": 0,
            "stream": streams,
            "fault": faults,
            **more,
        }
    )


class Rig:
    """Sockets, trigger and supervisor of a few devices."""

    def __init__(self, tmp_path, devices, **options):
        self.run_dir = tmp_path / "run"
        self.run_dir.mkdir(exist_ok=True)
        self.trigger = SimulatedTrigger(self.run_dir)
        self.supervisor = Supervisor(devices, run_dir=self.run_dir, log_dir=tmp_path, **options)
        self.context = zmq.Context()
        self.sockets = {}
        self.messages = defaultdict(list)
        self.events = []

    def start(self):
        infos = self.supervisor.start()
        for info in infos:
            for stream in info.streams:
                self.sockets[stream.name] = bind(self.context, self.run_dir, stream)
        return infos

    def receive(self):
        for name, socket in self.sockets.items():
            while socket.poll(0):
                frame, body = socket.recv_multipart()
                self.messages[name].append((decode(frame), body))
        self.events += self.supervisor.watch()

    def until(self, condition, timeout_s=15.0):
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, (self.events, self.supervisor.states())
            self.receive()
            time.sleep(0.002)

    def samples(self, stream, epoch=None):
        return [
            s
            for header, body in self.messages[stream]
            if epoch in (None, header.epoch)
            for s in decode_samples(header, body)
        ]

    def take(self, epoch, number, condition):
        self.supervisor.arm(epoch)
        self.trigger.start(number, period_ns=PERIOD_NS)
        self.until(condition)
        edges = self.trigger.stop()
        self.supervisor.disarm()
        self.until(lambda: all(any(h.end and h.epoch == epoch for h, _ in self.messages[n]) for n in self.sockets))
        return edges

    def kinds(self, name=None):
        return [e["kind"] for e in self.events if name in (None, e["device"])]

    def close(self):
        self.supervisor.stop()
        self.trigger.close()
        for socket in self.sockets.values():
            socket.close()
        self.context.term()


@pytest.fixture
def make_rig(tmp_path):
    rigs = []

    def make(*devices, **options):
        rigs.append(Rig(tmp_path, devices, **options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


def test_every_device_has_a_process_of_its_own_and_every_pulse_arrives(make_rig):
    rig = make_rig(device("head"), device("wrist"))
    infos = rig.start()
    assert [i.name for i in infos] == ["head", "wrist"]
    pids = rig.supervisor.pids()
    assert len({*pids.values(), os.getpid()}) == 3
    edges = rig.take(7, 1, lambda: len(rig.samples("head")) > 20)
    for name in ("head", "wrist"):
        samples = rig.samples(name)
        assert [s.sequence for s in samples] == list(range(len(edges.index)))
        assert {h.epoch for h, _ in rig.messages[name]} == {7}
        assert rig.messages[name][-1][0].end
        counters = rig.supervisor.counters()[name]
        assert (counters.exposures, counters.sent, counters.dropped_socket) == (len(samples), len(samples), 0)
    assert rig.events == []


def test_counts_belong_to_their_epoch(make_rig):
    rig = make_rig(device("head"))
    rig.start()
    rig.take(1, 0, lambda: len(rig.samples("head", 1)) > 5)
    rig.take(2, 1, lambda: len(rig.samples("head", 2)) > 5)
    assert rig.supervisor.counters()["head"].sent == len(rig.samples("head", 2))


@pytest.mark.parametrize(
    ("how", "cause"),
    [("segfault", "signal 11 (SIGSEGV)"), ("kill", "signal 9 (SIGKILL)"), ("exit", "status 3")],
)
def test_a_worker_that_dies_in_a_take_is_back_in_it_and_the_others_are_whole(make_rig, how, cause):
    die = {"kind": "die", "take": 1, "at_s": "0.3", "how": how}
    rig = make_rig(device("head"), device("wrist", die))
    rig.start()
    first_pid = rig.supervisor.pids()["wrist"]

    def back():
        return any(h.incarnation == 1 and h.count for h, _ in rig.messages["wrist"])

    edges = rig.take(3, 1, back)
    assert rig.kinds() == ["worker_died", "worker_back"]
    died = rig.events[0]
    assert died["device"] == "wrist"
    assert cause in died["cause"]
    assert rig.supervisor.pids()["wrist"] != first_pid
    assert [s.sequence for s in rig.samples("head")] == list(range(len(edges.index)))
    counters = rig.supervisor.counters()["wrist"]
    # The page outlives the worker: what both incarnations sent is counted, what died with the first one is not hidden.
    assert counters.sent >= len(rig.samples("wrist")) > 0
    assert {h.incarnation for h, _ in rig.messages["wrist"]} == {0, 1}


def test_a_driver_that_raises_ends_its_worker_with_its_own_sentence(make_rig):
    rig = make_rig(device("wrist", {"kind": "die", "take": 1, "at_s": "0.1", "how": "raise"}))
    rig.start()
    rig.take(1, 1, lambda: "worker_back" in rig.kinds())
    assert rig.events[0]["cause"] == "device wrist reports an internal error; switch it off and on again (status 5)"


def test_a_kill_from_outside_is_survived_between_takes_as_well(make_rig):
    rig = make_rig(device("head"))
    rig.start()
    os.kill(rig.supervisor.pids()["head"], signal.SIGKILL)
    rig.until(lambda: rig.kinds() == ["worker_died", "worker_back"])
    edges = rig.take(1, 1, lambda: len(rig.samples("head")) > 5)
    assert len(rig.samples("head")) == len(edges.index)
    assert {h.incarnation for h, _ in rig.messages["head"]} == {1}


def test_a_device_that_vanishes_is_tried_until_it_is_back(make_rig):
    rig = make_rig(device("wrist", {"kind": "come_back", "take": 1, "at_s": "0.2", "for_s": "3"}))
    rig.start()
    rig.take(1, 1, lambda: "worker_back" in rig.kinds())
    assert rig.kinds() == ["worker_died", "device_away", "worker_back"]
    assert "vanished from its bus" in rig.events[0]["cause"]
    assert rig.events[1]["cause"] == "device wrist is not there; plug it in again"


def test_a_worker_that_keeps_dying_is_given_up_and_arming_says_why(make_rig):
    rig = make_rig(device("head"), restarts=1)
    rig.start()

    def kill():
        os.kill(rig.supervisor.pids()["head"], signal.SIGKILL)

    kill()
    rig.until(lambda: rig.kinds() == ["worker_died", "worker_back"])
    kill()
    rig.until(lambda: rig.kinds()[2:] == ["worker_died", "worker_given_up"])
    assert rig.supervisor.states() == {"head": WorkerState.GIVEN_UP}
    with pytest.raises(DeviceError, match=r"device head is given_up, not ready: its worker ended with signal 9"):
        rig.supervisor.arm(1)


def test_a_hanging_worker_is_ended_with_that_as_its_cause(make_rig, monkeypatch):
    monkeypatch.setattr("firsthand_edge.sensors.supervisor._HANG_S", 0.5)
    rig = make_rig(device("head", {"kind": "die", "take": 1, "at_s": "0.1", "how": "hang"}))
    rig.start()
    rig.take(1, 1, lambda: "worker_back" in rig.kinds())
    assert "gave no sign of life for 0.5 s and was ended (signal 9 (SIGKILL))" in rig.events[0]["cause"]


def test_devices_that_cannot_be_opened_are_all_named(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    one = Supervisor([device("head")], run_dir=run_dir, log_dir=tmp_path)
    with pytest.raises(DeviceAbsent, match="no trigger line at"):
        one.start()
    two = Supervisor([device("head"), device("wrist")], run_dir=run_dir, log_dir=tmp_path)
    with pytest.raises(DeviceError, match=r"2 of 2 devices did not open: no trigger line .*; no trigger line"):
        two.start()
    assert two.pids() == {}


def test_a_foreign_worker_is_refused(make_rig, tmp_path):
    rig = make_rig(device("head"))
    rig.start()
    other = Supervisor([device("head")], run_dir=rig.run_dir, log_dir=tmp_path)
    pid = rig.supervisor.pids()["head"]
    with pytest.raises(DeviceError, match=f"device head is held by process {pid}, which is not ours"):
        other.start()
    assert rig.supervisor.pids()["head"] == pid


def test_workers_of_a_killed_owner_are_gone_within_a_second_and_the_next_owner_starts(tmp_path, make_rig):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    trigger = SimulatedTrigger(run_dir)
    config = device("head")
    script = (
        "import sys, time; from pathlib import Path\n"
        "from firsthand_edge.sensors.configuration import SimDevice\n"
        "from firsthand_edge.sensors.supervisor import Supervisor\n"
        "s = Supervisor([SimDevice.model_validate_json(sys.argv[1])], run_dir=Path(sys.argv[2]), "
        "log_dir=Path(sys.argv[2]))\n"
        "s.start(); s.arm(1); sys.stdout.write(f\"{s.pids()['head']}\\n\"); sys.stdout.flush(); time.sleep(3600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, config.model_dump_json(), str(run_dir)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    pid = int(owner.stdout.readline())
    trigger.start(1, period_ns=PERIOD_NS)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    begin = time.monotonic()
    while Path(f"/proc/{pid}").exists() and ") Z" not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() - begin < 5
        time.sleep(0.005)
    assert time.monotonic() - begin < 1.0
    trigger.close()
    rig = make_rig(config)
    assert [i.name for i in rig.start()] == ["head"]


def test_what_a_stalled_recorder_does_not_take_is_dropped_and_counted(make_rig):
    imu = {"name": "imu", "content": "imu", "rate_hz": 5000, "triggered": False, "stamp_point": "instant", "batch": 1}
    rig = make_rig(device("imu", stream=[imu]))
    rig.start()
    rig.supervisor.arm(1)
    rig.trigger.start(1, period_ns=PERIOD_NS)
    deadline = time.monotonic() + 30
    while rig.supervisor.counters()["imu"].dropped_socket == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = rig.supervisor.counters()["imu"].sent
    rig.until(lambda: rig.supervisor.counters()["imu"].sent > before + 100)
    rig.supervisor.disarm(drain_s=0.0)
    rig.until(lambda: any(h.end for h, _ in rig.messages["imu"]))
    counters = rig.supervisor.counters()["imu"]
    sequence = [s.sequence for s in rig.samples("imu")]
    assert counters.sent == len(sequence)
    assert counters.exposures == counters.sent + counters.dropped_socket
    gaps = (sequence[-1] - sequence[0] + 1) - len(sequence)
    assert 0 < gaps <= counters.dropped_socket


def test_stop_ends_every_process_and_lets_go_of_every_device(make_rig):
    rig = make_rig(device("head"), device("wrist"))
    rig.start()
    pids = rig.supervisor.pids()
    rig.supervisor.stop()
    rig.supervisor.stop()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())
    assert rig.supervisor.watch() == []
    rig.supervisor.start()
    assert set(rig.supervisor.pids().values()).isdisjoint(pids.values())
