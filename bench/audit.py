"""audit: the whole command `firsthand-edge audit`, from its start to its exit, and its memory.

It judges the take of the other benches as our own evidence (`bench.evidence_file`) and as somebody else's MCAP
(`bench.foreign_file`), compressed with zstd and not. The rival is the public `mcap` package, which reads the same
stamps message by message; it reads ten minutes at most, and its time for the whole is that time per message times the
messages. Its stamps must be the same, to the nanosecond.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mcap.reader import make_reader
from rosbags.rosbag1 import Writer

from bench import evidence_file
from bench.dataset import take as make_take
from bench.foreign_file import topics, write
from bench.line import Line
from firsthand_edge import _core

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.dataset import Take

CODE = """
import sys
from pathlib import Path
from firsthand_edge.cli import run
status = run(sys.argv[1:])
memory = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in memory if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(status)
"""
"""The command, and what the kernel says of its memory; the usage of a child would count its parent's in."""
RIVAL_SECONDS = 600
BAG_SECONDS = 300
TEN_HOURS = 36_000
GOALS = {"log": 10.0, "header": 20.0, "other": 20.0}
"""Seconds for ten hours."""


@dataclass(frozen=True, slots=True)
class Run:
    """One command, as the operating system counted it."""

    seconds: float
    megabytes: float
    report: dict[str, Any]


def lines(take: Take, *, rounds: int) -> list[Line]:
    """The lines of the table: medians of up to three runs."""
    out = []
    with tempfile.TemporaryDirectory() as name:
        for compression in ("zstd", ""):
            path = Path(name) / f"{compression or 'raw'}.mcap"
            messages = write(path, take, compression=compression)
            for stamps in ("log", "header"):
                runs = [run(path, "--reference", "head", "--stamps", stamps) for _ in range(min(rounds, 3))]
                assert sum(row["samples"] for row in runs[0].report["streams"].values()) == messages
                out += _lines(take, compression or "uncompressed", stamps, runs)
                if compression:
                    out.append(_against_the_rival(Path(name), stamps, runs, messages, take))
            path.unlink()
        evidence = evidence_file.write(Path(name) / "episode", take)
        out += _lines(take, "our evidence", None, [run(evidence) for _ in range(min(rounds, 3))])
        lists = write_lists(Path(name), take)
        out += _lines(take, "three lists", None, [run(*lists) for _ in range(min(rounds, 3))])
        out += _bag(Path(name))
    return out


def write_lists(folder: Path, take: Take) -> list[str]:
    """The reference, one camera and the IMU as lists of nanoseconds; gives the arguments that name them."""
    arguments = []
    for name, times, keys in (
        ("head", take.pictures[0], ""),
        ("camera", take.pictures[1], ""),
        ("imu", take.imu, ",kind=sampled"),
    ):
        path = folder / f"{name}.txt"
        with path.open("w") as file:
            for part in np.array_split(times, 1 + times.size // 1_000_000):
                file.write("".join(f"{stamp}\n" for stamp in part.tolist()))
        arguments += ["--stream", f"{name}={path}{keys}"]
    return arguments


def _bag(folder: Path) -> Iterator[Line]:
    """What a message of a ROS 1 bag costs: the public package reads it, one by one."""
    times = make_take(BAG_SECONDS).imu
    path = folder / "short.bag"
    with Writer(path) as writer:
        definition = {"msgdef": "Header header\n", "md5sum": "0" * 32}
        connection = writer.add_connection("/head", "sensor_msgs/msg/Image", **definition)
        for stamp in times.tolist():
            sec, nsec = divmod(stamp, 1_000_000_000)
            writer.write(connection, stamp + 2_000_000, struct.pack("<III64x", 7, sec, nsec))
    for stamps in ("log", "header"):
        seconds = run(str(path), "--reference", "head", "--stamps", stamps).seconds - run_nothing()
        yield Line("audit", f"a message of a ROS 1 bag, --stamps {stamps}", seconds / times.size * 1e6, "us")


def run_nothing() -> float:
    """Seconds of a command that ends at once."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", CODE, "audit", "--help"], capture_output=True, check=True)
    return time.perf_counter() - start


def _lines(take: Take, what: str, stamps: str | None, runs: list[Run]) -> Iterator[Line]:
    what = f"{take.label}, {what}" + (f", --stamps {stamps}" if stamps else "")
    goal = GOALS[stamps or "other"] if take.seconds >= TEN_HOURS else None
    yield Line("audit", what, statistics.median(run.seconds for run in runs), "s", goal, at_most=True)
    yield Line("audit", f"memory of that: {take.label}", max(run.megabytes for run in runs), "MB")


def run(*arguments: str | Path) -> Run:
    """Runs the command in a process of its own."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, "audit", *map(str, arguments), "--json"],
        capture_output=True,
        check=False,
    )
    spent = time.perf_counter() - start
    assert done.returncode in (0, 1), done.stderr
    return Run(spent, int(done.stderr.split()[1]) / 1000, json.loads(done.stdout))


def _against_the_rival(folder: Path, stamps: str, runs: list[Run], messages: int, take: Take) -> Line:
    """How much longer the public package takes for the stamps alone than the command for stamps and verdict."""
    short = make_take(min(take.seconds, RIVAL_SECONDS))
    path = folder / "short.mcap"
    count = write(path, short, compression="zstd")
    start = time.perf_counter()
    theirs = publicly(path, stamps)
    whole = (time.perf_counter() - start) / count * messages
    ours = {topic["name"]: topic["times_ns"] for topic in _core.read_stamps(path, stamps=stamps)["topics"]}
    for name, times in topics(short).items():
        assert np.array_equal(ours[name], theirs[name])
        assert stamps == "log" or np.array_equal(ours[name], times)
    path.unlink()
    ratio = whole / statistics.median(run.seconds for run in runs)
    return Line(
        "audit", f"stamps alone by `mcap` ({whole:.0f} s, by {count:,} of {messages:,} messages) / that", ratio, "x"
    )


def publicly(path: Path, stamps: str) -> dict[str, list[int]]:
    """The stamps as the public package gives them."""
    header = struct.Struct("<iI").unpack_from
    found: dict[str, list[int]] = {}
    with path.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
            if stamps == "log":
                value = message.log_time
            else:
                sec, nsec = header(message.data, 4)
                value = sec * 1_000_000_000 + nsec
            found.setdefault(channel.topic, []).append(value)
    return found
