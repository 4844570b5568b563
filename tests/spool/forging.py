"""Rows that no process of a rig would write, made as somebody would who holds the file and perhaps a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spool.chain import Chain, read_rows
from firsthand_edge.spool.row import Event, sign_row

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.spec.keys import KeyPair


def forge(
    path: Path, key: KeyPair, *, event: str = "sealed", episode: str | None = "e-9", body: Any = None, **changes: Any
) -> None:
    """Appends a row that fits its place, signed by `key`; `changes` are fields that do not fit."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    row = {
        "at": {"boot": "", "ns": 1},
        "body": {} if body is None else body,
        "episode": episode,
        "event": event,
        "key_id": key.key_id,
        "n": read_rows(lines[-1] + b"\n")[0].n + 1 if lines else 0,
        "prev": digest_bytes(lines[-1]) if lines else None,
        **changes,
    }
    with path.open("ab") as file:
        file.write(sign_row(row, key) + b"\n")


def forge_rotation(path: Path, key: KeyPair, new: KeyPair, **changes: Any) -> None:
    forge(path, key, event="key", episode=None, body={"public_key": new.public.hex()}, **changes)


def grown(path: Path, key: KeyPair, rows: int, *, first: int = 0) -> Chain:
    """A chain with so many rows after what is there, of as many episodes."""
    chain = Chain(path, key)
    for number in range(first, first + rows):
        with chain.locked() as held:
            held.append(Event.SEALED, f"e-{number}", {"number": number})
    return chain


def rotated(path: Path, old: KeyPair, new: KeyPair) -> None:
    """A rotation of the chain alone."""
    with Chain(path, old).locked() as held:
        held.append_rotation(new)
