"""Signed JSON documents: a `signature` field over the canonical bytes of everything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.keys import key_id, verify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.spec.keys import KeyPair

__all__ = ["SIGNATURE", "document_bytes", "read_document", "sign_document", "signature_fault"]

SIGNATURE: Final = "signature"


def sign_document(document: Mapping[str, Any], key: KeyPair) -> dict[str, Any]:
    """`document` with its `signature`: `{key_id, public_key, ed25519}`, hex, over the canonical bytes without it.

    Ed25519 is deterministic, so one key and one document always give the same bytes. Raises ValueError for a document
    without canonical form.
    """
    body = {name: value for name, value in document.items() if name != SIGNATURE}
    return {
        **body,
        SIGNATURE: {
            "key_id": key.key_id,
            "public_key": key.public.hex(),
            "ed25519": key.sign(canonical_bytes(body)),
        },
    }


def signature_fault(document: Mapping[str, Any], public: bytes) -> str | None:
    """Why `document` is not proved to be signed by `public` (32 raw bytes), as a sentence; None when it is."""
    signature = document.get(SIGNATURE)
    if not isinstance(signature, dict):
        return "carries no signature"
    if signature.get("public_key") != public.hex():
        return f"is signed by key {signature.get('key_id')}, not by {key_id(public)}"
    if signature.get("key_id") != key_id(public):
        return f"names its key {signature.get('key_id')}, and that key is {key_id(public)}"
    body = {name: value for name, value in document.items() if name != SIGNATURE}
    try:
        data = canonical_bytes(body)
    except ValueError as exc:
        return f"has no canonical form ({exc})"
    if set(signature) != {"key_id", "public_key", "ed25519"} or not isinstance(signature["ed25519"], str):
        return "carries a signature of another form"
    return None if verify(public, data, signature["ed25519"]) else "was changed after it was signed"


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes a document is stored as: its canonical bytes and a line feed. Equal documents are equal files."""
    return canonical_bytes(document) + b"\n"


def read_document(data: bytes) -> dict[str, Any]:
    """Parses stored bytes. Raises ValueError, with a sentence, unless they are one JSON object in canonical form.

    Anything that is not byte for byte what `document_bytes` writes was not written by this software, or was damaged.
    """
    try:
        document = json.loads(data, parse_float=_no_float, parse_constant=_no_float)
    except UnicodeDecodeError as exc:
        raise ValueError("is not UTF-8 text") from exc
    except json.JSONDecodeError as exc:
        raise ValueError(f"is not JSON ({exc})") from exc
    except RecursionError as exc:
        raise ValueError("is nested too deeply") from exc
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - the value is wrong, not its type
    if document_bytes(document) != data:
        raise ValueError("is not in canonical form; it was rewritten or damaged")
    return document


def _no_float(text: str) -> object:
    raise ValueError(f"holds the number {text}, which is not an integer")
