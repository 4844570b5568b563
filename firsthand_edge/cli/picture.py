"""Episodes on the disk as panels of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.errors import CannotJudge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.gate.picture import Panel
    from firsthand_edge.spool.spool import Spool

__all__ = ["episode_panels"]


def episode_panels(spool: Spool, episodes: Sequence[tuple[str, str]]) -> list[Panel]:
    """One panel an episode, measured again from its evidence.

    Args:
        spool: Where the episodes are.
        episodes: Title and id of each.
    """
    from firsthand_edge.gate.picture import Panel
    from firsthand_edge.gate.verdict import examine

    panels = []
    for title, name in episodes:
        folder = spool.find(name).path
        try:
            judgement = examine(folder / "evidence.mcap")
        except CannotJudge:
            continue  # a torn take of which nothing is left to draw; the table says so
        panels.append(Panel(title, judgement.report, judgement.figures))
    return panels
