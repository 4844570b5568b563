"""`firsthand-edge chain verify`: what a chain proves, what is wrong with it, and what it cannot tell."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path  # noqa: TC003 - cyclopts resolves annotations at run time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.episodes import DEFAULT_STATE, State
from firsthand_edge.errors import CannotJudge, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spool.chain_check import CheckedChain
    from firsthand_edge.spool.folder_check import FolderReport
    from firsthand_edge.spool.keyring import KeyRing

__all__ = ["verify"]

SHOWN = 20
"""Findings on the page; `--json` has them all."""
WIDTH = 80


def verify(
    path: Annotated[Path | None, Parameter(help="A chain, or a folder that holds chain.jsonl.")] = None,
    /,
    *,
    state: State = DEFAULT_STATE,
    key: Annotated[str | None, Parameter(help="Public key: 64 hex digits, or the file that holds them.")] = None,
    against: Annotated[Path | None, Parameter(help="A copy of the chain that somebody took.")] = None,
    store: Annotated[Path | None, Parameter(help="The store's directory: compare with the copy that it keeps.")] = None,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Finds edits, reordering, removal and truncation of a chain, and says what it cannot know.

    Without PATH it checks this rig's own chain, and the folders of its spool against it. With PATH it is a stranger's
    check, which needs the public key and nothing else.

    Exit status 0 when nothing is wrong, 1 with findings, 3 when it could not be checked.
    """
    from firsthand_edge.spool.chain import CHAIN_NAME
    from firsthand_edge.spool.chain_check import check_chain

    if against is not None and store is not None:
        raise UsageError("--against and --store both name a copy; name one")
    if path is not None and key is None:
        raise UsageError("name the public key with --key: without it a chain proves only that somebody wrote it")
    chain = state / "spool" / CHAIN_NAME if path is None else path / CHAIN_NAME if path.is_dir() else path
    data = _read(chain)
    public = _public(key, state, data)
    copy = against if store is None else store / "chains" / f"{_name(data, public)}.jsonl"
    missing = store is not None and copy is not None and not copy.exists()
    held = None if copy is None or missing else _read(copy)
    if held is not None and b"\n" not in held:  # what is left of a copy that somebody emptied proves nothing
        held, missing = None, True
    checked = check_chain(data, public, against=held)
    document = _document(chain, checked, public)
    document["copy"] = None if copy is None else str(copy)
    if store is not None:
        document["findings"] += _of_store(store, checked.keyring)
    of_torn, note = _cut_off(chain, data, checked.keyring)
    document["findings"] += of_torn
    document["notes"] += note
    if path is None:
        document["folders"] = _folders(state, chain, checked)
    bad = bool(document["findings"] or (document["folders"] or {}).get("findings"))
    document["good"] = not bad and not missing
    print(json.dumps(document, indent=2) if json_ else "\n".join(_page(document)))
    if missing and not bad:
        raise CannotJudge(
            f"there is no copy of this chain, not a row of it, in {copy}; so nothing tells whether its end was cut off"
        )
    return 1 if bad else 0


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise CannotJudge(f"{path} cannot be read ({exc.strerror or exc}); nothing was checked") from exc


def _public(key: str | None, state: Path, data: bytes) -> bytes:
    """The key to check by: the one given, or the rig's own."""
    from firsthand_edge.spec.keys import public_key_of, public_path
    from firsthand_edge.spool.keyring import ring_of

    if key is not None:
        return public_key_of(key)
    path = public_path(state / "keys")
    if not path.exists():
        raise CannotJudge(f"{path} is not there; name the rig's public key with --key")
    own = public_key_of(str(path))
    ring = ring_of(data)
    # A key that came into force with the last row may have signed nothing yet; the one before it vouches for that row.
    last = None if ring is None else ring.find(own)
    unheard = last is not None and not last.countersigned and last.since == data.count(b"\n")
    return ring.root if ring is not None and unheard else own


def _name(data: bytes, public: bytes) -> str:
    """What copies of the chain are called."""
    from firsthand_edge.spec.keys import key_id
    from firsthand_edge.spool.keyring import ring_of

    ring = ring_of(data)
    return key_id(public) if ring is None or ring.find(public) is None else ring.name


