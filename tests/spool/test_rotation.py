"""A rig's key is rotated: one key in force at every instant, and somebody who can go on, whenever it is cut short."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firsthand_edge.errors import ConfigInvalid, DiskFull, KeyRotated, UsageError
from firsthand_edge.spec.keys import NEXT, KeyPair, private_path, public_path
from firsthand_edge.spool.chain import Chain
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.rotation import KEY_HOLDERS, Rotation, key_unused, rotate
from firsthand_edge.spool.spool import Spool, open_spool
from firsthand_edge.spool.states import State
from tests.spool.kill import MEMORY, killed
from tests.spool.takes import TORN, judged, manifest, record, sealed, verdict


@pytest.fixture
def rig() -> Iterator[Path]:
    """A state directory in memory, where a crash at each of many instants costs little."""
    with tempfile.TemporaryDirectory(prefix="rotation-", dir=MEMORY) as folder:
        yield Path(folder)


def act(rig: Path) -> Rotation:
    return rotate(open_spool(rig, create=False), rig / "keys")


def keys_of(rig: Path) -> list[str]:
    return sorted(path.name for path in (rig / "keys").iterdir())


def sound(rig: Path) -> Spool:
    """Opens the rig as a process would, and holds keys, chain and folders against each other."""
    spool = open_spool(rig, create=True)
    assert keys_of(rig) == ["rig.key", "rig.pub"], "two keys in doubt"
    assert stat.S_IMODE(private_path(rig / "keys").stat().st_mode) == 0o600
    assert public_path(rig / "keys").read_text() == spool.key.public.hex() + "\n"
    assert KeyPair.load(rig / "keys").public == spool.key.public == spool.chain.keyring().current
    restart(spool)
    assert restart(spool) == []
    root = spool.chain.keyring().root
    episode = judged(spool)
    assert episode.state is State.ACCEPTED, "nothing can continue this chain"
    assert check_chain(spool.chain.path.read_bytes(), root).report.good
    return spool


def test_the_new_key_goes_on_and_what_the_old_one_signed_stays_good(rig: Path) -> None:
    spool = open_spool(rig, create=True)
    old = spool.key
    accepted, rejected, waiting = judged(spool), judged(spool, TORN), sealed(spool)
    done = act(rig)
    assert (done.old.public, done.old.since, done.found) == (old.public, 0, ())
    assert (done.new.since, done.row) == (done.row + 1, len(spool.chain.rows()) - 1)
    spool = sound(rig)
    assert spool.key.public == done.new.public != old.public
    for episode in (accepted, rejected):
        assert spool.committed(episode).verdict is not None
    judged_now = spool.judge_done(waiting, verdict(spool, waiting))
    again = spool.judge_done(rejected, verdict(spool, rejected))
    assert [e.state for e in (judged_now, again)] == [State.ACCEPTED, State.ACCEPTED]
    assert check_chain(spool.chain.path.read_bytes(), done.new.public).report.good
    assert spool.chain.name == old.key_id
    assert restart(spool) == []


def test_rotated_again_and_again(rig: Path) -> None:
    seen = [open_spool(rig, create=True).key.public, *(act(rig).new.public for _ in range(4))]
    spool = sound(rig)
    assert [key.public for key in spool.chain.keyring().keys] == seen
    assert len(set(seen)) == 5


def test_the_old_private_key_is_nowhere_on_the_disk(rig: Path) -> None:
    open_spool(rig, create=True)
    path = private_path(rig / "keys")
    secret, link = path.read_bytes(), rig / "another name of the same blocks"
    os.link(path, link)
    act(rig)
    assert link.read_bytes() == bytes(len(secret))
    everything = [file.read_bytes() for file in rig.rglob("*") if file.is_file()]
    assert not any(secret.strip() in data for data in everything)


def test_a_step_that_a_crash_cut_short_is_finished_by_the_key_that_signed_it(rig: Path) -> None:
    spool = open_spool(rig, create=True)
    with spool.chain.locked():
        pass
    ready, waiting, left = spool.begin("sim"), sealed(spool), spool.begin("sim")
    for episode in (ready, left):
        record(episode)
    (ready.path / "manifest.json").write_bytes(manifest(ready).document(spool.key))
    (waiting.path / "verdict.json").write_bytes(verdict(spool, waiting).document(spool.key))
    done = act(rig)
    assert sorted(found.what for found in done.found) == ["step_finished", "step_finished", "torn"]
    spool = sound(rig)
    where = {episode.id: episode.state for episode in spool.episodes()}
    assert [where[e.id] for e in (ready, waiting, left)] == [State.SEALED, State.ACCEPTED, State.TORN]


def test_a_document_ahead_of_its_row_counts_only_by_the_key_in_force(rig: Path) -> None:
    old = open_spool(rig, create=True).key
    act(rig)
    spool = open_spool(rig, create=False)
    episode = spool.begin("sim")
    record(episode)
    (episode.path / "manifest.json").write_bytes(manifest(episode).document(old))
    assert [found.what for found in restart(spool)] == ["damaged", "torn"]


# ---- cut short


def test_killed_at_every_instant(rig: Path) -> None:
    def prepared(at: int | str) -> Path:
        state = rig / str(at)
        judged(open_spool(state, create=True))
        return state

    whole = prepared("whole")
    assert not killed(lambda: act(whole), None, rig / "calls")
    calls = int((rig / "calls").read_text())
    assert calls > 15, "the killer no longer sees the calls that change the disk"
    happened = []
    for at in range(calls):
        state = prepared(at)
        old = open_spool(state, create=False).key.public
        assert killed(lambda state=state: act(state), at), at  # type: ignore[misc]
        new = sound(state).key.public
        happened.append(new != old)
        shutil.rmtree(state)
    assert happened == sorted(happened), "a rotation happened, and a later crash undid it"
    assert {False, True} == set(happened)


@pytest.mark.parametrize("first", range(0, 30, 3))
def test_killed_again_while_it_is_finished(rig: Path, first: int) -> None:
    judged(open_spool(rig, create=True))
    killed(lambda: act(rig), first)
    for at in range(0, 14, 2):
        killed(lambda: open_spool(rig, create=False), at)
    sound(rig)


def test_a_power_cut_in_the_row_undoes_it_and_after_the_row_completes_it(rig: Path) -> None:
    judged(open_spool(rig, create=True))
    path, keys = rig / "spool" / "chain.jsonl", rig / "keys"
    old, before = private_path(keys).read_bytes(), path.read_bytes()
    done = act(rig)
    after, new = path.read_bytes(), private_path(keys).read_bytes()
    for kept in (0, 1, len(after) - len(before) - 20):
        _as_it_was(keys, old, new)
        path.write_bytes(after[: len(before) + kept])
        assert open_spool(rig, create=True).key.public != done.new.public
        assert keys_of(rig) == ["rig.key", "rig.pub"]
    for kept in (len(after) - 1, len(after)):
        _as_it_was(keys, old, new)
        path.write_bytes(after[:kept])
        spool = open_spool(rig, create=True)
        assert spool.key.public == done.new.public
        assert "mended" in {found.what for found in restart(spool)}
    sound(rig)


def _as_it_was(keys: Path, old: bytes, new: bytes) -> None:
    for path, data in ((private_path(keys), old), (private_path(keys, NEXT), new)):
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)


def test_a_full_disk_leaves_the_old_key(rig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = open_spool(rig, create=True).key.public
    judged(open_spool(rig, create=False))
    real, allowed = os.write, 0

    def full(descriptor: int, data: bytes) -> int:
        nonlocal allowed
        if allowed == 0:
            raise OSError(28, "No space left on device")
        allowed -= 1
        return real(descriptor, data)

    for room in (0, 1):
        with monkeypatch.context() as patched:
            allowed = room
            patched.setattr(os, "write", full)
            with pytest.raises(DiskFull):
                act(rig)
        assert open_spool(rig, create=False).key.public == old
        assert keys_of(rig) == ["rig.key", "rig.pub"]
    act(rig)
    sound(rig)


# ---- who may


@pytest.mark.parametrize("name", list(KEY_HOLDERS))
def test_it_is_refused_while_a_process_of_the_rig_runs(rig: Path, name: str) -> None:
    (rig / "run").mkdir()
    (rig / "spool").mkdir(exist_ok=True)
    with (rig / "run" / name).open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(UsageError, match="stop it, then rotate"), key_unused(rig):
            raise AssertionError("not refused")
    with key_unused(rig), (rig / "run" / name).open("a+b") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    "step",
    [
        sealed,
        lambda spool: spool.judge_done(spool.find("1"), verdict(spool, spool.find("1"), TORN)),
        lambda spool: spool.uploaded(spool.find("1"), {"store": "test"}),
        lambda spool: spool.set_aside(spool.find("1"), "asked"),
        lambda spool: spool.adopt_spec({"digest": "blake3:1"}),
        restart,
    ],
)
def test_a_process_with_the_old_key_takes_no_step(rig: Path, step: Callable[[Spool], object]) -> None:
    stale = open_spool(rig, create=True)
    judged(stale)
    act(rig)
    before = _signed(rig)
    with pytest.raises(KeyRotated, match="start this process again"):
        step(stale)
    assert _signed(rig) == before


def _signed(rig: Path) -> dict[str, bytes]:
    """Everything that a key signed, by place."""
    return {str(p): p.read_bytes() for p in rig.rglob("*.json*") if p.is_file()}


def test_an_earlier_key_that_is_restored_is_refused_with_its_row(rig: Path) -> None:
    open_spool(rig, create=True)
    judged(open_spool(rig, create=False))
    saved = private_path(rig / "keys").read_bytes()
    done = act(rig)
    private_path(rig / "keys").write_bytes(saved)
    with pytest.raises(KeyRotated, match=f"until row {done.row} .* since then it is {done.new.key_id}"):
        open_spool(rig, create=True)


def test_two_keys_neither_of_which_is_in_force_are_left_for_a_person(rig: Path) -> None:
    judged(open_spool(rig, create=True))
    for name in ("rig", NEXT):
        private_path(rig / "keys", name).unlink(missing_ok=True)
        KeyPair.generate().write_private(private_path(rig / "keys", name))
    with pytest.raises(ConfigInvalid, match=r"holds neither in rig\.key nor in next\.key the key in force"):
        open_spool(rig, create=True)
    assert {"rig.key", "next.key"} <= set(keys_of(rig))


def test_a_damaged_row_of_a_rotation_is_not_believed_and_stops_the_rig(rig: Path) -> None:
    judged(open_spool(rig, create=True))
    done = act(rig)
    path = rig / "spool" / "chain.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(done.new.public.hex().encode(), KeyPair.generate().public.hex().encode()))
    with pytest.raises(ConfigInvalid, match=f"signed by key {done.old.key_id} and the key at hand is"):
        open_spool(rig, create=True)
    path.write_bytes(data)
    sound(rig)


def test_whoever_opens_while_it_is_under_way_waits_and_gets_the_new_key(rig: Path) -> None:
    spool = open_spool(rig, create=True)
    judged(spool)
    new = KeyPair.generate()
    (ask, go), (read, write) = os.pipe(), os.pipe()
    child = os.fork()  # before the chain is held: a child would share the lock
    if child == 0:
        try:
            os.read(ask, 1)
            os.write(write, open_spool(rig, create=False).key.public)
        finally:
            os._exit(0)
    with spool.chain.locked() as held:
        new.write_private(private_path(rig / "keys", NEXT))
        os.write(go, b"!")
        held.append_rotation(new)
    assert os.read(read, 64) == new.public
    os.waitpid(child, 0)
    for descriptor in (ask, go, read, write):
        os.close(descriptor)
    assert Chain(rig / "spool" / "chain.jsonl", new).keyring().current == new.public
    sound(rig)


@pytest.mark.parametrize("other", [b"x", b"\x0b", b"}"])
def test_a_changed_byte_at_the_end_of_its_row_does_not_undo_a_rotation(rig: Path, other: bytes) -> None:
    judged(open_spool(rig, create=True))
    new = act(rig).new.public
    path = rig / "spool" / "chain.jsonl"
    path.write_bytes(path.read_bytes()[:-1] + other)
    spool = open_spool(rig, create=False)
    assert spool.key.public == new
    assert [found.what for found in restart(spool)] == ["mended"]
    sound(rig)
