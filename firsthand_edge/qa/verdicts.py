"""The verdicts of one episode: their form, who signed them, what they judge, and which of them is in force."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.qa.proof import Reason, VerdictOnFile
from firsthand_edge.qa.reading import NotReadable, Withheld, document_fault, read_document_file
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import key_id
from firsthand_edge.spec.signing import SIGNATURE, signature_fault
from firsthand_edge.spool.reject_log import reject_row
from firsthand_edge.spool.verdict_file import VerdictDocument, verdict_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from firsthand_edge.qa.ledger import Ledger
    from firsthand_edge.qa.story import Story
    from firsthand_edge.spool.manifest import Manifest
    from firsthand_edge.spool.row import Row

__all__ = [
    "ReadVerdict",
    "Verdicts",
    "check_binding",
    "check_judged",
    "check_signatures",
    "judgements",
    "read_verdicts",
]

VERDICT: Final = re.compile(r"verdict(?:-([1-9][0-9]{0,8}))?\.json")


@dataclass(frozen=True, slots=True)
class ReadVerdict:
    """One verdict file that has the form of one."""

    number: int
    data: bytes
    """As it stands in the file."""
    raw: Mapping[str, Any]
    """The same, parsed, signature included."""
    document: VerdictDocument

    @property
    def digest(self) -> str:
        """Of the file."""
        return digest_bytes(self.data)

    @property
    def name(self) -> str:
        """Of the file."""
        return verdict_name(self.number)

    def on_file(self) -> VerdictOnFile:
        """As the proof shows it."""
        document = self.document
        signature = self.raw.get(SIGNATURE)
        signed_by = signature.get("key_id") if isinstance(signature, dict) else None
        return VerdictOnFile(
            file=self.name,
            judgement=self.number,
            digest=self.digest,
            verdict=document.verdict,
            core=document.core,
            signed_by=signed_by if isinstance(signed_by, str) else None,
            reasons=_reasons(document.reasons),
            warnings=_reasons(document.warnings),
            not_judged=document.not_judged,
        )


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdict files of one episode."""

    all: tuple[ReadVerdict, ...] = ()
    """Those that could be read, in order of judgement."""
    in_force: ReadVerdict | None = None
    """The one that the chain judged last; without a chain that tells, the last one that is here."""
    withheld: bool = False
    """A verdict is here that this user may not read."""


def read_verdicts(ledger: Ledger, folder: Path, names: Mapping[str, bool], story: Story) -> Verdicts:
    """Reads every verdict file and enters `verdict.form`."""
    numbers = judgements(names)
    last = len(story.judged) if story.telling else max(numbers, default=0)
    if last == 0 and not numbers:
        ledger.skipped("verdict.form", "it is not judged yet")
        return Verdicts()
    read: list[ReadVerdict] = []
    faults = [] if last in numbers or last == 0 else [f"{verdict_name(last)}, the one in force, is not there"]
    withheld: list[str] = []
    for number in numbers:
        name = verdict_name(number)
        try:
            data = read_document_file(folder / name)
            document = VerdictDocument.read(data)  # which reads canonical JSON alone
            read.append(ReadVerdict(number, data, json.loads(data), document))
        except Withheld as exc:
            withheld.append(str(exc))
        except (NotReadable, ValueError, RecursionError) as exc:
            faults.append(document_fault(name, exc))
    if withheld and not faults:
        ledger.skipped("verdict.form", "; ".join(withheld))
    elif faults:
        ledger.fails("verdict.form", "; ".join(faults))
    else:
        here = ", ".join(f"{verdict.name} ({verdict.document.schema_})" for verdict in read)
        ledger.holds("verdict.form", f"{here}, canonical JSON")
    in_force = next((verdict for verdict in read if verdict.number == last), None)
    return Verdicts(tuple(read), in_force, withheld=bool(withheld))


def check_signatures(ledger: Ledger, verdicts: Verdicts, story: Story, given: tuple[bytes, ...]) -> None:
    """Enters `verdict.signature`: each by the key in force when the chain recorded it, else by a key that was given."""
    faults: list[str] = []
    signers: list[str] = []
    for verdict in verdicts.all:
        keys = story.keys_at_judgement(verdict.number, given)
        found = [signature_fault(verdict.raw, key) for key in keys]
        if None in found:
            signers.append(f"{verdict.name} by key {key_id(keys[found.index(None)])}")
        else:
            faults.append(f"{verdict.name} {found[0]}")
    if not faults:
        _enter(ledger, verdicts, "verdict.signature", [], f"Ed25519: {', '.join(signers)}")
    elif story.untold:
        why = f"{'; '.join(faults)}; the chain that would say which key the rig had is not good"
        ledger.skipped("verdict.signature", why)
    else:
        ledger.fails("verdict.signature", "; ".join(faults))


