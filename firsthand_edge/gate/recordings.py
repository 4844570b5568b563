"""Opening anybody's recording: which file it is, and who reads it."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.mcap_stamps import read_mcap

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.gate.channels import Progress, Recording, StampSource

__all__ = ["read_recording"]

MCAP_MAGIC = b"\x89MCAP0\r\n"
BAG_MAGIC = b"#ROSBAG V"
VRS_MAGIC = b"VisionRe"
SQLITE_MAGIC = b"SQLite format 3\x00"
SQLITE = (
    "a rosbag2 recording in SQLite, which is not read; convert it with `ros2 bag convert` to MCAP and audit the result"
)
KINDS = "an MCAP, a ROS 1 bag, a VRS file or the folder of a LeRobot data set"


def read_recording(
    path: Path,
    *,
    stamps: StampSource | None = None,
    episode: int | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Reads the stamps of every channel.

    Args:
        path: An MCAP file, a ROS 1 bag, a VRS file, or the folder of a LeRobot data set.
        stamps: Which times of an MCAP or a bag; None for the header where the schema has one, else the log time.
        episode: Which episode of a data set; None for the only one.
        progress: Told how far the file is read.

    Raises:
        RecordingUnreadable: when the file is not there, is neither, or is truncated or damaged.
        UsageError: when `stamps` or `episode` ask for what the recording does not have, or a package is not installed.
    """
    if path.is_dir():
        from firsthand_edge.gate.lerobot_stamps import INFO, read_lerobot

        if (path / INFO).is_file():
            _refuse_stamps(stamps, "a LeRobot data set has the times that its columns hold")
            return read_lerobot(path, episode)
        raise RecordingUnreadable(_no_recording(path))
    if episode is not None:
        raise UsageError("--episode chooses among the episodes of a LeRobot data set; leave it out")
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for, and cannot be read twice
            raise RecordingUnreadable(f"{path} is a pipe or a device, and a recording is a file; name {KINDS}")
        with path.open("rb") as file:
            magic = file.read(len(SQLITE_MAGIC))
    except OSError as exc:
        raise RecordingUnreadable(f"{path} cannot be read ({exc.strerror or exc}); name {KINDS}") from exc
    if magic.startswith(MCAP_MAGIC):
        return read_mcap(path, stamps, progress)
    if magic.startswith(BAG_MAGIC):
        from firsthand_edge.gate.bag_stamps import read_bag

        return read_bag(path, stamps, progress)
    if magic.startswith(VRS_MAGIC):
        from firsthand_edge.gate.vrs_stamps import read_vrs

        _refuse_stamps(stamps, "a VRS recording has capture times")
        return read_vrs(path)
    if magic == SQLITE_MAGIC:
        raise RecordingUnreadable(f"{path} is {SQLITE}")
    raise RecordingUnreadable(
        f"{path} is neither MCAP nor VRS nor a ROS 1 bag; name such a recording, or plain lists of stamps with "
        "--stream NAME=FILE"
    )


def _refuse_stamps(stamps: StampSource | None, has: str) -> None:
    if stamps is not None:
        raise UsageError(f"--stamps chooses among the times of an MCAP or a bag; {has}, so leave it out")


def _no_recording(folder: Path) -> str:
    there = sorted(path.name for path in folder.glob("*.mcap"))
    if not there and any(folder.glob("*.db3")):
        return f"{folder} is {SQLITE}"
    recording = f"a recording in it, such as {there[0]}" if there else KINDS
    return (
        f"{folder / 'episode.mcap'} cannot be read (No such file or directory), and {folder} is no data set either; "
        f"name {recording}"
    )
