"""Whether a chain is whole as far as it goes: every line a row, numbered, linked, signed by the key in force.

A rig acts on a chain only where that holds: a row that was taken out, or whose episode can no longer be read, might be
the one that rejected or withdrew it. Each look takes in what was appended since the last one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firsthand_edge.spool.row import read_row

if TYPE_CHECKING:
    from firsthand_edge.spool.keyring import KeyRing
    from firsthand_edge.spool.row import Row

__all__ = ["Break", "Soundness"]


@dataclass(frozen=True, slots=True)
class Break:
    """The first place where a chain is not whole."""

    line: int
    """Counted from 1."""
    why: str

    @property
    def sentence(self) -> str:
        """As said to people."""
        return (
            f"the chain is broken at line {self.line}, which {self.why}: nothing is accepted and nothing leaves the "
            "rig until the chain is restored; compare it with the store's copy (`firsthand-edge chain verify --store`)"
        )


class Soundness:
    """How far one chain file was found to be whole."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, as when the file is another."""
        self._broken: Break | None = None
        self._offset = 0
        self._n = 0
        self._prev: str | None = None

    def follow(self, descriptor: int, end: int, ring: KeyRing | None) -> Break | None:
        """Takes in the lines up to `end`.

        Args:
            descriptor: The file.
            end: Offset after the last whole line.
            ring: The chain's keys; None where its first row proves none.

        Returns:
            The first place where it is broken; None where it is whole.

        Raises:
            OSError: it cannot be read.
        """
        if self._broken is not None or end <= self._offset:
            return self._broken
        if ring is None:
            self._broken = Break(1, "proves no key, with which every chain begins")
            return self._broken
        from firsthand_edge.spool.chain_check import proved_rows

        lines = os.pread(descriptor, end - self._offset, self._offset).split(b"\n")[:-1]
        rows = [read_row(line) for line in lines]
        for row, proved in zip(rows, proved_rows(rows, ring), strict=True):
            why = self._fault(row, proved=proved)
            if row is None or why is not None:
                self._broken = Break(self._n + 1, why or "")
                return self._broken
            self._n, self._prev = self._n + 1, row.digest
        self._offset = end
        return None

    def _fault(self, row: Row | None, *, proved: bool) -> str | None:
        if row is None:
            return "is damaged and no row"
        if row.n != self._n:
            return f"is row {row.n} where row {self._n} belongs"
        if row.prev != self._prev:
            return "does not continue the row before it"
        return None if proved else "is not as the key in force signed it"
