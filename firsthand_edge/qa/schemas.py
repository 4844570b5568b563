"""The published JSON schemas: what this software reads and writes, generated from its models (`make schemas`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

from firsthand_edge.model import DeviceInfo
from firsthand_edge.qa.coverage import Coverage
from firsthand_edge.qa.proof import Proof
from firsthand_edge.spec.capture import Capture  # noqa: TC001 - pydantic reads it when the class is made
from firsthand_edge.spec.document import Spec
from firsthand_edge.spec.plan import PlanFile
from firsthand_edge.spool.manifest import NEWER, ClockIdentity, Consent, Manifest, Software, SpecIdentity
from firsthand_edge.spool.reject_log import FIELDS
from firsthand_edge.spool.row import Event
from firsthand_edge.spool.verdict_file import VerdictDocument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["main", "schemas"]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


class EvidenceTake(BaseModel):
    """`take` of `evidence.mcap`: written before the first sample; the manifest is made of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    episode: str
    rig: str
    number: int
    claimed_utc: str
    software: Software
    spec: SpecIdentity
    capture: Capture
    consent: Consent
    clock: ClockIdentity
    reference: str
    period_ns: int | None
    tick_offset_ns: int | None


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its name, as `manifest-2`; equal models give equal schemas."""
    found = {
        "spec-1": _of(Spec, "The skill spec, as its TOML reads"),
        "plan-1": _of(PlanFile, "A plan of takes, as its TOML reads"),
        "spec-signatures-1": _spec_signatures(),
        "manifest-2": _signed(_of(Manifest, "manifest.json"), "firsthand.manifest/2"),
        "manifest-1": _signed(_of(Manifest, "manifest.json of the first version: read, never written"), None),
        "verdict-2": _signed(_of(VerdictDocument, "verdict.json"), "firsthand.verdict/2"),
        "verdict-1": _signed(_of(VerdictDocument, "verdict.json of the first version: read, never written"), None),
        "evidence-take-1": _of(EvidenceTake, "`take` of evidence.mcap"),
        "evidence-devices-1": _of(list[DeviceInfo], "`devices` of evidence.mcap"),
        "chain-row-1": _chain_row(),
        "proof-1": _of(Proof, "episodes verify --json"),
        "coverage-1": _of(Coverage, "coverage --json"),
    }
    for kind, newer in (("manifest", NEWER), ("verdict", (("cell",),))):
        first = found[f"{kind}-1"]
        first["properties"]["schema"] = {"const": f"firsthand.{kind}/1"}
        for place in newer:
            del _properties(first, place[:-1])[place[-1]]
    return {name: {"$schema": DRAFT, **schema} for name, schema in sorted(found.items())}


def _properties(schema: dict[str, Any], place: Sequence[str]) -> dict[str, Any]:
    """The fields of the object at `place`, which lies among the schema's definitions unless it is the root."""
    table = schema
    for part in place:
        reference: str = table["properties"][part]["$ref"]
        table = schema["$defs"][reference.rpartition("/")[2]]
    properties: dict[str, Any] = table["properties"]
    return properties


def _of(model: Any, title: str) -> dict[str, Any]:
    schema: dict[str, Any] = TypeAdapter(model).json_schema(by_alias=True)
    return {**schema, "title": title}


def _signed(schema: dict[str, Any], version: str | None) -> dict[str, Any]:
    """The schema of a document as it is stored: with its signature."""
    properties = {**schema["properties"], "signature": _signature()}
    if version is not None:
        properties["schema"] = {"const": version}
    required = sorted({*schema.get("required", ()), "schema", "signature"})
    return {**schema, "properties": properties, "required": required}


def _signature() -> dict[str, Any]:
    return _exactly({"key_id": _hex(16), "public_key": _hex(64), "ed25519": _hex(128)})


def _spec_signatures() -> dict[str, Any]:
    identity = {"id": {"type": "string"}, "version": {"type": "integer"}, "digest": _digest()}
    fields = {
        "schema": {"const": "firsthand.spec-signatures/1"},
        "spec": _exactly(identity),
        "signatures": {"type": "array", "items": _signature()},
    }
    return {**_exactly(fields), "title": "<spec>.sig: who signed a spec"}


def _chain_row() -> dict[str, Any]:
    """A row's form is checked by hand (`spool/row.py`), so its schema is too; a test holds both together."""
    fields = {
        "at": _exactly({"boot": {"type": "string"}, "ns": {"type": "integer"}}),
        "body": {"type": "object"},
        "episode": {"type": ["string", "null"]},
        "event": {"enum": [event.value for event in Event]},
        "key_id": _hex(16),
        "n": {"type": "integer", "minimum": 0},
        "prev": {"anyOf": [_digest(), {"type": "null"}]},
        "sig": _hex(128),
    }
    judged = {
        "if": {"properties": {"event": {"enum": ["judged", "rejudged"]}}},
        "then": {"properties": {"body": {"properties": {"reasons": {"type": "array", "items": _reject_row()}}}}},
    }
    return {**_exactly(fields), **judged, "title": "one line of chain.jsonl"}


def _reject_row() -> dict[str, Any]:
    said: dict[str, dict[str, Any]] = {name: {"type": "string"} for name in ("code", "rule", "sentence")}
    said["recapture"] = {"type": ["boolean", "null"]}
    return _exactly({name: said.get(name, {}) for name in FIELDS})


def _exactly(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _hex(digits: int) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$"}


def _digest() -> dict[str, Any]:
    return {"type": "string", "pattern": "^blake3:[0-9a-f]{64}$"}


def main(arguments: list[str]) -> int:
    """Writes every schema into the folder that is named."""
    (folder,) = map(Path, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / f"{name}.json").write_text(json.dumps(schema, indent=2, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
