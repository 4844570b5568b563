"""The commented start of a spec that `spec new` writes; its text is `template.toml` beside this file."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["template"]


def template() -> bytes:
    """The text: a TOML document whose placeholders, `<what belongs here>`, are all that is wrong with it."""
    return files("firsthand_edge.spec").joinpath("template.toml").read_bytes()
