"""The published schemas are those of the models, and fit what is really written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from firsthand_edge import _core
from firsthand_edge.qa.cover import cover
from firsthand_edge.qa.coverage import coverage_bytes
from firsthand_edge.qa.places import find
from firsthand_edge.qa.proof import proof_bytes
from firsthand_edge.qa.schemas import main, schemas
from firsthand_edge.spec.signed import add_signature, signatures_path
from firsthand_edge.spool.restart import restart
from tests.qa.conftest import Made
from tests.qa.episodes import Rig, Take

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"
OLD = Path(__file__).parents[1] / "spool" / "version1"


def faults(name: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schemas()[name]).iter_errors(document)]


def test_docs_hold_the_schemas_of_the_models(tmp_path: Path) -> None:
    """`make schemas` writes them anew."""
    assert main([str(tmp_path)]) == 0
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {path.name: path.read_text() for path in PUBLISHED.glob("*.json")} == made


@pytest.mark.parametrize("name", sorted(schemas()))
def test_each_is_a_schema_that_refuses_what_it_does_not_know(name: str) -> None:
    Draft202012Validator.check_schema(schemas()[name])
    assert faults(name, [{}] if name == "evidence-devices-1" else {})
    assert faults(name, 7)


@pytest.mark.parametrize("number", [1, 2])
def test_documents_of_an_episode(pristine: Made, number: int) -> None:
    folder = pristine.folder(number)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    verdict = json.loads((folder / "verdict.json").read_bytes())
    evidence = _core.read_evidence(folder / "evidence.mcap")
    assert faults("manifest-2", manifest) == []
    assert faults("verdict-2", verdict) == []
    assert faults("evidence-devices-1", json.loads(evidence["devices"])) == []
    assert faults("manifest-2", {**manifest, "colour": 1})
    assert faults("manifest-2", {**manifest, "schema": "firsthand.manifest/1"})
    assert faults("verdict-2", {**verdict, "verdict": "good"})


def test_every_row_of_a_chain(rig: Rig, takes: list[Take]) -> None:
    good, bad = takes
    rig.spool.adopt_spec(
        {"id": rig.spec.id, "version": 1, "digest": rig.spec.digest, "signers": [], "throw_away": False}
    )
    rig.add(good)
    rig.add(bad)
    restart(rig.spool)
    rows = [json.loads(line) for line in rig.spool.chain.path.read_bytes().splitlines()]
    assert [row["event"] for row in rows] == ["key", "spec", "sealed", "judged", "sealed", "judged"]
    assert [faults("chain-row-1", row) for row in rows] == [[]] * len(rows)
    reasons = rows[-1]["body"]["reasons"]
    assert reasons
    assert faults("chain-row-1", {**rows[-1], "body": {"reasons": [{**reasons[0], "colour": 1}]}})
    assert faults("chain-row-1", {**rows[0], "event": "painted"})


def test_spec_and_its_signatures(rig: Rig) -> None:
    path = rig.spec_path
    assert faults("spec-1", tomllib.loads(path.read_text())) == []
    add_signature(path, rig.signer)
    assert faults("spec-signatures-1", json.loads(signatures_path(path).read_bytes())) == []


@pytest.mark.parametrize("kind", ["manifest", "verdict"])
def test_the_first_version(kind: str) -> None:
    documents = [json.loads(path.read_bytes()) for path in OLD.glob(f"*/*/{kind}*.json")]
    assert len(documents) > 3
    for document in documents:
        assert faults(f"{kind}-1", document) == []
        assert faults(f"{kind}-2", document)


def test_proof_and_coverage(pristine: Made) -> None:
    proof = pristine.prove()
    assert faults("proof-1", json.loads(proof_bytes(proof))) == []
    assert faults("coverage-1", json.loads(coverage_bytes(cover(find((pristine.root,)))))) == []
