"""From folders to coverage: what is held, sorted into collections, each with its own spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from firsthand_edge import _core
from firsthand_edge.errors import FirsthandError
from firsthand_edge.qa.coverage import Coverage, NotCounted
from firsthand_edge.qa.holdings import hold
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.reading import NotReadable, regular_file
from firsthand_edge.qa.tally import collection_of, different_collections
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.spool.episode import EVIDENCE_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.qa.holdings import Held
    from firsthand_edge.qa.places import Found
    from firsthand_edge.spec.document import Spec

__all__ = ["cover"]

SPEC_ATTACHMENT: Final = "spec.toml"
LOOKED_AT: Final = 20
"""So many episodes are asked for a spec that was not given; one with whole evidence is enough."""


def cover(found: Found, given: Spec | None = None, keys: Sequence[bytes] = ()) -> Coverage:
    """The coverage of all episodes that were found.

    Args:
        found: The episodes.
        given: A spec whose collection is told even where it holds nothing yet; targets of others come from evidence.
        keys: Public keys of the rigs that count, 32 raw bytes each; empty: of every rig whose chain is unbroken.
    """
    holdings = hold(found.places, keys)
    groups: dict[str, list[Held]] = {}
    identities: dict[str, tuple[str, int, str]] = {}
    given_digest = None if given is None else given.digest
    if given is not None and given_digest is not None:
        identities[given_digest] = (given.id, given.version, given_digest)
        groups[given_digest] = []
    for one in holdings.held:
        identities.setdefault(one.spec[2], one.spec)
        groups.setdefault(one.spec[2], []).append(one)
    collections = []
    for digest, held in groups.items():
        spec, source = (given, "given") if digest == given_digest else _from_evidence(digest, held)
        collections.append(collection_of(identities[digest], held, spec, _source(source)))
    return Coverage(
        collections=tuple(collections),
        different=different_collections(collections),
        not_counted=tuple(NotCounted(folder=folder, why=why) for folder, why in holdings.not_counted),
        notes=tuple(dict.fromkeys(map(printable, (*found.notes, *holdings.notes)))),
        chains=tuple(holdings.chains),
    )


def _source(name: str | None) -> Literal["given", "evidence"] | None:
    return "given" if name == "given" else "evidence" if name == "evidence" else None


def _from_evidence(digest: str, held: Sequence[Held]) -> tuple[Spec | None, str | None]:
    """The spec of that digest, out of the evidence of one of its episodes."""
    for one in held[:LOOKED_AT]:
        path = one.folder / EVIDENCE_NAME
        try:
            regular_file(path)
            document = dict(_core.read_evidence(path)["attachments"])[SPEC_ATTACHMENT]
            spec = parse_spec(document, place=SPEC_ATTACHMENT)
        except (NotReadable, FirsthandError, KeyError):
            continue
        if spec.digest == digest:
            return spec, "evidence"
    return None, None
