from __future__ import annotations

import fcntl
import json
import stat
from pathlib import Path

import pytest

from firsthand_edge.cli import run
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.spool import open_spool
from tests.daemon.rigs import record as record_take
from tests.daemon.rigs import running
from tests.spool.takes import judged, record


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    judged(open_spool(tmp_path / "rig", create=True))
    return tmp_path / "rig"


def keys(*arguments: object) -> int:
    return run(["keys", *map(str, arguments)])


def test_new_makes_a_pair_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keys("new", tmp_path / "buyer") == 0
    page = capsys.readouterr().out
    key = KeyPair.load(tmp_path / "buyer")
    assert key.public.hex() in page
    assert "signer.key" in page
    assert (tmp_path / "buyer" / "signer.key").read_text().strip() not in page
    assert stat.S_IMODE((tmp_path / "buyer" / "signer.key").stat().st_mode) == 0o600
    assert keys("new", tmp_path / "buyer") == 2
    assert "is there already and is never replaced" in capsys.readouterr().err
    assert KeyPair.load(tmp_path / "buyer").public == key.public


def test_show_needs_no_private_key(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = open_spool(rig, create=False).key.public.hex()
    (rig / "keys" / "rig.key").unlink()
    assert keys("show", "--state", rig) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"key      {open_key(public)}, since row 0 of the chain",
        f"public   {public}",
    ]


def open_key(public: str) -> str:
    from firsthand_edge.spec.keys import key_id

    return key_id(bytes.fromhex(public))


def test_rotate_then_show_lists_every_key_with_its_first_row(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = open_spool(rig, create=False).key
    secret = (rig / "keys" / "rig.key").read_text().strip()
    assert keys("rotate", "--state", rig) == 0
    page = capsys.readouterr().out
    second = open_spool(rig, create=False).key
    assert f"{second.key_id}, the rig's from row 4 of the chain on" in page
    assert f"{first.key_id}, for rows 0 to 3; what it signed stays good" in page
    assert "The old private key was overwritten and deleted" in page
    assert secret not in "".join(path.read_text("latin1") for path in rig.rglob("*") if path.is_file())
    judged(open_spool(rig, create=False))
    assert keys("rotate", "--state", rig) == 0
    capsys.readouterr()
    assert keys("show", "--state", rig, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["since_row"] for one in document["earlier"]] == [0, 4]
    assert [one["key_id"] for one in document["earlier"]] == [first.key_id, second.key_id]
    assert document["since_row"] == 7
    assert document["public_file"] == document["public_key"]
    chain = (rig / "spool" / "chain.jsonl").read_bytes()
    assert check_chain(chain, first.public).report.good
    assert keys("show", "--state", rig) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_rotate_says_what_it_finished_first(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(open_spool(rig, create=False).begin("sim"))
    assert keys("rotate", "--state", rig) == 0
    assert "now in torn, to be recovered" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "who"), [("captured.lock", "the daemon"), ("uploadd.lock", "the sender")])
def test_rotate_is_refused_while_a_process_runs(
    rig: Path, capsys: pytest.CaptureFixture[str], name: str, who: str
) -> None:
    before = (rig / "keys" / "rig.key").read_bytes()
    (rig / "run").mkdir(exist_ok=True)
    with (rig / "run" / name).open("a+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert keys("rotate", "--state", rig) == 2
    assert who in (said := capsys.readouterr().err)
    assert "stop it, then rotate" in said
    assert (rig / "keys" / "rig.key").read_bytes() == before


def test_where_no_rig_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert keys("show", "--state", tmp_path) == 3
    assert "a rig makes its own on its first start" in capsys.readouterr().err
    assert keys("rotate", "--state", tmp_path) == 2
    assert "holds no spool" in capsys.readouterr().err
    assert not (tmp_path / "keys").exists()


def test_a_public_file_that_is_not_the_chain_s_is_told(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rig / "keys" / "rig.pub").write_text("ab" * 32 + "\n")
    assert keys("show", "--state", rig) == 3
    out = capsys.readouterr()
    assert "which is not the one in force" in out.err
    assert "since row 0" in out.out


def test_a_rig_that_has_recorded_nothing_yet_shows_its_public_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = open_spool(tmp_path, create=True).key
    assert keys("show", "--state", tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [f"key      {key.key_id}", f"public   {key.public.hex()}"]


def test_a_running_daemon_is_not_robbed_of_its_key_and_the_next_one_records_with_the_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real processes: refused while the rig runs, done when it is stopped; its next run records with the new key."""
    state = tmp_path / "s"
    with running(tmp_path) as rig:
        accepted = record_take(rig, seconds=1)["episode"]
        assert keys("rotate", "--state", state) == 2
        assert "the daemon (captured) runs on" in capsys.readouterr().err
    assert keys("rotate", "--state", state) == 0
    with running(tmp_path) as rig:
        later = record_take(rig, number=2, seconds=1)["episode"]
    spool = open_spool(state, create=False)
    assert [spool.standing(spool.find(name)).judgements for name in (accepted, later)] == [1, 1]
    assert [key.public for key in spool.chain.keyring().keys][-1] == spool.key.public
    assert run(["chain", "verify", "--state", str(state)]) == 0
