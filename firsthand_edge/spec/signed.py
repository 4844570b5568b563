"""Signatures of a spec: they lie beside it, in `<spec file>.sig`, so that the document stays as it was written.

Each party signs the same few bytes: the spec's id, version and digest. Reformatting the TOML therefore keeps every
signature, and a changed word drops them all.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from firsthand_edge.config import LARGEST_DOCUMENT, read_file
from firsthand_edge.durable import disk_errors, replace
from firsthand_edge.errors import SpecInvalid
from firsthand_edge.spec.canonical import canonical_bytes
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.spec.keys import key_id, verify
from firsthand_edge.spec.signing import document_bytes, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.keys import KeyPair

__all__ = [
    "Signed",
    "SpecSignature",
    "SpecSignatures",
    "add_signature",
    "load_signatures",
    "read_signatures",
    "sign",
    "sign_spec",
    "signature_fault",
    "signature_faults",
    "signatures_path",
]

SIGNATURES_SCHEMA: Final = "firsthand.spec-signatures/1"
SIGNATURE_SCHEMA: Final = "firsthand.spec-signature/1"
ENDING: Final = ".sig"
MOST_SIGNATURES: Final = 1000
KEY_ID_DIGITS: Final = 16
PUBLIC_KEY_DIGITS: Final = 64
ED25519_DIGITS: Final = 128


@dataclass(frozen=True, slots=True)
class SpecSignature:
    """One party's signature over a spec; every field is hexadecimal."""

    key_id: str
    """Short name of the key: 16 digits."""
    public_key: str
    """The public key: 64 digits."""
    ed25519: str
    """The signature over what `signed_bytes` gives: 128 digits."""

    def to_json(self) -> dict[str, str]:
        """A JSON object with the fields of this class."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The inverse of `to_json`. Raises ValueError, with a sentence, for anything else."""
        lengths = {"key_id": KEY_ID_DIGITS, "public_key": PUBLIC_KEY_DIGITS, "ed25519": ED25519_DIGITS}
        if not isinstance(data, dict) or set(data) != set(lengths):
            raise ValueError("a signature has key_id, public_key and ed25519, and nothing else")
        for name, length in lengths.items():
            value = data[name]
            if not isinstance(value, str) or len(value) != length or not set(value) <= set("0123456789abcdef"):
                raise ValueError(f"{name} of a signature must be {length} hexadecimal digits in lower case")
        return cls(**data)


@dataclass(frozen=True, slots=True)
class SpecSignatures:
    """What a file of signatures holds: who signed which document."""

    id: str
    """Of the spec that was signed."""
    version: int
    """Of that spec."""
    digest: str
    """Of that spec; the document beside it has another one when it was changed since."""
    signatures: tuple[SpecSignature, ...]
    """In the order of their key ids."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What signing did."""

    signature: SpecSignature
    """The new one."""
    kept: tuple[SpecSignature, ...]
    """Those of others over the same document."""
    dropped: tuple[SpecSignature, ...]
    """Those over an older form of the document."""


def signatures_path(spec_path: Path) -> Path:
    """Where the signatures of the document at `spec_path` lie: `<spec file>.sig`."""
    return spec_path.with_name(spec_path.name + ENDING)


def sign_spec(spec: Spec, key: KeyPair) -> SpecSignature:
    """The signature of `key` over `spec`. One key and one document always give the same one."""
    return SpecSignature(key.key_id, key.public.hex(), key.sign(_signed_bytes(_identity(spec))))


def signature_fault(spec: Spec, signature: SpecSignature) -> str | None:
    """Why `signature` does not hold for `spec`, as a sentence; None when it does."""
    public = bytes.fromhex(signature.public_key)
    if key_id(public) != signature.key_id:
        return f"a signature names key {signature.key_id}, and its public key is {key_id(public)}; have it signed again"
    if not verify(public, _signed_bytes(_identity(spec)), signature.ed25519):
        return (
            f"the signature of key {signature.key_id} is not over {spec.id} version {spec.version} as it is now: the "
            "document was changed after it was signed; have it signed again"
        )
    return None


def signature_faults(spec: Spec, signatures: Sequence[SpecSignature], required: Sequence[bytes]) -> list[str]:
    """What keeps `spec` from being a signed document.

    Args:
        spec: The document as it is now.
        signatures: Those that lie beside it.
        required: Public keys, 32 raw bytes each, all of which must have signed.

    Returns:
        Sentences; none when there is at least one signature, every one holds, and every required key has signed.
    """
    if not signatures:
        return [f"{spec.id} version {spec.version} is not signed; sign it with `firsthand-edge spec sign`"]
    found = [fault for fault in (signature_fault(spec, signature) for signature in signatures) if fault is not None]
    present = {signature.public_key for signature in signatures}
    found += [
        f"key {key_id(public)} has not signed {spec.id} version {spec.version}; ask its owner to sign it"
        for public in required
        if public.hex() not in present
    ]
    return found


