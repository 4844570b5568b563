"""`episodes verify` as a person calls it: pages, JSON, exit statuses, bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from firsthand_edge.cli import run
from firsthand_edge.qa.proof import Proof
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from tests.qa.episodes import Rig


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rig = Rig(tmp_path_factory.mktemp("rig"))
    rig.add(rig.take(seconds=0.7))
    rig.add(rig.take(number=2, seconds=1.9))
    rig.spec_path  # noqa: B018 - written by being asked for
    return rig


@pytest.fixture
def rig(made, tmp_path):
    for part in ("spool", "keys"):
        shutil.copytree(made.root / part, tmp_path / "r" / part)
    return tmp_path / "r"


def folder(root, number):
    [path] = (root / "spool").glob(f"*/sim-01-{number:08d}-*")
    return path


def verify(made, *arguments):
    return run(["episodes", "verify", *map(str, arguments), "--key", made.key, "--spec", str(made.root / "spec.toml")])


def test_the_page_of_an_accepted_episode(made, capsys):
    assert verify(made, folder(made.root, 1)) == 0
    page = capsys.readouterr().out
    assert page.startswith("PROVED, AND ACCEPTED\n")
    assert max(map(len, page.splitlines())) <= 80
    for words in (
        "What its signed manifest says",
        "task pick-cup, in cell daylight, scene kitchen-1",
        "The verdict in force",
        "What was checked",
        "Judging again from the evidence gives the same verdict",
        "What this does not show",
        "a claim",
        made.spec.digest,
        made.spool.key.key_id,
        made.signer.key_id,
    ):
        assert words in page
    assert "FAILS" not in page
    assert "not checked  " not in page


def test_the_page_of_a_rejected_episode_gives_the_reasons(made, capsys):
    assert verify(made, folder(made.root, 2)) == 1
    page = capsys.readouterr().out
    assert page.startswith("PROVED, AND REJECTED\n")
    assert "picture.frozen: wrist_left:" in page


def test_the_page_of_an_altered_episode_says_what_fails_and_trusts_no_word_of_it(made, rig, capsys):
    path = folder(rig, 1) / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"scene":"kitchen-1"', b'"scene":"kitchen-2"'))
    assert verify(made, folder(rig, 1)) == 1
    page = capsys.readouterr().out
    assert page.startswith("NOT PROVED: A CHECK FAILS\n")
    assert "FAILS        The rig's key signed the manifest" in page
    assert "was changed after it was signed" in page
    assert "kitchen-2" not in page.replace("scene kitchen-2", "", 1)
    assert "Nothing that can be relied on" in page


def test_without_a_chain_the_page_says_what_was_not_checked_and_why(made, tmp_path, capsys):
    copy = shutil.copytree(folder(made.root, 1), tmp_path / "copy")
    assert verify(made, copy) == 3
    page = capsys.readouterr().out
    assert page.startswith("NOT PROVED: SOMETHING COULD NOT BE CHECKED\n")
    assert page.count("not checked  ") == 5  # its name, and four of the chain
    assert "no chain was given" in page
    assert verify(made, copy, "--chain", made.spool.chain.path) == 0


def test_many_are_a_table_with_a_summary(made, rig, capsys):
    (folder(rig, 1) / "evidence.mcap").write_bytes(b"x")
    assert verify(made, made.root, rig / "spool" / "accepted", "--no-footage") == 1
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    assert " accepted" in page
    assert "picture.frozen" in page
    assert "file:evidence.mcap:" in page
    assert "       1  proved and rejected" in page
    assert "       1  a check fails" in page
    assert "       3  episodes in all" in page
    assert "left out, as asked" in page


def test_many_accepted_ones_are_counted_and_not_listed(made, capsys, monkeypatch):
    from firsthand_edge.cli import proof_page

    monkeypatch.setattr(proof_page, "SHOWN", 0)
    assert verify(made, made.root) == 1
    page = capsys.readouterr().out
    assert folder(made.root, 1).name not in page
    assert "1 proved and accepted, not listed here" in page


def test_json_is_the_documented_form(made, capsys):
    assert verify(made, made.root, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    proof = Proof.model_validate(document)
    assert document["schema"] == "firsthand.proof/1"
    assert document["exit_status"] == 1
    assert (proof.summary.accepted, proof.summary.rejected) == (1, 1)
    assert proof.keys == (made.key,)


def test_what_was_withdrawn_is_no_success(made, rig, capsys):
    from firsthand_edge.spool.spool import open_spool

    spool = open_spool(rig, create=False)
    spool.remove(spool.find("1"), Event.WITHDRAWN, "asked for by the contributor")
    assert verify(made, folder(rig, 1)) == 1
    page = capsys.readouterr().out
    assert page.startswith("TAKEN BACK\n")
    assert "asked for by the contributor" in page


def test_signers_are_asked_for(made, capsys):
    assert verify(made, folder(made.root, 1), "--signer", made.signer.public.hex()) == 0
    other = KeyPair.generate()
    assert verify(made, folder(made.root, 1), "--signer", made.signer.public.hex(), "--signer", other.public.hex()) == 1
    assert other.key_id in capsys.readouterr().out


def test_a_key_may_be_a_file(made, capsys):
    spec = str(made.root / "spec.toml")
    key = made.root / "keys" / "rig.pub"
    arguments = ["episodes", "verify", str(folder(made.root, 1)), "--spec", spec, "--key"]
    assert run([*arguments, str(key)]) == 0
    assert run([*arguments, str(made.root / "keys" / "rig.key")]) == 2
    assert "private key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"PATH": None}, 2, "name the episodes"),
        ({"PATH": "nowhere"}, 2, "nowhere is not there"),
        ({"--key": None}, 2, "--key"),
        ({"--key": "12"}, 2, "12"),
        ({"--key": "g" * 64}, 2, "g" * 64),
        ({"--spec": None}, 2, "--spec"),
        ({"--spec": "nowhere.toml"}, 4, "nowhere.toml"),
        ({"--spec": __file__}, 4, "test_verify.py"),
        ({"--chain": "nowhere.jsonl"}, 2, "nowhere.jsonl"),
        ({"--jobs": "0"}, 2, "--jobs 0"),
        ({"--jobs": "many"}, 2, "many"),
        ({"--signer": "nobody"}, 2, "nobody"),
        ({"--what": "x"}, 2, "--what"),
    ],
)
def test_bad_input_is_one_sentence(made, capsys, change, status, words):
    given = {
        "PATH": str(made.root),
        "--key": made.key,
        "--spec": str(made.root / "spec.toml"),
        **change,
    }
    arguments = [] if given["PATH"] is None else [given["PATH"]]
    for name, value in given.items():
        if name.startswith("--") and value is not None:
            arguments += [name, value]
    assert run(["episodes", "verify", *arguments]) == status
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert "Traceback" not in said.err


def test_the_whole_command_with_workers_in_a_process_of_its_own(made, rig):
    """More episodes than one process takes, through the script that people start: one of them four times."""
    for number in range(4):
        shutil.copytree(folder(made.root, 1), rig / "many" / str(number) / folder(made.root, 1).name)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "firsthand_edge.cli",
            "episodes",
            "verify",
            *map(str, (rig / "many").iterdir()),
            "--key",
            made.key,
            "--spec",
            str(made.root / "spec.toml"),
            "--chain",
            str(made.spool.chain.path),
            "--jobs",
            "2",
        ],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"       1  proved and accepted" in done.stdout
    assert b"       3  a check fails; 3 of them only as copies of another" in done.stdout
    assert b"once: lies here twice: also at" in done.stdout
