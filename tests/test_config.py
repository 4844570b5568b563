"""Every mistake of a document in one go, each with its line."""

import contextlib
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from firsthand_edge.config import parse_document, read_file
from firsthand_edge.errors import ConfigInvalid, SpecInvalid


class Camera(BaseModel):
    model_config = ConfigDict(extra="forbid")
    driver: Literal["camera"]
    rate_hz: Decimal = Field(gt=0)
    name: str


class Player(BaseModel):
    model_config = ConfigDict(extra="forbid")
    driver: Literal["player"]
    path: str


class Rig(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    device: list[Annotated[Camera | Player, Field(discriminator="driver")]]


GOOD = b'id = "a"\n[[device]]\ndriver = "camera"\nrate_hz = 59.94\nname = "head"\n'


def mistakes(data: bytes) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        parse_document(data, Rig, place="rig.toml")
    return [str(m) for m in caught.value.mistakes]


def test_decimals_are_never_floats():
    rig = parse_document(GOOD, Rig, place="rig.toml")
    assert isinstance(rig.device[0], Camera)
    assert rig.device[0].rate_hz == Decimal("59.94")


def test_all_mistakes_at_once_with_their_lines():
    found = mistakes(
        b"[[device]]\n"
        b'driver = "camera"\n'
        b"rate_hz = -1\n"
        b'name = "head"\n'
        b"[[device]]\n"
        b'driver = "player"\n'
        b"path = 3\n"
        b"colour = 1\n"
    )
    assert [m.split(":")[0] for m in found] == ["line 1", "line 3", "line 7", "line 8"]
    assert "id: is missing" in found[0]
    assert "device[0].rate_hz" in found[1]
    assert "it is -1" in found[1]
    assert "unknown key" in found[3]


def test_a_misspelt_key_is_one_mistake_that_names_the_right_one():
    found = mistakes(GOOD.replace(b"name", b"nmae"))
    assert found == ["line 5: device[0].nmae: unknown key; did you mean `name`?"]


def test_an_unknown_driver_is_named_with_the_known_ones():
    (found,) = mistakes(GOOD.replace(b'"camera"', b'"webcam"'))
    assert "'camera', 'player'" in found


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"id = \n", "is not TOML"), (b'id = "\xff"\n', "line 1: is not UTF-8"), (b"", "id: is missing")],
)
def test_what_is_no_document_is_one_sentence(data: bytes, says: str):
    assert any(says in m for m in mistakes(data))


def test_contradictions_come_with_lines_and_the_class_asked_for():
    with pytest.raises(SpecInvalid, match=r"line 5: device\[0\]\.name: is taken"):
        parse_document(
            GOOD,
            Rig,
            place="spec.toml",
            error=SpecInvalid,
            contradictions=lambda _rig: [(("device", 0, "name"), "is taken; choose another")],
        )


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(ConfigInvalid, match="No such file"):
        read_file(tmp_path / "rig.toml")


def test_a_recording_is_not_taken_for_a_document(tmp_path):
    path = tmp_path / "episode.mcap"
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ConfigInvalid, match="larger than"):
        read_file(path)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_document_or_in_mistakes(data: bytes):
    with contextlib.suppress(ConfigInvalid):
        parse_document(data, Rig, place="rig.toml")


@given(st.integers(0, 4), st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=8))
def test_a_mistake_is_found_on_its_line_wherever_a_comment_is_put(at: int, text: str):
    lines = GOOD.replace(b"name", b"nmae").splitlines(keepends=True)
    lines.insert(at, f"# {text}\n".encode())
    place = next(n for n, line in enumerate(lines, start=1) if line.startswith(b"nmae"))
    (found,) = mistakes(b"".join(lines))
    assert found.startswith(f"line {place}: ")
