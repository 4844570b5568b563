from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from firsthand_edge.errors import DiskError, StoreError, StoreRefused
from firsthand_edge.testing.stores import check_store
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.store import StoreFile


def file_of(path: Path, data: bytes) -> StoreFile:
    path.write_bytes(data)
    return StoreFile(path.name, path, len(data), blake3(data).hexdigest())


def test_passes_the_conformance_suite(tmp_path: Path) -> None:
    made = 0

    def make_store() -> DirectoryStore:
        nonlocal made
        made += 1
        (tmp_path / f"store-{made}").mkdir()
        return DirectoryStore(tmp_path / f"store-{made}")

    (tmp_path / "scratch").mkdir()
    check_store(make_store, tmp_path / "scratch")
    assert made > 5


def test_an_absent_store_is_not_made(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "mount")
    for act in (
        lambda: store.put("e-1", [file_of(tmp_path / "a", b"1")], side="episodes"),
        lambda: store.holds("e-1", [file_of(tmp_path / "a", b"1")], side="episodes"),
        lambda: store.mirror_chain("k", b"1\n"),
    ):
        with pytest.raises(StoreError, match="is not there; mount it"):
            act()
    assert not (tmp_path / "mount").exists()


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.EROFS, "read-only"), (errno.ENOSPC, "free some space"), (errno.EIO, "input/output error")],
)
@pytest.mark.parametrize("call", ["open", "write", "fsync"])
def test_a_store_that_cannot_be_written_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, advice: str
) -> None:
    (tmp_path / "store").mkdir()
    store = DirectoryStore(tmp_path / "store")
    file = file_of(tmp_path / "a.bin", b"data")
    real = getattr(os, call)

    def refuse(first: Any, *arguments: Any, **named: Any) -> Any:
        place = first if isinstance(first, str | Path) else Path(f"/proc/self/fd/{first}").readlink()
        if str(place).endswith(".part"):
            raise OSError(code, os.strerror(code), str(place))
        return real(first, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(StoreError, match=advice) as caught:
            store.put("e-1", [file], side="episodes")
    assert caught.value.exit_status == 7
    assert not isinstance(caught.value, StoreRefused)
    assert [p.name for p in (tmp_path / "store").rglob("*") if p.is_file()] == []
    store.put("e-1", [file], side="episodes")
    assert (tmp_path / "store" / "episodes" / "e-1" / "a.bin").read_bytes() == b"data"


def test_what_does_not_read_back_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    store = DirectoryStore(tmp_path / "store")
    real = os.fsync

    def rot(descriptor: int) -> None:
        real(descriptor)
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix == ".part":
            os.pwrite(descriptor, b"X", 1)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", rot)
        with pytest.raises(StoreError, match="does not read back"):
            store.put("e-1", [file_of(tmp_path / "a.bin", b"data")], side="episodes")
    assert not list((tmp_path / "store").rglob("*.bin"))


def test_a_half_file_of_a_dead_sender_is_in_nobody_s_way(tmp_path: Path) -> None:
    folder = tmp_path / "store" / "episodes" / "e-1"
    folder.mkdir(parents=True)
    (folder / ".a.bin.01234567.part").write_bytes(b"ha")
    DirectoryStore(tmp_path / "store").put("e-1", [file_of(tmp_path / "a.bin", b"half")], side="episodes")
    assert [p.name for p in folder.iterdir()] == ["a.bin"]


def test_a_lost_local_file_is_the_disk_s_fault(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with pytest.raises(DiskError, match=r"cannot be read to be sent"):
        DirectoryStore(tmp_path / "store").put(
            "e-1", [StoreFile("a.bin", tmp_path / "a.bin", 1, "0" * 64)], side="episodes"
        )
    assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file()]


@pytest.mark.parametrize(("change", "after"), [("truncate", 2), ("grow", 2), ("unlink", 2)])
def test_k63_a_source_that_changes_while_it_is_sent_is_never_kept(tmp_path: Path, change: str, after: int) -> None:
    (tmp_path / "store").mkdir()
    store = DirectoryStore(tmp_path / "store")
    file = file_of(tmp_path / "a.bin", b"z" * (5 << 20))
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        if asked == after + 1:
            if change == "truncate":
                os.truncate(file.path, 3 << 20)
            elif change == "grow":
                with file.path.open("ab") as more:
                    more.write(b"z" * (25 << 20))
            else:
                file.path.unlink()
        return False

    if change == "unlink":
        # The open file is whole; what is kept is what was announced.
        store.put("e-1", [file], side="episodes", stopping=stopping)
        assert store.holds("e-1", [file], side="episodes")
    else:
        with pytest.raises(StoreError, match="is not what its manifest says"):
            store.put("e-1", [file], side="episodes", stopping=stopping)
        assert not [p for p in (tmp_path / "store").rglob("*") if p.is_file()]


def test_k66_one_name_and_two_bodies(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    store = DirectoryStore(tmp_path / "store")
    store.put("e-1", [file_of(tmp_path / "a.bin", b"first")], side="episodes")
    held = tmp_path / "store" / "episodes" / "e-1" / "a.bin"
    before = held.stat().st_mtime_ns
    store.put("e-1", [file_of(tmp_path / "a.bin", b"first")], side="episodes")
    assert held.stat().st_mtime_ns == before
    with pytest.raises(StoreRefused, match="holds other bytes"):
        store.put("e-1", [file_of(tmp_path / "a.bin", b"other")], side="episodes")
    assert held.read_bytes() == b"first"
