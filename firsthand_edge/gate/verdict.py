"""Judging an episode: evidence and spec in, verdict and report out; the same everywhere, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from firsthand_edge.errors import CannotJudge
from firsthand_edge.gate import rules
from firsthand_edge.gate.episode import figures_of
from firsthand_edge.gate.evidence import Evidence
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from firsthand_edge.gate.figures import Figures
    from firsthand_edge.model import Verdict
    from firsthand_edge.spec.document import Spec

__all__ = ["Judgement", "examine", "judge"]

SPEC_ATTACHMENT = "spec.toml"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with everything behind it."""

    figures: Figures
    verdict: Verdict
    report: dict[str, Any]
    """`firsthand.sync-report/1`."""
    spec: Spec | None = None
    """The contract that it was judged against; None where a recording was audited without one."""


def spec_of(evidence: Evidence) -> Spec:
    """The spec that the episode was recorded under, from its evidence.

    Raises:
        CannotJudge: when the evidence carries none.
        SpecInvalid: when it cannot be read as a spec.
    """
    document = evidence.attachments.get(SPEC_ATTACHMENT)
    if document is None:
        raise CannotJudge(f"the evidence carries no {SPEC_ATTACHMENT}; name a spec to judge it against")
    return _parsed(document)


@lru_cache(maxsize=16)
def _digest_of(document: bytes) -> str:
    """A collection's episodes carry one document, byte for byte: whoever judges thousands digests it once."""
    return _parsed(document).digest


def _parsed(document: bytes) -> Spec:
    from firsthand_edge.spec.document import parse_spec  # audits of others need none of it, and it takes long to load

    return parse_spec(document, place=f"{SPEC_ATTACHMENT} of the evidence")


def examine(
    evidence_path: Path,
    spec: Spec | None = None,
    *,
    limits: Limits | None = None,
    torn: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Judgement:
    """Judges an episode from its `evidence.mcap` alone.

    Args:
        evidence_path: The episode's evidence.
        spec: The contract to judge against; None for the one that the evidence carries.
        limits: Limits to hold figures against instead of the spec's.
        torn: Why the take counts as cut off although its evidence was closed: a crash came before it was sealed.
        progress: Told how far the evidence is read, in bytes.

    Raises:
        RecordingUnreadable: when the evidence cannot be read.
        CannotJudge: when the evidence contradicts itself, or carries no spec and none was given.
        SpecInvalid: when the spec that it carries cannot be read.
    """
    evidence = Evidence.read(evidence_path, progress)
    contract = spec if spec is not None else spec_of(evidence)
    digest = spec.digest if spec is not None else _digest_of(evidence.attachments[SPEC_ATTACHMENT])
    in_force = limits if limits is not None else Limits.of_spec(contract)
    figures = figures_of(evidence, contract, in_force)
    if figures.torn is None and torn is not None:
        figures = replace(figures, torn=torn)
    verdict = rules.apply(figures, in_force)
    bound = {
        "take": evidence.take,
        "spec": {"id": contract.id, "version": contract.version, "digest": digest},
    }
    return Judgement(figures, verdict, report(figures, verdict, in_force, bound=bound), contract)


def judge(evidence_path: Path, spec: Spec | None = None) -> dict[str, Any]:
    """The report of `examine`, for whoever needs nothing else."""
    return examine(evidence_path, spec).report
