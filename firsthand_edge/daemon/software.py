"""Which software records: version and commit, so that one process can be proved to be the same as another."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from firsthand_edge import _core

__all__ = ["software"]


@cache
def software() -> dict[str, str]:
    """`{"version", "commit"}`; the commit ends in `+changes` for a changed tree and is `unknown` outside one."""
    root = Path(__file__).parents[2]
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None or not (root / "pyproject.toml").is_file():
        return {"version": _core.__version__, "commit": "unknown"}
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return {"version": _core.__version__, "commit": commit + ("+changes" if changed else "")}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=5, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
