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
    from bench.line import Line

IDS = ("match60", "match1k", "quantile", "verdict", "replay", "verify_episodes")
"""What is measured, each in a module with `lines(take, *, rounds)`; the last two make takes of their own."""
MODULES = {"verify_episodes": "verify"}
"""Where the module has another name than the id."""

RESULT = Path("build/bench.json")


def table(lines: list[Line]) -> str:
    """The lines in columns."""
    rows = [["id", "what", "goal", "here", "met"], *(line.row() for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def main() -> int:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("id", nargs="*", help=f"what to measure: {', '.join(IDS)}; all by default")
    parser.add_argument("--hours", type=float, default=1 / 6, help="length of the take; ten minutes by default")
    arguments = parser.parse_args()
    if unknown := set(arguments.id) - set(IDS):
        parser.error(f"there is no bench {', '.join(sorted(unknown))}; there are: {', '.join(IDS)}")
    if _core.debug_build:
        parser.error("the core is a debug build; build it in release mode (make setup)")
    recorded = take(round(arguments.hours * 3600))
    rounds = 25 if arguments.hours < 1 else 5
    lines = [
        line
        for name in arguments.id or IDS
        for line in import_module(f"bench.{MODULES.get(name, name)}").lines(recorded, rounds=rounds)
    ]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([line.to_json() for line in lines], indent=2) + "\n")
    print(table(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
