"""The judgement of a sealed episode from its evidence alone: on the rig, at the store, by a stranger years later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firsthand_edge import _core
from firsthand_edge.errors import CannotJudge, DiskError, EpisodeDamaged
from firsthand_edge.gate import rules
from firsthand_edge.gate.figures import Figures
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report
from firsthand_edge.gate.verdict import examine
from firsthand_edge.spool.episode import EVIDENCE_NAME
from firsthand_edge.spool.verdict_file import VerdictDocument

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from firsthand_edge.model import Verdict
    from firsthand_edge.spool.manifest import Manifest

__all__ = ["EVIDENCE_NAME", "judgement"]


def judgement(folder: Path, manifest: Manifest, manifest_digest: str) -> VerdictDocument:
    """Judges an episode against the spec that its evidence carries.

    Args:
        folder: Holds `evidence.mcap`.
        manifest: Binds the evidence; who signed it is the caller's to check.
        manifest_digest: Of its bytes.

    Raises:
        CannotJudge: when the evidence does not allow a verdict.
        EpisodeDamaged: when the evidence is not the one that the manifest binds.
    """
    _require_bound_evidence(folder, manifest)
    recaptures: Callable[[str], bool | None]
    try:
        torn = None if manifest.recovery is None else "a crash came before it was sealed"
        examined = examine(folder / EVIDENCE_NAME, torn=torn)
        verdict, document, contract = examined.verdict, examined.report, examined.spec
        recaptures = _nobody_says if contract is None else contract.reject.recaptures
    except CannotJudge as exc:
        if manifest.recovery is None:
            raise
        verdict, document = _nothing_left(str(exc))
        recaptures = _nobody_says
    return VerdictDocument.of(
        episode=manifest.episode,
        manifest=manifest_digest,
        spec=manifest.spec.digest,
        core=_core.__version__,
        cell=None if manifest.capture is None else manifest.capture.cell,
        verdict=verdict,
        report=document,
        recaptures=recaptures,
    )


def _require_bound_evidence(folder: Path, manifest: Manifest) -> None:
    """The evidence that is judged must be, byte for byte, the one that the manifest binds."""
    bound = manifest.files.get(EVIDENCE_NAME)
    path = folder / EVIDENCE_NAME
    if bound is None:
        return  # torn before there was any: what is missing is told by the judgement
    try:
        found = _core.digest_file(path)["blake3"]
    except DiskError as exc:
        raise EpisodeDamaged(f"{path} cannot be read ({exc}); restore it before judging") from exc
    if found != bound.blake3:
        raise EpisodeDamaged(
            f"{path} has digest blake3:{found} and its manifest says blake3:{bound.blake3}; "
            "it was changed after it was sealed, so nothing can be judged by it"
        )


def _nobody_says(_code: str) -> None:
    """No spec is left to say whether the take is recorded again."""


def _nothing_left(why: str) -> tuple[Verdict, dict[str, Any]]:
    """Verdict and report on a torn take of which too little is left to measure anything."""
    figures = Figures(reference="unknown", streams=(), torn=f"too little is left to measure: {why}", recorded=True)
    limits = Limits()
    verdict = rules.apply(figures, limits)
    return verdict, report(figures, verdict, limits)
