"""The verdict judged again from the evidence, and what the evidence says of the take that it was recorded for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.errors import FirsthandError
from firsthand_edge.qa.differences import differences
from firsthand_edge.qa.files import file_fault
from firsthand_edge.qa.ledger import FILE
from firsthand_edge.spec.capture import Capture
from firsthand_edge.spec.signing import SIGNATURE, document_bytes
from firsthand_edge.spool.episode import EVIDENCE_NAME
from firsthand_edge.spool.judgement import judgement

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from firsthand_edge.qa.ledger import Ledger
    from firsthand_edge.qa.verdicts import ReadVerdict
    from firsthand_edge.spool.manifest import Manifest
    from firsthand_edge.spool.verdict_file import VerdictDocument

__all__ = ["check_again"]

SINCE_VERSION_2: Final = frozenset({"schema", "cell", "recapture"})
"""What `firsthand.verdict/1` does not say, or says otherwise, of the same judgement."""


def check_again(
    ledger: Ledger,
    folder: Path,
    names: Mapping[str, bool],
    *,
    manifest: Manifest,
    manifest_digest: str,
    verdict: ReadVerdict | None,
) -> None:
    """Enters `verdict.again` and `evidence.binding`.

    The evidence is judged only when it is, byte for byte, what a genuine manifest binds: nobody else's bytes reach the
    measuring core.
    """
    obstacle = _obstacle(ledger, names, manifest)
    if obstacle is not None:
        for name in ("verdict.again", "evidence.binding"):
            ledger.skipped(name, obstacle)
        return
    try:
        again = judgement(folder, manifest, manifest_digest)
    except FirsthandError as exc:
        ledger.fails("verdict.again", f"the evidence gives no verdict at all: {' '.join(str(exc).split())}")
        ledger.skipped("evidence.binding", "the evidence gives no verdict")
        return
    bound = manifest.files.get(EVIDENCE_NAME)
    if bound is not None and (fault := file_fault(folder / EVIDENCE_NAME, bound)) is not None:
        # It is opened once for its digest and again to be judged: what was judged must be what was digested.
        for name in ("verdict.again", "evidence.binding"):
            ledger.fails(name, f"the evidence was replaced while it was judged: {fault}")
        return
    if verdict is None:
        ledger.skipped("verdict.again", f"there is no verdict to compare with; the evidence says {again.verdict}")
    else:
        _compare(ledger, verdict, again)
    _binding(ledger, manifest, again.report)


def _obstacle(ledger: Ledger, names: Mapping[str, bool], manifest: Manifest) -> str | None:
    if not ledger.good("manifest.signature"):
        return "the manifest that binds the evidence is not proved"
    if EVIDENCE_NAME not in manifest.files:
        return "evidence.mcap is here, and the manifest does not bind it" if EVIDENCE_NAME in names else None
    if not ledger.good(FILE + EVIDENCE_NAME):
        return "the evidence that the manifest binds is not here, or is not proved"
    return None


def _compare(ledger: Ledger, verdict: ReadVerdict, again: VerdictDocument) -> None:
    now = _comparable(again)
    same_core = verdict.document.core == again.core
    if same_core and document_bytes({**now, SIGNATURE: verdict.raw.get(SIGNATURE)}) == verdict.data:
        ledger.holds(
            "verdict.again", f"equal, byte for byte but for the signature; judged by the same core {again.core}"
        )
        return
    filed = _comparable(verdict.document)
    if verdict.document.schema_ != again.schema_:
        filed, now = _older(filed), _older(now)
    if same_core:
        found = differences(filed, now)
        if found:
            ledger.fails("verdict.again", f"{verdict.name} is not what its evidence gives: {'; '.join(found)}")
        else:
            ledger.holds(
                "verdict.again", f"equal in everything that {verdict.document.schema_} says; core {again.core}"
            )
        return
    versions = f"core {verdict.document.core} judged, and this is core {again.core}"
    found = differences({**filed, "core": None}, {**now, "core": None})
    if not found:
        ledger.holds("verdict.again", f"equal in every figure, although {versions}")
    elif verdict.document.verdict != again.verdict:
        ledger.fails("verdict.again", f"the evidence gives {again.verdict}; {versions}: {'; '.join(found)}")
    else:
        ledger.skipped("verdict.again", f"the verdict is the same and figures differ; {versions}: {'; '.join(found)}")


def _comparable(document: VerdictDocument) -> dict[str, Any]:
    """The document as it would stand in the file, without its signature."""
    return document.model_dump(mode="python", by_alias=True)


def _older(value: Any) -> Any:
    """`value` without what only later versions of the document say."""
    if isinstance(value, dict):
        return {name: _older(item) for name, item in value.items() if name not in SINCE_VERSION_2}
    return [_older(item) for item in value] if isinstance(value, list | tuple) else value


def _binding(ledger: Ledger, manifest: Manifest, report: Mapping[str, Any]) -> None:
    """The evidence tells its own take and spec, so that one recording cannot pass as two episodes."""
    take, spec = report.get("take"), report.get("spec")
    if not isinstance(take, dict) or not isinstance(spec, dict):
        ledger.skipped("evidence.binding", "a crash left no evidence that tells", excused=True)
        return
    expected: dict[str, Any] = {"episode": manifest.episode, "rig": manifest.rig, "number": manifest.take.number}
    said: dict[str, Any] = {name: take.get(name) for name in expected}
    if manifest.capture is not None:
        expected["capture"] = manifest.capture.model_dump(mode="json")
        said["capture"] = _captured(take.get("capture"), report.get("outcome"))
    found = differences(said, expected)
    if spec.get("digest") != manifest.spec.digest:
        found.append(f"the spec inside it is {spec.get('digest')}, and the manifest names {manifest.spec.digest}")
    if found:
        ledger.fails("evidence.binding", f"the evidence (here) and the manifest (there) differ: {'; '.join(found)}")
    else:
        ledger.holds("evidence.binding", f"it names episode {manifest.episode} and holds the same spec")


def _captured(capture: Any, outcome: Any) -> Any:
    """The capture as the evidence tells it: said at the start, its outcome at the end."""
    try:
        told = capture if outcome is None else {**capture, "outcome": outcome}
        return Capture.model_validate(told).model_dump(mode="json")
    except (TypeError, ValueError):
        return capture
