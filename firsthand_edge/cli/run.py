"""`firsthand-edge run`: a rig in the foreground, from devices to store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from firsthand_edge.cli.running import RunningRig
from firsthand_edge.cli.words import capture_words, outcome_lines
from firsthand_edge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.daemon.rig import LoadedRig

__all__ = ["run"]

LONGEST_TAKE_S = 86_400
"""As `seconds` of a plan's entry."""
CAPTURED = Group("What is captured", help="Instead of a plan: one take, or several of the same.")


def run(
    *,
    rig: Annotated[Path, Parameter(help="Rig file.")],
    state: Annotated[Path, Parameter(help="Spool, keys, sockets, logs and a relative store.")] = Path("build/state"),
    takes: Annotated[
        int | None, Parameter(help="How many takes to record; without it, what is left of the plan, or one.")
    ] = None,
    seconds: Annotated[
        float | None,
        Parameter(help="Length of a take; without it, as the plan says, or until every replayed recording is over."),
    ] = None,
    plan: Annotated[Path | None, Parameter(help="Plan file, instead of the one that the rig file names.")] = None,
    again: Annotated[bool, Parameter(negative=(), help="Follow the plan from its first take once more.")] = False,
    task: Annotated[str | None, Parameter(group=CAPTURED, help="Id of the task.")] = None,
    cell: Annotated[str | None, Parameter(group=CAPTURED, help="Id of the condition cell.")] = None,
    scene: Annotated[str | None, Parameter(group=CAPTURED, help="Id of the scene.")] = None,
    contributor: Annotated[str | None, Parameter(group=CAPTURED, help="Id of the wearer, never a name.")] = None,
    objects: Annotated[
        tuple[str, ...] | None,
        Parameter(name="--object", group=CAPTURED, negative=(), help="Id of an object; once for each."),
    ] = None,
    consent_record: Annotated[
        str | None, Parameter(group=CAPTURED, help="The release that covers this session.")
    ] = None,
    outcome: Annotated[
        Literal["success", "failure", "near_miss", "unstated"] | None,
        Parameter(group=CAPTURED, help="How the attempt ends, as far as that is known."),
    ] = None,
    attempt: Annotated[int | None, Parameter(group=CAPTURED, help="Which attempt this is.")] = None,
    recaptures: Annotated[
        str | None,
        Parameter(group=CAPTURED, help="Rejected episode that this take replaces; what is not said is taken from it."),
    ] = None,
    stage: Annotated[
        Literal["pilot", "production"] | None, Parameter(group=CAPTURED, help="Of the collection.")
    ] = None,
    batch: Annotated[str | None, Parameter(group=CAPTURED, help="Id of the batch.")] = None,
) -> int:
    """Records takes, judges each, and waits until the store holds the accepted ones.

    Exit status 0 when every take was accepted, 1 when one was rejected.
    """
    said = {
        "task": task,
        "cell": cell,
        "scene": scene,
        "contributor": contributor,
        "objects": objects,
        "consent_record": consent_record,
        "outcome": outcome,
        "attempt": attempt,
        "recaptures": recaptures,
        "stage": stage,
        "batch": batch,
    }
    capture = {name: value for name, value in said.items() if value is not None} or None
    _require_sense(takes, seconds, capture, plan=plan, again=again)
    owned = RunningRig(rig, state, plan=plan)
    _require_whole(owned.rig, seconds, capture)
    with owned as running:
        if again:
            running.call("restart_plan", timeout_s=30.0)
        before = running.status()
        left = _left(before) if capture is None else None
        count = takes if takes is not None else max(1, left or 0)  # of a plan that is used up the daemon says so
        if left is not None and 0 < left < count:
            raise UsageError(f"the plan has {left} takes left, and not {count}; say fewer, or --again")
        if before["different_collection"]:
            print(f"NOTE  {before['different_collection']}")
        summaries = _record(running, count, seconds, capture)
        accepted = {s["episode"] for s in summaries if s["report"]["verdict"] == "accepted"}
        running.wait_for_store(accepted)
        print(f"spool    {state / 'spool'}\nstore    {running.store} ({len(accepted)} of {count} takes)")
    return 0 if len(accepted) == count else 1


def _record(
    running: RunningRig, count: int, seconds: float | None, capture: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """So many takes, one after the other; their summaries."""
    running.start_uploader()
    view = running.view()
    summaries: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        running.wait_ready()
        coming = running.status()["next"]
        length = seconds if seconds is not None or capture is not None or coming is None else coming["seconds"]
        title = f"take {number}"
        episode = running.begin(number=number, capture=capture)
        captured = running.status()["capture"]
        print(f"\n{title}: {capture_words(captured)}" if captured else f"\n{title}")
        summary = running.finish(episode, seconds=length, title=title, view=view)
        print("\n".join(outcome_lines(summary)))
        summaries.append(summary)
    return summaries


def _require_sense(
    takes: int | None, seconds: float | None, capture: Mapping[str, Any] | None, *, plan: Path | None, again: bool
) -> None:
    """What the arguments say that cannot be meant together. Raises UsageError."""
    if takes is not None and takes < 1:
        raise UsageError(f"--takes must be at least 1 (it is {takes})")
    if seconds is not None and not 0 < seconds <= LONGEST_TAKE_S:
        raise UsageError(f"--seconds must be above 0 and at most {LONGEST_TAKE_S} (it is {seconds:g}), as in a plan")
    if capture is not None and (plan is not None or again):
        raise UsageError(
            f"a take captures what the plan says or what --{next(iter(capture)).replace('_', '-')} says; "
            "leave out --plan and --again, or everything that says what is captured"
        )
    if capture is not None and "recaptures" in capture and (takes or 1) > 1:
        raise UsageError(f"one take stands in the place of an episode, and not {takes}; leave out --takes")


def _require_whole(rig: LoadedRig, seconds: float | None, capture: Mapping[str, Any] | None) -> None:
    """What is captured, and for how long, must be said by the plan or by the arguments, and fit the spec.

    Raises:
        UsageError: something is not said.
        CaptureInvalid: what the arguments say does not fit the spec. What a recapture leaves out, the daemon knows.
    """
    from firsthand_edge.spec.capture import parse_capture

    if capture is None and rig.plan is None:
        raise UsageError(
            "nothing says what is captured; name a plan with --plan or in the rig file's [contract], or say it with "
            "--task, --cell, --scene and --contributor"
        )
    if capture is not None and "recaptures" not in capture:
        parse_capture(capture, rig.spec)
    if seconds is not None or rig.file.trigger.kind == "replayed":
        return
    takes = () if capture is not None or rig.plan is None else rig.plan.takes
    without = next((take.position for take in takes if take.seconds is None), None)
    if capture is not None or without is not None:
        which = "this take" if without is None else f"take {without} of {rig.plan.name if rig.plan else 'the plan'}"
        raise UsageError(
            f"a rig with a trigger records until told to stop, and {which} has no length; say how long with --seconds"
        )


def _left(status: Mapping[str, Any]) -> int:
    """Takes of the plan that were not begun."""
    plan = status["plan"]
    return 0 if plan is None else int(plan["takes"] - plan["begun"])
