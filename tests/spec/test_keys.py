from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from firsthand_edge.errors import ConfigInvalid, DiskError, UsageError
from firsthand_edge.spec.keys import RIG, SIGNER, KeyPair, key_id, public_key_of, verify

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


# ---- keys of who signs specs


def test_a_signer_s_key_is_made_once_and_never_replaced(tmp_path: Path) -> None:
    key = KeyPair.create(tmp_path / "buyer")
    assert sorted(p.name for p in (tmp_path / "buyer").iterdir()) == ["signer.key", "signer.pub"]
    assert stat.S_IMODE((tmp_path / "buyer" / "signer.key").stat().st_mode) == 0o600
    assert KeyPair.load(tmp_path / "buyer").public == key.public
    before = (tmp_path / "buyer" / "signer.key").read_bytes()
    with pytest.raises(UsageError, match=r"signer\.key is there already and is never replaced"):
        KeyPair.create(tmp_path / "buyer")
    assert (tmp_path / "buyer" / "signer.key").read_bytes() == before


@pytest.mark.parametrize("left", ["rig.key", "signer.pub"])
def test_a_folder_that_holds_another_key_gets_none(tmp_path: Path, left: str) -> None:
    KeyPair.load_or_create(tmp_path / "rig")
    KeyPair.create(tmp_path / "signer")
    (tmp_path / "signer" / "signer.key").unlink()
    folder = tmp_path / left.split(".", maxsplit=1)[0]
    with pytest.raises(UsageError, match=f"{left} is there already"):
        KeyPair.create(folder)
    assert not (folder / "signer.key").exists()


def test_a_signer_s_key_that_a_crash_left_half_made_is_completed(tmp_path: Path) -> None:
    key = KeyPair.create(tmp_path)
    (tmp_path / "signer.pub").unlink()
    assert KeyPair.create(tmp_path).public == key.public
    assert (tmp_path / "signer.pub").read_text() == key.public.hex() + "\n"


def test_a_folder_that_cannot_be_written_is_a_disk_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="a key cannot be made in"):
        KeyPair.create(tmp_path / "file" / "keys")


def test_the_rig_s_key_comes_before_a_signer_s_and_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="holds no key"):
        KeyPair.load(tmp_path)
    with pytest.raises(ConfigInvalid, match="restore the key"):
        KeyPair.load(tmp_path, RIG)
    signer = KeyPair.create(tmp_path)
    assert KeyPair.load(tmp_path).public == signer.public
    rig = KeyPair.load_or_create(tmp_path)
    assert KeyPair.load(tmp_path).public == rig.public
    assert KeyPair.load(tmp_path, SIGNER).public == signer.public


@pytest.mark.parametrize("half", [".rig.key.0a1b2c3d.part", ".rig.pub.0a1b2c3d.part"])
def test_what_a_crash_left_half_written_is_swept_away(tmp_path: Path, half: str) -> None:
    (tmp_path / half).write_bytes(b"00")
    KeyPair.load_or_create(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rig.key", "rig.pub"]


# ---- public keys that people name


def test_a_public_key_is_named_by_digits_file_or_folder(tmp_path: Path) -> None:
    key = KeyPair.create(tmp_path / "signer")
    for text in (key.public.hex(), str(tmp_path / "signer" / "signer.pub"), str(tmp_path / "signer")):
        assert public_key_of(text) == key.public


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("signer/signer.key", "is the name of a private key"),
        ("nowhere", "is no public key"),
        ("00", "is no public key"),
        ("AB" * 32, "is no public key"),
        ("empty", "holds 0 public keys"),
        ("both", "holds 2 public keys"),
        ("other", "is no public key"),
    ],
)
def test_what_names_no_public_key_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    KeyPair.create(tmp_path / "signer")
    (tmp_path / "empty").mkdir()
    KeyPair.create(tmp_path / "both")
    KeyPair.load_or_create(tmp_path / "both")
    (tmp_path / "other").write_bytes(b"\xff" * 5000)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=why):
        public_key_of(text)


def test_a_signature_is_spelled_in_one_way() -> None:
    key = KeyPair.generate()
    signature = key.sign(b"bytes")
    assert verify(key.public, b"bytes", signature)
    for other in (
        signature.upper(),
        f" {signature}",
        f"{signature} ",
        f"{signature[:2]} {signature[2:]}",
        signature + "\n",
    ):
        assert not verify(key.public, b"bytes", other) or other == signature
