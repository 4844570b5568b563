"""A clock that only moves when told, so that hours pass in seconds and tests never wait."""

from __future__ import annotations

from typing import Final

__all__ = ["FakeClock"]

_NS_PER_S: Final = 1_000_000_000


class FakeClock:
    """Stands for CLOCK_MONOTONIC and for sleeping on it. Sleeping moves the clock at once.

    Args:
        start_ns: What it shows first, ns.
    """

    def __init__(self, start_ns: int = 1_000 * _NS_PER_S) -> None:
        self._now_ns = start_ns

    def monotonic_ns(self) -> int:
        """What it shows, ns."""
        return self._now_ns

    def sleep(self, seconds: float) -> None:
        """Moves it on, at least by 1 ns."""
        self._now_ns += max(1, round(seconds * _NS_PER_S))

    def set(self, now_ns: int) -> None:
        """Moves it on to a time; never back."""
        self._now_ns = max(self._now_ns, now_ns)
