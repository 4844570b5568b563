"""The one tree of errors: each has a stable code for programs, one sentence for people, and an exit status.

The sentence says what is wrong, with which value, and what to do next. Exit statuses are those of the manual:
0 good, 1 rejected or unfit, 2 usage, 3 could not judge or unknown, 4 configuration or spec, 5 device, 6 local disk,
7 store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CannotJudge",
    "CaptureInvalid",
    "ChainBroken",
    "ConfigInvalid",
    "DeviceAbsent",
    "DeviceError",
    "DeviceSilent",
    "DiskError",
    "DiskFull",
    "EpisodeDamaged",
    "FirsthandError",
    "KeyRotated",
    "Mistake",
    "PlanInvalid",
    "RecordingUnreadable",
    "SpecInvalid",
    "SpecUnsigned",
    "StoreError",
    "StoreRefused",
    "UsageError",
]


class FirsthandError(Exception):
    """Root of every error that this software raises on purpose."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 3


class UsageError(FirsthandError):
    """The command line or the call does not make sense as it stands."""

    code = "usage"
    exit_status = 2


class CaptureInvalid(UsageError):
    """What is to be captured does not fit the spec; carries every mistake at once."""

    code = "capture.invalid"

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(Mistake(m) for m in mistakes)
        lines = "".join(f"\n  {m}" for m in self.mistakes)
        super().__init__(f"no take was started: what is to be captured has {_count(self.mistakes)}:{lines}")


class CannotJudge(FirsthandError):
    """There is no verdict, neither way: what is needed to judge is missing."""

    code = "judge.cannot"
    exit_status = 3


class RecordingUnreadable(CannotJudge):
    """A recording is truncated, foreign or damaged beyond what a reader can take."""

    code = "recording.unreadable"


class Mistake(str):
    """One mistake of a document: `place: what is wrong; what to do`."""

    __slots__ = ()


def _count(mistakes: Sequence[str]) -> str:
    return "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"


class ConfigInvalid(FirsthandError):
    """A configuration file is malformed; carries every mistake at once, each with its place in the file."""

    code = "config.invalid"
    exit_status = 4

    def __init__(self, what: str, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(Mistake(m) for m in mistakes)
        lines = "".join(f"\n  {m}" for m in self.mistakes)
        super().__init__(f"{what} {self._trouble()}:{lines}")

    def _trouble(self) -> str:
        return f"has {_count(self.mistakes)}; mend it and start again"


class SpecInvalid(ConfigInvalid):
    """A skill spec is malformed or contradicts itself."""

    code = "spec.invalid"


class SpecUnsigned(SpecInvalid):
    """A skill spec that is not signed by whom the rig file names, or was altered since; no take starts under it."""

    code = "spec.unsigned"

    def _trouble(self) -> str:
        return "starts no takes"


class PlanInvalid(ConfigInvalid):
    """A plan file is malformed, or does not fit the spec."""

    code = "plan.invalid"


class KeyRotated(FirsthandError):
    """The rig has another key than the one that this process holds; what it would sign would count for nothing."""

    code = "key.rotated"
    exit_status = 4


class DeviceError(FirsthandError):
    """A device or its worker process is not as it must be."""

    code = "device"
    exit_status = 5


class DeviceAbsent(DeviceError):
    """The device that the rig file names is not there."""

    code = "device.absent"


class DeviceSilent(DeviceError):
    """A device that is there delivers nothing within the time given."""

    code = "device.silent"


class DiskError(FirsthandError):
    """The local disk refuses: read-only, input/output error, unexpected content."""

    code = "disk"
    exit_status = 6
    counts: Mapping[str, Mapping[str, int]] | None = None
    """Where the samples of each stream went, on an error that ended a take."""


class DiskFull(DiskError):
    """The local disk has no room."""

    code = "disk.full"


class EpisodeDamaged(DiskError):
    """Files of an episode are not what chain and manifest say they are; nothing of it may leave."""

    code = "disk.damaged"


class ChainBroken(DiskError):
    """The rig's chain is not whole, so nothing may be accepted or leave by what it says; it has to be restored."""

    code = "disk.chain_broken"


class StoreError(FirsthandError):
    """The central store cannot be reached or cannot be written."""

    code = "store"
    exit_status = 7


class StoreRefused(StoreError):
    """The store holds other bytes under that name, or its proof differs from ours."""

    code = "store.refused"
