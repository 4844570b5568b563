from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from firsthand_edge.model import Counter, DeviceInfo, Domain, StampPoint, StreamInfo
from firsthand_edge.spec.capture import Capture, Outcome
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import document_bytes, signature_fault
from firsthand_edge.spool.manifest import Balance, DeviceRecord, Lost, Manifest, SpecIdentity, SpecSigner, Take
from tests.spool.takes import SPEC_DIGEST, manifest, record

if TYPE_CHECKING:
    from firsthand_edge.spool.spool import Spool

KEY = KeyPair.generate()
DATA = Path(__file__).parent / "data"
SIGNER = SpecSigner(key_id="0" * 16, public_key="1" * 64, ed25519="2" * 128)
CAPTURE = Capture(
    task="pick-cup",
    cell="daylight",
    scene="kitchen-1",
    objects=("cup-1",),
    contributor="c-01",
    outcome=Outcome.NEAR_MISS,
    recaptures="sim-00000001-0123456789abcdef",
    attempt=2,
)
INFO = DeviceInfo(
    name="head",
    driver="sim",
    model="simulated camera",
    serial="S-1",
    firmware="1",
    domain=Domain.DEVICE,
    counter=Counter(bits=32, tick_num=1000),
    streams=(
        StreamInfo(
            name="head",
            media="picture/png",
            triggered=True,
            stamp_point=StampPoint.START,
            period_ns=16666667,
            offset_ns=-5,
        ),
    ),
)


def test_written_signed_and_read_back(spool: Spool) -> None:
    episode = spool.begin("sim")
    record(episode)
    made = manifest(
        episode,
        recovery={"chunks": 3},
        devices=(DeviceRecord.of(INFO, starts=2),),
        capture=CAPTURE,
        spec=SpecIdentity(id="s", version=1, digest=SPEC_DIGEST, signatures=(SIGNER,), throw_away=True),
        take=Take(number=3, name="plan.toml, take 3 of 9", claimed_utc="2026-11-30T12:00:00Z"),
    )
    data = made.document(KEY)
    assert Manifest.read(data) == made
    document = json.loads(data)
    assert document["schema"] == "firsthand.manifest/2"
    assert document["capture"]["outcome"] == "near_miss"
    assert document["spec"]["signatures"] == [SIGNER.model_dump()]
    assert document["devices"][0]["streams"][0]["stamp_point"] == "start"
    assert (document["devices"][0]["domain"], document["devices"][0]["starts"]) == ("device", 2)
    assert signature_fault(document, KEY.public) is None
    assert "verdict" not in document
    assert made.document(KEY) == data


@pytest.mark.parametrize(
    ("old", "new"), [(b"firsthand.manifest/2", b"firsthand.manifest/3"), (b'"rig":', b'"rug":'), (b"arb", b"abr")]
)
def test_another_form_is_one_sentence(spool: Spool, old: bytes, new: bytes) -> None:
    episode = spool.begin("sim")
    record(episode)
    with pytest.raises(ValueError, match=r"firsthand\.manifest/2|canonical"):
        Manifest.read(manifest(episode).document(KEY).replace(old, new))


@pytest.mark.parametrize("claimed", ["2026-11-30 12:00:00Z", "2026-11-30T12:00:00+01:00", "yesterday"])
def test_a_claimed_time_has_one_form(claimed: str) -> None:
    with pytest.raises(ValidationError, match="claimed_utc"):
        Take(number=1, claimed_utc=claimed)


@pytest.mark.parametrize("name", ["manifest-1.json", "manifest-1-torn.json"])
def test_a_manifest_of_the_first_version_is_read_and_never_written_again(name: str) -> None:
    """These bytes were written and signed by the version of this software that wrote `firsthand.manifest/1`."""
    data = (DATA / name).read_bytes()
    document = json.loads(data)
    read = Manifest.read(data)
    assert (read.schema_, read.capture, read.spec.signatures, read.take.claimed_utc) == (
        "firsthand.manifest/1",
        None,
        (),
        "",
    )
    assert (read.episode, read.take.number, read.ended.how) == (
        document["episode"],
        document["take"]["number"],
        document["ended"]["how"],
    )
    assert read.files["evidence.mcap"].blake3 == document["files"]["evidence.mcap"]["blake3"]
    assert (read.recovery is not None) == ("torn" in name)
    assert signature_fault(document, bytes.fromhex(document["signature"]["public_key"])) is None
    with pytest.raises(ValueError, match="is read and never written again"):
        read.document(KEY)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("capture",), None),
        (("spec", "signatures"), []),
        (("spec", "throw_away"), False),
        (("take", "claimed_utc"), ""),
    ],
)
def test_nothing_of_the_second_version_stands_in_one_of_the_first(place: tuple[str, ...], value: Any) -> None:
    document = json.loads((DATA / "manifest-1.json").read_bytes())
    table = document
    for part in place[:-1]:
        table = table[part]
    table[place[-1]] = value
    with pytest.raises(ValueError, match=rf"manifest/1: {'.'.join(place)}: is not a field of that version"):
        Manifest.read(document_bytes(document))


COUNTS = st.integers(0, 10**9)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_balance_sheet_that_adds_up(durable: int, disk: int, queue: int, socket: int, device: int) -> None:
    written = durable + disk
    received = written + queue
    lost = Lost(device=device, socket=socket, queue=queue, disk=disk)
    sheet = Balance(
        exposures=received + socket + device, received=received, written=written, durable=durable, lost=lost
    )
    assert sheet.faults() == []
    for column in ("exposures", "received", "written", "durable"):
        changed = sheet.model_copy(update={column: getattr(sheet, column) + 1})
        assert changed.faults(), column
    for place in ("device", "socket", "queue", "disk"):
        more = lost.model_copy(update={place: getattr(lost, place) + 1})
        assert len(sheet.model_copy(update={"lost": more}).faults()) == 1, place


def test_what_nobody_counts_is_not_held_against_the_sheet() -> None:
    assert Balance(exposures=None, received=4, written=4, durable=4).faults() == []
