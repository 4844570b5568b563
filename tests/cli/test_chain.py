"""`chain verify`: one page, the same for people and machines, and an exit status that means one thing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from firsthand_edge.cli import run
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import Spool, open_spool
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader
from tests.spool.forging import forge, forge_rotation, grown
from tests.spool.takes import TORN, judged, sealed


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    """A rig with a day behind it: two keys, everything sent, one episode waiting."""
    state = tmp_path / "rig"
    judged(open_spool(state, create=True))
    rotate(open_spool(state, create=False), state / "keys")
    spool = open_spool(state, create=False)
    judged(spool, TORN)
    (tmp_path / "store").mkdir()
    assert not Uploader(spool, DirectoryStore(tmp_path / "store")).run_once().failures
    sealed(spool)
    return state


def chain_of(rig: Path) -> Path:
    return rig / "spool" / "chain.jsonl"


def verify(*arguments: object) -> int:
    return run(["chain", "verify", *map(str, arguments)])


def found(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    status = verify(*arguments, "--json")
    return status, json.loads(capsys.readouterr().out)


def test_a_good_chain_on_its_own_rig(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("--state", rig) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert lines[0] == "GOOD"
    spool = open_spool(rig, create=False)
    for key in spool.chain.keyring().keys:
        assert f"{key.key_id} since row {key.since}" in page
    assert f"rows    {len(spool.chain.rows())}" in page
    assert spool.chain.rows()[-1].digest in page
    assert "folders 3 episodes" in page
    assert "What this cannot know" in page
    assert max(len(line) for line in lines if "/" not in line) <= 80


def test_the_same_for_machines(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = found(capsys, "--state", rig)
    assert status == 0
    assert (document["schema"], document["good"]) == ("firsthand.chain-check/1", True)
    assert [key["since_row"] for key in document["keys"]] == [0, 4]
    assert document["folders"] == {"episodes": 3, "unbound": 0, "findings": []}
    assert document["findings"] == []
    assert len(document["cannot_know"]) == 3


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("how", ["digits", "file"])
def test_a_stranger_s_check_with_just_a_public_key(
    rig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], which: int, how: str
) -> None:
    public = open_spool(rig, create=False).chain.keyring().keys[which].public.hex()
    (tmp_path / "given.pub").write_text(public + "\n")
    shutil.copy(chain_of(rig), tmp_path / "elsewhere.jsonl")
    key = public if how == "digits" else tmp_path / "given.pub"
    status, document = found(capsys, tmp_path / "elsewhere.jsonl", "--key", key)
    assert (status, document["folders"]) == (0, None)
    assert verify(chain_of(rig).parent, "--key", key) == 0


def test_findings_are_listed_by_line_and_are_status_1(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain_of(rig)
    path.write_bytes(path.read_bytes().replace(b'"verdict":"rejected"', b'"verdict":"accepted"'))
    forge(path, KeyPair.generate())
    assert verify("--state", rig) == 1
    page = capsys.readouterr().out
    assert "FINDINGS" in page.splitlines()[0]
    assert "line 6: row 5 was changed after it was signed" in page
    assert "is signed by key" in page
    status, document = found(capsys, "--state", rig)
    assert status == 1
    assert [finding["line"] for finding in document["findings"]] == sorted(f["line"] for f in document["findings"])


def test_many_findings_stay_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = KeyPair.generate()
    path = grown(tmp_path / "chain.jsonl", key, 60).path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 2 == 0))
    assert verify(path, "--key", key.public.hex()) == 1
    page = capsys.readouterr().out
    assert len(page.splitlines()) < 60
    assert "and 10 more; --json lists them all" in page
    assert len(found(capsys, path, "--key", key.public.hex())[1]["findings"]) == 30


def test_folders_that_do_not_agree_are_findings_on_the_rig(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool = open_spool(rig, create=False)
    shutil.rmtree(spool.find("1").path)
    assert verify("--state", rig) == 1
    assert "its folder is nowhere" in " ".join(capsys.readouterr().out.split())
    status, document = found(capsys, "--state", rig)
    assert (status, document["findings"]) == (1, [])
    assert [finding["episode"] for finding in document["folders"]["findings"]] == [
        row.episode for row in spool.chain.rows()[1:2]
    ]


# ---- copies


def test_against_the_store_a_cut_tail_is_found(rig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = found(capsys, "--state", rig, "--store", tmp_path / "store")
    assert status == 0
    assert document["copy"].endswith(f"{document['name']}.jsonl")
    assert any("has not seen 1 of those here" in sentence for sentence in document["cannot_know"])
    path = chain_of(rig)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:7]))
    for copy in (("--store", tmp_path / "store"), ("--against", document["copy"])):
        status, cut = found(capsys, path, "--key", document["keys"][0]["public_key"], *copy)
        assert status == 1
        assert "was cut off the end" in cut["findings"][0]["sentence"]


def test_a_store_without_a_copy_tells_nothing_and_says_so(
    rig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert verify("--state", rig, "--store", tmp_path / "empty") == 3
    out = capsys.readouterr()
    assert out.out.startswith("NOT COMPARED")
    assert "there is no copy of this chain, not a row of it" in out.err
    path = chain_of(rig)
    path.write_bytes(path.read_bytes().replace(b'"torn":false', b'"torn":true'))
    assert verify("--state", rig, "--store", tmp_path / "empty") == 1


@pytest.mark.parametrize("left", [b"", b"half a row"])
def test_a_copy_that_was_emptied_tells_nothing_and_says_so(
    rig: Path, tmp_path: Path, left: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(left)
    assert run(["chain", "verify", "--state", str(rig), "--against", str(copy)]) == 3
    out = capsys.readouterr()
    assert "GOOD" not in out.out
    assert "not a row of it" in out.err


def test_a_chain_that_was_hidden_and_begun_anew_is_found_at_the_store(
    rig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = open_spool(rig, create=False)
    shutil.rmtree(spool.root)
    anew = Spool(rig / "spool", spool.key)
    judged(anew)
    assert not Uploader(anew, DirectoryStore(tmp_path / "store")).run_once().failures
    assert found(capsys, "--state", rig)[0] == 0
    status, document = found(capsys, "--state", rig, "--store", tmp_path / "store")
    assert status == 1
    assert "rows before were lost or hidden" in document["findings"][0]["sentence"]


# ---- what cannot be checked


@pytest.fixture
def at_home(rig: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rig's state directory is the working directory, and a copy of the chain lies in it."""
    shutil.copy(chain_of(rig), rig / "chain.jsonl")
    monkeypatch.chdir(rig)
    return rig


