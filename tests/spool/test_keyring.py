from __future__ import annotations

from pathlib import Path

import pytest

from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import read_rows
from firsthand_edge.spool.keyring import KeyRing, rotation_body
from firsthand_edge.spool.row import Row
from tests.spool.forging import forge, forge_rotation, grown, rotated

FIRST, SECOND, THIRD = (KeyPair.generate() for _ in range(3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Rows 0 to 2 by the first key, 3 makes the second the rig's, 4 is by it."""
    path = tmp_path / "chain.jsonl"
    grown(path, FIRST, 2)
    rotated(path, FIRST, SECOND)
    grown(path, SECOND, 1)
    return path


def rows(path: Path) -> list[Row]:
    return read_rows(path.read_bytes())


def ring(path: Path) -> KeyRing:
    begun = KeyRing.begun_by(rows(path)[0])
    assert begun is not None
    return begun.grown(rows(path))


def test_a_rotation_is_the_last_row_of_the_old_key(path: Path) -> None:
    found = ring(path)
    assert [(key.public, key.since) for key in found.keys] == [(FIRST.public, 0), (SECOND.public, 4)]
    assert [found.at(n) for n in range(6)] == [FIRST.public] * 4 + [SECOND.public] * 2
    assert found.at(-1) is None
    assert (found.root, found.current, found.name) == (FIRST.public, SECOND.public, FIRST.key_id)
    assert [row.signed_by(found.at(row.n)) for row in rows(path)] == [True] * 5


@pytest.mark.parametrize(
    ("signer", "new", "changes", "why"),
    [
        (FIRST, THIRD, {}, "not proved to be signed by"),
        (THIRD, THIRD, {}, "not proved to be signed by"),
        (SECOND, FIRST, {}, "was the rig's before"),
        (SECOND, SECOND, {}, "was the rig's before"),
        (SECOND, THIRD, {"n": 2}, "it says row 2"),
        (SECOND, THIRD, {"key_id": FIRST.key_id}, "not proved to be signed by"),
        (SECOND, THIRD, {"body": {"public_key": THIRD.public.hex().upper()}}, "names no public key"),
        (SECOND, THIRD, {"body": {"public_key": THIRD.public.hex(), "more": 1}}, "names no public key"),
        (SECOND, THIRD, {"body": {"public_key": THIRD.public.hex(), "countersign": "0" * 128}}, "countersignature"),
        (SECOND, THIRD, {"body": {"public_key": THIRD.public.hex(), "countersign": None}}, "countersignature"),
        (SECOND, THIRD, {"body": rotation_body(5, "blake3:0", THIRD)}, "countersignature"),
        (SECOND, THIRD, {"body": {**rotation_body(5, None, SECOND), "public_key": THIRD.public.hex()}}, "counters"),
        (SECOND, THIRD, {"body": {}}, "names no public key"),
    ],
)
def test_a_row_that_proves_nothing_makes_no_key_the_rig_s(
    path: Path, signer: KeyPair, new: KeyPair, changes: dict[str, object], why: str
) -> None:
    before = ring(path)
    fields = {"event": "key", "episode": None, "body": {"public_key": new.public.hex()}, **changes}
    forge(path, signer, **fields)  # type: ignore[arg-type]
    assert why in (before.rotation_fault(rows(path)[-1]) or "")
    assert ring(path) == before


def test_the_new_key_signs_the_row_that_brings_it(path: Path) -> None:
    row = rows(path)[3]
    assert set(row.body) == {"countersign", "public_key"}
    assert len(row.body["countersign"]) == 128
    assert [key.countersigned for key in ring(path).keys] == [False, True]


def test_a_row_of_an_earlier_version_without_countersignature_makes_a_key(path: Path) -> None:
    forge_rotation(path, SECOND, THIRD)
    assert [(key.public, key.countersigned) for key in ring(path).keys][-1] == (THIRD.public, False)


def test_a_first_row_carries_no_countersignature(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    forge(path, FIRST, event="key", episode=None, body=rotation_body(0, None, FIRST))
    assert KeyRing.begun_by(rows(path)[0]) is None


def test_rotated_twice_in_a_row(path: Path) -> None:
    rotated(path, SECOND, THIRD)
    assert [key.since for key in ring(path).keys] == [0, 4, 6]
    assert rows(path)[5].signed_by(SECOND.public)


def test_a_changed_row_of_a_rotation_makes_nothing(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data.replace(SECOND.public.hex().encode(), THIRD.public.hex().encode()))
    assert ring(path) == KeyRing.of(FIRST.public)


@pytest.mark.parametrize("changes", [{"n": 1}, {"prev": "blake3:0"}, {"event": "spec"}, {"body": {"public_key": "0"}}])
def test_a_first_row_that_proves_nothing_begins_no_ring(tmp_path: Path, changes: dict[str, object]) -> None:
    path = tmp_path / "chain.jsonl"
    fields = {"event": "key", "episode": None, "body": {"public_key": FIRST.public.hex()}, **changes}
    forge(path, FIRST, **fields)  # type: ignore[arg-type]
    assert KeyRing.begun_by(rows(path)[0]) is None


def test_a_first_row_signed_by_another_begins_no_ring(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    forge_rotation(path, SECOND, FIRST)
    assert KeyRing.begun_by(rows(path)[0]) is None
