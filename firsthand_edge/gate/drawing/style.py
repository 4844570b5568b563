"""Colours and the style sheet of the drawing.

Blue, vermilion and purple are told apart by people who do not tell red from green, and none of them speaks alone: what
is over the ceiling lies beyond a dashed line and is marked above its row, what is missing is a gap in a bar.
"""

from __future__ import annotations

import re

__all__ = ["DARK", "LIGHT", "SHEET", "declared", "resolved"]

LIGHT = {
    "paper": "#f6f7f9",
    "card": "#ffffff",
    "ink": "#161a21",
    "soft": "#596273",
    "line": "#e0e4ea",
    "trace": "#1f6db0",
    "bad": "#c23c0c",
    "bad-wash": "#fdeee7",
    "gap": "#7d3c98",
    "good": "#1c7544",
    "good-wash": "#e7f5ec",
    "warn": "#8a6100",
    "warn-wash": "#fdf4df",
}
DARK = {
    "paper": "#12151a",
    "card": "#1a1e25",
    "ink": "#e8ebf0",
    "soft": "#9aa4b4",
    "line": "#2e343e",
    "trace": "#6cb0f2",
    "bad": "#ff8b5e",
    "bad-wash": "#3a2219",
    "gap": "#d0a0ef",
    "good": "#63d196",
    "good-wash": "#16301f",
    "warn": "#efbb58",
    "warn-wash": "#33291a",
}

SHEET = """
.head{font-size:15px;font-weight:600;fill:var(--ink)}
.name{font-size:13px;font-weight:600;fill:var(--ink)}
.small{font-size:12px;fill:var(--soft)}
.axis{font-size:11px;fill:var(--soft)}
.over-lines{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.figure{font-size:12px;fill:var(--ink)}
.name.bad,.small.bad,.axis.bad,.figure.bad{fill:var(--bad);font-weight:600}
.small.gap,.axis.gap{fill:var(--gap);font-weight:600}
.frame{fill:none;stroke:var(--line)}
.grid{stroke:var(--line)}
.zero{stroke:var(--soft);stroke-opacity:.45}
.ceiling{stroke:var(--bad);stroke-dasharray:5 4}
.trace{fill:none;stroke:var(--trace);stroke-width:1.3;stroke-linejoin:round}
.over{fill:none;stroke:var(--bad);stroke-width:1.6}
.flag{fill:none;stroke:var(--bad);stroke-width:1.6}
.worst{fill:var(--card);stroke:var(--bad);stroke-width:2}
.worst.calm{stroke:var(--trace)}
.begin{stroke:var(--bad);stroke-width:1.2;stroke-dasharray:2 3}
.trimmed{fill:var(--soft);fill-opacity:.13}
.cover{fill:var(--trace);fill-opacity:.3}
.gone{fill:var(--gap)}
.silent{fill:var(--gap);fill-opacity:.18;stroke:var(--gap);stroke-dasharray:3 2}
.frozen{fill:var(--bad);fill-opacity:.18;stroke:var(--bad)}
.bar{fill:var(--trace);fill-opacity:.75}
.bar.bad{fill:var(--bad);fill-opacity:1}
.cell{fill:var(--trace)}
.cell.bad{fill:var(--bad)}
.in{font-size:11px;fill:var(--ink);text-anchor:middle}
.in.bad{fill:var(--card);font-weight:700}
"""
"""Classes of the drawing; what is common to the page and to the picture."""

REFERENCE = re.compile(r"var\(--([a-z-]+)\)")


def declared(palette: dict[str, str]) -> str:
    """The palette as declarations of custom properties."""
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


def resolved(sheet: str, palette: dict[str, str]) -> str:
    """A style sheet for readers that know no custom properties."""
    return REFERENCE.sub(lambda found: palette[found[1]], sheet)
