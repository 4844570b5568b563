"""The picture of a verdict as a file: a page that stands alone (`.html`), or one image of the same (`.png`)."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from firsthand_edge.errors import DiskError, UsageError
from firsthand_edge.gate.drawing.page import page
from firsthand_edge.gate.drawing.panel import Panel
from firsthand_edge.gate.drawing.poster import poster
from firsthand_edge.gate.drawing.raster import png, refuse_without_renderer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Panel", "refuse_undrawable", "write_picture"]

TITLE = "How far the streams disagree"


def refuse_undrawable(path: Path) -> None:
    """Says before anything is judged that a picture could not be made.

    Args:
        path: Where it is to go.

    Raises:
        UsageError: its name ends in neither `.html` nor `.png`, or what a PNG takes is not installed.
        DiskError: no file can be written there.
    """
    suffix = path.suffix.lower()
    if suffix not in (".html", ".png"):
        raise UsageError(f"{path}: a picture is a page or an image; let the name end in .html or .png")
    if suffix == ".png":
        refuse_without_renderer(path)
    _refuse_unwritable(path)


def write_picture(path: Path, panels: Sequence[Panel], *, title: str = TITLE) -> None:
    """Draws recordings into a file, by the ending of its name.

    Args:
        path: `.html` for a page, `.png` for an image.
        panels: Recordings, in the order to show them.
        title: Heading of the page; an image has none.

    Raises:
        UsageError: as `refuse_undrawable`.
        DiskError: the file cannot be written.
    """
    refuse_undrawable(path)
    if path.suffix.lower() == ".png":
        content = png(poster(panels))
    else:
        content = page(panels, title=title).encode("utf-8", "backslashreplace")
    try:
        path.write_bytes(content)
    except OSError as exc:
        raise _unwritable(path, exc.strerror) from exc


def _refuse_unwritable(path: Path) -> None:
    try:
        if path.is_dir():
            why = errno.EISDIR
        elif not path.parent.is_dir():
            why = errno.ENOENT
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            why = errno.EACCES
        else:
            return
    except OSError as exc:
        raise _unwritable(path, exc.strerror) from exc
    raise _unwritable(path, os.strerror(why))


def _unwritable(path: Path, why: str | None) -> DiskError:
    return DiskError(f"{path} cannot be written ({why}); name a file in a folder that can")
