"""The proof of one episode: manifest, files, chain rows and verdict, and the verdict judged again from the evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firsthand_edge.qa.again import check_again
from firsthand_edge.qa.files import check_files, check_others
from firsthand_edge.qa.ledger import Ledger
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import EpisodeProof, Outcome, outcome_of
from firsthand_edge.qa.reading import NotReadable, Withheld, document_fault, names_in, read_document_file
from firsthand_edge.qa.story import Story, check_chain_rows, read_story
from firsthand_edge.qa.verdicts import check_binding, check_judged, check_signatures, read_verdicts
from firsthand_edge.spec.canonical import digest_bytes
from firsthand_edge.spec.keys import key_id
from firsthand_edge.spec.signing import SIGNATURE, signature_fault
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.manifest import MANIFEST_NAME, Manifest
from firsthand_edge.spool.states import State

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.qa.chains import EpisodeRows
    from firsthand_edge.qa.places import Place
    from firsthand_edge.qa.proof import VerdictOnFile
    from firsthand_edge.qa.standard import Standard

__all__ = ["prove_episode"]


def prove_episode(place: Place, standard: Standard, rows: EpisodeRows | None) -> EpisodeProof:
    """Checks everything that can be checked of one episode. Nothing that lies in its folder makes this raise.

    Args:
        place: The episode's folder; nothing outside of it is read.
        standard: What it is held against.
        rows: What the chain says of it; None where there is no chain.
    """
    proof = _Proof(place, standard, rows)
    try:
        return proof.run()
    except Exception as exc:  # noqa: BLE001 - one hostile episode must not keep the others from their proof
        return proof.broken(exc)


def _name(exc: Exception) -> str:
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:200]}"


@dataclass(slots=True)
class _Proof:
    """One proof on its way."""

    place: Place
    standard: Standard
    rows: EpisodeRows | None
    ledger: Ledger = field(default_factory=Ledger)
    manifest: Manifest | None = None
    manifest_digest: str | None = None
    signed_by: str | None = None
    verdict: VerdictOnFile | None = None
    taken_back: bool = False

    @property
    def folder(self) -> Path:
        return self.place.folder

    def run(self) -> EpisodeProof:
        try:
            names = names_in(self.folder)
        except Withheld as exc:
            self.ledger.skipped("folder", f"{exc}; nothing was read")
            return self.finished("the folder could not be read")
        except NotReadable as exc:
            self.ledger.fails("folder", f"{exc}; nothing was read")
            return self.finished("there is no folder to be read")
        story = read_story(self.rows)
        self.taken_back = story.taken_back is not None
        document = self._read_manifest(names, story)
        if document is None or self.manifest is None or self.manifest_digest is None:
            return self.finished("there is no manifest to hold anything against")
        self._check_name(self.manifest)
        self._check_manifest_signature(document, story)
        self._check_spec(self.manifest)
        check_chain_rows(self.ledger, self.rows, story, self.manifest, self.manifest_digest)
        self._check_verdicts(names, story, self.manifest, self.manifest_digest)
        check_others(self.ledger, names, self.manifest)
        return self.finished("something before it failed")

    def _check_verdicts(self, names: dict[str, bool], story: Story, manifest: Manifest, digest: str) -> None:
        """Verdicts, the files that they speak of, and the one in force judged again."""
        ledger = self.ledger
        verdicts = read_verdicts(ledger, self.folder, names, story)
        check_signatures(ledger, verdicts, story, self.standard.asked.keys)
        check_binding(ledger, verdicts, story, manifest, digest)
        if story.telling:
            check_judged(ledger, verdicts, story)
        in_force = verdicts.in_force
        self.verdict = None if in_force is None else in_force.on_file()
        check_files(
            ledger,
            self.place,
            names,
            manifest,
            story=story,
            accepted=None if in_force is None else in_force.document.accepted,
            footage=self.standard.asked.footage,
        )
        check_again(ledger, self.folder, names, manifest=manifest, manifest_digest=digest, verdict=in_force)

    def finished(self, why: str) -> EpisodeProof:
        """The proof as far as it came."""
        checks = self.ledger.close(why)
        outcome = outcome_of(checks, self.verdict, taken_back=self.taken_back)
        trusted = self.ledger.good("manifest.signature")
        return EpisodeProof(
            folder=printable(self.place.shown),
            episode=self.manifest.episode if self.manifest is not None else None,
            outcome=outcome,
            signed_by=self.signed_by,
            manifest=self.manifest_digest,
            spec=self.manifest.spec.digest if self.manifest is not None else None,
            claims=_claims(self.manifest) if trusted and self.manifest is not None else {},
            verdict=self.verdict,
            checks=checks,
        )

    def broken(self, exc: Exception) -> EpisodeProof:
        """The proof of an episode whose content no check had foreseen: it is not proved, and the page says so."""
        why = f"its content made a check end with {_name(exc)}"
        for name in ("verdict.again", "others", "folder"):
            if not self.ledger.entered(name):
                self.ledger.fails(name, why)
                break
        checks = self.ledger.close(why)
        return EpisodeProof(folder=printable(self.place.shown), outcome=Outcome.FAILED, checks=checks)

    def _read_manifest(self, names: dict[str, bool], story: Story) -> dict[str, Any] | None:
        """The manifest as a JSON object, without any trust."""
        if MANIFEST_NAME not in names:
            if story.good and not story.sealed and story.removed is not None:
                self.ledger.skipped("manifest.form", f"it was {story.removed.event} before it was sealed")
            elif story.good and not story.sealed and self.place.side == State.TORN:
                self.ledger.skipped("manifest.form", "it was cut off by a crash and is not recovered yet")
            else:
                self.ledger.fails("manifest.form", f"{MANIFEST_NAME} is not there")
            return None
        try:
            data = read_document_file(self.folder / MANIFEST_NAME)
            self.manifest = Manifest.read(data)  # which reads canonical JSON alone
            document: dict[str, Any] = json.loads(data)
        except Withheld as exc:
            self.ledger.skipped("manifest.form", str(exc))
            return None
        except (NotReadable, ValueError, RecursionError) as exc:
            self.ledger.fails("manifest.form", document_fault(MANIFEST_NAME, exc))
            return None
        self.manifest_digest = digest_bytes(data)
        found = f"{self.manifest.schema_}, canonical JSON, {len(data)} bytes, {self.manifest_digest}"
        self.ledger.holds("manifest.form", found)
        signature = document.get(SIGNATURE)
        if isinstance(signature, dict) and isinstance(signature.get("key_id"), str):
            self.signed_by = signature["key_id"]
        return document

    def _check_name(self, manifest: Manifest) -> None:
        name = self.folder.name
        if name == manifest.episode:
            self.ledger.holds("folder", f"it is {name}, as its manifest says")
        elif EpisodeId.parse(name) is not None:
            self.ledger.fails("folder", f"it is called {name}, and its manifest is of {manifest.episode}")
        else:
            self.ledger.skipped(
                "folder", f"a copy of {manifest.episode} under another name, which says nothing", excused=True
            )

    def _check_manifest_signature(self, document: dict[str, Any], story: Story) -> None:
        keys = story.keys_at_sealing(self.standard.asked.keys)
        faults = [signature_fault(document, key) for key in keys]
        if None in faults:
            key = keys[faults.index(None)]
            which = "in force when it was sealed" if story.sealed else "that was given"
            self.ledger.holds("manifest.signature", f"Ed25519 by key {key_id(key)}, the one {which}")
        elif story.untold and _own_fault(document) is None:
            self.ledger.skipped(
                "manifest.signature",
                f"it is signed by key {self.signed_by}; the chain, which would say whose key that is, is not good",
            )
        else:
            self.ledger.fails("manifest.signature", f"{MANIFEST_NAME} {faults[0]}")

    def _check_spec(self, manifest: Manifest) -> None:
        given, named = self.standard.spec, manifest.spec
        if manifest.recovery is not None and named.id == "unknown":
            self.ledger.skipped("spec.document", "a crash left nothing that tells which spec was in force")
        elif named.digest != self.standard.digest:
            self.ledger.fails(
                "spec.document",
                f"it is bound to {named.id} version {named.version}, {named.digest}; "
                f"the one given is {given.id} version {given.version}, {self.standard.digest}",
            )
        elif (named.id, named.version) != (given.id, given.version):
            self.ledger.fails("spec.document", f"the manifest calls it {named.id} version {named.version}")
        else:
            self.ledger.holds("spec.document", f"{given.id} version {given.version}, {self.standard.digest}")
        self._check_spec_signatures(manifest)
        self._check_capture(manifest)

    def _check_spec_signatures(self, manifest: Manifest) -> None:
        name, named = "spec.signatures", manifest.spec
        if not self.ledger.good("spec.document"):
            self.ledger.skipped(name, "they are over another document than the one that was given")
        elif manifest.schema_ == "firsthand.manifest/1":
            self.ledger.skipped(name, "a manifest of firsthand.manifest/1 carries none")
        elif faults := self.standard.signature_faults(named):
            self.ledger.fails(name, "; ".join(faults))
        else:
            who = ", ".join(signature.key_id for signature in named.signatures)
            asked = ", ".join(key_id(key) for key in self.standard.asked.signers)
            more = f"; {asked} asked for and there" if asked else ""
            if named.throw_away:
                more = "; a throw-away key that the rig made for itself: nobody agreed to this spec by it"
            self.ledger.holds(name, f"signed by {who}{more}")

    def _check_capture(self, manifest: Manifest) -> None:
        name = "spec.capture"
        if manifest.capture is None:
            self.ledger.skipped(name, "the manifest says nothing of what was captured", excused=True)
        elif not self.ledger.good("spec.document"):
            self.ledger.skipped(name, "it was captured under another document than the one that was given")
        elif mistakes := self.standard.capture_mistakes(manifest.capture):
            self.ledger.fails(name, "; ".join(mistakes))
        else:
            capture = manifest.capture
            self.ledger.holds(name, f"task {capture.task} in cell {capture.cell}, scene {capture.scene}")


def _own_fault(document: dict[str, Any]) -> str | None:
    """What is wrong with a document's signature by the key that it names itself."""
    signature = document.get(SIGNATURE)
    text = signature.get("public_key") if isinstance(signature, dict) else None
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        key = b""
    return signature_fault(document, key) if len(key) == 32 else "names no key"


def _claims(manifest: Manifest) -> dict[str, Any]:
    """What the manifest says of the take, for people."""
    return {
        "rig": manifest.rig,
        "software": manifest.software.model_dump(mode="json"),
        "take": manifest.take.model_dump(mode="json"),
        "capture": None if manifest.capture is None else manifest.capture.model_dump(mode="json"),
        "consent": manifest.consent.model_dump(mode="json"),
        "clock": {"timebase": manifest.clock.timebase, "source": manifest.clock.source},
        "ended": manifest.ended.model_dump(mode="json"),
        "torn": manifest.recovery is not None,
    }
