"""`python -m bench [id ...] [--hours H]`: prints the table and writes build/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

# One thread for everybody; read when the library is loaded.
os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from bench.dataset import take
from firsthand_edge import _core

if TYPE_CHECKING:
    from bench.dataset import Take
    from bench.line import Line

OF_TAKES = ("match60", "match1k", "quantile", "verdict")
"""What is measured on the stamps of a take, each in a module with `lines(take, *, rounds)`, at every length."""
OF_ONE_TAKE = ("audit",)
"""The same, so slow to prepare that ten minutes do unless a length is asked for."""
OTHERS = ("push", "live", "replay", "verify_episodes")
"""What makes its own recordings, each in a module with `lines(take, *, rounds)` that leaves the take alone."""
IDS = (*OF_TAKES, *OF_ONE_TAKE, *OTHERS)
MODULES = {"verify_episodes": "verify"}
"""Where the module has another name than the id."""
HOURS = (1 / 6, 10.0)

RESULT = Path("build/bench.json")


def table(lines: list[Line]) -> str:
    """The lines in columns."""
    rows = [["id", "what", "goal", "here", "met"], *(line.row() for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def measured(name: str, recorded: Take, *, rounds: int) -> list[Line]:
    """The lines of one id."""
    module = import_module(f"bench.{MODULES.get(name, name)}")
    lines: list[Line] = module.lines(recorded, rounds=rounds)
    return lines


def main() -> int:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("id", nargs="*", help=f"what to measure: {', '.join(IDS)}; all by default")
    parser.add_argument("--hours", type=float, help="length of the take; by default ten minutes, then ten hours")
    arguments = parser.parse_args()
    if unknown := set(arguments.id) - set(IDS):
        parser.error(f"there is no bench {', '.join(sorted(unknown))}; there are: {', '.join(IDS)}")
    if _core.debug_build:
        parser.error("the core is a debug build; build it in release mode (make setup)")
    wanted = arguments.id or IDS
    lines = [line for name in wanted if name in OTHERS for line in measured(name, take(1), rounds=5)]
    for hours in HOURS if arguments.hours is None else (arguments.hours,):
        of_takes = [name for name in wanted if name in OF_TAKES]
        if hours in (HOURS[0], arguments.hours):
            of_takes += [name for name in wanted if name in OF_ONE_TAKE]
        if of_takes:
            recorded = take(round(hours * 3600))
            rounds = 25 if hours < 1 else 5
            lines += [line for name in of_takes for line in measured(name, recorded, rounds=rounds)]
    lines.sort(key=lambda line: IDS.index(line.id))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([line.to_json() for line in lines], indent=2) + "\n")
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
