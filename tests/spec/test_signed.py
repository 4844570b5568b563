"""Signatures beside a spec: who signed which document, and what any change of it does."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import DiskFull, SpecInvalid
from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.document import Spec, load_spec, parse_spec
from firsthand_edge.spec.keys import KeyPair, verify
from firsthand_edge.spec.signed import (
    SpecSignature,
    add_signature,
    load_signatures,
    read_signatures,
    sign,
    sign_spec,
    signature_fault,
    signature_faults,
    signatures_path,
)
from tests.spec.test_digest import SMALL
from tests.spec.whole import WHOLE

BUYER, MAKER, STRANGER = KeyPair.generate(), KeyPair.generate(), KeyPair.generate()


def parse(text: str) -> Spec:
    return parse_spec(text.encode(), place="spec.toml")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(WHOLE)
    return path


def test_the_file_beside_the_document_is_what_is_published(path: Path) -> None:
    spec = load_spec(path)
    assert load_signatures(path) == ()
    signature = add_signature(path, BUYER)
    assert signature == sign_spec(spec, BUYER)
    assert signatures_path(path) == path.with_name("spec.toml.sig")
    identity = {"id": "whole", "version": 3, "digest": spec.digest}
    assert json.loads(signatures_path(path).read_bytes()) == {
        "schema": "firsthand.spec-signatures/1",
        "spec": identity,
        "signatures": [{"key_id": BUYER.key_id, "public_key": BUYER.public.hex(), "ed25519": signature.ed25519}],
    }
    signed = canonical_bytes({"schema": "firsthand.spec-signature/1", "spec": identity})
    assert verify(BUYER.public, signed, signature.ed25519)
    assert path.read_text() == WHOLE
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


def test_everyone_who_signs_one_document_stays(path: Path) -> None:
    add_signature(path, BUYER)
    done = sign(path, MAKER)
    assert ([s.key_id for s in done.kept], done.dropped) == ([BUYER.key_id], ())
    again = sign(path, MAKER)
    assert again == done
    found = load_signatures(path)
    assert {s.key_id for s in found} == {BUYER.key_id, MAKER.key_id}
    assert signature_faults(load_spec(path), found, [BUYER.public, MAKER.public]) == []


def test_reformatting_keeps_signatures_and_a_changed_word_drops_them(path: Path) -> None:
    add_signature(path, BUYER)
    path.write_text("# looked through\n" + WHOLE.replace("rate_hz = 60\n", "rate_hz = 60.0\n"))
    assert signature_faults(load_spec(path), load_signatures(path), [BUYER.public]) == []
    path.write_text(WHOLE.replace("both hands", "one hand"))
    (fault,) = signature_faults(load_spec(path), load_signatures(path), [BUYER.public])
    assert fault == (
        f"the signature of key {BUYER.key_id} is not over whole version 3 as it is now: the document was changed after "
        "it was signed; have it signed again"
    )
    done = sign(path, MAKER)
    assert (done.kept, [s.key_id for s in done.dropped]) == ((), [BUYER.key_id])
    assert [s.key_id for s in load_signatures(path)] == [MAKER.key_id]


def test_what_keeps_a_spec_from_being_signed() -> None:
    spec = parse(SMALL)
    buyer, maker = sign_spec(spec, BUYER), sign_spec(spec, MAKER)
    assert signature_faults(spec, [buyer], []) == []
    assert signature_faults(spec, [buyer, maker], [MAKER.public]) == []
    assert signature_faults(spec, [], []) == ["small version 1 is not signed; sign it with `firsthand-edge spec sign`"]
    assert signature_faults(spec, [buyer], [MAKER.public]) == [
        f"key {MAKER.key_id} has not signed small version 1; ask its owner to sign it"
    ]
    other = sign_spec(parse(WHOLE), MAKER)
    assert len(signature_faults(spec, [buyer, other], [])) == 1  # one that does not hold spoils the rest
    posing = SpecSignature(STRANGER.key_id, MAKER.public.hex(), maker.ed25519)
    assert "names key" in str(signature_fault(spec, posing))
    swapped = SpecSignature(STRANGER.key_id, STRANGER.public.hex(), maker.ed25519)
    assert "is not over small version 1 as it is now" in str(signature_fault(spec, swapped))


def test_an_invalid_spec_is_not_signed(path: Path) -> None:
    path.write_text(WHOLE.replace('reference = "head"', 'reference = "chest"'))
    with pytest.raises(SpecInvalid, match="no stream is called `chest`"):
        add_signature(path, BUYER)
    assert not signatures_path(path).exists()
    with pytest.raises(SpecInvalid, match=r"cannot be read \(No such file"):
        add_signature(path.with_name("absent.toml"), BUYER)
    with pytest.raises(SpecInvalid, match=r"cannot be read \(Is a directory\)"):
        add_signature(path.parent, BUYER)


def test_a_full_disk_leaves_the_old_signatures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_signature(path, BUYER)
    before = signatures_path(path).read_bytes()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match=r"signatures of .*spec\.toml cannot be written"):
        add_signature(path, MAKER)
    assert signatures_path(path).read_bytes() == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["spec.toml", "spec.toml.sig"]


def test_a_folder_in_the_place_of_the_signatures_is_one_sentence(path: Path) -> None:
    signatures_path(path).mkdir()
    with pytest.raises(SpecInvalid, match=r"spec\.toml\.sig .*\n.*cannot be read \(Is a directory\)"):
        add_signature(path, BUYER)


def test_two_who_sign_at_once_both_end_up_in_the_file(path: Path) -> None:
    keys = [KeyPair.generate() for _ in range(8)]
    threads = [threading.Thread(target=add_signature, args=(path, key)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert signature_faults(load_spec(path), load_signatures(path), [key.public for key in keys]) == []


def signature_file(path: Path) -> bytes:
    add_signature(path, BUYER)
    add_signature(path, MAKER)
    return signatures_path(path).read_bytes()


def flips(data: bytes, count: int | None) -> list[tuple[int, int]]:
    """Positions and bits; all of them, or a random sample."""
    every = [(at, bit) for at in range(len(data)) for bit in range(8)]
    return every if count is None else random.sample(every, count)


def check_flips(path: Path, count: int | None) -> None:
    data = signature_file(path)
    for at, bit in flips(data, count):
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        with pytest.raises(SpecInvalid, match="have the spec signed again"):
            read_signatures(bytes(changed), place="spec.toml.sig")


def test_a_change_of_any_byte_of_the_signatures_is_found(path: Path) -> None:
    check_flips(path, 400)


@pytest.mark.soak
def test_a_change_of_every_byte_of_the_signatures_is_found(path: Path) -> None:
    check_flips(path, None)


def check_document_flips(count: int | None) -> None:
    """What still parses and still has the digest says the same: the change is in a comment or in white space."""
    data = ("# comment\n" + WHOLE).encode()
    spec = parse_spec(data, place="spec.toml")
    signature = sign_spec(spec, BUYER)
    survived = 0
    for at, bit in flips(data, count):
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        try:
            other = parse_spec(bytes(changed), place="spec.toml")
        except SpecInvalid:
            continue
        if signature_fault(other, signature) is None:
            assert other == spec
            survived += 1
    assert survived < len(flips(data, count)) / 20


def test_a_change_of_any_byte_of_the_document_is_found_or_says_nothing() -> None:
    check_document_flips(300)


@pytest.mark.soak
def test_a_change_of_every_byte_of_the_document_is_found_or_says_nothing() -> None:
    check_document_flips(None)


@given(st.binary(max_size=300))
def test_any_bytes_are_signatures_or_a_sentence(data: bytes) -> None:
    with pytest.raises(SpecInvalid) as caught:
        read_signatures(data, place="x.sig")
    assert str(caught.value).startswith("x.sig has 1 mistake")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: {**d, "schema": "x"}, "is not a document firsthand.spec-signatures/1"),
        (lambda d: {**d, "more": 1}, "is not a document firsthand.spec-signatures/1"),
        (lambda d: {**d, "spec": {}}, "does not say which spec was signed"),
        (lambda d: {**d, "spec": {**d["spec"], "version": True}}, "does not say which spec was signed"),
        (lambda d: {**d, "spec": {**d["spec"], "version": 4}}, "is not over what the file says; it was altered"),
        (lambda d: {**d, "signatures": []}, "must hold 1 to 1000 signatures"),
        (lambda d: {**d, "signatures": d["signatures"] * 2}, "holds two signatures of one key"),
        (lambda d: {**d, "signatures": [7]}, "a signature has key_id, public_key and ed25519"),
        (
            lambda d: {**d, "signatures": [{**d["signatures"][0], "ed25519": "AB" * 64}]},
            "must be 128 hexadecimal digits in lower case",
        ),
        (
            lambda d: {**d, "signatures": [{**d["signatures"][0], "key_id": "0" * 16}]},
            "is not over what the file says; it was altered",
        ),
    ],
)
def test_what_is_no_file_of_signatures(path: Path, change: object, sentence: str) -> None:
    add_signature(path, BUYER)
    document = json.loads(signatures_path(path).read_bytes())
    changed = change(document)  # type: ignore[operator]
    with pytest.raises(SpecInvalid, match=sentence):
        read_signatures(canonical_bytes(changed) + b"\n", place="spec.toml.sig")
    signatures_path(path).write_bytes(canonical_bytes(changed) + b"\n")
    with pytest.raises(SpecInvalid, match=sentence):
        load_signatures(path)
    with pytest.raises(SpecInvalid, match=sentence):
        add_signature(path, MAKER)
