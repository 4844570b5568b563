"""`firsthand-edge spec`: write, check, sign, verify, show and compare the contract of a collection."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.spec.differences import Difference
    from firsthand_edge.spec.document import Spec

__all__ = ["check", "diff", "new", "show", "sign", "verify"]

Json = Annotated[bool, Parameter(name="--json", negative="")]
DEFAULT_FILE: Final = Path("spec.toml")
INVALID: Final = 4
MISTAKE: Final = re.compile(r"line (\d+): ([^:]+): (.*)", re.DOTALL)
ANOTHER_COLLECTION: Final = (
    "They do not measure the same thing: what is recorded against one is a",
    "different collection from what is recorded against the other.",
)
NAMES_ONLY: Final = (
    "No criterion differs, only names; rigs and stores still take them for two",
    "collections, because the digests differ.",
)
SHORT: Final = 44
"""Columns up to which old and new value of a difference stand on one line."""


def new(file: Path = DEFAULT_FILE, /) -> int:
    """Write a commented start of a spec. A file that is there is never replaced.

    Exit status: 0 written, 2 the file is there already, 6 it cannot be written.

    Args:
        file: Where to write it.
    """
    from firsthand_edge.durable import disk_errors, write_new
    from firsthand_edge.errors import UsageError
    from firsthand_edge.spec.template import template

    if not file.name:
        raise UsageError(f"{file} is a folder; name the file to be written")
    try:
        with disk_errors(f"{file} cannot be written"):
            write_new(file, template())
    except FileExistsError:
        raise UsageError(f"{file} is there already and is not replaced; name another file") from None
    print(f"wrote {file}; fill in every <placeholder>, then: firsthand-edge spec check {file}")
    return 0


def check(file: Path, /, *, json: Json = False) -> int:
    """List everything missing, doubled, contradictory or not filled in, in one go, each with its line.

    Exit status: 0 nothing is wrong, 4 something is, or the file cannot be read.

    Args:
        file: The spec.
        json: Print one JSON object instead; also of a document that has mistakes.
    """
    from firsthand_edge.errors import SpecInvalid
    from firsthand_edge.spec.document import load_spec

    try:
        spec = load_spec(file)
    except SpecInvalid as exc:
        if not json:
            raise
        _print_json({"schema": "firsthand.spec-check/1", "spec": None, "mistakes": [_mistake(m) for m in exc.mistakes]})
        return INVALID
    if json:
        _print_json({"schema": "firsthand.spec-check/1", "spec": _identity(spec), "mistakes": []})
        return 0
    print(f"{file}: nothing is missing, doubled or contradictory")
    print(f"  {_called(spec)}: {spec.title}")
    counts = ((len(spec.tasks), "task"), (len(spec.cells), "cell"), (len(spec.required), "required stream"))
    print("  " + ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for number, name in counts))
    print(f"  digest {spec.digest}")
    return 0


def sign(
    file: Path,
    /,
    *,
    key: Annotated[Path, Parameter(name="--key")],
    new_key: Annotated[bool, Parameter(name="--new-key", negative="")] = False,
) -> int:
    """Sign a spec. Signatures lie beside it, in FILE.sig; those of others over the same document stay.

    Exit status: 0 signed, 2 wrong usage, 4 the spec is invalid or there is no usable key, 6 the disk refuses.

    Args:
        file: The spec.
        key: Folder of the signer's key; `firsthand-edge keys new` makes one.
        new_key: Make the key there first.
    """
    from firsthand_edge.spec.document import load_spec
    from firsthand_edge.spec.keys import KeyPair
    from firsthand_edge.spec.signed import sign as sign_file
    from firsthand_edge.spec.signed import signatures_path

    spec = load_spec(file)  # an invalid spec makes no key
    pair = KeyPair.create(key) if new_key else KeyPair.load(key)
    done = sign_file(file, pair)
    print(f"signed {_called(spec)} with key {done.signature.key_id}; see {signatures_path(file)}")
    print(f"  digest {spec.digest}")
    print(f"  key    {done.signature.public_key}")
    if done.kept:
        print(f"  signed by {', '.join(other.key_id for other in done.kept)} as well")
    for other in done.dropped:
        print(f"  dropped that of {other.key_id}, over an older form of the document; ask for a new one")
    return 0


def verify(
    file: Path,
    /,
    *,
    signer: Annotated[tuple[str, ...], Parameter(name="--signer", negative="", consume_multiple=False)] = (),
    json: Json = False,
) -> int:
    """Say who signed a spec, and whether it was changed since.

    Exit status: 0 signed, unchanged, and by every signer that was named; 2 a signer is no public key; 4 anything else:
    not signed, changed since, a signer is missing, or the spec itself is invalid.

    Args:
        file: The spec; its signatures are in FILE.sig.
        signer: A key that must have signed: 64 hex digits, or a public file; once for each. Without it any key will do.
        json: Print one JSON object instead.
    """
    from firsthand_edge.spec.document import load_spec
    from firsthand_edge.spec.keys import key_id, public_key_of
    from firsthand_edge.spec.signed import load_signatures, signature_fault, signature_faults

    required = [public_key_of(name) for name in signer]
    spec = load_spec(file)
    signatures = load_signatures(file)
    faults = signature_faults(spec, signatures, required)
    rows = [
        {"key_id": s.key_id, "public_key": s.public_key, "holds": signature_fault(spec, s) is None} for s in signatures
    ]
    if json:
        asked = [{"key_id": key_id(public), "public_key": public.hex()} for public in required]
        document = {"schema": "firsthand.spec-verification/1", "file": str(file), "spec": _identity(spec)}
        _print_json({**document, "proved": not faults, "signatures": rows, "required": asked, "faults": faults})
        return INVALID if faults else 0
    print(f"{file}: {_called(spec)}")
    print(f"  digest {spec.digest}")
    asked_for = {public.hex() for public in required}
    for row in rows:
        print(f"  {'signed by' if row['holds'] else 'NOT HELD BY'} {row['key_id']}")
        print(f"    {row['public_key']}{', asked for' if row['public_key'] in asked_for else ''}")
    for fault in faults:
        print(textwrap.fill(fault, 80, initial_indent="  - ", subsequent_indent="    "))
    if not faults:
        print("  Unchanged since it was signed.")
        if not required:
            print("  Whose keys these are was not checked; name those that count with --signer.")
    return INVALID if faults else 0


def show(file: Path, /, *, html: Path | None = None) -> int:
    """Show a spec as a briefing: what a wearer does, what a buyer gets.

    Exit status: 0 shown, 2 the page's name does not end in .html, 4 the spec is invalid, 6 the page cannot be written.

    Args:
        file: The spec.
        html: Write one self-contained page instead, to be printed or mailed; an older one of that name is replaced.
    """
    from firsthand_edge.cli.briefing import page, text_lines
    from firsthand_edge.durable import disk_errors, replace
    from firsthand_edge.errors import UsageError
    from firsthand_edge.spec.briefing import briefing
    from firsthand_edge.spec.document import load_spec
    from firsthand_edge.spec.signed import load_signatures, signature_faults

    if html is not None and html.suffix.lower() != ".html":
        raise UsageError(f"--html {html}: let the name end in .html")
    spec = load_spec(file)
    signatures = load_signatures(file)
    faults = signature_faults(spec, signatures, ())
    lead = [f"{_called(spec)[:1].upper()}{_called(spec)[1:]}, digest {spec.digest}."]
    if not signatures:
        lead.append("Not signed: no take starts on it.")
    elif faults:
        lead.append(f"Its signatures do not hold: {faults[0]}.")
    else:
        lead.append(f"Signed by {', '.join(signature.key_id for signature in signatures)}.")
    if spec.gap is not None:
        lead.append(f"The gap that it fills: {spec.gap}")
    if html is None:
        print("\n".join(text_lines(spec.title, lead, briefing(spec))))
        return 0
    with disk_errors(f"{html} cannot be written"):
        replace(html, page(spec.title, lead, briefing(spec)).encode())
    print(f"wrote {html}")
    return 0


def diff(first: Path, second: Path, /, *, json: Json = False) -> int:
    """Say whether two specs measure the same thing, and if not, what differs.

    Exit status: 0 the same, 1 they differ, 4 one of them is invalid.

    Args:
        first: A spec.
        second: The one to compare with it.
        json: Print one JSON object instead.
    """
    from firsthand_edge.spec.differences import differences
    from firsthand_edge.spec.document import load_spec

    old, new = load_spec(first), load_spec(second)
    found = differences(old, new)
    if json:
        document = {"schema": "firsthand.spec-differences/1", "same": not found}
        pair = {"first": _identity(old), "second": _identity(new)}
        _print_json({**document, **pair, "differences": [difference.to_json() for difference in found]})
    else:
        for path, spec in ((first, old), (second, new)):
            print(f"{path}: {_called(spec)}")
            print(f"  digest {spec.digest}")
        print("\n".join(_told(found)))
    return 1 if found else 0


def _told(found: Sequence[Difference]) -> list[str]:
    from firsthand_edge.cli.briefing import WIDTH
    from firsthand_edge.spec.differences import Group

    if not found:
        return ["They measure the same thing: one digest, however they are formatted."]
    only_names = all(difference.group is Group.WORDING for difference in found)
    lines = list(NAMES_ONLY if only_names else ANOTHER_COLLECTION)
    for group in Group:
        rows = [difference for difference in found if difference.group is group]
        if rows:
            lines += ["", f"{group.value.capitalize()} ({len(rows)})"]
        for row in rows:
            lines += _row(row, WIDTH)
    return lines


def _row(row: Difference, width: int) -> list[str]:
    old, new = row.old or "nothing", row.new or "nothing"
    if not row.means:  # a whole row
        what = f"only in the second: {new}" if row.old is None else f"only in the first: {old}"
        return [f"  {row.place}", *textwrap.wrap(what, width, initial_indent="      ", subsequent_indent="      ")]
    if len(old) + len(new) <= SHORT and "\n" not in old + new:
        lines = [f"  {row.place}: {old} -> {new}"]
    else:
        lines = [f"  {row.place}"]
        for mark, text in (("- ", old), ("+ ", new)):
            lines += textwrap.wrap(text, width, initial_indent=f"    {mark}", subsequent_indent="      ")
    return [*lines, *textwrap.wrap(f"({row.means})", width, initial_indent="      ", subsequent_indent="      ")]


def _called(spec: Spec) -> str:
    return f"spec {spec.id} version {spec.version}"


def _identity(spec: Spec) -> dict[str, Any]:
    return {"id": spec.id, "version": spec.version, "title": spec.title, "digest": spec.digest}


def _mistake(text: str) -> dict[str, Any]:
    found = MISTAKE.fullmatch(text)
    if found is None:
        return {"line": None, "place": None, "sentence": text}
    return {"line": int(found[1]), "place": found[2], "sentence": found[3]}


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False))