def read_signatures(data: bytes, *, place: str) -> SpecSignatures:
    """Reads a file of signatures. They hold for the digest that it names; whether for a spec, `signature_faults` says.

    Args:
        data: Canonical JSON and a line feed, byte for byte as this software writes it.
        place: What to call the file in messages, mostly its path.

    Raises:
        SpecInvalid: it is not that, or was altered: a change of any byte is found.
    """
    try:
        return _signatures(read_document(data))
    except ValueError as exc:
        raise SpecInvalid(place, [f"{exc}; remove the file and have the spec signed again"]) from exc


def load_signatures(spec_path: Path) -> tuple[SpecSignature, ...]:
    """The signatures beside the document at `spec_path`; none when there is no such file.

    Raises:
        SpecInvalid: the file cannot be read, or is damaged.
    """
    path = signatures_path(spec_path)
    if not path.exists():
        return ()
    return read_signatures(read_file(path, error=SpecInvalid), place=str(path)).signatures


def add_signature(spec_path: Path, key: KeyPair) -> SpecSignature:
    """Signs the document at `spec_path` and adds the signature to those beside it, as `sign` does."""
    return sign(spec_path, key).signature


def sign(spec_path: Path, key: KeyPair) -> Signed:
    """Signs the document at `spec_path`; the file of signatures is replaced whole and durably.

    Signatures of others stay while they are over this document; those that are not are dropped. Two parties that sign
    at once both end up in the file.

    Raises:
        SpecInvalid: the document is malformed or contradicts itself, or the signatures beside it are damaged.
        DiskFull, DiskError: the signatures cannot be written.
    """
    path = signatures_path(spec_path)
    with _held(spec_path) as data:
        spec = parse_spec(data, place=str(spec_path))
        mine = sign_spec(spec, key)
        others = [other for other in load_signatures(spec_path) if other.public_key != mine.public_key]
        kept = tuple(other for other in others if signature_fault(spec, other) is None)
        everyone = sorted((mine, *kept), key=lambda signature: (signature.key_id, signature.public_key))
        document = {
            "schema": SIGNATURES_SCHEMA,
            "spec": _identity(spec),
            "signatures": [signature.to_json() for signature in everyone],
        }
        with disk_errors(f"signatures of {spec_path} cannot be written"):
            replace(path, document_bytes(document))
    return Signed(mine, kept, tuple(other for other in others if other not in kept))


def _identity(spec: Spec) -> dict[str, str | int]:
    return {"id": spec.id, "version": spec.version, "digest": spec.digest}


def _signed_bytes(identity: Mapping[str, Any]) -> bytes:
    """What every party signs; the schema keeps a signature over a spec from passing for one over anything else."""
    return canonical_bytes({"schema": SIGNATURE_SCHEMA, "spec": identity})


def _signatures(document: dict[str, Any]) -> SpecSignatures:
    if document.get("schema") != SIGNATURES_SCHEMA or set(document) != {"schema", "spec", "signatures"}:
        raise ValueError(f"is not a document {SIGNATURES_SCHEMA} with `spec` and `signatures`")
    spec, rows = document["spec"], document["signatures"]
    if not isinstance(spec, dict) or set(spec) != {"id", "version", "digest"}:
        raise ValueError("does not say which spec was signed: id, version and digest")
    if not isinstance(spec["id"], str) or type(spec["version"]) is not int or not isinstance(spec["digest"], str):
        raise ValueError("does not say which spec was signed: id and digest are texts, version is an integer")
    if not isinstance(rows, list) or not rows or len(rows) > MOST_SIGNATURES:
        raise ValueError(f"must hold 1 to {MOST_SIGNATURES} signatures")
    signatures = tuple(SpecSignature.from_json(row) for row in rows)
    if len({signature.public_key for signature in signatures}) != len(signatures):
        raise ValueError("holds two signatures of one key")
    for signature in signatures:
        public = bytes.fromhex(signature.public_key)
        if key_id(public) != signature.key_id or not verify(public, _signed_bytes(spec), signature.ed25519):
            raise ValueError(
                f"holds a signature of {signature.key_id} that is not over what the file says; it was altered"
            )
    return SpecSignatures(spec["id"], spec["version"], spec["digest"], signatures)


@contextmanager
def _held(path: Path) -> Iterator[bytes]:
    """The bytes of the document at `path`, held against others who sign it, for as long as it is read and signed."""
    try:
        file = path.open("rb")
    except OSError as exc:
        raise SpecInvalid(str(path), [f"cannot be read ({exc.strerror}); name a spec that is there"]) from exc
    with file:
        with disk_errors(f"{path} cannot be read"):
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            data = file.read(LARGEST_DOCUMENT + 1)
        if len(data) > LARGEST_DOCUMENT:
            raise SpecInvalid(str(path), [f"is larger than {LARGEST_DOCUMENT} bytes; this is not a spec"])
        yield data
