"""Checking a chain with nothing but its bytes and a public key: what was changed, moved, removed, doubled or forged.

Every row is checked by itself (form, key, signature) and against the one before it (number, link). A key that came into
force later vouches for the rows before it too, by the links; what no bytes can tell is said as such.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import key_id
from firsthand_edge.spool.chain_copy import Finding, compare
from firsthand_edge.spool.keyring import KeyRing
from firsthand_edge.spool.row import Event, Row, read_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from firsthand_edge.spool.keyring import RingKey

__all__ = ["ChainReport", "CheckedChain", "Finding", "check_chain", "proved_rows"]

BATCH: Final = 1024
"""Rows that one thread takes at a time; below this, threads cost more than they save."""
UNSEEN: Final = "whether rows were cut off the end before anybody else had seen them: compare with the store's copy"
WALL_TIME: Final = "when a row was written, by the clock on the wall: rows prove their order only"
SECOND: Final = "whether the holder of the private key kept a second history: compare with the store's copy"
CANNOT_KNOW: Final = (UNSEEN, WALL_TIME, SECOND)


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a chain's bytes prove, and what they cannot."""

    rows: int
    head: str | None
    """Digest of the last line: who saw this head can later tell whether the tail was cut."""
    findings: tuple[Finding, ...]
    """By line."""
    cannot_know: tuple[str, ...] = CANNOT_KNOW
    notes: tuple[str, ...] = ()
    """How it was checked, where that has to be said."""

    @property
    def good(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class CheckedChain:
    """A chain that was checked, and those of its rows that count."""

    report: ChainReport
    rows: Mapping[str, tuple[Row, ...]]
    """By episode, in order: rows that the key in force signed, and no others."""
    keyring: KeyRing
    """The keys of the chain; of the key given alone, where the chain proves no other."""


def check_chain(data: bytes, public_key: bytes, *, against: bytes | None = None) -> CheckedChain:
    """Checks a chain: every row, the keys in their time, and the end against a copy that somebody saw earlier.

    Args:
        data: The chain file's bytes.
        public_key: 32 raw bytes of a key that the chain is to be by: the one that began it, or one that came later.
        against: An earlier or later copy, as the store keeps one.
    """
    *lines, tail = data.split(b"\n")
    rows = [read_row(line) for line in lines]
    ring, own = _keys(rows, public_key)
    proved = proved_rows(rows, ring)
    notes: list[str] = []
    if own is not None and not any(proved):
        said = (
            f"every row is signed by others than {key_id(public_key)}, the key given; key {own.name} began this chain"
        )
        findings = [Finding(1, f"{said}: it is another rig's, or the key is wrong")]
    else:
        findings = [*_walk(lines, rows, ring, proved), *_foreign(rows, ring, proved)]
    if not lines:
        findings.append(Finding(1, "is not there: a chain begins with the row of its key"))
    if tail:
        findings.append(Finding(len(lines) + 1, f"is torn: {len(tail)} bytes without a line feed"))
    if (given := ring.find(public_key)) is not None and given.since > 0:
        findings += _vouched(given, rows, proved)
        notes.append(
            f"rows 0 to {given.since - 1} are older than the key given: {_by_what(given)} links to them, and the keys "
            "that signed them are known from the chain itself"
        )
    cannot_know: tuple[str, ...] = CANNOT_KNOW
    if against is not None:
        compared = compare(data, against, ring)
        findings += compared.findings
        notes += compared.notes
        cannot_know = (*compared.cannot_know, WALL_TIME)
    by_episode: dict[str, list[Row]] = {}
    for row, good in zip(rows, proved, strict=True):
        if row is not None and good and row.episode is not None:
            by_episode.setdefault(row.episode, []).append(row)
    report = ChainReport(
        rows=len(lines),
        head=digest_bytes(lines[-1]) if lines else None,
        findings=tuple(sorted(findings, key=lambda finding: finding.line)),
        cannot_know=cannot_know,
        notes=tuple(notes),
    )
    return CheckedChain(report, {name: tuple(found) for name, found in by_episode.items()}, ring)


def _keys(rows: Sequence[Row | None], public_key: bytes) -> tuple[KeyRing, KeyRing | None]:
    """The keys that the rows are held against, and the chain's own where the key given is none of those."""
    readable = [row for row in rows if row is not None and row.event == Event.KEY]
    own = None if not rows or rows[0] is None else KeyRing.begun_by(rows[0])
    if own is not None:
        own = own.grown(readable)
        if own.find(public_key) is not None:
            return own, None
    return KeyRing.of(public_key).grown(readable), own


def proved_rows(rows: Sequence[Row | None], ring: KeyRing) -> list[bool]:
    """Which rows the key in force signed. Verifying is nearly all of the work and needs no interpreter lock."""

    def one(row: Row | None) -> bool:
        return row is not None and row.signed_by(ring.at(row.n))

    if len(rows) < 2 * BATCH:
        return [one(row) for row in rows]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as threads:
        found = threads.map(lambda at: [one(row) for row in rows[at : at + BATCH]], range(0, len(rows), BATCH))
        return [good for batch in found for good in batch]


def _walk(
    lines: Sequence[bytes], rows: Sequence[Row | None], ring: KeyRing, proved: Sequence[bool]
) -> Iterator[Finding]:
    expected, prev = 0, None
    for number, (line, row, good) in enumerate(zip(lines, rows, proved, strict=True), start=1):
        digest = digest_bytes(line)
        if row is None:
            yield Finding(number, "is damaged: not a row of this chain's form")
            expected, prev = expected + 1, digest
            continue
        for sentence in (*_place(row, expected, prev), *_changed(row, ring, good=good), *_key(row, ring)):
            yield Finding(number, sentence)
        expected, prev = row.n + 1, digest


def _place(row: Row, expected: int, prev: str | None) -> Iterator[str]:
    if row.n > expected:
        missing = row.n - expected
        lost = "1 row before it is missing" if missing == 1 else f"{missing} rows before it are missing"
        yield f"is row {row.n} where row {expected} belongs: {lost}"
    elif row.n < expected:
        yield f"is row {row.n} where row {expected} belongs: rows are out of order or doubled"
    elif row.prev != prev:
        yield f"row {row.n} does not continue the row before it, which was changed or replaced"


def _changed(row: Row, ring: KeyRing, *, good: bool) -> Iterator[str]:
    if not good and row.key_id == _name(ring, row):
        yield f"row {row.n} was changed after it was signed"


def _foreign(rows: Sequence[Row | None], ring: KeyRing, proved: Sequence[bool]) -> Iterator[Finding]:
    """Rows of a key that was not in force for them; neighbours of one key are one finding."""
    run: list[tuple[int, Row]] = []
    for number, (row, good) in enumerate(zip(rows, proved, strict=True), start=1):
        foreign = row is not None and not good and row.key_id != _name(ring, row)
        if run and (not foreign or row is None or _by_whom(row, ring) != _by_whom(run[0][1], ring)):
            yield _of_run(run, ring)
            run = []
        if row is not None and foreign:
            run.append((number, row))
    if run:
        yield _of_run(run, ring)


def _of_run(run: Sequence[tuple[int, Row]], ring: KeyRing) -> Finding:
    (line, first), (_, last) = run[0], run[-1]
    what = f"row {first.n} is" if first is last else f"rows {first.n} to {last.n} are"
    return Finding(line, f"{what} {_by_whom(first, ring)}")


def _by_whom(row: Row, ring: KeyRing) -> str:
    name, other = _name(ring, row), ring.named(row.key_id)
    if other is None:
        return f"signed by key {row.key_id}, not by {name}"
    if other.since <= row.n:
        return f"signed by key {row.key_id}, which had been given up for {name} before"
    return f"signed by key {row.key_id}, which came into force later, with row {other.since}"


def _name(ring: KeyRing, row: Row) -> str:
    """Short name of the key in force for `row`."""
    public = ring.at(row.n)
    return "none" if public is None else key_id(public)


def _key(row: Row, ring: KeyRing) -> Iterator[str]:
    """What is wrong with a row `key` besides its signature: it must be the one that brought a key of the ring."""
    if row.event != Event.KEY:
        if row.n == 0:
            yield "row 0 is not the row of a key, with which every chain begins"
        return
    brought = next((key for key in ring.keys if key.since == (row.n + 1 if row.n else 0)), None)
    if brought is None or row.body.get("public_key") != brought.public.hex():
        before = KeyRing(tuple(key for key in ring.keys if key.since <= row.n)) if row.n else None
        why = "it names another key than the one given" if before is None else before.rotation_fault(row)
        yield f"row {row.n} makes no key the rig's" + (f": {why}" if why else "")


def _by_what(given: RingKey) -> str:
    return "its countersignature" if given.countersigned else "its first row"


def _vouched(given: RingKey, rows: Sequence[Row | None], proved: Sequence[bool]) -> Iterator[Finding]:
    """A later key vouches for what came before by its countersignature of the rotation, or by its first row."""
    signed = (good and row is not None and row.n >= given.since for row, good in zip(rows, proved, strict=True))
    if given.countersigned or any(signed):
        return
    yield Finding(
        len(rows),
        f"makes {given.key_id} the rig's key, and that key has signed no row yet, so it vouches for nothing before; "
        "check with an earlier key",
    )
