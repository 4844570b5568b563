from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.keys import KeyPair, verify
from firsthand_edge.spec.signing import document_bytes, read_document, sign_document, signature_fault

KEY = KeyPair.generate()
DOCUMENT = {"schema": "s/1", "n": 7, "deep": {"list": [1, "a", None, True]}}


def test_signed_document_verifies_and_is_deterministic() -> None:
    signed = sign_document(DOCUMENT, KEY)
    assert signature_fault(signed, KEY.public) is None
    assert sign_document(signed, KEY) == signed
    assert document_bytes(sign_document(DOCUMENT, KEY)) == document_bytes(signed)
    assert signed["signature"]["key_id"] == KEY.key_id
    assert verify(KEY.public, canonical_bytes(DOCUMENT), signed["signature"]["ed25519"])


@given(st.data())
def test_every_changed_byte_is_found(data: st.DataObject) -> None:
    stored = bytearray(document_bytes(sign_document(DOCUMENT, KEY)))
    place = data.draw(st.integers(0, len(stored) - 1))
    stored[place] ^= data.draw(st.integers(1, 255))
    try:
        document = read_document(bytes(stored))
    except ValueError:
        return
    assert signature_fault(document, KEY.public) is not None


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "text",
        {},
        {"key_id": "0" * 16, "public_key": KEY.public.hex(), "ed25519": "00" * 64},
        {"key_id": KEY.key_id, "public_key": KEY.public.hex()},
        {"key_id": KEY.key_id, "public_key": KEY.public.hex(), "ed25519": 5},
        {"key_id": KEY.key_id, "public_key": KEY.public.hex(), "ed25519": "00" * 64, "more": 1},
        sign_document(DOCUMENT, KeyPair.generate())["signature"],
    ],
)
def test_other_signatures_prove_nothing(signature: object) -> None:
    assert signature_fault({**DOCUMENT, "signature": signature}, KEY.public) is not None
    assert signature_fault(DOCUMENT, KEY.public) == "carries no signature"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (bytes(40), "not JSON"),
        (b"[]\n", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b'{"a":1.5}\n', "1.5, which is not an integer"),
        (b'{"a":NaN}\n', "NaN"),
        (b'{"a": 1}\n', "not in canonical form"),
        (b'{"a":1,"a":1}\n', "not in canonical form"),
        (b'{"a":1}', "not in canonical form"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_unreadable_documents_are_one_sentence(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_document(data)


def test_stored_bytes_are_plain_json() -> None:
    assert json.loads(document_bytes(DOCUMENT)) == DOCUMENT
    assert read_document(document_bytes(DOCUMENT)) == DOCUMENT
