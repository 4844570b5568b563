"""Children of test_process.py: `python -m tests.process_children MODE`."""

import ctypes
import os
import sys
import time
from pathlib import Path

from firsthand_edge.errors import ConfigInvalid, DeviceAbsent, DiskFull
from firsthand_edge.process import Owner


def fail(kind):
    if kind == "absent":
        raise DeviceAbsent("device head is not there; plug it in")
    if kind == "full":
        raise DiskFull("no room")
    if kind == "config":
        raise ConfigInvalid("rig.toml", ["device.0: bad", "device.1: worse"])
    raise ValueError("a bug")


def nap(seconds):
    time.sleep(seconds)


def leave(status):
    os._exit(status)


def main():
    owner = Owner()
    mode = sys.argv[1]
    marker = sys.argv[2] if len(sys.argv) > 2 else ""
    turns = 0

    def work():
        nonlocal turns
        turns += 1
        if mode == "chatty":
            owner.report({"n": turns, "filler": "x" * 1000})
            return 0.0
        return 0.005

    def close():
        if marker:
            with Path(marker).open("a") as file:
                file.write(f"closed {os.getpid()}\n")

    def shout():
        print("printed by python")  # noqa: T201 - what a child prints must not get between the frames
        os.write(1, b"written to descriptor 1\n")
        return "shouted"

    owner.serve(
        {
            "echo": lambda **a: a,
            "fail": fail,
            "shout": shout,
            "turns": lambda: turns,
            "sleep": nap,
            "exit": leave,
            "crash": lambda: ctypes.string_at(0),
            "report": lambda n: [owner.report({"n": i}) for i in range(n)],
            "close": close,
        },
        poll=work,
    )


if __name__ == "__main__":
    main()
