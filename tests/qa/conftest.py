from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsthand_edge.qa.places import find
from firsthand_edge.qa.proof import EpisodeProof, Outcome, Proof, Result
from firsthand_edge.qa.prove_many import prove
from firsthand_edge.qa.standard import Asked
from firsthand_edge.spec.keys import KeyPair
from tests.qa.episodes import Rig, Take


@dataclass
class Made:
    """A spool that was filled once, and copied for each test that alters it."""

    root: Path
    key: bytes
    signer: KeyPair
    spec: bytes

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    def folder(self, number: int) -> Path:
        [path] = self.spool.glob(f"*/sim-01-{number:08d}-*")
        return path

    def asked(self, **changes: object) -> Asked:
        fields = {"keys": (self.key,), "spec": self.spec, "spec_place": "spec.toml", **changes}
        return Asked(**fields)

    def prove(self, *paths: Path, chain: Path | None = None, jobs: int = 1, **changes: object) -> Proof:
        return prove(find(paths or (self.spool,), chain=chain), self.asked(**changes), jobs=jobs)

    def one(self, number: int, **changes: object) -> EpisodeProof:
        [proof] = self.prove(self.folder(number), **changes).episodes
        return proof


def failed(proof: EpisodeProof) -> set[str]:
    return {check.id for check in proof.checks if check.result is Result.FAILS}


def skipped(proof: EpisodeProof) -> set[str]:
    return {check.id for check in proof.checks if check.result is Result.NOT_CHECKED}


def outcomes(proof: Proof) -> list[Outcome]:
    return [episode.outcome for episode in proof.episodes]


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, Rig, list[Take]]:
    """Episodes 1 and 3 are accepted, 2 is rejected; 1 and 3 are of one take."""
    rig = Rig(tmp_path_factory.mktemp("rig"))
    good, bad = rig.take(seconds=0.7), rig.take(number=2, seconds=1.9, scene="kitchen-2")
    for take in (good, bad, good):
        rig.add(take)
    return Made(rig.root, rig.spool.key.public, rig.signer, rig.spec_document), rig, [good, bad]


@pytest.fixture(scope="session")
def pristine(_made: tuple[Made, Rig, list[Take]]) -> Made:
    """Not to be altered."""
    return _made[0]


@pytest.fixture
def made(_made: tuple[Made, Rig, list[Take]], tmp_path: Path) -> Made:
    """A copy to be altered."""
    before = _made[0]
    for part in ("spool", "keys"):
        shutil.copytree(before.root / part, tmp_path / "rig" / part)
    return Made(tmp_path / "rig", before.key, before.signer, before.spec)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A spool of its own, still empty."""
    (tmp_path / "own").mkdir()
    return Rig(tmp_path / "own")


@pytest.fixture(scope="session")
def takes(_made: tuple[Made, Rig, list[Take]]) -> list[Take]:
    """A take that is accepted, and one that is rejected."""
    return _made[2]
