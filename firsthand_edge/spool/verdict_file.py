"""`verdict.json`: figures, reasons and verdict of one judgement, bound to the manifest that it judged.

Its bytes depend on evidence, spec, core and key alone: no wall time, no path, no order of a dict. Judging again gives
the same file. Signed documents hold no floats: a decimal figure of the report, as `rate_hz`, is a string in here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.signing import document_bytes, read_document, sign_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from firsthand_edge.model import Verdict
    from firsthand_edge.spec.keys import KeyPair

__all__ = ["VerdictDocument", "exact", "verdict_name"]


def verdict_name(judgement: int) -> str:
    """The file of the n-th judgement: `verdict.json`, `verdict-2.json`, ..."""
    return "verdict.json" if judgement == 1 else f"verdict-{judgement}.json"


def exact(value: Any) -> Any:
    """`value` without floats: each float or Decimal becomes its shortest decimal text, containers are copied.

    Raises ValueError for NaN and infinities.
    """
    if isinstance(value, float | Decimal):
        return decimal_text(Decimal(repr(float(value)) if isinstance(value, float) else value))
    if isinstance(value, dict):
        return {name: exact(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    return value


class VerdictDocument(BaseModel):
    """The document, without its signature. `Spool.judge_done` signs and writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["firsthand.verdict/1"] = Field(default="firsthand.verdict/1", alias="schema")
    episode: str
    manifest: str
    """Digest of the bytes of `manifest.json`."""
    spec: str
    """Digest of the spec judged by."""
    core: str
    """Version of the measuring core."""
    verdict: Literal["accepted", "rejected"]
    reasons: tuple[dict[str, Any], ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()
    not_judged: tuple[str, ...] = ()
    report: dict[str, Any]
    """`firsthand.sync-report/1`."""

    @classmethod
    def of(
        cls, *, episode: str, manifest: str, spec: str, core: str, verdict: Verdict, report: Mapping[str, Any]
    ) -> VerdictDocument:
        """Binds a verdict and its report to the manifest's digest. Raises ValueError for a figure that is no number."""
        return cls(
            episode=episode,
            manifest=manifest,
            spec=spec,
            core=core,
            verdict="accepted" if verdict.accepted else "rejected",
            reasons=tuple(exact(reason.to_json()) for reason in verdict.reasons),
            warnings=tuple(exact(warning.to_json()) for warning in verdict.warnings),
            not_judged=verdict.not_judged,
            report=exact(dict(report)),
        )

    @model_validator(mode="after")
    def _reasons_fit(self) -> Self:
        if self.accepted and self.reasons:
            raise ValueError("an accepted episode has no reasons against it")
        if not self.accepted and not self.reasons:
            raise ValueError("a rejected episode carries its reasons")
        return self

    @property
    def accepted(self) -> bool:
        """Whether the episode may leave the rig."""
        return self.verdict == "accepted"

    def document(self, key: KeyPair) -> bytes:
        """The signed bytes of the file; equal for equal documents and keys."""
        return document_bytes(sign_document(self.model_dump(mode="python", by_alias=True), key))

    @classmethod
    def read(cls, data: bytes) -> VerdictDocument:
        """The inverse of `document`; signatures are checked elsewhere. Raises ValueError with a sentence."""
        document = read_document(data)
        document.pop("signature", None)
        try:
            return cls.model_validate(document)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"does not fit firsthand.verdict/1: {place}: {first['msg']}") from exc
