from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from firsthand_edge.errors import ConfigInvalid, DiskError
from firsthand_edge.spec.keys import KeyPair, key_id, verify

if TYPE_CHECKING:
    from pathlib import Path


def test_made_once_and_kept(tmp_path: Path) -> None:
    first = KeyPair.load_or_create(tmp_path / "keys")
    again = KeyPair.load_or_create(tmp_path / "keys")
    assert first.public == again.public
    assert sorted(p.name for p in (tmp_path / "keys").iterdir()) == ["rig.key", "rig.pub"]
    assert stat.S_IMODE((tmp_path / "keys" / "rig.key").stat().st_mode) == 0o600
    assert (tmp_path / "keys" / "rig.pub").read_text() == first.public.hex() + "\n"


def test_private_file_is_0600_under_any_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        KeyPair.load_or_create(tmp_path / "keys")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "keys" / "rig.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    KeyPair.load_or_create(tmp_path)
    (tmp_path / "rig.key").chmod(mode)
    with pytest.raises(ConfigInvalid, match="may be read by others"):
        KeyPair.load_or_create(tmp_path)


@pytest.mark.parametrize("data", [b"", bytes(65), b"zz" * 32, b"00" * 31, b"\xff" * 64])
def test_a_damaged_key_is_refused_and_left_alone(tmp_path: Path, data: bytes) -> None:
    KeyPair.load_or_create(tmp_path)
    (tmp_path / "rig.key").write_bytes(data)
    with pytest.raises(ConfigInvalid, match="holds no Ed25519 key"):
        KeyPair.load_or_create(tmp_path)
    assert (tmp_path / "rig.key").read_bytes() == data


def test_a_lost_or_foreign_public_file_is_written_again(tmp_path: Path) -> None:
    key = KeyPair.load_or_create(tmp_path)
    (tmp_path / "rig.pub").write_text("00" * 32 + "\n")
    KeyPair.load_or_create(tmp_path)
    assert (tmp_path / "rig.pub").read_text() == key.public.hex() + "\n"


def test_a_folder_that_cannot_be_made_is_a_disk_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="the rig's key in"):
        KeyPair.load_or_create(tmp_path / "file" / "keys")


def test_signatures_are_plain_ed25519(tmp_path: Path) -> None:
    key = KeyPair.generate()
    signature = key.sign(b"bytes")
    Ed25519PublicKey.from_public_bytes(key.public).verify(bytes.fromhex(signature), b"bytes")
    assert verify(key.public, b"bytes", signature)
    assert not verify(key.public, b"Bytes", signature)
    assert not verify(KeyPair.generate().public, b"bytes", signature)
    assert not verify(key.public, b"bytes", signature[:-2])
    assert not verify(key.public, b"bytes", "not hex")
    assert not verify(b"short", b"bytes", signature)
    assert key.key_id == key_id(key.public) == blake3(key.public).hexdigest()[:16]


def test_processes_that_start_at_once_end_with_one_key(tmp_path: Path) -> None:
    readers = []
    for _ in range(8):
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                os.write(write, KeyPair.load_or_create(tmp_path / "keys").public)
            finally:
                os._exit(0)
        os.close(write)
        readers.append(read)
    found = {os.read(read, 64) for read in readers}
    for read in readers:
        os.close(read)
        os.wait()
    assert found == {KeyPair.load_or_create(tmp_path / "keys").public}
