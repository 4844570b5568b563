"""Ed25519 keys: a rig's, made on first start, which never leaves it; and those of who signs a spec.

A key pair is two files of a folder: `<name>.key`, the private half (mode 0600, 64 hex digits), and `<name>.pub`, the
public half. A rig's are called `rig`, a party's that signs specs `signer`, and one that a rotation is about to make the
rig's `next`.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from firsthand_edge.durable import PART, disk_errors, make_folder, replace, write_new
from firsthand_edge.errors import ConfigInvalid, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

__all__ = [
    "NEXT",
    "RIG",
    "SIGNER",
    "KeyPair",
    "key_id",
    "keys_held",
    "mend_public",
    "private_path",
    "public_key_of",
    "public_path",
    "verify",
]

RIG: Final = "rig"
SIGNER: Final = "signer"
NEXT: Final = "next"
KEY_BYTES: Final = 32
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_PUBLIC: Final = re.compile(r"[0-9a-f]{64}")
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")


def key_id(public: bytes) -> str:
    """Short name of a public key: the first 16 hex digits of the BLAKE3 of its 32 raw bytes."""
    return blake3(public).hexdigest()[:16]


def private_path(directory: Path, name: str = RIG) -> Path:
    """The private file of the key pair called `name`."""
    return directory / f"{name}.key"


def public_path(directory: Path, name: str = RIG) -> Path:
    """The public file of the key pair called `name`."""
    return directory / f"{name}.pub"


@contextmanager
def keys_held(directory: Path) -> Iterator[None]:
    """Holds a folder of keys for this thread of this process alone, while its files are changed. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def mend_public(directory: Path, key: KeyPair) -> None:
    """Writes the rig's public file anew where it is not of `key`, and where a crash left half of one.

    Raises:
        ConfigInvalid: the private file holds no key any more.
        DiskFull, DiskError: it cannot be written.
    """
    path = public_path(directory)
    with disk_errors(f"{path} cannot be written"):
        if path.exists() and path.read_bytes() == key.public_text and not _parts(directory, path.name):
            return
        with keys_held(directory):
            KeyPair.load(directory, RIG).write_public(path)  # `key` may have been rotated since
            for part in _parts(directory, path.name):
                part.unlink()


def public_key_of(text: str) -> bytes:
    """The public key that a person names.

    Args:
        text: 64 hex digits, a public file, or a folder that holds one.

    Returns:
        32 raw bytes.

    Raises:
        UsageError: `text` names no public key, or a private one.
    """
    if _PUBLIC.fullmatch(text):
        return bytes.fromhex(text)
    path = Path(text)
    if path.is_dir():
        held = [file for name in (RIG, SIGNER) if (file := public_path(path, name)).exists()]
        if len(held) != 1:
            raise UsageError(f"the folder {path} holds {len(held)} public keys; name the file, as in {path}/rig.pub")
        path = held[0]
    if path.suffix == ".key":
        raise UsageError(f"{path} is the name of a private key, which is nobody else's business; name the .pub file")
    try:
        found = path.read_bytes()[:1024].decode("ascii").strip()
    except (OSError, ValueError):
        found = ""
    if not _PUBLIC.fullmatch(found):
        raise UsageError(f"{text!r} is no public key: state 64 hex digits, or a file that holds them, as rig.pub does")
    return bytes.fromhex(found)


@lru_cache(maxsize=256)
def _verifier(public: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public)


def verify(public: bytes, data: bytes, signature: str) -> bool:
    """Whether `signature` over `data` was made by the private half of `public` (32 raw bytes).

    A signature is spelled in one way only, 128 lower-case hex digits, so that no byte of a document can be changed
    unnoticed.
    """
    if not _SIGNATURE.fullmatch(signature):
        return False
    try:
        _verifier(public).verify(bytes.fromhex(signature), data)
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
    def load(cls, directory: Path, name: str | None = None) -> Self:
        """The key of `directory`, which must be there.

        Args:
            directory: Where its files are.
            name: What it is called; by default the rig's where there is one, else a signer's.

        Raises:
            ConfigInvalid: it is not there, others may read it, or it does not hold a key.
            DiskError: it cannot be read.
        """
        named = name or (RIG if private_path(directory, RIG).exists() else SIGNER)
        private = private_path(directory, named)
        if not private.exists():
            if name is None:
                raise ConfigInvalid(str(directory), ["holds no key; `firsthand-edge keys new` makes one for a signer"])
            raise ConfigInvalid(str(private), [f"is not there; restore the key that signed this {named}'s documents"])
        with disk_errors(f"the {named}'s key in {directory} cannot be read"):
            return cls(Ed25519PrivateKey.from_private_bytes(_read_private(private)))

    @classmethod
    def load_or_create(cls, directory: Path) -> Self:
        """The rig's key of `directory`; makes folder, private file (mode 0600) and public file on first start.

        Two processes that start at once end with the same key: the private file appears complete or not at all, and the
        first one stays.

        Raises:
            ConfigInvalid: others may read the private file, or it does not hold a key.
            DiskFull, DiskError: it cannot be written or read.
        """
        private = private_path(directory)
        with disk_errors(f"the rig's key in {directory} cannot be made or read"):
            make_folder(directory)
            if not private.exists():
                with keys_held(directory):
                    if not private.exists():  # another process may have been first; its key is the rig's key
                        for part in _parts(directory, private.name):
                            part.unlink()
                        cls.generate().write_private(private)
            key = cls(Ed25519PrivateKey.from_private_bytes(_read_private(private)))
        mend_public(directory, key)
        return key

    @classmethod
    def create(cls, directory: Path) -> Self:
        """A new key pair for a signer of specs. One that a crash left without its public file is completed.

        Raises:
            UsageError: the folder holds a key already, which is never replaced.
            ConfigInvalid: a half-made key there cannot be completed.
            DiskFull, DiskError: it cannot be written.
        """
        private, public = private_path(directory, SIGNER), public_path(directory, SIGNER)
        if private.exists() and not public.exists():
            key = cls.load(directory, SIGNER)
        else:
            taken = [file for name in (RIG, SIGNER) for file in (private_path(directory, name),) if file.exists()]
            if taken or public.exists():
                raise UsageError(
                    f"{(taken or [public])[0]} is there already and is never replaced; name another folder"
                )
            key = cls.generate()
            with disk_errors(f"a key cannot be made in {directory}"):
                make_folder(directory)
                try:
                    key.write_private(private)
                except FileExistsError:
                    raise UsageError(f"somebody else made {private} just now; name another folder") from None
        with disk_errors(f"a key cannot be made in {directory}"):
            key.write_public(public)
        return key

    def write_private(self, path: Path) -> None:
        """Writes the private half, durable, mode 0600. Raises FileExistsError or OSError; replaces nothing."""
        write_new(path, f"{self._private.private_bytes_raw().hex()}\n".encode("ascii"), mode=0o600)

    def write_public(self, path: Path) -> None:
        """Writes the public half, durable, unless it is there already. Raises OSError."""
        if not path.exists() or path.read_bytes() != self.public_text:
            replace(path, self.public_text)

    @property
    def public_text(self) -> bytes:
        """What a public file holds."""
        return f"{self.public.hex()}\n".encode("ascii")

    def sign(self, data: bytes) -> str:
        """The signature of `data`, 128 hex digits."""
        return self._private.sign(data).hex()


def _parts(directory: Path, name: str) -> list[Path]:
    """What processes that died left of the file `name`. Only with the folder held is nobody writing it."""
    return sorted(directory.glob(f".{name}.*{PART}"))


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