def _document(path: Path, checked: CheckedChain, public: bytes) -> dict[str, Any]:
    from firsthand_edge.spec.keys import key_id

    report = checked.report
    return {
        "schema": "firsthand.chain-check/1",
        "good": report.good,
        "chain": str(path),
        "name": checked.keyring.name,
        "rows": report.rows,
        "head": report.head,
        "checked_by": key_id(public),
        "keys": [
            {"key_id": one.key_id, "public_key": one.public.hex(), "since_row": one.since}
            for one in checked.keyring.keys
        ],
        "copy": None,
        "findings": [{"line": finding.line, "sentence": finding.sentence} for finding in report.findings],
        "notes": list(report.notes),
        "cannot_know": list(report.cannot_know),
        "folders": None,
    }


def _of_store(store: Path, ring: KeyRing) -> list[dict[str, Any]]:
    """A chain at the store that made this one's first key the rig's: this one was begun anew, and that one hidden."""
    from firsthand_edge.spool.keyring import ring_of

    out = []
    for path in sorted((store / "chains").glob("*.jsonl")):
        other = None if path.stem == ring.name else ring_of(_read(path))
        found = None if other is None else other.find(ring.root)
        if found is not None and found.since > 0:
            before = f"which came into force with row {found.since} of the chain {path.stem} that the store holds"
            why = "rows before were lost or hidden, and a chain begun anew"
            out.append({"line": 1, "sentence": f"begins with key {ring.name}, {before}: {why}"})
    return out


def _cut_off(chain: Path, data: bytes, ring: KeyRing) -> tuple[list[dict[str, Any]], list[str]]:
    """What lies beside the chain in `chain.torn`: findings of rows that were never torn, and a note."""
    from firsthand_edge.spool.chain import TORN_NAME
    from firsthand_edge.spool.row import whole_rows

    path = chain.with_name(TORN_NAME)
    if not path.exists():
        return [], []
    rows = data.split(b"\n")[:-1]
    held = set(rows)
    lines = [line for line in _read(path).split(b"\n") if line]
    found = []
    for line in lines:
        whole = next((row for row in whole_rows(line) if row.signed_by(ring.at(row.n))), None)
        if whole is None or whole.line in held:
            continue
        place = "another row stands in its place" if whole.n < len(rows) else "the chain ends before it"
        sentence = f"row {whole.n} ({whole.event}) was cut off, and {path} holds it whole and signed; {place}"
        found.append({"line": whole.n + 1, "sentence": sentence})
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    return found, [f"{path} keeps {count} cut off the end as torn; {len(found) or 'none'} of them proved to be whole"]


def _folders(state: Path, chain: Path, checked: CheckedChain) -> dict[str, Any]:
    from firsthand_edge.spool.folder_check import check_folders

    found: FolderReport = check_folders(state / "spool", chain, checked.rows, checked.keyring)
    return {
        "episodes": found.episodes,
        "unbound": found.unbound,
        "findings": [{"episode": one.episode, "sentence": one.sentence} for one in found.findings],
    }


def _page(document: dict[str, Any]) -> Iterator[str]:
    folders = document["folders"]
    of_folders = folders["findings"] if folders is not None else []
    count = len(document["findings"]) + len(of_folders)
    yield "GOOD" if document["good"] else "NOT COMPARED" if not count else f"{count} FINDING{'S' if count > 1 else ''}"
    yield ""
    yield f"chain   {document['chain']}"
    yield f"rows    {document['rows']}"
    yield f"head    {document['head'] or '-'}"
    for number, one in enumerate(document["keys"]):
        yield f"{'keys' if number == 0 else '':<8}{one['key_id']} since row {one['since_row']}"
        yield f"        {one['public_key']}"
    yield f"copy    {document['copy'] or 'compared with none'}"
    if folders is not None:
        waiting = f", {folders['unbound']} of them not sealed yet" if folders["unbound"] else ""
        yield f"folders {folders['episodes']} episodes{waiting}"
    if count:
        yield ""
        yield "What is wrong"
        said = [f"line {one['line']}: {one['sentence']}" for one in document["findings"]]
        said += [f"{one['episode']} {one['sentence']}" for one in of_folders]
        for sentence in said[:SHOWN]:
            yield from _item(sentence)
        if count > SHOWN:
            yield f"  and {count - SHOWN} more; --json lists them all"
    for title, sentences in (
        ("How it was checked", _how(document)),
        ("What this cannot know", document["cannot_know"]),
    ):
        yield ""
        yield title
        for sentence in sentences:
            yield from _item(sentence)


def _how(document: dict[str, Any]) -> list[str]:
    by = f"by key {document['checked_by']} and those that it proves"
    how = [f"every row: form, number, link to the row before, signature, {by}"]
    if document["folders"] is not None:
        how.append("every folder of the spool: its place, and each document that a row names, by digest; no footage")
    return [*how, *document["notes"]]


def _item(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
