"""Recovery of torn and damaged episodes; every result is read by the public packages."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader

from firsthand_edge import _core
from firsthand_edge.errors import DiskFull, RecordingUnreadable
from tests.record.wire import START, Wire, counts, device, push, read_episode, recorder, start, stream

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD = 16_666_667
CHUNKS = 10
EPISODE, EVIDENCE = "episode.mcap", "evidence.mcap"
CHUNK = 6
CHUNK_INDEX = 8


def record(folder: Path, *, samples: int = 240, payload: int = 200_000) -> Path:
    """A closed take of about 48 MB with known payloads: a dozen chunks."""
    intake = recorder(folder.parent, device("cam", stream("head"), stream("note", "event")))
    start(intake, folder)
    for k in range(samples):
        t = START + k * PERIOD
        body = blake3(b"%d" % k).digest(length=payload)
        push(intake, "head", [Wire(body, k, t, t + 9)])
        push(intake, "note", [Wire(b'{"n": %d}' % k, k, t, t + 9)])
    intake.stop_take('{"ended": "button"}')
    return folder


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("closed") / "take")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("small") / "take", samples=40, payload=200)


@pytest.fixture
def take(closed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed, tmp_path / "take"))


def records(data: bytes) -> list[tuple[int, int, int]]:
    """Opcode, first byte and byte after the last of every record of a sound file."""
    out, at = [], 8
    while at < len(data) - 8:
        opcode, length = struct.unpack_from("<BQ", data, at)
        out.append((opcode, at, at + 9 + length))
        at += 9 + length
    return out


def tree(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def checked(folder: Path) -> dict[str, Any]:
    """Recovers, holds the result against the public reader and against itself, and gives the note."""
    note = _core.recover(folder)
    for name, found in note["found"].items():
        if not found["present"]:
            continue
        assert counts(folder / name) == found["messages"]
        assert found["bytes_out"] == (folder / name).stat().st_size
        assert note["files"][name] == _core.digest_file(folder / name)
    after = tree(folder)
    assert not [name for name in after if name.endswith(".recovering")]
    assert _core.recover(folder) == note
    assert tree(folder) == after
    return note


def heads(folder: Path) -> list[int]:
    """Numbers of the samples of `head` that are in the episode, each payload checked."""
    out = []
    for message in read_episode(folder / EPISODE):
        if message.topic == "/head":
            payload = message.message.data
            assert payload == blake3(b"%d" % message.sequence).digest(length=len(payload))
            assert message.publish_time == START + message.sequence * PERIOD
            out.append(message.sequence)
    return out


def test_a_whole_take_stays_as_it_is(take: Path) -> None:
    before = tree(take)
    note = checked(take)
    assert tree(take) == before
    assert not note["torn"]
    assert all(f["complete"] and not f["holes"] for f in note["found"].values())
    assert _core.read_evidence(take / EVIDENCE)["recovery"] is None


def test_k48_cut_inside_a_chunk_index(take: Path) -> None:
    """foxglove/mcap#1474: a cut 44 bytes into the first chunk index, and one in the middle of chunk 7."""
    data = (take / EPISODE).read_bytes()
    first = next(at for opcode, at, _ in records(data) if opcode == CHUNK_INDEX)
    (take / EPISODE).write_bytes(data[: first + 44])
    note = checked(take)
    found = note["found"][EPISODE]
    assert note["torn"]
    assert not found["complete"]
    assert found["messages"] == {"/head": 240, "/note": 240}
    assert found["holes"] == []
    assert heads(take) == list(range(240))

    (take / EPISODE).write_bytes(data)
    chunks = [(at, end) for opcode, at, end in records(data) if opcode == CHUNK]
    assert len(chunks) > CHUNKS
    at, end = chunks[7]
    (take / EPISODE).write_bytes(data[: (at + end) // 2])
    note = checked(take)
    found = note["found"][EPISODE]
    assert note["before"]["found"][EPISODE]["messages"] == {"/head": 240, "/note": 240}  # of the recovery above
    kept = heads(take)
    assert kept == list(range(len(kept)))
    assert found["messages"]["/head"] == len(kept)
    assert (found["chunks_kept"], found["chunks_bad"]) == (7, 1)
    (hole,) = found["holes"]
    assert (hole["start"], hole["end"]) == (at, (at + end) // 2)
    first = min(len(kept), found["messages"]["/note"])
    assert hole["first_ns"] == START + first * PERIOD + 9
    assert json.loads(_core.read_evidence(take / EVIDENCE)["recovery"])["found"][EPISODE]["holes"] == [hole]


def test_k49_one_bad_chunk(take: Path) -> None:
    """foxglove/mcap#1390: 16 bytes flipped in chunk 3; chunks 0 to 2 and 4 on are kept."""
    data = bytearray((take / EPISODE).read_bytes())
    chunks = [(at, end) for opcode, at, end in records(bytes(data)) if opcode == CHUNK]
    at, end = chunks[3]
    for k in range(16):
        data[(at + end) // 2 + k] ^= 0xFF
    (take / EPISODE).write_bytes(data)
    note = checked(take)
    found = note["found"][EPISODE]
    kept = heads(take)
    missing = sorted(set(range(240)) - set(kept))
    assert missing == list(range(missing[0], missing[-1] + 1))
    assert 0 < len(missing) < 40
    assert kept == [k for k in range(240) if k not in missing]
    assert (found["chunks_kept"], found["chunks_bad"]) == (len(chunks) - 1, 1)
    (hole,) = found["holes"]
    assert (hole["start"], hole["end"]) == (at, end)
    notes = sorted(set(range(240)) - {m.sequence for m in read_episode(take / EPISODE) if m.topic == "/note"})
    first, last = min(missing + notes), max(missing + notes)
    assert (hole["first_ns"], hole["last_ns"]) == (START + first * PERIOD + 9, START + last * PERIOD + 9)
    assert hole["messages"] == len(missing) + len(notes)
    # The damaged bytes themselves are kept.
    with (take / EPISODE).open("rb") as file:
        attachments = list(make_reader(file).iter_attachments())
    assert b"".join(a.data for a in attachments if a.name.startswith("firsthand.hole/")) == bytes(data[at:end])


@pytest.mark.parametrize("name", [EPISODE, EVIDENCE])
def test_k55_zero_filled_tail(take: Path, name: str) -> None:
    """zeek/zeek#1817: a file of the right length whose end, or all of it, is zero; and one of 0 bytes."""
    whole = tree(take)
    size = len(whole[name])
    for zeros in (min(1 << 20, size // 2), size):
        (take / EPISODE).write_bytes(whole[EPISODE])
        (take / EVIDENCE).write_bytes(whole[EVIDENCE])
        (take / name).write_bytes(whole[name][: size - zeros] + bytes(zeros))
        note = checked(take)
        found = note["found"][name]
        assert note["torn"]
        assert not found["complete"]
        assert found["holes"][-1]["end"] == size
        if name == EPISODE:
            kept = heads(take)
            assert kept == list(range(len(kept)))
            assert (len(kept) > 200) == (zeros != size)
    assert found["holes"] == [found["holes"][0] | {"start": 0, "end": size, "zeros": True}]

    (take / EPISODE).write_bytes(whole[EPISODE])
    (take / EVIDENCE).write_bytes(whole[EVIDENCE])
    (take / name).write_bytes(b"")
    note = checked(take)
    assert note["torn"]
    assert note["found"][name]["messages"] == {}
    if name == EVIDENCE:
        with pytest.raises(RecordingUnreadable):
            _core.read_evidence(take / EVIDENCE)


def test_a_trailing_chunk_with_the_length_of_a_placeholder(take: Path) -> None:
    """Writers that patch the length later leave 0xFF.. behind when they are killed."""
    data = (take / EPISODE).read_bytes()
    at = [at for opcode, at, _ in records(data) if opcode == CHUNK][5]
    placeholder = struct.pack("<BQ", CHUNK, 2**64 - 1) + struct.pack("<QQQI", 0, 0, 2**64 - 1, 2**32 - 1)
    (take / EPISODE).write_bytes(data[:at] + placeholder + data[at + len(placeholder) : at + 100_000])
    note = checked(take)
    assert note["found"][EPISODE]["chunks_kept"] == 5
    (hole,) = note["found"][EPISODE]["holes"]
    assert (hole["start"], hole["end"]) == (at, at + 100_000)


def test_a_flipped_length_costs_one_chunk(take: Path) -> None:
    data = bytearray((take / EPISODE).read_bytes())
    chunks = [(at, end) for opcode, at, end in records(bytes(data)) if opcode == CHUNK]
    data[chunks[4][0] + 3] ^= 0x10
    (take / EPISODE).write_bytes(data)
    note = checked(take)
    assert note["found"][EPISODE]["chunks_kept"] == len(chunks) - 1
    (hole,) = note["found"][EPISODE]["holes"]
    assert (hole["start"], hole["end"]) == (chunks[4][0], chunks[5][0])


@pytest.mark.parametrize("with_evidence", [True, False])
def test_lost_definitions_are_made_again_from_the_devices(take: Path, *, with_evidence: bool) -> None:
    """The chunk that defines schemas and channels is damaged; the evidence says what they were."""
    data = bytearray((take / EPISODE).read_bytes())
    _, at, end = next(r for r in records(bytes(data)) if r[0] == CHUNK)
    data[(at + end) // 2] ^= 1
    (take / EPISODE).write_bytes(data)
    if not with_evidence:
        (take / EVIDENCE).unlink()
    note = checked(take)
    if with_evidence:
        assert heads(take) == list(range(240))
        assert note["found"][EPISODE]["orphans"] == 0
    else:
        # Nobody knows what they were; they are kept all the same.
        assert note["found"][EPISODE]["orphans"] == 480
        assert note["found"][EPISODE]["messages"] == {"/orphans/1": 240, "/orphans/4": 240}


def test_a_header_that_is_damaged_costs_the_header(take: Path) -> None:
    data = bytearray((take / EPISODE).read_bytes())
    data[:30] = os.urandom(30)
    (take / EPISODE).write_bytes(data)
    checked(take)
    assert heads(take) == list(range(240))


def test_wrong_times_in_a_chunk_header_are_made_right(take: Path) -> None:
    """They are outside of the chunk's checksum, and readers that search by time rely on them."""
    data = bytearray((take / EPISODE).read_bytes())
    at = [at for opcode, at, _ in records(bytes(data)) if opcode == CHUNK][2]
    data[at + 9 : at + 17] = struct.pack("<Q", 1)
    (take / EPISODE).write_bytes(data)
    assert checked(take)["torn"]
    assert heads(take) == list(range(240))


def test_evidence_alone_and_episode_alone(take: Path) -> None:
    (take / EPISODE).unlink()
    note = checked(take)
    assert note["torn"]
    assert not note["found"][EPISODE]["present"]
    assert json.loads(_core.read_evidence(take / EVIDENCE)["recovery"])["torn"]
    (take / EVIDENCE).unlink()
    with pytest.raises(RecordingUnreadable, match="neither"):
        _core.recover(take)


def test_recovery_that_was_cut_off_itself_remembers_what_it_found(take: Path) -> None:
    """Between the two files: the episode is whole again, the evidence does not know yet."""
    data = (take / EPISODE).read_bytes()
    torn_evidence = (take / EVIDENCE).read_bytes()[:-20]
    (take / EPISODE).write_bytes(data[: len(data) // 2])
    (take / EVIDENCE).write_bytes(torn_evidence)
    first = _core.recover(take)
    (take / EVIDENCE).write_bytes(torn_evidence)
    (take / f"{EVIDENCE}.recovering").write_bytes(b"half")
    assert checked(take) == first


def test_a_full_disk_leaves_the_torn_files_as_they_were(take: Path) -> None:
    data = (take / EPISODE).read_bytes()
    (take / EPISODE).write_bytes(data[: len(data) // 2])
    before = tree(take)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, old[1]))
    try:
        with pytest.raises(DiskFull):
            _core.recover(take)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert tree(take) == before
    checked(take)


def test_every_kind_of_cut(small: Path, tmp_path: Path) -> None:
    """At and around every record boundary, and inside every kind of record."""
    for name in (EPISODE, EVIDENCE):
        data = (small / name).read_bytes()
        cuts = {0, 1, 7, 8, 9, len(data) - 1, len(data) - 8}
        for _, at, end in records(data):
            cuts |= {at, at + 4, (at + end) // 2, end - 1}
        for cut in sorted(c for c in cuts if 0 <= c < len(data)):
            folder = tmp_path / f"{name}{cut}"
            shutil.copytree(small, folder)
            (folder / name).write_bytes(data[:cut])
            assert checked(folder)["torn"]
            if name == EPISODE:
                kept = heads(folder)
                assert kept == list(range(len(kept)))
            shutil.rmtree(folder)


def flips(data: st.DataObject, original: bytes) -> bytes:
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        run = data.draw(st.binary(min_size=1, max_size=40))
        changed[at : at + len(run)] = run
    return bytes(changed[: data.draw(st.sampled_from([len(changed), len(changed) * 3 // 4]))])


def garbage(data: st.DataObject, _: bytes) -> bytes:
    body = st.lists(
        st.tuples(st.integers(0, 16), st.one_of(st.integers(0, 80), st.integers(0, 2**64 - 1)), st.binary(max_size=80)),
        max_size=8,
    ).map(lambda rows: b"".join(struct.pack("<BQ", op, n) + rest for op, n, rest in rows))
    return data.draw(st.sampled_from([b"", b"\x89MCAP0\r\n"])) + data.draw(st.one_of(st.binary(max_size=500), body))


@pytest.mark.parametrize("make", [flips, garbage])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_the_bytes_are_the_result_is_sound(
    small: Path,
    tmp_path_factory: pytest.TempPathFactory,
    make: Callable[[st.DataObject, bytes], bytes],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("x") / "take"
    shutil.copytree(small, folder)
    for name in data.draw(st.sampled_from([(EPISODE,), (EVIDENCE,), (EPISODE, EVIDENCE)])):
        (folder / name).write_bytes(make(data, (small / name).read_bytes()))
    checked(folder)
    assert set(heads(folder)) <= set(range(40))


CHILD = """
    import sys
    from pathlib import Path
    from blake3 import blake3
    from firsthand_edge import _core
    from tests.record.wire import START, Wire, device, push, recorder, start, stream
    tmp = Path(sys.argv[1])
    intake = recorder(tmp, device("cam", stream("head"), stream("note", "event")))
    start(intake, tmp / "take", flush_ns=5_000_000)
    page = _core.LivePage(tmp / "live")
    k = 0
    while True:
        t = START + k * 16_666_667
        push(intake, "head", [Wire(blake3(b"%d" % k).digest(length=int(sys.argv[2])), k, t, t + 9)])
        push(intake, "note", [Wire(b"{}", k, t, t + 9)])
        intake.advance(t)
        if k % 16 == 0:
            print(page.read()["streams"]["head"]["durable"], flush=True)
        k += 1
"""


@pytest.mark.parametrize("payload", [200, 50_000])
def test_everything_durable_survives_a_kill(tmp_path: Path, payload: int) -> None:
    """A real SIGKILL in mid-take, at a different moment each time."""
    for n in range(4):
        folder = tmp_path / str(n)
        folder.mkdir()
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(folder), str(payload)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            durable = 0
            while durable < 100 + 37 * n:
                durable = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            child.wait(10)
        durable = max(durable, _core.LivePage(folder / "live").read()["streams"]["head"]["durable"])
        with pytest.raises(RecordingUnreadable):
            _core.read_evidence(folder / "take" / EVIDENCE)
        note = checked(folder / "take")
        assert note["torn"]
        kept = heads(folder / "take")
        assert kept == list(range(len(kept)))
        assert len(kept) >= durable
        evidence = _core.read_evidence(folder / "take" / EVIDENCE)
        assert evidence["close"] is None
        assert json.loads(evidence["recovery"])["torn"]
        said = evidence["samples"]["head"]["sequence"].tolist()
        assert said == list(range(len(said)))
        assert durable <= len(said) <= len(kept)  # evidence never claims what is not there