def test_right_after_a_rotation_the_new_key_vouches_by_its_countersignature(
    rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = rotate(open_spool(rig, create=False), rig / "keys")
    assert verify("--state", rig) == 0
    assert f"by key {done.new.key_id} and" in " ".join(capsys.readouterr().out.split())
    assert verify(chain_of(rig), "--key", done.new.public.hex()) == 0
    assert "its countersignature links to them" in " ".join(capsys.readouterr().out.split())


def test_right_after_a_rotation_without_one_the_key_before_vouches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an earlier version of this software wrote it."""
    spool = open_spool(tmp_path, create=True)
    judged(spool)
    new = KeyPair.generate()
    forge_rotation(chain_of(tmp_path), spool.key, new)
    (tmp_path / "keys" / "rig.pub").write_text(new.public.hex() + "\n")
    assert verify("--state", tmp_path) == 0
    capsys.readouterr()
    assert verify(chain_of(tmp_path), "--key", new.public.hex()) == 1
    assert "has signed no row yet" in " ".join(capsys.readouterr().out.split())


# ---- what was cut off


def test_a_row_that_was_cut_off_as_torn_is_a_finding(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain_of(rig)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    path.with_name("chain.torn").write_bytes(b'{"at":{"boot":"ha\n' + lines[-1][:-1] + b"x\n" + lines[2])
    key = open_spool(rig, create=False).key.public.hex()
    status, document = found(capsys, path, "--key", key)
    assert status == 1
    [finding] = document["findings"]
    assert finding["line"] == len(lines)
    assert f"row {len(lines) - 1} (sealed) was cut off, and" in finding["sentence"]
    assert "the chain ends before it" in finding["sentence"]
    assert any("keeps 3 lines cut off the end as torn; 1 of them proved" in note for note in document["notes"])
    judged(open_spool(rig, create=False))
    assert any("another row stands in its place" in f["sentence"] for f in found(capsys, "--state", rig)[1]["findings"])


def test_lines_that_were_torn_are_mentioned(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain_of(rig)
    with path.open("ab") as file:
        file.write(b'{"at":{"boot":"ha')
    with open_spool(rig, create=False).chain.locked():
        pass
    assert verify("--state", rig) == 0
    assert "keeps 1 line cut off the end as torn; none of them proved" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "status", "why"),
    [
        (["nowhere.jsonl", "--key", "00" * 32], 3, "cannot be read"),
        (["--state", "nowhere"], 3, "cannot be read"),
        (["chain.jsonl"], 2, "name the public key with --key"),
        (["chain.jsonl", "--key", "zz"], 2, "is no public key"),
        (["chain.jsonl", "--key", "keys/rig.key"], 2, "is the name of a private key"),
        (["chain.jsonl", "--key", "00" * 32, "--against", "nowhere"], 3, "cannot be read"),
        (["chain.jsonl", "--key", "00" * 32, "--against", "a", "--store", "b"], 2, "name one"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(
    at_home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, why: str
) -> None:
    assert (at_home / "chain.jsonl").exists()
    assert verify(*arguments) == status
    assert why in capsys.readouterr().err


def test_a_rig_whose_public_file_is_lost(rig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rig / "keys" / "rig.pub").unlink()
    assert verify("--state", rig) == 3
    assert "name the rig's public key with --key" in capsys.readouterr().err


def test_an_empty_file_and_a_foreign_one_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "foreign.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n" * 50)
    for name in ("empty.jsonl", "foreign.jsonl"):
        assert verify(tmp_path / name, "--key", "00" * 32) == 1
    assert "chain begins with the row of its key" in " ".join(capsys.readouterr().out.split())
