"""How far a long reading has come: a bar on standard error, for people at a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["reading"]


@contextmanager
def reading(*, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """Yields a function that is told bytes done and bytes in all, or None where nobody looks at a bar.

    The bar goes away when the reading ends, however it ends. It begins anew for each of several files.

    Args:
        quiet: No bar, whatever standard error is.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
