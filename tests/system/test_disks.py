"""Disks that really are full or read-only (needs root: file systems are mounted)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from firsthand_edge.cli.running import RunningRig
from firsthand_edge.daemon.control import RemoteError
from firsthand_edge.errors import StoreError
from tests.daemon.rigs import RIG, record, wait_ticks, write_rig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.system


@contextlib.contextmanager
def disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """An ext4 file system of its own, on a file."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(path: Path, *, leave: int = 0) -> None:
    """Writes `path` until the file system has `leave` bytes free."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while leave == 0 or os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize > leave:
            file.write(bytes(1 << 16))
            os.fsync(file.fileno())


def test_a_disk_that_fills_up_in_mid_take_ends_it_cleanly_and_the_next_take_works(tmp_path):
    with disk(tmp_path, megabytes=160) as place, RunningRig(write_rig(tmp_path), place / "s") as rig:
        first = record(rig, number=1, seconds=1)
        rig.wait_ready()
        torn = rig.begin(number=2)
        wait_ticks(rig, 60)
        fill(place / "ballast")
        wait_ticks(rig, 180)
        with pytest.raises(RemoteError, match=r"No space left|full") as caught:
            rig.call("stop_take", timeout_s=60)
        assert caught.value.exit_status == 6
        (place / "ballast").unlink()
        rig.wait_ready()
        third = record(rig, number=3, seconds=1)
        rig.close()
        rig.start_daemon()
        again = rig.call("episode", timeout_s=10, episode=torn)
    assert first["state"] == third["state"] == "accepted"
    assert again["state"] == "rejected"
    assert "record.torn" in [reason["code"] for reason in again["report"]["reasons"]]
    assert again["report"]["span"]["ticks"] >= 30


def test_a_take_is_refused_with_the_numbers_when_there_is_no_room_for_it(tmp_path):
    with disk(tmp_path, megabytes=96) as place, RunningRig(write_rig(tmp_path), place / "s") as rig:
        fill(place / "ballast", leave=20_000_000)
        with pytest.raises(RemoteError, match=r"has (19|20) MB free and a take needs 67 MB") as caught:
            rig.begin(number=1)
        assert caught.value.code == "disk.full"
        (place / "ballast").unlink()
        assert record(rig, number=1, seconds=1)["state"] == "accepted"


def test_a_read_only_store_loses_nothing(tmp_path):
    with disk(tmp_path, megabytes=64) as place:
        rig_file = write_rig(tmp_path, rig=RIG.replace('directory = "store"', f'directory = "{place}"'))
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        with RunningRig(rig_file, tmp_path / "s") as rig:
            rig.start_uploader()
            summary = record(rig, number=1, seconds=1)
            with pytest.raises(StoreError, match="Read-only file system"):
                rig.wait_for_store({summary["episode"]})
            assert rig.episodes_in("accepted") == {summary["episode"]}
            subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
            rig.log("uploadd").write_bytes(b"")
            rig.wait_for_store({summary["episode"]})
        assert list(place.rglob("episode.mcap"))
