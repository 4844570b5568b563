"""The files that a manifest lists, held against its digests, and what lies in the folder besides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from firsthand_edge import _core
from firsthand_edge.errors import DiskError
from firsthand_edge.qa.ledger import FILE
from firsthand_edge.qa.reading import NotReadable, Withheld, regular_file
from firsthand_edge.qa.verdicts import judgements
from firsthand_edge.spool.episode import EVIDENCE_NAME
from firsthand_edge.spool.manifest import MANIFEST_NAME
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import verdict_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from firsthand_edge.qa.ledger import Ledger
    from firsthand_edge.qa.places import Place
    from firsthand_edge.qa.story import Story
    from firsthand_edge.spool.manifest import FileDigests, Manifest

__all__ = ["check_files", "check_others"]

RECEIPT: Final = re.compile(r"receipt(-[1-9][0-9]*)?\.json")
REJECTED_STAYS: Final = "not here: footage of a rejected episode stays on the rig"


def check_files(
    ledger: Ledger,
    place: Place,
    names: Mapping[str, bool],
    manifest: Manifest,
    *,
    story: Story,
    accepted: bool | None,
    footage: bool,
) -> None:
    """Enters one check for each file that the manifest lists.

    Args:
        ledger: Takes the checks.
        place: The episode's folder, and whether it lies on its rig.
        names: What is in it.
        manifest: Names, sizes and digests.
        story: What the chain says, which tells of files that were deleted.
        accepted: What the verdict in force says; None where there is none.
        footage: False: evidence only.
    """
    for name, digests in manifest.files.items():
        check = FILE + name
        if name != EVIDENCE_NAME and not footage:
            ledger.skipped(check, "left out, as asked", excused=True)
        elif name not in names:
            excuse = _excuse(name, place, story, accepted=accepted)
            if excuse is not None:
                ledger.skipped(check, excuse, excused=True)
            else:
                ledger.fails(check, f"{name} is not there, and the manifest lists it")
        else:
            _check_file(ledger, check, place.folder / name, digests)
    if not manifest.files:
        ledger.skipped("files", "the manifest lists none: a crash left nothing", excused=True)


def _check_file(ledger: Ledger, check: str, path: Path, digests: FileDigests) -> None:
    try:
        fault = file_fault(path, digests)
    except Withheld as exc:
        ledger.skipped(check, str(exc))
        return
    if fault is not None:
        ledger.fails(check, fault)
    else:
        ledger.holds(check, f"{digests.bytes} bytes, blake3:{digests.blake3}")


def file_fault(path: Path, expected: FileDigests) -> str | None:
    """What is wrong with a file, as a sentence; None when it is what the manifest says. Both digests are compared.

    Raises Withheld where the operating system does not give the file to this user.
    """
    try:
        size = regular_file(path)
        if size != expected.bytes:
            return f"{path.name} has {size} bytes, and the manifest says {expected.bytes}"
        found = _core.digest_file(path)
    except Withheld:
        raise
    except NotReadable as exc:
        return str(exc)
    except DiskError as exc:
        raise Withheld(str(exc)) from exc
    if found["blake3"] != expected.blake3:
        return f"{path.name} has digest blake3:{found['blake3']}, and the manifest says blake3:{expected.blake3}"
    if found["crc64nvme"] != expected.crc64nvme:
        return f"{path.name} has CRC64-NVME {found['crc64nvme']}, and the manifest says {expected.crc64nvme}"
    return None


def check_others(ledger: Ledger, names: Mapping[str, bool], manifest: Manifest) -> None:
    """Names what nothing vouches for."""
    known = {*manifest.files, MANIFEST_NAME, *map(verdict_name, judgements(names))}
    strangers = [name for name in names if name not in known and not RECEIPT.fullmatch(name)]
    if strangers:
        shown = ", ".join(strangers[:3]) + (f" and {len(strangers) - 3} more" if len(strangers) > 3 else "")
        ledger.skipped("others", f"{shown}: nothing here vouches for that, and it was not read", excused=True)
    else:
        ledger.holds("others", "only what the manifest lists, the manifest itself, verdicts and receipts")


def _excuse(name: str, place: Place, story: Story, *, accepted: bool | None) -> str | None:
    """Why a file that is absent may be; None when it may not.

    What is withdrawn is to be deleted everywhere, evidence included, and is never taken for accepted. All other rows of
    a removal speak of the footage on the rig: elsewhere it must be there whatever the rig did with its own.
    """
    if story.good and story.withdrawn is not None:
        return f"deleted: it was withdrawn (row {story.withdrawn.n})"
    if name == EVIDENCE_NAME:
        return None
    if story.good and story.removed is not None and place.source.own and place.side == State.GONE:
        return f"deleted from the rig: it was {story.removed.event} (row {story.removed.n})"
    return REJECTED_STAYS if accepted is False and not place.source.own else None
