"""The checks of one episode as they are made, under their names and in plain words."""

from __future__ import annotations

from typing import Final

from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import Check, Result

__all__ = ["CHECKS", "FILE", "Ledger"]

FILE: Final = "file:"
"""Begins the name of the check of one file."""

CHECKS: Final = {
    "folder": "The folder holds one episode, under its own name",
    "manifest.form": "The manifest is a whole document of a known form",
    "manifest.signature": "The rig's key signed the manifest, and nobody has changed it since",
    "spec.document": "The episode is bound to the spec that was given",
    "spec.signatures": "The parties' signatures under that spec are genuine",
    "spec.capture": "What was captured is foreseen by that spec",
    "chain.whole": "The rig's chain of events is unbroken",
    "chain.sealed": "The chain records the sealing of exactly this manifest",
    "chain.judged": "The chain records exactly the verdicts that are here",
    "chain.since": "The chain tells what became of the episode",
    "files": "Every recorded file is byte for byte as it was sealed",
    "verdict.form": "The verdict is a whole document of a known form",
    "verdict.signature": "The rig's key signed the verdict, and nobody has changed it since",
    "verdict.binding": "The verdict judges this manifest, under this spec",
    "verdict.again": "Judging again from the evidence gives the same verdict, reasons and figures",
    "evidence.binding": "The evidence was recorded for this episode, under this spec",
    "others": "Nothing else lies in the folder",
}
"""Every check, in the order of the page. `files` stands for one check a file."""


class Ledger:
    """Collects checks; each is entered once."""

    def __init__(self) -> None:
        """Nothing is checked yet."""
        self._checks: dict[str, Check] = {}

    def holds(self, name: str, found: str) -> None:
        """Enters a check that holds."""
        self._enter(name, Result.HOLDS, found)

    def fails(self, name: str, found: str) -> None:
        """Enters a check that fails."""
        self._enter(name, Result.FAILS, found)

    def skipped(self, name: str, why: str, *, excused: bool = False) -> None:
        """Enters a check that was not made."""
        self._enter(name, Result.NOT_CHECKED, why, excused=excused)

    def entered(self, name: str) -> bool:
        """Whether a check has been entered."""
        return name in self._checks

    def good(self, name: str) -> bool:
        """Whether a check was made and holds."""
        check = self._checks.get(name)
        return check is not None and check.result is Result.HOLDS

    def close(self, why: str) -> tuple[Check, ...]:
        """All checks in their order; those that were never come to are not checked, for the reason given."""
        files = [check for name, check in self._checks.items() if name.startswith(FILE)]
        out: list[Check] = []
        for name in CHECKS:
            if name == "files" and files:
                out += files
                continue
            if name not in self._checks:
                self.skipped(name, why)
            out.append(self._checks[name])
        return tuple(out)

    def _enter(self, name: str, result: Result, found: str, *, excused: bool = False) -> None:
        if name in self._checks:
            raise ValueError(f"{name} was checked twice")
        shown = printable(name)
        is_file = name.startswith(FILE)
        what = f"{shown.removeprefix(FILE)} is byte for byte as it was sealed" if is_file else CHECKS[name]
        self._checks[name] = Check(id=shown, result=result, what=what, found=printable(found), excused=excused)
