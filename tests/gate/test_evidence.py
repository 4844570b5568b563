"""Evidence is read whole, in order of receipt, or refused in one sentence."""

import numpy as np
import pytest

from firsthand_edge.errors import RecordingUnreadable
from firsthand_edge.gate.evidence import COLUMNS, Evidence
from tests.gate.recorded import Camera, raw

HEAD = Camera("head", count=40)
WRIST = Camera("wrist", count=40, seed=2)


def test_samples_come_in_the_order_of_receipt():
    document = raw(HEAD, WRIST)
    wanted = document["samples"]["head"]["sequence"]
    shuffled = np.random.default_rng(5).permutation(wanted.size)
    document["samples"]["head"] = {name: column[shuffled] for name, column in document["samples"]["head"].items()}
    found = Evidence.parse(document, place="a test").samples["head"]
    assert (found["sequence"] == wanted).all()
    assert set(found) == set(COLUMNS)


def test_devices_are_the_models():
    found = Evidence.parse(raw(HEAD, WRIST), place="a test")
    assert found.devices == (HEAD.info(), WRIST.info())


def test_a_column_that_lacks_is_unreadable():
    document = raw(HEAD, WRIST)
    del document["samples"]["wrist"]["digest"]
    with pytest.raises(RecordingUnreadable, match="KeyError: 'digest'"):
        Evidence.parse(document, place="a test")


@pytest.mark.parametrize(
    ("key", "value"), [("take", "not JSON"), ("devices", "[{}]"), ("close", "[]"), ("events", ["1"])]
)
def test_evidence_of_another_make_is_unreadable(key, value):
    document = {**raw(HEAD, WRIST), key: value}
    with pytest.raises(RecordingUnreadable, match="this version reads"):
        Evidence.parse(document, place="a test")
