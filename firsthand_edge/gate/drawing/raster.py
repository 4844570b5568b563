"""SVG to PNG, by resvg and with a typeface of its own, so that a machine without fonts draws the same letters.

Both come with the extra `plot`. Letters that the typeface lacks come from the machine's fonts, if it has them.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from firsthand_edge.errors import UsageError

__all__ = ["png", "refuse_without_renderer"]

FONT = "fontpkg_ibm_plex_sans"
FAMILY = "IBM Plex Sans"
ZOOM = 1.5
MOST_PIXELS = 60_000_000
SIZE = re.compile(r'<svg[^>]* width="([0-9]+)" height="([0-9]+)"')


def refuse_without_renderer(path: Path) -> None:
    """Says what to install where a PNG cannot be drawn.

    Raises:
        UsageError: resvg or the typeface is not installed.
    """
    if find_spec("resvg_py") is None or find_spec(FONT) is None:
        raise UsageError(
            f"{path}: drawing a PNG takes the packages of an extra that is not installed; run `pip install "
            "'firsthand-edge[plot]'`, or let the name end in .html"
        )


def png(svg: str) -> bytes:
    """Draws an SVG document that states its width and height; smaller where it would be beyond `MOST_PIXELS`."""
    import resvg_py

    found = SIZE.match(svg)
    pixels = int(found[1]) * int(found[2]) if found else 1
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            zoom=min(ZOOM, (MOST_PIXELS / pixels) ** 0.5),
            font_files=[str(_typeface())],
            font_family=FAMILY,
            sans_serif_family=FAMILY,
        )
    )


def _typeface() -> Path:
    """The upright file of the typeface; it holds every weight."""
    spec = find_spec(FONT)
    places = spec.submodule_search_locations if spec is not None else None
    folder = Path(next(iter(places or [""]))) / "files"
    return next(path for path in sorted(folder.glob("*.ttf")) if "Italic" not in path.name)
