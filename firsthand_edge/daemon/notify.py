"""Tells systemd how the daemon is: ready, alive, stopping (sd_notify(3): datagrams to NOTIFY_SOCKET)."""

from __future__ import annotations

import os
import socket

__all__ = ["notify"]


def notify(state: str) -> bool:
    """Sends `state`, such as `READY=1`, `WATCHDOG=1` or `STATUS=recording`. False when nobody asked to be told."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return False
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.sendto(state.encode(), address)
    return True
