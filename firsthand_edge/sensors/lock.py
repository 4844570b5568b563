"""One worker a device: whoever holds the lock on `<device>.pid` of the run directory owns the device.

The kernel lets go of the lock when its holder ends, however it ends, so a stale file means nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

from firsthand_edge.errors import DeviceError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["acquire", "holder"]


def _path(run_dir: Path, device: str) -> Path:
    return run_dir / f"{device}.pid"


def acquire(run_dir: Path, device: str, *, patience_s: float = 1.5) -> int:
    """Takes the device for this process until it ends. Returns the descriptor that holds it.

    Raises:
        DeviceError: Another process holds it, and did not end within `patience_s`.
    """
    deadline = time.monotonic() + patience_s
    fd = os.open(_path(run_dir, device), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                pid = os.pread(fd, 32, 0).decode().strip()
                os.close(fd)
                raise DeviceError(
                    f"device {device} is held by process {pid}, which is not ours; end it, then start again"
                ) from None
            time.sleep(0.01)
        else:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
            return fd


def holder(run_dir: Path, device: str) -> int | None:
    """Process id of the worker that holds the device; None when nobody does."""
    try:
        fd = os.open(_path(run_dir, device), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        digits = os.pread(fd, 32, 0).decode().strip()
        return int(digits) if digits.isdigit() else 0
    finally:
        os.close(fd)
    return None
