from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.model import Counter, DeviceInfo, Domain, StampPoint, StreamInfo
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signing import signature_fault
from firsthand_edge.spool.manifest import Balance, DeviceRecord, Lost, Manifest
from tests.spool.takes import manifest, record

if TYPE_CHECKING:
    from firsthand_edge.spool.spool import Spool

KEY = KeyPair.generate()
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
    made = manifest(episode, recovery={"chunks": 3}, devices=(DeviceRecord.of(INFO, starts=2),))
    data = made.document(KEY)
    assert Manifest.read(data) == made
    document = json.loads(data)
    assert document["schema"] == "firsthand.manifest/1"
    assert document["devices"][0]["streams"][0]["stamp_point"] == "start"
    assert (document["devices"][0]["domain"], document["devices"][0]["starts"]) == ("device", 2)
    assert signature_fault(document, KEY.public) is None
    assert "verdict" not in document
    assert made.document(KEY) == data


@pytest.mark.parametrize(
    ("old", "new"), [(b"firsthand.manifest/1", b"firsthand.manifest/2"), (b'"rig":', b'"rug":'), (b"arb", b"abr")]
)
def test_another_form_is_one_sentence(spool: Spool, old: bytes, new: bytes) -> None:
    episode = spool.begin("sim")
    record(episode)
    with pytest.raises(ValueError, match=r"firsthand\.manifest/1|canonical"):
        Manifest.read(manifest(episode).document(KEY).replace(old, new))


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
