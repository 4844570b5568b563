"""live: from the arrival of the sample that decides a tick to its verdict in the eyes of another process.

Processes as on a rig: a worker sends seven 60 Hz pictures and a 1 kHz IMU over the product's sockets; the recorder
process (`firsthand_edge.record.recorder`) writes them to disk and publishes the live page; a watcher reads the page
again and again; the owner of the recorder is this process, with or without a thread that computes all the time. The
clock starts when the worker turns to the last partner's message, so sending is in the figure. That message is the one
that takes the last stream past half a period after the tick before, which sync.md asks for before a tick may be final.
Pictures of a tick are sent a millisecond apart, as cameras deliver them, or all at once. The watcher must have seen
every tick, with the residual that was sent.

The rival is the same in Python: a `multiprocessing.Queue` from the worker into the daemon, a thread there that matches
with `bench.push.ByHand`, and a queue to the watcher, which waits in it and so reads at once.

Every process here competes with whatever else the machine does; `chrt -f 10 python -m bench live` shows what is left
without that.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zmq

from bench.dataset import PERIOD_NS, Take
from bench.line import Line
from bench.push import ByHand, rank
from firsthand_edge import _core
from firsthand_edge.model import Counter, DeviceInfo, Domain, Sample, StampPoint, StreamInfo
from firsthand_edge.process import Child
from firsthand_edge.sensors.transport import encode, endpoint, high_water

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PICTURES = ("head", "wrist_left", "wrist_right", "stereo_left", "stereo_right", "depth", "pose")
IMU_SAMPLES = 16
"""In a message, one a tick; a millisecond apart."""

PICTURE_BYTES = 50_000
TICKS = 1200
"""Twenty seconds, of which the first are for warming up."""
WARM_UP = 60
POLL_S = 0.00002
"""Between two looks at the page."""
GAP_NS = 1_000_000
"""Between the pictures of a tick."""
SPREAD_NS = 400_000
"""Stamps of a tick's pictures are so far apart; the verdict is known."""
EPOCH = 1

CONTEXT = multiprocessing.get_context("spawn")


def device() -> DeviceInfo:
    """All streams on one clock that is the rig's."""
    triggered = [
        StreamInfo(name, "record", triggered=True, stamp_point=StampPoint.MIDDLE, period_ns=PERIOD_NS)
        for name in PICTURES
    ]
    imu = StreamInfo("imu", "record", triggered=False, stamp_point=StampPoint.INSTANT, period_ns=1_000_000)
    return DeviceInfo(
        name="rig",
        driver="bench",
        model="",
        serial="",
        firmware="",
        domain=Domain.PTP,
        counter=Counter(),
        streams=(*triggered, imu),
        identity_map=True,
        min_delay_bound_ns=0,
    )


def plan() -> str:
    """As `firsthand_edge.record.plan` makes it."""
    streams: list[dict[str, Any]] = [{"name": n, "kind": "triggered", "period_ns": PERIOD_NS} for n in PICTURES]
    streams.append({"name": "imu", "kind": "sampled", "period_ns": 1_000_000})
    rig = {"reference": "head", "period_ns": PERIOD_NS, "ceiling_ns": 2_000_000, "latency_ns": 2_000_000_000}
    return json.dumps({**rig, "streams": streams})


