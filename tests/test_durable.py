from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from firsthand_edge import durable
from firsthand_edge.durable import disk_errors, make_folder, move_new, rename_new, replace, write_new
from firsthand_edge.errors import DiskError, DiskFull


def test_write_new_never_replaces(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"one")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_replace_takes_the_place(tmp_path: Path) -> None:
    replace(tmp_path / "a", b"one")
    replace(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_order_is_write_fsync_rename_fsync_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace: list[str] = []
    real_write, real_fsync, real_rename = os.write, os.fsync, durable.rename_new

    def fsync(descriptor: int) -> None:
        trace.append("fsync " + Path(f"/proc/self/fd/{descriptor}").readlink().suffix)
        real_fsync(descriptor)

    def write(descriptor: int, data: Any) -> int:
        trace.append("write")
        return real_write(descriptor, data[:3])

    def rename(source: Path, target: Path) -> None:
        trace.append("rename")
        real_rename(source, target)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(durable, "rename_new", rename)
    write_new(tmp_path / "a", b"12345")
    assert trace == ["write", "write", "fsync .part", "rename", "fsync "]
    assert (tmp_path / "a").read_bytes() == b"12345"


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("folder", [False, True])
def test_rename_new_refuses_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, folder: bool, fallback: bool
) -> None:
    if fallback:

        class NoRenameat2:
            @staticmethod
            def renameat2(*_arguments: Any) -> int:
                durable.ctypes.set_errno(errno.EINVAL)
                return -1

        monkeypatch.setattr(durable, "_libc", NoRenameat2)
    source, target = tmp_path / "source", tmp_path / "target"
    for path in (source, target):
        path.mkdir() if folder else path.write_bytes(path.name.encode())
    with pytest.raises(FileExistsError):
        rename_new(source, target)
    assert source.exists()
    rename_new(source, tmp_path / "free")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["free", "target"]


def test_move_new_goes_between_folders(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b" / "episode")
    make_folder(tmp_path / "c")
    move_new(tmp_path / "a" / "b" / "episode", tmp_path / "c" / "episode")
    assert (tmp_path / "c" / "episode").is_dir()
    assert not list((tmp_path / "a" / "b").iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_refusing_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, step: str
) -> None:
    def refuse(*_arguments: Any) -> int:
        raise OSError(code, os.strerror(code), "here")

    monkeypatch.setattr(os, step, refuse)
    expected = DiskFull if code == errno.ENOSPC else DiskError
    with pytest.raises(expected) as caught, disk_errors("it cannot be written"):
        write_new(tmp_path / "a", b"data")
    assert type(caught.value) is expected
    assert "it cannot be written" in str(caught.value)
    assert "here" in str(caught.value)
    assert caught.value.exit_status == 6
    assert not list(tmp_path.iterdir())
