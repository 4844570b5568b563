"""`firsthand-edge demo`: the main job on a simulated rig, five short takes, each with its known outcome."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.running import RunningRig
from firsthand_edge.cli.words import capture_words, milliseconds, outcome_lines
from firsthand_edge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.cli.live import LiveView

__all__ = ["TAKES", "DemoTake", "demo", "shortfalls"]

MARKER = "this-is-a-demo"
FOOTAGE = "episode.mcap"


@dataclass(frozen=True, slots=True)
class DemoTake:
    """One take and what must come of it."""

    number: int
    what: str
    seconds: float
    accepted: bool
    reason: str | None = None
    warning: str | None = None
    trimmed_start: int | None = None
    wraps: bool = False
    """Every device's counter wraps within the take."""
    killed: bool = False
    recaptures: int | None = None
    """The take in whose place it is recorded, which was rejected; the others capture what the plan says."""


TAKES = (
    DemoTake(1, "clean; every counter wraps", 8.5, accepted=True, wraps=True),
    DemoTake(
        2, "wrist_left repeats its last picture while its stamps go on", 4.0, accepted=False, reason="picture.frozen"
    ),
    DemoTake(
        3,
        "stereo misses the first pulse",
        4.0,
        accepted=True,
        warning="trigger.first_missed",
        trimmed_start=1,
        recaptures=2,
    ),
    DemoTake(4, "wrist_right jumps by 37 s", 4.0, accepted=False, reason="stamp.tai_utc"),
    DemoTake(
        5, "the daemon is killed in mid-take and started again", 2.5, accepted=False, reason="record.torn", killed=True
    ),
)


def shortfalls(take: DemoTake, summary: Mapping[str, Any]) -> list[str]:
    """Where the outcome of a take is not what the table says; empty when it is."""
    report = summary["report"]
    codes = [r["code"] for r in report["reasons"]]
    warnings = [w["code"] for w in report["warnings"]]
    out = []
    if (report["verdict"] == "accepted") != take.accepted:
        out.append(f"verdict is {report['verdict']}")
    if take.reason is not None and take.reason not in codes:
        out.append(f"{take.reason} is not among its reasons")
    if set(warnings) != ({take.warning} - {None}):
        out.append(f"its warnings are {', '.join(sorted(set(warnings))) or 'none'}")
    if take.trimmed_start is not None and report["span"]["trimmed_start"] != take.trimmed_start:
        out.append(f"trimmed_start is {report['span']['trimmed_start']}, not {take.trimmed_start}")
    if take.wraps:
        still = [name for name, stream in report["streams"].items() if not stream["wraps"]]
        out += [f"the counter behind {name} did not wrap" for name in still]
    return out


def demo(
    *,
    rig: Annotated[Path, Parameter(help="Rig file of a simulated rig.")] = Path("configs/sim.toml"),
    state: Annotated[Path, Parameter(help="Where spool, store and logs go; emptied first.")] = Path("build/demo"),
) -> int:
    """Runs the five takes, shows each as it happens, and ends with a table, the store and a picture.

    Exit status 0 when every outcome is the table's, 1 when one is not.
    """
    _empty(state)
    done: list[tuple[DemoTake, Mapping[str, Any]]] = []
    with RunningRig(rig, state) as running:
        running.start_uploader()
        view = running.view()
        print(f"rig {running.rig.file.rig.id} is ready: daemon {running.daemon_pid}, figures read by another process")
        for take in TAKES:
            print(f"\ntake {take.number}: {take.what}")
            title = f"take {take.number}"
            running.wait_ready()
            capture = _instead_of(take, done)
            episode = running.begin(number=take.number, capture=capture)
            if captured := running.status()["capture"]:
                print(f"  {capture_words(captured)}")
            if take.killed:
                summary = _killed(running, episode, take, view)
            else:
                summary = running.finish(episode, seconds=take.seconds, title=title, view=view)
            done.append((take, summary))
            print("\n".join(outcome_lines(summary)))
        accepted = {s["episode"] for _, s in done if s["report"]["verdict"] == "accepted"}
        running.wait_for_store(accepted)
        leaked = _footage_in_store(running.store) - accepted
        picture = _picture(state, done)
        _table(done)
        print(f"\nspool    {state / 'spool'}\nstore    {running.store}\npicture  {picture}")
    wrong = [f"take {t.number}: {w}" for t, s in done for w in shortfalls(t, s)]
    wrong += [f"footage of {episode} reached the store though it was rejected" for episode in sorted(leaked)]
    for sentence in wrong:
        print(f"NOT AS EXPECTED  {sentence}")
    if not wrong:
        print("every outcome is as the table says")
    return 1 if wrong else 0