def stamps(tick: int, start_ns: int) -> Iterator[tuple[str, list[int]]]:
    """The messages of a tick in the order in which they are sent; the last one decides the tick before."""
    t = start_ns + tick * PERIOD_NS
    yield "imu", [t + (i - IMU_SAMPLES // 2) * (PERIOD_NS // IMU_SAMPLES) for i in range(IMU_SAMPLES)]
    for at, name in enumerate(PICTURES):
        # Every tenth tick is further apart than the others: a verdict that is wrong is told from one that is late.
        yield name, [t + at * SPREAD_NS * (2 if tick % 10 == 0 else 1) // (len(PICTURES) - 1)]


def residual(tick: int) -> int:
    """What the monitor must find."""
    return SPREAD_NS * (2 if tick % 10 == 0 else 1)


@dataclass(frozen=True)
class Way:
    """Who stands between worker and watcher."""

    send: Callable[[str, list[int], int], None]
    close: Callable[[], None]


def by_socket(run_dir: str) -> Way:
    """The product's sockets."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sockets = {}
    for info in device().streams:
        sockets[info.name] = socket = context.socket(zmq.PUSH)
        socket.setsockopt(zmq.SNDHWM, high_water(info))
        socket.connect(endpoint(Path(run_dir), info.name))
    payload = bytes(PICTURE_BYTES)

    def send(stream: str, times: list[int], sequence: int) -> None:
        domain, body = Domain.PTP, b"" if stream == "imu" else payload
        samples = [Sample(stream, sequence + i, t, domain, time.monotonic_ns(), body) for i, t in enumerate(times)]
        sockets[stream].send_multipart(encode(samples, stream=stream, incarnation=0, epoch=EPOCH), copy=False)

    def close() -> None:
        for socket in sockets.values():
            socket.close(linger=1000)
        context.term()

    return Way(send, close)


def work(way: str, run_dir: str, queues: tuple[Any, Any], start_ns: int, gap_ns: int) -> None:
    """The worker process: each tick at its time. Puts when the decisive message of each tick was handed over."""
    queue, sent = queues
    if way == "socket":
        sending = by_socket(run_dir)
    else:
        payload = bytes(PICTURE_BYTES)
        sending = Way(lambda stream, times, _: queue.put((stream, times, payload)), lambda: queue.put(None))
    handed_over = []
    for tick in range(TICKS):
        for at, (stream, times) in enumerate(stamps(tick, start_ns)):
            due = start_ns + tick * PERIOD_NS + at * gap_ns
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            now = time.monotonic_ns()
            sending.send(stream, times, tick * len(times))
        handed_over.append(now)
    sending.close()
    sent.put(handed_over)


def watch_page(path: str, ready: Any, seen: Any) -> None:
    """The watcher process: when each tick was on the page, and with what residual."""
    page = _core.LivePage(Path(path))
    found: dict[int, tuple[int, int | None]] = {}
    ready.put("ready")
    last = -1
    while last < TICKS - 2:
        read = page.read()
        now = time.monotonic_ns()
        if read["tick"] > last:
            last = read["tick"]
            found[last] = (now, read["residual_ns"])
        time.sleep(POLL_S)
    seen.put(found)


def watch_queue(verdicts: Any, ready: Any, seen: Any) -> None:
    """The watcher of the rival."""
    found = {}
    ready.put("ready")
    for tick in range(TICKS - 1):
        value = verdicts.get()
        found[tick] = (time.monotonic_ns(), value)
    seen.put(found)


def match(queue: Any, verdicts: Any) -> None:
    """The rival's thread in the daemon."""
    own = ByHand(len(PICTURES) + 1)
    place = {name: at for at, name in enumerate((*PICTURES, "imu"))}
    while (item := queue.get()) is not None:
        stream, times, _ = item
        for t in times:
            own.push(place[stream], t)
        for _, value in own.advance(times[-1]):
            verdicts.put(value)


def latencies(way: str, *, busy: bool = False, gap_ns: int = GAP_NS) -> list[float]:
    """Per tick from the decisive message to the verdict, us."""
    with tempfile.TemporaryDirectory(prefix="live-") as name:
        home = Path(name)
        queue, sent, ready, seen, verdicts = (CONTEXT.Queue() for _ in range(5))
        child = None
        if way == "socket":
            child = Child("firsthand_edge.record.recorder", name="recorder", log_path=home / "log")
            child.call("prepare", timeout_s=10, devices=json.dumps([device().to_json()]), plan=plan(), run_dir=name)
            (home / "take").mkdir()
            take = {"directory": str(home / "take"), "epoch": EPOCH, "take": "{}", "attachments": []}
            child.call("start_take", timeout_s=10, **take)
            watcher = CONTEXT.Process(target=watch_page, args=(str(home / "live"), ready, seen))
        else:
            watcher = CONTEXT.Process(target=watch_queue, args=(verdicts, ready, seen))
            threading.Thread(target=match, args=(queue, verdicts), daemon=True).start()
        watcher.start()
        ready.get()
        start_ns = time.monotonic_ns() + 1_000_000_000
        worker = CONTEXT.Process(target=work, args=(way, name, (queue, sent), start_ns, gap_ns))
        over = threading.Event()
        computing = threading.Thread(target=compute, args=(over,), daemon=True)
        if busy:
            computing.start()
        worker.start()
        handed_over, found = sent.get(), seen.get()
        over.set()
        worker.join()
        watcher.join()
        if child is not None:
            note = {"ended": "bench", "worker": {}, "pulses": {}}
            end = child.call("stop_take", timeout_s=20, **note)
            lost = {k: v for k, v in end["counts"].items() if v["received"] != v["durable"]}
            assert not lost, lost
            child.stop()
    # A tick that came with the next one, within a poll, was seen with it.
    missed = TICKS - 1 - len(found)
    assert missed <= TICKS // 50, f"{missed} ticks were not seen on their own"
    wrong = {tick: value for tick, (_, value) in found.items() if value != residual(tick)}
    assert not wrong, f"{len(wrong)} residuals are wrong, {next(iter(wrong.items()))} first"
    return [(found[tick][0] - handed_over[tick + 1]) / 1000 for tick in sorted(found) if tick >= WARM_UP]


def compute(over: threading.Event) -> None:
    """Keeps the interpreter busy, as a careless part of a daemon might."""
    total = 0
    while not over.is_set():
        for i in range(1000):
            total += i * i


def lines(_take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table; of each way one run of twenty seconds."""
    del rounds
    gc.collect()
    quiet, busy, burst = latencies("socket"), latencies("socket", busy=True), latencies("socket", gap_ns=0)
    rival, rival_busy = latencies("queue"), latencies("queue", busy=True)

    def ms(values: list[float], num: int, den: int) -> float:
        return rank(values, num, den) / 1000

    return [
        Line("live", "arrival to verdict: p99", ms(quiet, 99, 100), "ms", 1, at_most=True),
        Line("live", "arrival to verdict: median", ms(quiet, 1, 2), "ms"),
        Line("live", "beside a computing thread in the daemon: p99", ms(busy, 99, 100), "ms", 2, at_most=True),
        Line("live", "beside a computing thread in the daemon: median", ms(busy, 1, 2), "ms"),
        Line("live", "all pictures of a tick at once: p99", ms(burst, 99, 100), "ms"),
        Line("live", "a Python queue: p99", ms(rival, 99, 100), "ms"),
        Line("live", "a Python queue beside a computing thread: p99", ms(rival_busy, 99, 100), "ms"),
        Line("live", "a Python queue beside a computing thread: median", ms(rival_busy, 1, 2), "ms"),
    ]
