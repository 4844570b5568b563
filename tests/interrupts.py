"""SIGINT for processes that tests start."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_reach_children() -> Iterator[None]:
    """Whoever runs the tests in the background lets them inherit an ignored SIGINT; a handler is not inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
