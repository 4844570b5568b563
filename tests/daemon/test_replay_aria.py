"""The recording of a head-worn rig, through the whole rig and read back by strangers."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import msgpack
import pytest
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory

from tests.sensors.test_replay_vrs import raw_records, same

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def episode(tmp_path_factory):
    """What `firsthand-edge run --rig configs/replay-aria.toml` leaves in the store."""
    state = tmp_path_factory.mktemp("a") / "s"
    done = subprocess.run(
        [sys.executable, "-m", "firsthand_edge.cli", "run", "--rig", "configs/replay-aria.toml", "--state", str(state)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accepted" in done.stdout
    [folder] = (state / "store" / "episodes").iterdir()
    assert not list((state / "spool" / "recording").iterdir())
    return folder


def messages(episode: Path) -> dict[str, list]:
    """Every message of the footage by topic, in the order of the file, by the public reader and decoder."""
    out = defaultdict(list)
    with (episode / "episode.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for _, channel, message, decoded in reader.iter_decoded_messages(log_time_order=False):
            out[channel.topic].append((message, decoded))
    return out


def test_all_323_records_are_there_byte_for_byte_with_their_stamps(episode):
    found, records = messages(episode), raw_records()
    assert len(records) == 323
    at = Counter()
    payload_at = Counter()
    for record in records:
        topic = f"/{record['stream']}"
        message, decoded = found[f"{topic}/metadata"][at[topic]]
        at[topic] += 1
        said = msgpack.unpackb(decoded.metadata)
        assert said["vrs"]["record_type"] == record["type"]
        assert same(said["vrs"]["timestamp"], record["timestamp"])
        assert same(said["metadata"], record["metadata"])
        fields = record["metadata"][0] if record["metadata"] else {}
        stamp = fields.get("capture_timestamp_ns", fields.get("monotonic_timestamp_ns"))
        if record["type"] == "data":
            assert message.publish_time == stamp
            assert decoded.timestamp.seconds * 10**9 + decoded.timestamp.nanos == stamp
        if record["image"]:
            picture, content = found[topic][payload_at[topic]]
            payload_at[topic] += 1
            assert content.data == record["image"]
            assert content.format == "jpeg"
            assert picture.publish_time == stamp
    assert sum(at.values()) == 323
    assert sum(len(m) for topic, m in found.items() if topic.endswith("/metadata")) == 323
    assert payload_at == {"/214-1": 4, "/211-1": 4, "/1201-1": 4, "/1201-2": 4}
    assert {topic: len(found[topic]) for topic in payload_at} == dict(payload_at)
