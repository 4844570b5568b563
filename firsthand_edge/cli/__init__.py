"""The command line: the only place that parses arguments and prints.

Exit statuses: 0 good, 1 rejected or unfit, 2 usage, 3 could not judge or unknown, 4 configuration or spec, 5 device,
6 local disk, 7 store. 1 means nothing else: an error that nobody foresaw is a 3. Commands are named here and imported
when they are called, so that starting costs little.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from firsthand_edge.cli.output import complain, guarded
from firsthand_edge.errors import CannotJudge, DiskError, FirsthandError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import App

__all__ = ["main", "run"]

DEBUG = "FIRSTHAND_DEBUG"
"""Environment variable: set, an unexpected error shows its trace."""

HELP = "Records people's hands at work, and lets only episodes leave the rig whose streams provably agree in time."

COMMANDS = (
    ("demo", "firsthand_edge.cli.demo:demo", "Five short takes on a simulated rig, each with its known outcome."),
    ("run", "firsthand_edge.cli.run:run", "Run a rig: record takes, judge them, hand the good ones to the store."),
    ("audit", "firsthand_edge.cli.audit:audit", "Judge anybody's recording: how far do its streams disagree?"),
    ("coverage", "firsthand_edge.cli.coverage:coverage", "What a collection holds: per cell, per axis, per reason."),
    ("live", "firsthand_edge.cli.live:live", "Show the take that a running daemon records, tick by tick."),
)

GROUPS = (
    (
        "episodes",
        "The episodes on this rig's disk, and the proof of anybody's.",
        (
            ("list", "firsthand_edge.cli.episodes:list_", "List the episodes of a spool with state and verdict."),
            ("show", "firsthand_edge.cli.episodes:show", "Show one episode: what it is bound to, figures, reasons."),
            ("judge", "firsthand_edge.cli.episodes:judge", "Judge an episode again, from its evidence alone."),
            ("verify", "firsthand_edge.cli.verify:verify", "Prove episodes with nothing but public key and spec."),
        ),
    ),
    (
        "spec",
        "The written contract that a collection is measured against.",
        (
            ("new", "firsthand_edge.cli.spec:new", "Write a commented start of a spec."),
            ("check", "firsthand_edge.cli.spec:check", "List everything missing, doubled or contradictory."),
            ("sign", "firsthand_edge.cli.spec:sign", "Sign a spec; its signatures lie beside it."),
            ("verify", "firsthand_edge.cli.spec:verify", "Say who signed a spec, and whether it was changed since."),
            ("show", "firsthand_edge.cli.spec:show", "The briefing: a spec as a page for wearers and buyers."),
            ("diff", "firsthand_edge.cli.spec:diff", "Say whether two specs measure the same thing."),
        ),
    ),
    (
        "keys",
        "Who signs: the rig's key, and keys of who signs specs.",
        (
            ("new", "firsthand_edge.cli.keys:new", "Make a key pair for signing specs."),
            ("show", "firsthand_edge.cli.keys:show", "Show the rig's public key and those before it."),
            ("rotate", "firsthand_edge.cli.keys:rotate", "Give the rig a new key, vouched for by the old one."),
        ),
    ),
    (
        "chain",
        "The log of everything that happened to every episode.",
        (("verify", "firsthand_edge.cli.chain:verify", "Find edits, reordering, removal and truncation."),),
    ),
)


def _app() -> App:
    from cyclopts import App

    from firsthand_edge import _core

    app = App(
        name="firsthand-edge",
        help=HELP,
        version=_core.__version__,
        version_flags=["--version"],
        version_format="plaintext",
    )
    for name, target, text in COMMANDS:
        app.command(target, name=name, help=text)
    for name, help_text, commands in GROUPS:
        group = App(name=name, help=help_text)
        for command, target, text in commands:
            group.command(target, name=command, help=text)
        app.command(group)
    return app


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit status; every error is one sentence on stderr."""
    try:
        with guarded():
            return _command(arguments)
    except FirsthandError as exc:
        complain(f"firsthand-edge: {exc}")
        return exc.exit_status
    except KeyboardInterrupt:
        return 130
    except PermissionError as exc:
        return _refused(exc)
    except Exception as exc:
        if os.environ.get(DEBUG):
            raise
        complain(f"firsthand-edge: {_unexpected(exc)}")
        return CannotJudge.exit_status


def _command(arguments: Sequence[str]) -> int:
    from cyclopts import CycloptsError

    try:
        status = _app()(list(arguments), result_action="return_value", exit_on_error=False, print_error=False)
    except CycloptsError as exc:
        more = "`firsthand-edge --help` lists the commands and `COMMAND --help` their options."
        raise UsageError(f"{exc}\n{more}") from exc
    return status if isinstance(status, int) else 0


def _refused(exc: PermissionError) -> int:
    """Says what this user may not do, where no command had a sentence of its own for it."""
    from firsthand_edge.durable import WHAT_TO_DO

    advice = WHAT_TO_DO.get(exc.errno or 0, "mend that and try again")
    complain(f"firsthand-edge: {exc.filename or 'a file'} cannot be used ({exc.strerror or exc}); {advice}")
    return DiskError.exit_status


def _unexpected(exc: Exception) -> str:
    words = " ".join(str(exc).split())[:300]
    what = f"{type(exc).__name__}: {words}" if words else type(exc).__name__
    return f"unexpected {what}; this is a fault of this software: run again with {DEBUG}=1 for the trace, and report it"


def main() -> None:
    """Entry point of the `firsthand-edge` script."""
    sys.exit(run(sys.argv[1:]))
