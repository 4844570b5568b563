"""One row of the chain: its form, its digest, its signature.

A row is one line of canonical JSON::

    {"at": {"boot": id, "ns": since boot}, "body": {...}, "episode": id or null, "event": "judged", "key_id": ...,
     "n": 17, "prev": digest of the line before, "sig": Ed25519 over the row without `sig`}

Canonical JSON sorts its keys, so `sig` is the end of the line and what it signs is the line without that end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.spec.canonical import canonical_bytes, digest_bytes
from firsthand_edge.spec.keys import key_id, verify
from firsthand_edge.spec.signing import read_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.spec.keys import KeyPair

__all__ = ["Event", "Row", "read_row", "read_rows", "sign_row", "whole_rows"]

FIELDS: Final = frozenset({"at", "body", "episode", "event", "key_id", "n", "prev", "sig"})
SIGNATURE_DIGITS: Final = 128
SIGNATURE_END: Final = len(',"sig":""}') + SIGNATURE_DIGITS


class Event(StrEnum):
    """What a row records."""

    KEY = "key"
    SPEC = "spec"
    SEALED = "sealed"
    JUDGED = "judged"
    REJUDGED = "rejudged"
    UPLOADED = "uploaded"
    DAMAGED = "damaged"
    WITHDRAWN = "withdrawn"
    DISCARDED = "discarded"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Row:
    """One row as it stands in the file."""

    n: int
    prev: str | None
    event: str
    episode: str | None
    body: Mapping[str, Any]
    key_id: str
    line: bytes
    """Without the line feed."""

    @property
    def digest(self) -> str:
        """What the next row's `prev` must be."""
        return digest_bytes(self.line)

    @property
    def signed(self) -> tuple[bytes, str]:
        """What is signed, and the signature (hex digits, not checked)."""
        signature = self.line[-SIGNATURE_DIGITS - 2 : -2]
        return self.line[:-SIGNATURE_END] + b"}", signature.decode("ascii", "replace")

    def signed_by(self, public_key: bytes | None) -> bool:
        """Whether the row is as the holder of `public_key` (32 raw bytes) signed it; never where no key is known."""
        return public_key is not None and self.key_id == key_id(public_key) and verify(public_key, *self.signed)


def sign_row(fields: Mapping[str, Any], key: KeyPair) -> bytes:
    """The line of a row, without its line feed. Raises ValueError for fields without canonical form."""
    return canonical_bytes({**fields, "sig": key.sign(canonical_bytes(fields))})


def read_row(line: bytes) -> Row | None:
    """The row that `line` (without line feed) is; None when it is no row in canonical form."""
    row = _document(line)
    if row is None or row.keys() != FIELDS:
        return None
    plain = (
        type(row["n"]) is int
        and row["n"] >= 0
        and isinstance(row["prev"], str | None)
        and isinstance(row["event"], str)
        and isinstance(row["episode"], str | None)
        and isinstance(row["body"], dict)
        and isinstance(row["key_id"], str)
        and isinstance(row["sig"], str)
        and len(row["sig"]) == SIGNATURE_DIGITS
        and row["sig"].isascii()
    )
    if not plain:
        return None
    return Row(row["n"], row["prev"], row["event"], row["episode"], row["body"], row["key_id"], line)


def read_rows(data: bytes) -> list[Row]:
    """The readable rows of a chain's bytes, in order. Says nothing about signatures: see `check_chain`."""
    return [row for line in data.split(b"\n")[:-1] if (row := read_row(line)) is not None]


def whole_rows(line: bytes) -> list[Row]:
    """The rows that a line is when what follows one of its last braces is left out."""
    ends = [at + 1 for at, byte in enumerate(line) if byte == ord("}")][-4:]
    return [row for end in ends if (row := read_row(line[:end])) is not None]


_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode


def _document(line: bytes) -> dict[str, Any] | None:
    """The JSON object that `line` is in canonical form; None when it is not.

    Keys of ASCII alone are in the same order by code points as by UTF-16 units, so for such a line the compiled encoder
    writes what `canonical_bytes` writes; all others, floats and what is damaged take the long way.
    """
    if line.isascii():
        try:
            text = line.decode("ascii")
            document = json.loads(text, parse_float=_refuse, parse_constant=_refuse)
            if isinstance(document, dict) and _ENCODE(document) == text:
                return document
        except (ValueError, RecursionError):
            return None
        return None
    try:
        return read_document(line + b"\n")
    except ValueError:
        return None


def _refuse(text: str) -> object:
    raise ValueError(f"holds the number {text}, which is not an integer")
