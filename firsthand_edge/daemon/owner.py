"""A daemon that somebody runs in the foreground ends with him: his end of a pipe is its stdin."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["when_stdin_ends"]


def when_stdin_ends(stop: Callable[[], None]) -> None:
    """Calls `stop` from a side thread at the end of stdin; `stop` must be safe to call from there."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        stop()

    threading.Thread(target=watch, name="owner-watch", daemon=True).start()
