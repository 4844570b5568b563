"""The nouns: what is written as JSON is read back as it was."""

import json

from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.model import Counter, DeviceInfo, Domain, Reason, StampPoint, StreamInfo

names = st.text("abcdefgh_", min_size=1, max_size=12)
times = st.integers(-(2**62), 2**62)
streams = st.builds(
    StreamInfo,
    name=names,
    media=st.sampled_from(["picture/png", "imu", "raw/16UC1;640x480"]),
    triggered=st.booleans(),
    stamp_point=st.sampled_from(StampPoint),
    period_ns=st.none() | times,
    offset_ns=times,
    reorder_bound=st.integers(0, 9),
    has_trigger_index=st.booleans(),
)
devices = st.builds(
    DeviceInfo,
    name=names,
    driver=names,
    model=names,
    serial=names,
    firmware=names,
    domain=st.sampled_from(Domain),
    counter=st.builds(Counter, bits=st.integers(1, 64), tick_num=st.integers(1, 9), tick_den=st.integers(1, 9)),
    streams=st.lists(streams, max_size=3).map(tuple),
    identity_map=st.booleans(),
    min_delay_ns=times,
    min_delay_bound_ns=st.none() | times,
)


@given(devices)
def test_a_device_survives_json(device):
    assert DeviceInfo.from_json(json.loads(json.dumps(device.to_json()))) == device


def test_a_reason_says_only_what_it_knows():
    reason = Reason("sync.ceiling", "head and wrist disagree", pair=("head", "wrist"), measured=3, limit=2, unit="ns")
    assert reason.to_json() == {
        "code": "sync.ceiling",
        "sentence": "head and wrist disagree",
        "pair": ["head", "wrist"],
        "measured": 3,
        "limit": 2,
        "unit": "ns",
        "rule_version": 1,
    }
