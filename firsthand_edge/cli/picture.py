"""Writes the picture of verdicts to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.errors import CannotJudge, DiskError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from firsthand_edge.gate.picture import Panel
    from firsthand_edge.spool.spool import Spool

__all__ = ["episode_panels", "write_picture"]


def write_picture(path: Path, panels: Sequence[Panel]) -> None:
    """Writes one self-contained HTML page. Raises DiskError when the file cannot be written."""
    from firsthand_edge.gate.picture import render

    try:
        path.write_text(render(panels), encoding="utf-8", errors="backslashreplace")
    except OSError as exc:
        raise DiskError(f"{path} cannot be written ({exc.strerror}); name a file in a folder that can") from exc


def episode_panels(spool: Spool, episodes: Sequence[tuple[str, str]]) -> list[Panel]:
    """One panel an episode, measured again from its evidence.

    Args:
        spool: Where the episodes are.
        episodes: Title and id of each.
    """
    from firsthand_edge.gate.charts import Series
    from firsthand_edge.gate.picture import Panel
    from firsthand_edge.gate.verdict import examine

    panels = []
    for title, name in episodes:
        folder = spool.find(name).path
        try:
            judgement = examine(folder / "evidence.mcap")
        except CannotJudge:
            continue  # a torn take of which nothing is left to draw; the table says so
        panels.append(Panel(title, judgement.report, Series.of(judgement.figures)))
    return panels
