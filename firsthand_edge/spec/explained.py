"""What a field of the document means, in the words of its model: the docstring below it is its documentation."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

__all__ = ["explanations", "first_sentence"]


@lru_cache(maxsize=64)
def explanations(model: type[BaseModel]) -> Mapping[str, str]:
    """Name of each field of `model` and the text below it, on one line; a field without a text is not among them."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    if not isinstance(definition, ast.ClassDef):
        raise TypeError(f"{model.__name__} is no class")
    found: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


def first_sentence(text: str) -> str:
    """Up to the first full stop or semicolon that ends something, without it."""
    for index, character in enumerate(text):
        if character in ".;" and text[index + 1 : index + 2] in ("", " "):
            return text[:index]
    return text
