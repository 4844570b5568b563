"""Real SIGKILLs at chosen instants: a forked child ends itself at the n-th call that can change the disk."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firsthand_edge import durable

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
"""Where many crashes are tried: a SIGKILL cannot tell a disk from memory, and fsync costs nothing there."""

CALLS = ("open", "write", "pwrite", "fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate")


class Killer:
    """Counts calls that can change the disk; at number `at` it kills its own process, a write then half done."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.calls = 0

    def arm(self) -> None:
        for name in CALLS:
            setattr(os, name, self._deadly(getattr(os, name), half=name in {"write", "pwrite"}))

        class Libc:
            renameat2 = staticmethod(self._deadly(durable._libc.renameat2, half=False))

        durable._libc = Libc  # type: ignore[assignment]

    def _deadly(self, real: Callable[..., Any], *, half: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self.calls == self.at:
                if half:
                    descriptor, data, *place = arguments
                    real(descriptor, data[: len(data) // 2], *place)
                os.kill(os.getpid(), signal.SIGKILL)
            self.calls += 1
            return real(*arguments, **named)

        return call


def killed(act: Callable[[], None], at: int | None, count: Path | None = None) -> bool:
    """Runs `act` in a forked child that dies at call number `at`. True when it died so, false when it ended by itself.

    Args:
        act: What the child does.
        at: None lets it live.
        count: Where to write the number of calls when it lived.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            killer = Killer(at)
            killer.arm()
            act()
            calls, killer.at = killer.calls, None
            if count is not None:
                count.write_text(str(calls))
            status = 0
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    if os.WIFSIGNALED(how):
        assert os.WTERMSIG(how) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(how) == 0, "the child failed by itself"
    return False
