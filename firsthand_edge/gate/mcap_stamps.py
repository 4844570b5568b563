"""An MCAP's stamps, as the core reads them: which times a channel gets, and what the report says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge import _core
from firsthand_edge.errors import UsageError
from firsthand_edge.gate.channels import Channel, Recording, kind_of, within_int64
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.wording import count
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from firsthand_edge.gate.channels import Progress, StampSource

__all__ = ["GRADES", "no_stamp_in", "read_mcap", "unset_headers"]

GRADES = {"header": Grade.DECLARED, "log": Grade.RECEIVED, "publish": Grade.SENT}
"""What the times of a message are worth."""


def read_mcap(path: Path, stamps: StampSource | None, progress: Progress | None = None) -> Recording:
    """Reads the stamps of every topic.

    Args:
        path: An MCAP file.
        stamps: Which times; None for the header's where the schema has one, else the log time.
        progress: Told how far the file is read.

    Raises:
        RecordingUnreadable: when the file is truncated or damaged.
        UsageError: when a picture or an IMU should have a stamp in its messages, and has none.
    """
    found = _core.read_stamps(path, stamps=stamps or "header", progress=progress)
    notes: list[str] = []
    topics = sorted(found["topics"], key=lambda topic: str(topic["name"]))
    channels = tuple(_channel(topic, stamps, notes) for topic in topics)
    return Recording("mcap", channels, (*notes, *_unread(found)))


def _channel(topic: Mapping[str, Any], stamps: StampSource | None, notes: list[str]) -> Channel:
    name, times = str(topic["name"]), topic["times_ns"]
    used: StampSource = stamps if stamps in ("log", "publish") else "header" if topic["from_header"] else "log"
    kind = kind_of(topic["schema"], topic["metadata"].get("media", ""), within_int64(name, times))
    if used == "log" and stamps != "log":
        if stamps == "header" and kind in (Kind.TRIGGERED, Kind.SAMPLED):
            raise no_stamp_in(name)
        if topic["stamped"]:
            notes.append(unset_headers(name))
    return Channel(name, kind, times, used, unstamped=topic["samples"] - times.size, grade=GRADES[used])


def no_stamp_in(name: str) -> UsageError:
    """What is wrong with asking for the headers of a channel that has none."""
    return UsageError(
        f"`{name}` has no stamp in its messages; leave --stamps out, or choose --stamps log or --stamps publish"
    )


def unset_headers(name: str) -> str:
    """The note on a channel whose messages have a place for a stamp and never fill it."""
    return f"{name}: no message's header carries a stamp, so its log times are used"


def _unread(found: Mapping[str, Any]) -> list[str]:
    """What was not looked at where the file's indexes told the times."""
    chunks = found["chunks_indexed"]
    if not chunks:
        return []
    counted = "" if found["counted"] else " The file does not count its messages, so none could be found missing."
    unread = count(chunks, "chunk was", "chunks were")
    told = f"Log times are from the file's message indexes; {unread} not read, so their checksums are not checked."
    return [told + counted]
