"""`firsthand-edge run`: a rig in the foreground, from devices to store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.running import RunningRig
from firsthand_edge.cli.words import outcome_lines
from firsthand_edge.errors import UsageError

__all__ = ["run"]


def run(
    *,
    rig: Annotated[Path, Parameter(help="Rig file.")],
    state: Annotated[Path, Parameter(help="Spool, keys, sockets, logs and a relative store.")] = Path("build/state"),
    takes: Annotated[int, Parameter(help="How many takes to record.")] = 1,
    seconds: Annotated[
        float | None, Parameter(help="Length of a take; without it, until every replayed recording is over.")
    ] = None,
) -> int:
    """Records takes, judges each, and waits until the store holds the accepted ones.

    Exit status 0 when every take was accepted, 1 when one was rejected.
    """
    if takes < 1:
        raise UsageError(f"--takes must be at least 1 (it is {takes})")
    with RunningRig(rig, state) as running:
        if seconds is None and running.rig.file.trigger.kind != "replayed":
            raise UsageError("a rig with a trigger records until told to stop; say how long with --seconds")
        running.start_uploader()
        view = running.view()
        summaries: list[dict[str, Any]] = []
        for number in range(1, takes + 1):
            running.wait_ready()
            summaries.append(running.record(number=number, seconds=seconds, title=f"take {number}", view=view))
            print("\n".join(outcome_lines(summaries[-1])))
        accepted = {s["episode"] for s in summaries if s["report"]["verdict"] == "accepted"}
        running.wait_for_store(accepted)
        print(f"spool    {state / 'spool'}\nstore    {running.store} ({len(accepted)} of {takes} takes)")
    return 0 if len(accepted) == takes else 1
