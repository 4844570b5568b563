"""Every byte counts: one that differs in manifest, verdict, evidence, chain or spec is found.

The ordinary run changes a random sample of bytes; `make soak` changes every byte in turn.
"""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING

import pytest

from firsthand_edge.errors import SpecInvalid
from firsthand_edge.qa.proof import Outcome
from firsthand_edge.spec.document import parse_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.qa.conftest import Made

SAMPLE = 60
FILES = ("manifest.json", "verdict.json", "evidence.mcap", "chain.jsonl")


def changed(data: bytes, count: int | None) -> Iterator[tuple[str, bytes]]:
    """`data` with one byte changed, and what was changed: `count` places drawn at random, or each in turn."""
    seed = secrets.randbits(32)
    draw = random.Random(seed)  # noqa: S311 - damage, no secret
    places = range(len(data)) if count is None else draw.sample(range(len(data)), min(count, len(data)))
    for place in places:
        other = (data[place] + draw.randrange(1, 256)) % 256
        yield (
            f"byte {place} from {data[place]} to {other} (seed {seed})",
            data[:place] + bytes([other]) + data[place + 1 :],
        )


def assert_found(made: Made, name: str, count: int | None) -> None:
    path = made.spool / name if name == "chain.jsonl" else made.folder(1) / name
    data = path.read_bytes()
    for what, mutated in changed(data, count):
        path.write_bytes(mutated)
        proof = made.one(1, footage=False)
        assert proof.outcome is Outcome.FAILED, f"{name}: {what}: {proof.outcome}"
    path.write_bytes(data)
    assert made.one(1, footage=False).outcome is Outcome.ACCEPTED


def assert_spec_found(made: Made, count: int | None) -> None:
    original = parse_spec(made.spec, place="spec")
    for what, mutated in changed(made.spec, count):
        try:
            parsed = parse_spec(mutated, place="spec")
        except SpecInvalid:
            continue
        if parsed == original:  # a comment, white space, or another way to write the same number
            assert parsed.digest == original.digest, what
            continue
        assert parsed.digest != original.digest, what
        proof = made.one(1, footage=False, spec=mutated)
        assert proof.outcome is Outcome.FAILED, f"spec: {what}"


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_found(made, name):
    assert_found(made, name, SAMPLE)


def test_a_changed_byte_of_the_spec_is_found_or_changes_no_criterion(made):
    assert_spec_found(made, SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_found(made, name):
    assert_found(made, name, None)


@pytest.mark.soak
def test_every_changed_byte_of_the_spec_is_found_or_changes_no_criterion(made):
    assert_spec_found(made, None)


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json", "evidence.mcap"])
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_file_that_is_cut_or_longer_is_found(made, name, cut):
    path = made.folder(1) / name
    data = path.read_bytes()
    for other in (data[:-cut], data[cut:], data + b"\n" * cut, b""):
        path.write_bytes(other)
        assert made.one(1).outcome is Outcome.FAILED


def test_rows_removed_doubled_and_exchanged_are_found(made):
    path = made.spool / "chain.jsonl"
    rows = path.read_bytes().split(b"\n")[:-1]
    for place in range(1, len(rows) - 1):
        for other in (
            rows[:place] + rows[place + 1 :],
            [*rows[:place], rows[place], *rows[place:]],
            [*rows[:place], rows[place + 1], rows[place], *rows[place + 2 :]],
        ):
            path.write_bytes(b"\n".join(other) + b"\n")
            assert {e.outcome for e in made.prove(footage=False).episodes} == {Outcome.FAILED}
