"""Records what real worker processes send, for tests: sockets, the core's intake, one take."""

import json
import threading
import time

import zmq

from firsthand_edge._core import Intake
from firsthand_edge.sensors.supervisor import Supervisor
from firsthand_edge.sensors.transport import bind, decode

from .rigs import PERIOD_NS


def plan_of(infos):
    streams = [s for info in infos for s in info.streams]
    return json.dumps(
        {
            "reference": streams[0].name,
            "period_ns": PERIOD_NS,
            "ceiling_ns": 2_000_000,
            "latency_ns": 100_000_000,
            "streams": [
                {
                    "name": s.name,
                    "kind": "triggered" if s.triggered else "interpolated" if s.period_ns else "event",
                    "period_ns": s.period_ns,
                    "decimate": 1,
                    "phase": 0,
                    "required": s.triggered,
                }
                for s in streams
            ],
        }
    )


class Recorder:
    """One take of a rig whose devices are processes; stops when every device has said that it is at its end."""

    def __init__(self, devices, trigger, run_dir, log_dir):
        self.trigger = trigger
        self.supervisor = Supervisor(devices, run_dir=run_dir, log_dir=log_dir)
        self.run_dir = run_dir
        self.context = zmq.Context()
        self.sockets = []
        self.events = []
        self.ends = {}

    def open(self):
        self.infos = self.supervisor.start()
        self.intake = Intake(
            json.dumps([i.to_json() for i in self.infos]), plan=plan_of(self.infos), live=self.run_dir / "live.page"
        )
        self.sockets = [bind(self.context, self.run_dir, s) for i in self.infos for s in i.streams]
        return self.infos

    def pump(self):
        got = 0
        for socket in self.sockets:
            while socket.poll(0):
                frame, body = socket.recv_multipart()
                h = decode(frame)
                got += h.count
                if h.end:
                    self.ends[h.stream] = h.epoch
                self.intake.push(h.stream, h.incarnation, h.epoch, h.flags, h.count, h.records, body)
        return got

    def until(self, condition, timeout_s=30.0):
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, (self.events, self.supervisor.states())
            if not self.pump():
                time.sleep(0.002)
            self.events += self.supervisor.watch()

    def beside(self, call):
        """Runs what blocks while samples are still taken in."""
        thread = threading.Thread(target=call)
        thread.start()
        while thread.is_alive():
            self.pump()
            thread.join(0.002)

    def all_ended(self):
        return sum(e["kind"] == "ended" for e in self.events) == len(self.infos)

    def record(self, directory, *, preview=False):
        if preview:
            self.supervisor.arm(1)
            self.trigger.start(0, period_ns=PERIOD_NS)
            self.until(self.all_ended)
            self.trigger.stop()
            self.beside(lambda: self.supervisor.disarm(drain_s=0.0))
            self.until(lambda: len(self.ends) == sum(len(i.streams) for i in self.infos))
            self.events.clear()
        self.supervisor.arm(2)
        self.intake.start_take(directory, epoch=2, take="{}", attachments=[])
        self.trigger.start(1, period_ns=PERIOD_NS)
        self.until(self.all_ended)
        edges = self.trigger.stop()
        self.beside(lambda: self.supervisor.disarm(drain_s=0.0))
        self.until(lambda: all(self.intake.ended().values()))
        self.intake.edges(edges.index, edges.time_ns)
        return self.intake.stop_take("{}")

    def close(self):
        self.supervisor.stop()
        self.trigger.close()
        for socket in self.sockets:
            socket.close()
        self.context.term()
