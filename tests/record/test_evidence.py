"""Reading evidence.mcap: our own files exactly, and anything else without harm."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

from firsthand_edge import _core
from firsthand_edge.errors import RecordingUnreadable
from tests.record.wire import START, Wire, device, plan, push, recorder, required, start, stream

if TYPE_CHECKING:
    from pathlib import Path

PERIOD = 16_666_667


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Evidence of a small take, flushed many times."""
    tmp = tmp_path_factory.mktemp("closed")
    intake = recorder(tmp, device("cam", stream("a"), stream("b")), plan=plan(required("a")))
    folder = start(intake, tmp / "take", flush_ns=1_000_000)
    for k in range(300):
        push(intake, "a", [Wire(b"%d" % k, k, START + k * PERIOD, START + k * PERIOD + 5)])
        push(intake, "b", [Wire(b"", k)])
        intake.advance(START + k * PERIOD)
    intake.event('{"kind": "button"}')
    intake.stop_take('{"ended": "button"}')
    return (folder / "evidence.mcap").read_bytes()


def read(tmp_path: Path, data: bytes) -> dict[str, Any]:
    path = tmp_path / "evidence.mcap"
    path.write_bytes(data)
    return _core.read_evidence(path)


def test_strangers_can_read_it_by_the_documented_layout(tmp_path: Path, closed: bytes) -> None:
    """A second reader, written from the module's documentation alone, on the public package."""
    (tmp_path / "e.mcap").write_bytes(closed)
    tables: dict[str, dict[str, list[int]]] = {}
    with (tmp_path / "e.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        metadata = {m.name: dict(m.metadata) for m in reader.iter_metadata()}
        attachments = {a.name: a.data for a in reader.iter_attachments()}
        for _, channel, message in reader.iter_messages(log_time_order=False):
            if channel.topic == "events":
                assert channel.message_encoding == "json"
                assert json.loads(message.data) == {"kind": "button"}
                continue
            assert channel.metadata["layout"] == "delta-i64-le/1"
            names = channel.metadata["columns"].split(",")
            (rows,) = struct.unpack_from("<I", message.data)
            assert len(message.data) == 4 + 8 * rows * len(names)
            deltas = np.frombuffer(message.data, "<i8", offset=4).reshape(len(names), rows)
            table = tables.setdefault(channel.topic, {name: [] for name in names})
            with np.errstate(over="ignore"):
                for name, column in zip(names, np.cumsum(deltas, axis=1, dtype=np.int64), strict=True):
                    table[name] += column.tolist()
    assert metadata["firsthand.episode"] == {"schema": "firsthand.evidence/1", "take": '{"id": "t"}'}
    assert [d["name"] for d in json.loads(metadata["firsthand.devices"]["devices"])] == ["cam"]
    assert metadata["firsthand.close"] == {"close": '{"ended": "button"}'}
    assert attachments == {"spec.toml": b"x = 1\n"}

    evidence = _core.read_evidence(tmp_path / "e.mcap")
    for name in ("a", "b"):
        ours = {c: v.tolist() for c, v in dict(evidence["samples"][name]).items()}
        assert tables[f"samples/{name}"] == ours
        assert ours["sequence"] == list(range(300))
    assert tables["ticks"] == {c: v.tolist() for c, v in dict(evidence["ticks"]).items()}


def test_every_truncation_is_unreadable(tmp_path: Path, closed: bytes) -> None:
    step = max(1, len(closed) // 400)
    for cut in [*range(200), *range(200, len(closed), step), *range(len(closed) - 60, len(closed))]:
        with pytest.raises(RecordingUnreadable):
            read(tmp_path, closed[:cut])


def test_a_torn_file_says_what_to_do(tmp_path: Path, closed: bytes) -> None:
    with pytest.raises(RecordingUnreadable, match="recover the episode first"):
        read(tmp_path, closed[: len(closed) // 2])
    with pytest.raises(RecordingUnreadable, match="not there; check the path"):
        _core.read_evidence(tmp_path / "nowhere")
    with pytest.raises(RecordingUnreadable, match="does not begin as MCAP"):
        read(tmp_path, b"hello, this is a text")
    with pytest.raises(RecordingUnreadable, match="not a file"):
        _core.read_evidence(tmp_path)


def test_another_mcap_is_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "evidence.mcap"
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start()
        channel = writer.register_channel("/x", "json", 0)
        writer.add_message(channel, 1, b"{}", 1)
        writer.finish()  # type: ignore[no-untyped-call]
    with pytest.raises(RecordingUnreadable, match="not the evidence of an episode"):
        _core.read_evidence(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_flipped_bit_is_refused(tmp_path: Path, closed: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(closed) - 1))
    changed = bytearray(closed)
    changed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RecordingUnreadable):
        read(tmp_path, bytes(changed))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=2000),
        st.lists(
            st.tuples(
                st.integers(0, 16), st.one_of(st.integers(0, 60), st.integers(0, 2**64 - 1)), st.binary(max_size=60)
            ),
            max_size=10,
        ).map(lambda records: b"".join(struct.pack("<BQ", op, n) + body for op, n, body in records)),
    )
)
def test_arbitrary_bytes_are_refused(tmp_path: Path, body: bytes) -> None:
    for data in (body, b"\x89MCAP0\r\n" + body, b"\x89MCAP0\r\n" + body + b"\x89MCAP0\r\n"):
        with pytest.raises(RecordingUnreadable):
            read(tmp_path, data)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Evidence of more than 8 MiB, which a thread of its own reads ahead."""
    tmp = tmp_path_factory.mktemp("large")
    intake = recorder(tmp, device("cam", stream("a")), plan=plan(required("a")))
    noise = np.random.default_rng(0).bytes(9 << 20)
    attachments = [("before.bin", "application/octet-stream", noise)]
    folder = start(intake, tmp / "take", attachments=attachments, flush_ns=1_000_000)
    for k in range(300):
        push(intake, "a", [Wire(b"%d" % k, k, START + k * PERIOD, START + k * PERIOD + 5)])
        intake.advance(START + k * PERIOD)
    intake.stop_take('{"ended": "button"}')
    return (folder / "evidence.mcap").read_bytes()


def test_what_is_read_ahead_is_the_same(tmp_path: Path, large: bytes) -> None:
    evidence = read(tmp_path, large)
    assert evidence["samples"]["a"]["sequence"].tolist() == list(range(300))
    assert len(evidence["attachments"]["before.bin"]) == 9 << 20
    for cut in (9 << 20, len(large) - 3000, len(large) - 60, len(large) - 1):
        with pytest.raises(RecordingUnreadable):
            read(tmp_path, large[:cut])
    for at in range(len(large) - 1, 9 << 20, -(len(large) - (9 << 20)) // 97):
        with pytest.raises(RecordingUnreadable):
            read(tmp_path, large[:at] + bytes([large[at] ^ 1]) + large[at + 1 :])


def test_reading_ahead_ends_with_who_reads(tmp_path: Path, large: bytes) -> None:
    told = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    (tmp_path / "e.mcap").write_bytes(large)
    with pytest.raises(KeyboardInterrupt):
        _core.read_evidence(tmp_path / "e.mcap", progress=stop)
    assert [total for _, total in told] == [len(large)]


BOMB = """
import resource, sys
from firsthand_edge import _core
from firsthand_edge.errors import RecordingUnreadable
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
try:
    _core.read_evidence(sys.argv[1])
except RecordingUnreadable as error:
    print(error)
"""


def test_a_file_that_decompresses_without_end_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    """60 chunks of 200 MB of zeros each, in a file of less than 1 MB."""
    # One record of an opcode that readers skip fills the chunk.
    size = 200_000_000
    data = zstandard.ZstdCompressor(level=1).compress(struct.pack("<BQ", 0x90, size - 9) + bytes(size - 9))
    body = struct.pack("<QQQII", 1, 1, size, 0, 4) + b"zstd" + struct.pack("<Q", len(data)) + data
    chunk = struct.pack("<BQ", 6, len(body)) + body
    path = tmp_path / "bomb.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + chunk * 60)
    assert path.stat().st_size < 2_000_000
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "decompresses to more than is believed" in done.stdout