def check_binding(ledger: Ledger, verdicts: Verdicts, story: Story, manifest: Manifest, manifest_digest: str) -> None:
    """Enters `verdict.binding`: each verdict is of this episode, manifest, spec and cell; none accepts a torn take."""
    faults = [
        f"{verdict.name} {fault}"
        for verdict in verdicts.all
        for fault in _binding_faults(verdict.document, story, manifest, manifest_digest)
    ]
    _enter(ledger, verdicts, "verdict.binding", faults, f"it names manifest {manifest_digest}")


def check_judged(ledger: Ledger, verdicts: Verdicts, story: Story) -> None:
    """Enters `chain.judged`: the chain names each verdict that is here, by its digest, and the last one is here."""
    if not story.judged:
        if verdicts.all:
            ledger.fails("chain.judged", f"{verdicts.all[0].name} is here, and no row of the chain judges the episode")
        else:
            ledger.skipped("chain.judged", "the chain does not judge it yet")
        return
    faults: list[str] = []
    for verdict in verdicts.all:
        if verdict.number > len(story.judged):
            faults.append(f"{verdict.name} is named by no row; the chain knows {len(story.judged)} judgements")
        else:
            row = story.judged[verdict.number - 1][0]
            faults += (f"row {row.n} {fault}" for fault in _row_faults(row, verdict))
    here = {verdict.number for verdict in verdicts.all}
    last = story.judged[-1][0]
    absence = f"row {last.n} names {verdict_name(len(story.judged))}, which is not here as a verdict"
    if len(story.judged) not in here and verdicts.withheld and not faults:
        ledger.skipped("chain.judged", f"{absence} that can be read")
        return
    if len(story.judged) not in here:
        faults.append(absence)
    if faults:
        ledger.fails("chain.judged", "; ".join(faults))
        return
    absent = len(story.judged) - len(here)
    more = f"; {absent} earlier, not here" if absent else ""
    ledger.holds("chain.judged", f"row {last.n} names {verdict_name(len(story.judged))}, which is in force{more}")


def _row_faults(row: Row, verdict: ReadVerdict) -> Iterator[str]:
    body, document = row.body, verdict.document
    if body.get("document") != verdict.digest:
        yield f"names a verdict of digest {body.get('document')}, and {verdict.name} has {verdict.digest}"
        return
    said = {"manifest": document.manifest, "spec": document.spec, "verdict": document.verdict}
    for field, value in said.items():
        if body.get(field) != value:
            yield f"says {field} {body.get(field)!r}, and {verdict.name} {value!r}"
    if body.get("judgement") != verdict.number:
        yield f"says judgement {body.get('judgement')!r}, and it is number {verdict.number}"
    logged = [reject_row(reason, cell=document.cell) for reason in document.reasons]
    if body.get("reasons") not in (
        logged,
        [dict(reason) for reason in document.reasons],
    ):  # as rows of firsthand.verdict/1 have them
        yield f"gives other reasons than {verdict.name}"


def _binding_faults(document: VerdictDocument, story: Story, manifest: Manifest, manifest_digest: str) -> Iterator[str]:
    if document.episode != manifest.episode:
        yield f"is of episode {document.episode}"
    if document.manifest != manifest_digest:
        yield f"judges another manifest, {document.manifest}; this one has {manifest_digest}"
    if document.spec != manifest.spec.digest:
        yield f"judges by spec {document.spec}; the manifest is bound to {manifest.spec.digest}"
    cell = None if manifest.capture is None else manifest.capture.cell
    if document.schema_ != "firsthand.verdict/1" and document.cell != cell:
        yield f"is of cell {document.cell}, and the manifest of {cell}"
    torn = manifest.recovery is not None or any(row.body.get("torn") is True for row, _ in story.sealed)
    if torn and document.accepted:
        yield "accepts a take that a crash cut off, which is never accepted"


def _enter(ledger: Ledger, verdicts: Verdicts, name: str, faults: Sequence[str], found: str) -> None:
    if faults:
        ledger.fails(name, "; ".join(faults))
    elif verdicts.all:
        ledger.holds(name, found)
    else:
        ledger.skipped(name, "there is no verdict to look at")


def judgements(names: Iterable[str]) -> list[int]:
    """The numbers of the verdict files among `names`, in order."""
    matches = ((name, VERDICT.fullmatch(name)) for name in names)
    numbers = [(int(match[1] or 1), name) for name, match in matches if match is not None]
    return sorted(number for number, name in numbers if verdict_name(number) == name)


def _reasons(rows: Iterable[Mapping[str, Any]]) -> tuple[Reason, ...]:
    return tuple(Reason(code=str(row.get("code", "")), sentence=str(row.get("sentence", ""))) for row in rows)
