import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.errors import DeviceAbsent, DeviceError, UsageError
from firsthand_edge.sensors.page import CountersPage, StreamCounters, page_path

ROOT = Path(__file__).resolve().parents[2]


def test_counts_are_read_by_another_process_after_the_writer_was_killed(tmp_path):
    script = (
        "import os, signal, sys; from pathlib import Path; from firsthand_edge.sensors.page import CountersPage\n"
        "p = CountersPage.create(Path(sys.argv[1]), 'stereo', ['left', 'right'], incarnation=3)\n"
        "p.begin(9); p.add('right', exposures=5, sent=3, dropped_socket=2); p.beat(77)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    page = CountersPage.open(tmp_path, "stereo")
    assert page.streams == ("left", "right")
    assert (page.incarnation, page.epoch, page.beat_ns) == (3, 9, 77)
    assert page.counters("right") == StreamCounters(5, 3, 2)
    assert page.counters("left") == StreamCounters(0, 0, 0)
    page.close()
    page.close()


def test_a_restarted_worker_counts_on_within_its_epoch(tmp_path):
    first = CountersPage.create(tmp_path, "head", ["head"], incarnation=0)
    first.begin(4)
    first.add("head", sent=10)
    second = CountersPage.create(tmp_path, "head", ["head"], incarnation=1)
    second.begin(4)
    second.add("head", sent=5)
    assert second.counters("head").sent == 15
    assert first.counters("head").sent == 15
    assert first.incarnation == 1
    second.begin(5)
    assert second.counters("head").sent == 0


def test_a_new_run_or_other_streams_begin_a_new_page(tmp_path):
    old = CountersPage.create(tmp_path, "head", ["head"], incarnation=0)
    old.add("head", sent=10)
    assert CountersPage.create(tmp_path, "head", ["head"], incarnation=0).counters("head").sent == 0
    other = CountersPage.create(tmp_path, "head", ["head", "tail"], incarnation=1)
    assert other.counters("tail").sent == 0


def test_no_page_or_a_foreign_one_is_told(tmp_path):
    with pytest.raises(DeviceAbsent, match="no counters of device head"):
        CountersPage.open(tmp_path, "head")
    page_path(tmp_path, "head").write_bytes(bytes(4096))
    with pytest.raises(DeviceError, match="holds something else"):
        CountersPage.open(tmp_path, "head")
    with pytest.raises(UsageError, match="longer than 64 bytes"):
        CountersPage.create(tmp_path, "x", ["s" * 65], incarnation=0)
