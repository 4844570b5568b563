"""Which key was in force for which row: a rotation is a row of the chain, signed by the key that it ends.

The first row names the key that began the chain and is signed by it. A later row `key` with the body
`{"countersign": <hex>, "public_key": <new, hex>}` makes another key the rig's: it is the last row of the old key, and
every row after it is the new one's. By the countersignature the new key vouches for the row, and through its link for
every row before. A row that says so and is not proved to come from the key in force, or that the new key did not
countersign, makes nothing. The first versions of this software wrote no countersignature; such a row counts without.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.keys import key_id, verify
from firsthand_edge.spool.row import Event, read_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from firsthand_edge.spec.keys import KeyPair
    from firsthand_edge.spool.row import Row

__all__ = ["KeyRing", "RingKey", "ring_of", "rotation_body"]

KEY_EVENT: Final = b'"event":"key"'
"""How a row `key` spells its event."""
COUNTERSIGN: Final = "countersign"
_PUBLIC: Final = re.compile(r"[0-9a-f]{64}")


class RingKey(NamedTuple):
    """One key of a rig."""

    key_id: str
    public: bytes
    """32 raw bytes."""
    since: int
    """Number of the first row that it signs."""
    countersigned: bool = False
    """Whether it has signed the row that made it the rig's."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of one chain, in the order of their time; at least one."""

    keys: tuple[RingKey, ...]

    @classmethod
    def of(cls, public: bytes) -> KeyRing:
        """The ring of a chain that never had another key than `public` (32 raw bytes)."""
        return cls((RingKey(key_id(public), public, 0),))

    @classmethod
    def begun_by(cls, row: Row) -> KeyRing | None:
        """The ring that the first row of a chain begins; None when it proves no key."""
        public = _named(row)
        if row.n != 0 or row.prev is not None or row.event != Event.KEY or COUNTERSIGN in row.body:
            return None
        if public is None or not row.signed_by(public):
            return None
        return cls.of(public)

    @property
    def root(self) -> bytes:
        """The key that began the chain, 32 raw bytes."""
        return self.keys[0].public

    @property
    def current(self) -> bytes:
        """The key that signs the next row, 32 raw bytes."""
        return self.keys[-1].public

    @property
    def name(self) -> str:
        """What the chain is called wherever copies of it are kept: the short name of its root."""
        return self.keys[0].key_id

    def at(self, n: int) -> bytes | None:
        """The key in force for row `n`, 32 raw bytes; None for a number that no row has."""
        return next((key.public for key in reversed(self.keys) if key.since <= n), None)

    def find(self, public: bytes) -> RingKey | None:
        """The entry of a public key; None when it never was a key of this chain."""
        return next((key for key in self.keys if key.public == public), None)

    def named(self, name: str) -> RingKey | None:
        """The entry of the key whose short name is `name`."""
        return next((key for key in self.keys if key.key_id == name), None)

    def rotation_fault(self, row: Row) -> str | None:
        """Why `row`, a later row `key`, makes no key the rig's, as a sentence; None when it does."""
        if not row.signed_by(self.current):
            return f"it is not proved to be signed by {self.keys[-1].key_id}, the key in force"
        public = _named(row)
        if public is None:
            return "it names no public key"
        if row.n < self.keys[-1].since or row.n == 0:
            return f"it says row {row.n}, and the key in force began with row {self.keys[-1].since}"
        if (before := self.find(public)) is not None:
            return f"it names key {before.key_id}, which was the rig's before"
        if COUNTERSIGN in row.body and not _countersigned(row, public):
            return f"its countersignature is not by {key_id(public)}, the key that it names"
        return None

    def after(self, row: Row) -> KeyRing:
        """The ring once the rotation `row` is counted; this one when the row makes no key the rig's."""
        public = _named(row)
        if public is None or self.rotation_fault(row) is not None:
            return self
        return KeyRing((*self.keys, RingKey(key_id(public), public, row.n + 1, COUNTERSIGN in row.body)))

    def grown(self, rows: Iterable[Row]) -> KeyRing:
        """The ring once all rows `key` among `rows`, in order, are counted."""
        ring = self
        for row in rows:
            if row.event == Event.KEY and row.n > 0:
                ring = ring.after(row)
        return ring


def ring_of(data: bytes) -> KeyRing | None:
    """The keys of a chain, from its bytes, reading no more rows than it must; None when its first row proves none."""
    first = read_row(data.partition(b"\n")[0])
    ring = None if first is None else KeyRing.begun_by(first)
    if ring is None:
        return None
    at = 0
    while (at := data.find(KEY_EVENT, at)) >= 0 and (end := data.find(b"\n", at)) >= 0:
        if (row := read_row(data[data.rfind(b"\n", 0, at) + 1 : end])) is not None:
            ring = ring.grown([row])
        at = end
    return ring


def rotation_body(n: int, prev: str | None, new: KeyPair) -> dict[str, str]:
    """The body of row `n`, which follows the row of digest `prev` and makes `new` the rig's key."""
    public = new.public.hex()
    return {COUNTERSIGN: new.sign(_to_countersign(n, prev, public)), "public_key": public}


def _to_countersign(n: int, prev: str | None, public: str) -> bytes:
    return canonical_bytes({"n": n, "prev": prev, "public_key": public})


def _countersigned(row: Row, public: bytes) -> bool:
    signature = row.body[COUNTERSIGN]
    return isinstance(signature, str) and verify(public, _to_countersign(row.n, row.prev, public.hex()), signature)


def _named(row: Row) -> bytes | None:
    public = row.body.get("public_key")
    named = isinstance(public, str) and _PUBLIC.fullmatch(public) and row.body.keys() <= {COUNTERSIGN, "public_key"}
    return bytes.fromhex(str(public)) if named else None
