"""`verdict.json`: figures, reasons and verdict of one judgement, bound to the manifest that it judged.

Its bytes depend on evidence, spec, core and key alone: no wall time, no path, no order of a dict. Judging again gives
the same file. Signed documents hold no floats: a decimal figure of the report, as `rate_hz`, is a string in here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.signing import document_bytes, read_document, sign_document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from firsthand_edge.model import Verdict
    from firsthand_edge.spec.keys import KeyPair

__all__ = ["VerdictDocument", "exact", "verdict_name"]

SCHEMA: Final = "firsthand.verdict/2"
FIRST_SCHEMA: Final = "firsthand.verdict/1"


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
    """The document, without its signature. `Spool.judge_done` signs and writes it.

    Since `firsthand.verdict/2` it names the cell, and each reason says whether the take is recorded again. Documents of
    the first version, which do neither, are read and not written.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["firsthand.verdict/2", "firsthand.verdict/1"] = Field(default=SCHEMA, alias="schema")
    episode: str
    manifest: str
    """Digest of the bytes of `manifest.json`."""
    spec: str
    """Digest of the spec judged by."""
    core: str
    """Version of the measuring core."""
    cell: str | None = None
    """The condition cell that the manifest binds the episode to; None where it binds it to none."""
    verdict: Literal["accepted", "rejected"]
    reasons: tuple[dict[str, Any], ...] = ()
    """Each with `recapture`: whether the spec calls for the take to be recorded again; None where no spec was left."""
    warnings: tuple[dict[str, Any], ...] = ()
    not_judged: tuple[str, ...] = ()
    report: dict[str, Any]
    """`firsthand.sync-report/1`."""

    @classmethod
    def of(
        cls,
        *,
        episode: str,
        manifest: str,
        spec: str,
        core: str,
        cell: str | None,
        verdict: Verdict,
        report: Mapping[str, Any],
        recaptures: Callable[[str], bool | None],
    ) -> VerdictDocument:
        """Binds a verdict and its report to the manifest's digest.

        Args:
            episode: Its id.
            manifest: Digest of the manifest.
            spec: Digest of the spec judged by.
            core: Version of the measuring core.
            cell: As the manifest has it.
            verdict: What the rules said.
            report: The figures behind it.
            recaptures: Whether a take rejected for a code is recorded again, as the spec says.

        Raises:
            ValueError: for a figure that is no number.
        """
        return cls(
            episode=episode,
            manifest=manifest,
            spec=spec,
            core=core,
            cell=cell,
            verdict="accepted" if verdict.accepted else "rejected",
            reasons=tuple({**exact(r.to_json()), "recapture": recaptures(r.code)} for r in verdict.reasons),
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
        if self.schema_ == SCHEMA:
            if not all(isinstance(reason.get("recapture", 0), bool | None) for reason in self.reasons):
                raise ValueError("every reason says whether the take is recorded again")
        elif self.cell is not None or any("recapture" in reason for reason in self.reasons):
            raise ValueError(f"cell and recapture are no fields of {FIRST_SCHEMA}")
        return self

    @property
    def accepted(self) -> bool:
        """Whether the episode may leave the rig."""
        return self.verdict == "accepted"

    def document(self, key: KeyPair) -> bytes:
        """The signed bytes of the file; equal for equal documents and keys.

        Raises ValueError for a document of the first version: it was signed long ago.
        """
        if self.schema_ != SCHEMA:
            raise ValueError(f"a verdict of {self.schema_} is read and never written again; keep the file as it is")
        return document_bytes(sign_document(self.model_dump(mode="python", by_alias=True), key))

    def same_as(self, other: VerdictDocument) -> bool:
        """Whether both say the same of the same episode, whoever signed them, as far as both versions say it."""
        return self._first_version() == other._first_version() if self.schema_ != other.schema_ else self == other

    def _first_version(self) -> VerdictDocument:
        reasons = tuple({n: v for n, v in reason.items() if n != "recapture"} for reason in self.reasons)
        return self.model_copy(update={"schema_": FIRST_SCHEMA, "cell": None, "reasons": reasons})

    @classmethod
    def read(cls, data: bytes) -> VerdictDocument:
        """The inverse of `document`; signatures are checked elsewhere. Raises ValueError with a sentence."""
        document = read_document(data)
        document.pop("signature", None)
        schema = FIRST_SCHEMA if document.get("schema") == FIRST_SCHEMA else SCHEMA
        if ("cell" in document) != (schema == SCHEMA):
            raise ValueError(f"does not fit {schema}: cell is {'no field of it' if 'cell' in document else 'missing'}")
        try:
            return cls.model_validate(document)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"does not fit {schema}: {place}: {first['msg']}") from exc
