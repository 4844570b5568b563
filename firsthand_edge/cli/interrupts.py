"""Ctrl-C at safe points only.

Python raises KeyboardInterrupt between any two steps of the program, so also between the making of a ZeroMQ socket and
its name: then nobody can close it, and ending its context waits for ever (pyzmq, `Context.term`). Here an interrupt is
noted when it comes and raised where the program asks for it.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Interrupts"]


class Interrupts:
    """Notes interrupts from `__enter__` to `__exit__`. Where they are ignored, as under `nohup`, they stay ignored."""

    def __init__(self) -> None:
        self._noted = False
        self._before: Any = None
        self._installed = False

    def check(self) -> None:
        """Raises KeyboardInterrupt, once, when an interrupt has come."""
        if self._noted:
            self._noted = False
            raise KeyboardInterrupt

    def _note(self, *_: object) -> None:
        self._noted = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """An interrupt that nobody asked for any more is raised here, unless something else is being raised already."""
        if self._installed:
            signal.signal(signal.SIGINT, self._before)
            self._installed = False
        if kind is None:
            self.check()
