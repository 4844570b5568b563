"""`uploadd`: the process that sends what may leave the rig. Alone by design: a stuck upload cannot cost a frame.

    python -m firsthand_edge.daemon.uploadd --state DIR --store DIR (--once | --poll-s N)

It ends on SIGTERM and SIGINT within a block of the copy; what the store holds by then stays, the next start goes on.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from firsthand_edge.daemon.owner import when_stdin_ends
from firsthand_edge.durable import disk_errors, make_folder
from firsthand_edge.errors import FirsthandError, KeyRotated, UsageError
from firsthand_edge.log import configure, get_logger
from firsthand_edge.spool.restart import finish_steps
from firsthand_edge.spool.spool import open_spool
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from firsthand_edge.upload.uploader import Pass

__all__ = ["main"]

LOCK_NAME: Final = "uploadd.lock"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the process. Returns its exit status: 0, or that of the first failure of the last pass."""
    arguments = _parser().parse_args(argv)
    configure(process="uploadd")
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    if arguments.owned:
        when_stdin_ends(stop.set)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        return _run(arguments.state, arguments.store, None if arguments.once else arguments.poll_s, stop)
    except FirsthandError as exc:
        get_logger().error("ended", code=exc.code, why=str(exc))
        return exc.exit_status


def _run(state: Path, store: Path, poll_s: float | None, stop: threading.Event) -> int:
    log = get_logger()
    lock = _alone(state / "run")
    try:
        uploader = _open(state, store, stop)
        while True:
            try:
                done = uploader.run_once()
            except KeyRotated as exc:
                log.warning("the rig has another key; opening its spool again", why=str(exc))
                uploader = _open(state, store, stop)
                done = uploader.run_once()
            _tell(done)
            if poll_s is None or stop.is_set() or stop.wait(poll_s):
                return done.failures[0][1].exit_status if done.failures and not stop.is_set() else 0
    finally:
        os.close(lock)


def _open(state: Path, store: Path, stop: threading.Event) -> Uploader:
    spool = open_spool(state, create=True)
    for found in finish_steps(spool):
        get_logger().warning("found at start", what=found.what, episode=found.episode, sentence=found.sentence)
    return Uploader(spool, DirectoryStore(store), stopping=stop.is_set)


def _tell(done: Pass) -> None:
    log = get_logger()
    for episode in done.uploaded:
        log.info("uploaded", episode=episode)
    for episode in done.reported:
        log.info("reported", episode=episode)
    for episode in done.taken_back:
        log.warning("taken back from the store", episode=episode)
    for episode, error in done.failures:
        kept = "set aside" if episode in done.set_aside else "stays on the rig"
        log.error(kept, episode=episode, code=error.code, why=str(error))


def _alone(run: Path) -> int:
    """The descriptor that holds this spool's only sender. Raises UsageError when another one runs."""
    with disk_errors(f"{run} cannot be used"):
        make_folder(run)
        lock = os.open(run / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        os.close(lock)
        raise UsageError(f"another uploadd holds {run / LOCK_NAME}; stop that one first") from exc
    return lock


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="uploadd", description="Sends judged episodes from the spool to a store.")
    parser.add_argument("--state", type=Path, required=True, metavar="DIR", help="the rig's state directory")
    parser.add_argument("--store", type=Path, required=True, metavar="DIR", help="the store's directory; must be there")
    how = parser.add_mutually_exclusive_group(required=True)
    parser.add_argument("--owned", action="store_true", help="end when stdin ends, as when whoever started it is gone")
    how.add_argument("--once", action="store_true", help="one pass, then end")
    how.add_argument("--poll-s", type=_seconds, metavar="N", help="look again every N seconds")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
