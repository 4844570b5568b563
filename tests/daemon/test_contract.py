"""Which contract is in force: signed by whom, altered or not, and whether the devices fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from firsthand_edge.daemon.contract import accept, different_collection, misfits
from firsthand_edge.daemon.rig import load_rig
from firsthand_edge.errors import SpecInvalid, SpecUnsigned
from firsthand_edge.model import Counter, DeviceInfo, Domain, StampPoint, StreamInfo
from firsthand_edge.spec.document import Spec, parse_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signed import add_signature, load_signatures, signature_faults
from tests.daemon.rigs import RIG, SPEC, write_rig

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR, BUYER, STRANGER = KeyPair.generate(), KeyPair.generate(), KeyPair.generate()


def signed_rig(folder: Path, *signers: KeyPair, required: tuple[KeyPair, ...] = (OPERATOR, BUYER)) -> Path:
    """A rig that wants the signatures of `required`, its spec signed by `signers`."""
    keys = ", ".join(f'"{key.public.hex()}"' for key in required)
    path = write_rig(folder, rig=RIG.replace("throw_away_key = true", f"signers = [{keys}]"))
    for key in signers:
        add_signature(folder / "spec.toml", key)
    return path


def refusal(path: Path, state: Path) -> str:
    with pytest.raises(SpecUnsigned) as caught:
        accept(load_rig(path), state)
    assert (caught.value.code, caught.value.exit_status) == ("spec.unsigned", 4)
    assert "spec.toml" in str(caught.value)
    assert "starts no takes" in str(caught.value)
    return str(caught.value)


def test_everyone_has_signed(tmp_path):
    contract = accept(load_rig(signed_rig(tmp_path, OPERATOR, BUYER)), tmp_path / "s")
    assert not contract.throw_away
    identity, row = contract.identity(), contract.row()
    assert {one["public_key"] for one in identity["signatures"]} == {OPERATOR.public.hex(), BUYER.public.hex()}
    assert set(row["signers"]) == {OPERATOR.key_id, BUYER.key_id}
    assert identity["digest"] == row["digest"] == contract.spec.digest
    assert not (tmp_path / "s").exists()  # nothing had to be made


def test_unsigned(tmp_path):
    assert "test version 1 is not signed; sign it with `firsthand-edge spec sign`" in refusal(
        signed_rig(tmp_path), tmp_path
    )


def test_one_of_two_is_not_enough_and_a_stranger_counts_for_nobody(tmp_path):
    said = refusal(signed_rig(tmp_path, OPERATOR, STRANGER), tmp_path)
    assert f"key {BUYER.key_id} has not signed test version 1" in said
    assert OPERATOR.key_id not in said


def test_a_changed_criterion_drops_every_signature_and_reformatting_none(tmp_path):
    path = signed_rig(tmp_path, OPERATOR, BUYER)
    spec = tmp_path / "spec.toml"
    spec.write_text("# read again\n" + spec.read_text().replace(" = ", "  =  "))
    accept(load_rig(path), tmp_path)
    spec.write_text(spec.read_text().replace("rate_hz  =  1000", "rate_hz  =  500"))
    said = refusal(path, tmp_path)
    for key in (OPERATOR, BUYER):
        assert f"the signature of key {key.key_id} is not over test version 1 as it is now" in said


def test_damaged_signatures_are_an_error_of_their_own(tmp_path):
    path = signed_rig(tmp_path, OPERATOR, BUYER)
    (tmp_path / "spec.toml.sig").write_bytes(b"{}")
    with pytest.raises(SpecInvalid, match=r"spec\.toml\.sig"):
        accept(load_rig(path), tmp_path)


def test_a_throw_away_key_is_made_at_set_up_and_signs_a_copy_elsewhere(tmp_path):
    state = tmp_path / "s"
    loaded = load_rig(write_rig(tmp_path))
    before = sorted(path.name for path in tmp_path.iterdir())
    contract = accept(loaded, state)
    assert contract.throw_away
    assert contract.row()["throw_away"] is contract.identity()["throw_away"] is True
    assert sorted(path.name for path in tmp_path.iterdir() if path != state) == before  # nothing beside the spec
    key = KeyPair.load(state / "keys" / "throw-away")
    copy = state / "contract" / "spec.toml"
    assert copy.read_bytes() == loaded.spec_document
    assert signature_faults(loaded.spec, load_signatures(copy), [key.public]) == []
    assert [one.key_id for one in contract.signatures] == [key.key_id]
    assert accept(loaded, state) == contract  # the next start has the same key


def test_a_throw_away_key_signs_the_spec_of_the_moment(tmp_path):
    first = accept(load_rig(write_rig(tmp_path)), tmp_path / "s")
    second = accept(load_rig(write_rig(tmp_path, spec=SPEC.replace("version = 1", "version = 2", 1))), tmp_path / "s")
    assert first.signatures[0].key_id == second.signatures[0].key_id
    assert signature_faults(second.spec, second.signatures, []) == []
    said = different_collection(first.row(), second)
    assert "this is a different collection" in said
    assert first.spec.digest in said
    assert second.spec.digest in said


# ---- devices

CAMERA = StreamInfo("head", "picture/png", triggered=True, stamp_point=StampPoint.START)


def device(name: str = "head", *streams: StreamInfo, domain: Domain = Domain.DEVICE) -> DeviceInfo:
    return DeviceInfo(name, "sim", "m", "s", "1", domain, Counter(), streams)


def spec(**head: Any) -> Spec:
    """`SPEC` with needs of the stream `head`, and the other streams not required."""
    parsed = parse_spec(SPEC.encode(), place="spec.toml")
    streams = tuple(
        stream.model_copy(update=head if stream.name == "head" else {"required": False}) for stream in parsed.streams
    )
    return parsed.model_copy(update={"streams": streams})


def test_devices_that_fit(tmp_path):
    assert misfits(spec(), [device("head", CAMERA)]) == []
    needs = {"stamp_domains": ("ptp", "device"), "stamp_points": (StampPoint.START, StampPoint.MIDDLE)}
    assert misfits(spec(provenance="live", **needs), [device("head", CAMERA)]) == []


@pytest.mark.parametrize(
    ("needs", "says"),
    [
        ({"stamp_domains": ("ptp",)}, "head of head is stamped by the clock `device`, and the spec takes ptp"),
        (
            {"stamp_points": (StampPoint.MIDDLE, StampPoint.END)},
            "head of head is stamped at `start` of the exposure, and the spec takes middle or end",
        ),
        ({"provenance": "derived"}, "head delivers head live, and the spec wants it derived"),
    ],
)
def test_a_device_that_does_not_stamp_as_the_spec_needs(needs, says):
    assert misfits(spec(**needs), [device("head", CAMERA)]) == [says]


def test_streams_that_are_not_there_or_twice(tmp_path):
    assert misfits(spec(), []) == ["no device delivers head, which the spec requires"]
    assert misfits(spec(), [device("a", CAMERA), device("b", CAMERA)]) == ["head comes from two devices"]


def test_everything_that_does_not_fit_is_told_at_once(tmp_path):
    needs = {"stamp_domains": ("ptp",), "stamp_points": (StampPoint.END,)}
    assert len(misfits(spec(**needs), [device("a", CAMERA), device("b", CAMERA)])) == 5
