"""Logs: JSON for machines, readable on a terminal."""

import json
import os
import pty
import subprocess
import sys

SCRIPT = (
    "from firsthand_edge.log import configure, get_logger\n"
    "configure(process='captured')\n"
    "get_logger().warning('device', device='wrist', cause='signal 11 (SIGSEGV)')\n"
)


def test_machines_get_one_json_object_a_line():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    row = json.loads(line)
    assert row["timestamp"].endswith("Z")
    assert {k: row[k] for k in ("event", "level", "process", "device", "cause")} == {
        "event": "device",
        "level": "warning",
        "process": "captured",
        "device": "wrist",
        "cause": "signal 11 (SIGSEGV)",
    }
    assert done.stdout == ""


def test_a_terminal_gets_a_readable_line():
    owner, terminal = pty.openpty()
    subprocess.run([sys.executable, "-c", SCRIPT], stderr=terminal, check=True)
    os.close(terminal)
    said = os.read(owner, 4096).decode()
    os.close(owner)
    assert "device" in said
    assert "SIGSEGV" in said
    assert not said.lstrip().startswith("{")
