"""Structured logs: JSON for machines, readable lines on a terminal. Times in logs are for people, never for data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["configure", "get_logger"]


def configure(*, process: str, json: bool | None = None) -> None:
    """Sets logs of this process up, on stderr.

    Args:
        process: Name of the process, in every line.
        json: One JSON object a line; None asks whether stderr is a terminal.
    """
    # structlog imports rich where it is installed, only for tracebacks on a terminal; that costs a tenth of a second.
    import structlog

    as_json = not sys.stderr.isatty() if json is None else json
    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if as_json
        else structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if as_json else _same,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)


def _same(_logger: Any, _method: str, event: Any) -> Any:
    return event


def get_logger(**context: Any) -> FilteringBoundLogger:
    """A logger with `context` in every line."""
    import structlog

    logger: FilteringBoundLogger = structlog.get_logger(**context)
    return logger
