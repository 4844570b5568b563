"""firsthand_edge: records people's hands at work for robot learning, and lets only provable episodes leave the rig.

For whoever has a rig of their own and wants to know how far its streams disagree, this package is a library:

    audit_streams     judges stamps that are in memory: arrays of int64 nanoseconds in, a frozen `Report` out
    audit_recording   judges a recording on disk
    StreamStamps, Channel        how a stream is judged: kind, rate, decimation, offset
    Report                       verdict, reasons, figures, series, `plot`; docs/python.md shows each
    ABSENT                       the int64 that stands for "no match" in every series
    FirsthandError, UsageError, CannotJudge     what goes wrong, in one sentence each

The rest is the rig's software. The data's way is the order of the rooms; a room imports only rooms above it.

    model, errors, config, log, process   frozen nouns; one error tree; the one TOML reader; structlog; owned children
    spec        the written contract: required streams, ceiling, rules; canonical digest; keys and signatures
    clock       device time and host time to rig time
    trigger     who makes the pulses
    sensors     the seam, one file a driver, the worker process and its supervisor
    record      samples to one episode; recovery of a torn one
    gate        figures, rules, verdict; audits anybody's recording; the picture
    api         the library: the gate's audits for whoever imports this package
    spool       episodes on disk: folders are states; the chain
    upload      stores
    qa          at the store: proof of episodes, coverage, reject rates
    daemon      the processes; control and status sockets
    cli         the only place that parses arguments and prints
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firsthand_edge._core import __version__
    from firsthand_edge.api.audits import audit_recording, audit_streams
    from firsthand_edge.api.report import Report
    from firsthand_edge.api.stamps import Channel, StreamStamps
    from firsthand_edge.errors import CannotJudge, FirsthandError, UsageError
    from firsthand_edge.model import ABSENT

__all__ = [
    "ABSENT",
    "CannotJudge",
    "Channel",
    "FirsthandError",
    "Report",
    "StreamStamps",
    "UsageError",
    "__version__",
    "audit_recording",
    "audit_streams",
]

if not TYPE_CHECKING:  # a type checker would take it for a promise of every name there is
    _PLACES = {
        "ABSENT": "model",
        "CannotJudge": "errors",
        "Channel": "api.stamps",
        "FirsthandError": "errors",
        "Report": "api.report",
        "StreamStamps": "api.stamps",
        "UsageError": "errors",
        "__version__": "_core",
        "audit_recording": "api.audits",
        "audit_streams": "api.audits",
    }

    def __getattr__(name: str) -> object:
        """Imports what is asked for, when it is: the rig's processes and the command line start without it."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
