"""Ed25519 keys: a rig's, made on first start, which never leaves it; and those of who signs a spec."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from firsthand_edge.durable import disk_errors, make_folder, replace, write_new
from firsthand_edge.errors import ConfigInvalid

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

__all__ = ["KeyPair", "key_id", "verify"]

PRIVATE_NAME: Final = "rig.key"
PUBLIC_NAME: Final = "rig.pub"
KEY_BYTES: Final = 32
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def key_id(public: bytes) -> str:
    """Short name of a public key: the first 16 hex digits of the BLAKE3 of its 32 raw bytes."""
    return blake3(public).hexdigest()[:16]


def verify(public: bytes, data: bytes, signature: str) -> bool:
    """Whether `signature` (128 hex digits) over `data` was made by the private half of `public` (32 raw bytes)."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


class KeyPair:
    """An Ed25519 key pair: a rig's signs manifests, verdicts and chain rows; a party's signs a spec."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: Final = private.public_key().public_bytes_raw()
        """The public key, 32 raw bytes."""
        self.key_id: Final = key_id(self.public)
        """Short name of the public key."""

    @classmethod
    def generate(cls) -> Self:
        """A new key that is on no disk."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, directory: Path) -> Self:
        """The key of `directory`, which must be there.

        Raises:
            ConfigInvalid: it is not there, others may read it, or it does not hold a key.
            DiskError: it cannot be read.
        """
        private = directory / PRIVATE_NAME
        if not private.exists():
            raise ConfigInvalid(str(private), ["is not there; restore the key that signed this rig's episodes"])
        with disk_errors(f"the rig's key in {directory} cannot be read"):
            return cls(Ed25519PrivateKey.from_private_bytes(_read_private(private)))

    @classmethod
    def load_or_create(cls, directory: Path) -> Self:
        """The key of `directory`; makes folder, private file (mode 0600) and public file on first start.

        Two processes that start at once end with the same key: the private file appears complete or not at all, and the
        first one stays.

        Raises:
            ConfigInvalid: others may read the private file, or it does not hold a key.
            DiskFull, DiskError: it cannot be written or read.
        """
        private, public = directory / PRIVATE_NAME, directory / PUBLIC_NAME
        with disk_errors(f"the rig's key in {directory} cannot be made or read"):
            make_folder(directory)
            if not private.exists():
                _create(private, Ed25519PrivateKey.generate().private_bytes_raw(), mode=0o600)
            key = cls(Ed25519PrivateKey.from_private_bytes(_read_private(private)))
            text = f"{key.public.hex()}\n".encode("ascii")
            if not public.exists() or public.read_bytes() != text:
                replace(public, text)
        return key

    def sign(self, data: bytes) -> str:
        """The signature of `data`, 128 hex digits."""
        return self._private.sign(data).hex()


def _create(path: Path, raw: bytes, *, mode: int) -> None:
    with suppress(FileExistsError):  # another process was first; its key is the rig's key
        write_new(path, f"{raw.hex()}\n".encode("ascii"), mode=mode)


def _read_private(path: Path) -> bytes:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        text = file.read(1024)
    if status.st_mode & OTHERS:
        raise ConfigInvalid(
            str(path), [f"may be read by others (mode {status.st_mode & 0o777:04o}); run chmod 600 and rotate the key"]
        )
    try:
        raw = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ConfigInvalid(
            str(path),
            [f"holds no Ed25519 key ({len(text)} bytes); restore it, or move it away so that a new one is made"],
        )
    return raw