def _empty(state: Path) -> None:
    """Empties the state directory of an earlier demo, and of nothing else."""
    if state.exists() and any(state.iterdir()) and not (state / MARKER).exists():
        raise UsageError(f"{state} holds something that is not an earlier demo; name another directory with --state")
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    (state / MARKER).write_text("made by `firsthand-edge demo`; the next one empties this directory\n")


def _instead_of(take: DemoTake, done: list[tuple[DemoTake, Mapping[str, Any]]]) -> Mapping[str, Any] | None:
    """What a take captures that is recorded in the place of a rejected one; None for what the plan says."""
    if take.recaptures is None:
        return None
    before = next(summary for earlier, summary in done if earlier.number == take.recaptures)
    if before["state"] == "rejected":
        return {"recaptures": before["episode"], "outcome": "success"}
    # Not as expected, which is told at the end; the take is made all the same.
    return {name: value for name, value in before["capture"].items() if value is not None}


def _killed(running: RunningRig, episode: str, take: DemoTake, view: LiveView) -> Mapping[str, Any]:
    """SIGKILLs the daemon in mid-take, starts it again and returns what it made of the torn episode."""
    running.watch(episode, seconds=take.seconds, title=f"take {take.number}", view=view)
    print(f"  SIGKILL to the daemon ({running.daemon_pid}) in mid-take")
    running.kill_daemon()
    running.start_daemon()
    print(f"  started again ({running.daemon_pid})")
    summary: Mapping[str, Any] = running.call("episode", timeout_s=30.0, episode=episode)
    return summary


def _footage_in_store(store: Path) -> set[str]:
    """Ids of the episodes whose footage the store holds."""
    return {path.parent.name for path in store.rglob(FOOTAGE)}


def _picture(state: Path, done: list[tuple[DemoTake, Mapping[str, Any]]]) -> Path:
    from firsthand_edge.cli.picture import episode_panels
    from firsthand_edge.gate.picture import write_picture
    from firsthand_edge.spool.spool import open_spool

    path = state / "residuals.html"
    spool = open_spool(state, create=False)
    write_picture(path, episode_panels(spool, [(f"take {t.number}: {t.what}", s["episode"]) for t, s in done]))
    return path


def _table(done: list[tuple[DemoTake, Mapping[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title="\nfive takes", title_justify="left")
    figures = {"take", "ticks", "largest residual"}
    for column in ("take", "what happens", "verdict", "why", "ticks", "largest residual", "as expected"):
        table.add_column(column, justify="right" if column in figures else "left")
    for take, summary in done:
        report = summary["report"]
        words = [r["code"] for r in report["reasons"]] + [f"warning {w['code']}" for w in report["warnings"]]
        cells = (
            str(take.number),
            take.what,
            report["verdict"],
            "\n".join(dict.fromkeys(words)) or "-",
            str(report["residual_ns"]["ticks"]),
            milliseconds(report["residual_ns"]["max"]),
            "no" if shortfalls(take, summary) else "yes",
        )
        table.add_row(*map(Text, cells))  # a cell of text is no markup
    Console(width=None if _is_terminal() else 140).print(table)


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()
