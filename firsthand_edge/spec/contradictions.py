"""Everything in a document that cannot be true at once, in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsthand_edge.spec.collection_contradictions import collection_contradictions
from firsthand_edge.spec.stream_contradictions import stream_contradictions
from firsthand_edge.spec.term_contradictions import term_contradictions

if TYPE_CHECKING:
    from firsthand_edge.spec.fields import Loc
    from firsthand_edge.spec.parts import Parts

__all__ = ["contradictions"]


def contradictions(parts: Parts) -> list[tuple[Loc, str]]:
    """Place and sentence of each contradiction among `parts`, all of them."""
    return [*stream_contradictions(parts), *collection_contradictions(parts), *term_contradictions(parts)]
