"""What an episode is held against: the public keys and the spec that were given, read once for all episodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from firsthand_edge.spec.capture import capture_mistakes
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.spec.signed import SpecSignature, signature_faults

if TYPE_CHECKING:
    from firsthand_edge.spec.capture import Capture
    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spool.manifest import SpecIdentity

__all__ = ["Asked", "Standard"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person who wants a proof gave. Travels to worker processes as it is."""

    keys: tuple[bytes, ...]
    """Public keys, 32 raw bytes each."""
    spec: bytes
    """The spec document."""
    spec_place: str
    """What to call it."""
    signers: tuple[bytes, ...] = ()
    """Public keys that must have signed the spec."""
    footage: bool = True
    """Read every file; false: evidence only."""


@dataclass(frozen=True)
class Standard:
    """`Asked`, read and held ready. Raises SpecInvalid when the spec is none."""

    asked: Asked
    _faults: dict[tuple[SpecSignature, ...], list[str]] = field(default_factory=dict)

    @cached_property
    def spec(self) -> Spec:
        """The given document."""
        return parse_spec(self.asked.spec, place=self.asked.spec_place)

    @cached_property
    def digest(self) -> str:
        """Of the given document."""
        return self.spec.digest

    def signature_faults(self, identity: SpecIdentity) -> list[str]:
        """What is wrong with the signatures that a manifest carries; episodes of one collection carry the same ones."""
        signatures = tuple(SpecSignature(s.key_id, s.public_key, s.ed25519) for s in identity.signatures)
        if signatures not in self._faults:
            self._faults[signatures] = signature_faults(self.spec, signatures, self.asked.signers)
        return self._faults[signatures]

    def capture_mistakes(self, capture: Capture) -> list[str]:
        """Where a capture is not foreseen by the given spec."""
        return capture_mistakes(capture, self.spec)
