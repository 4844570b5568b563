"""Whatever a stranger puts into a folder ends in a finding: never a trace, a hang, or a look at another folder."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import sys
from pathlib import Path

import pytest

from firsthand_edge import _core
from firsthand_edge.errors import DiskError, UsageError
from firsthand_edge.qa.places import find
from firsthand_edge.qa.proof import Outcome, Result
from firsthand_edge.qa.reading import DOCUMENT_BYTES
from firsthand_edge.spec.signing import document_bytes, sign_document
from firsthand_edge.spool.manifest import FileDigests
from tests.qa.conftest import failed, outcomes
from tests.qa.test_prove import made_of


def signed(made, document):
    """As a rig would sign it that is not to be trusted either."""
    from firsthand_edge.spec.keys import KeyPair

    return document_bytes(sign_document(document, KeyPair.load(made.root / "keys")))


def nested(depth, opening=b"[", closing=b"]"):
    return opening * depth + closing * depth


CONTENT = {
    "empty": b"",
    "zeros": bytes(500),
    "garbage": bytes(range(256)) * 30,
    "not an object": b"[]\n",
    "no fields": b"{}\n",
    "a number": b"1\n",
    "a float": b'{"schema":"firsthand.manifest/2","x":1.5}\n',
    "not a number": b'{"x":NaN}\n',
    "half a surrogate": b'{"x":"\\ud800"}\n',
    "a huge integer": b'{"x":' + b"9" * 5000 + b"}\n",
    "deep": nested(100_000),
    "less deep": nested(700) + b"\n",
    "deep objects": b'{"a":' * 400 + b"1" + b"}" * 400 + b"\n",
    "doubled keys": b'{"a":1,"a":1}\n',
    "too long": b'{"a":"' + b"x" * DOCUMENT_BYTES + b'"}\n',
    "another schema": b'{"schema":"firsthand.manifest/99"}\n',
    "truncated": b'{"schema":"firsthand.manif',
    "no UTF-8": b'{"a":"\xff"}\n',
    "many entries": b"[" + b"0," * 300_000 + b"0]\n",
}


def replaced(path: Path, how: str, elsewhere: Path) -> None:
    """Puts something else in the place of a file."""
    before = path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
        (path / "manifest.json").write_bytes(before)
    elif how == "a link to the same bytes":
        elsewhere.write_bytes(before)
        path.symlink_to(elsewhere)
    elif how == "a link to itself":
        path.symlink_to(path.name)
    elif how == "a link to nothing":
        path.symlink_to(elsewhere)
    elif how == "a pipe":
        os.mkfifo(path)
    elif how == "a device":
        path.symlink_to("/dev/zero")
    elif how != "nothing":
        path.write_bytes(CONTENT[how])


KINDS = (
    "nothing",
    "a folder",
    "a link to the same bytes",
    "a link to itself",
    "a link to nothing",
    "a pipe",
    "a device",
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", [*KINDS, *CONTENT])
@pytest.mark.parametrize("name", ["manifest.json", "verdict.json", "evidence.mcap", "episode.mcap"])
def test_anything_in_the_place_of_a_file_fails_and_stops_no_other(made, tmp_path, name, how):
    replaced(made.folder(1) / name, how, tmp_path / "elsewhere")
    proof = made.prove()
    assert outcomes(proof) == [Outcome.FAILED, Outcome.ACCEPTED, Outcome.REJECTED]
    checks = failed(proof.episodes[0])
    assert checks & {"manifest.form", "verdict.form", f"file:{name}"}
    assert all(check.found for check in proof.episodes[0].checks)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", [*KINDS, *CONTENT])
def test_anything_in_the_place_of_the_chain_proves_nothing(made, tmp_path, how):
    replaced(made.spool / "chain.jsonl", how, tmp_path / "elsewhere")
    found = set(outcomes(made.prove()))
    assert found <= {Outcome.FAILED, Outcome.UNKNOWN}
    if how in CONTENT:
        assert found == {Outcome.FAILED}


def test_a_link_to_an_episode_in_a_folder_of_episodes_is_not_followed(made, tmp_path):
    here = made.folder(1)
    moved = here.rename(tmp_path / here.name)
    here.symlink_to(moved)
    proof = made.prove()
    assert failed(proof.episodes[0]) == {"folder"}
    assert "is a link" in proof.episodes[0].check("folder").found
    assert made.prove(here, chain=made.spool / "chain.jsonl").exit_status == 0  # named by a person, it is


def test_nothing_outside_of_the_folder_is_opened(made, monkeypatch):
    folder = made.folder(1)
    document = json.loads((folder / "manifest.json").read_bytes())
    document.pop("signature")
    for name in ("../../../etc/passwd", "/etc/passwd", "..", "a/b", ""):
        document["files"][name] = {"bytes": 1, "blake3": "0" * 64, "crc64nvme": "0" * 16}
    (folder / "manifest.json").write_bytes(signed(made, document))
    made.prove(folder)  # what is imported late is imported now
    opened: list[str] = []
    watching = [True]

    def watch(event, arguments):
        if watching and event in {"open", "os.scandir", "os.listdir"} and isinstance(arguments[0], str | Path):
            opened.append(os.fspath(arguments[0]))

    def digest_file(path, before=_core.digest_file):
        opened.append(os.fspath(path))
        return before(path)

    sys.addaudithook(watch)  # stays for good, and watches nothing once the list is empty
    monkeypatch.setattr(_core, "digest_file", digest_file)
    try:
        [proof] = made.prove(folder).episodes
    finally:
        watching.clear()
    assert proof.outcome is Outcome.FAILED
    places = {os.path.dirname(path) for path in opened if "/rig/" in path or "passwd" in path}  # noqa: PTH120
    assert str(folder) in places
    assert places <= {str(folder), str(made.spool), str(folder.parent)}, places
    assert not [path for path in opened if "passwd" in path]


def test_evidence_that_is_replaced_between_its_digest_and_its_judgement_is_found(made, monkeypatch):
    from firsthand_edge.qa import again

    before = again.judgement

    def judgement(folder, manifest, digest):
        verdict = before(folder, manifest, digest)
        (folder / "evidence.mcap").write_bytes(b"as somebody would who waits for the moment")
        return verdict

    monkeypatch.setattr(again, "judgement", judgement)
    proof = made.one(1)
    assert failed(proof) == {"verdict.again", "evidence.binding"}
    assert "was replaced while it was judged" in proof.check("verdict.again").found


@pytest.mark.parametrize("value", [None, 5, [], {}, "x", [[]], {"a": {}}, True, 2**70, -1])
@pytest.mark.parametrize("name", ["manifest.json", "verdict.json"])
def test_a_signed_document_with_any_field_of_any_form_is_a_finding(made, name, value):
    path = made.folder(1) / name
    document = json.loads(path.read_bytes())
    document.pop("signature")
    for field in document:
        path.write_bytes(signed(made, {**document, field: value}))
        proof = made.one(1, footage=False)
        if document[field] != value:
            assert proof.outcome is Outcome.FAILED, field
        path.write_bytes(signed(made, {name: item for name, item in document.items() if name != field}))
        assert made.one(1, footage=False).outcome is Outcome.FAILED, field


def test_evidence_that_its_own_rig_signed_and_that_is_no_evidence_is_a_finding(rig, takes):
    """Whoever holds the rig's key can have any bytes judged: they give another verdict, or none, and never a trace."""
    seed = secrets.randbits(32)
    draw = random.Random(seed)  # noqa: S311 - damage, no secret
    evidence = takes[0].evidence
    for _ in range(25):
        episode = rig.begin(takes[0])
        data = bytearray((episode.path / "evidence.mcap").read_bytes())
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            data = data[: draw.randrange(len(evidence))]
        (episode.path / "evidence.mcap").write_bytes(bytes(data))
        manifest = rig.manifest(episode, takes[0])
        files = {**manifest.files, "evidence.mcap": FileDigests(**_core.digest_file(episode.path / "evidence.mcap"))}
        rig.spool.seal(episode, manifest.model_copy(update={"files": files}))
    proof = made_of(rig).prove()
    assert {e.outcome for e in proof.episodes} <= {Outcome.FAILED, Outcome.UNKNOWN}, seed
    for episode in proof.episodes:
        assert not [check for check in episode.checks if "made a check end" in check.found], seed


def test_a_check_that_ends_in_a_way_that_nobody_foresaw_fails_that_episode_alone(made, monkeypatch):
    from firsthand_edge.qa import again

    bad = made.folder(1).name
    before = again.judgement

    def judgement(folder, manifest, digest):
        if folder.name == bad:
            raise ZeroDivisionError("odd")
        return before(folder, manifest, digest)

    monkeypatch.setattr(again, "judgement", judgement)
    proof = made.prove()
    assert outcomes(proof) == [Outcome.FAILED, Outcome.ACCEPTED, Outcome.REJECTED]
    assert any("ZeroDivisionError: odd" in check.found for check in proof.episodes[0].checks)


def test_names_that_steer_a_terminal_are_shown_with_escapes(made):
    for name in ("\x1b[2J.txt", "bell\x07", "line\nfeed", b"no-utf8-\xff"):
        path = os.fsencode(made.folder(1)) + b"/" + os.fsencode(name)
        with open(path, "wb"):  # noqa: PTH123 - a name that is bytes
            pass
    found = made.one(1).check("others")
    assert found.result is Result.NOT_CHECKED
    assert "\\x1b[2J.txt" in found.found
    assert found.found.isprintable()


def test_folders_of_many_kinds_beside_the_episodes_are_told_and_not_read(made, tmp_path):
    (made.spool / "accepted" / "notes").mkdir()
    (made.spool / "accepted" / "x.txt").write_text("x")
    (made.spool / "recording" / "sim-01-00000009-0123456789abcdef").mkdir()
    proof = made.prove()
    assert len(proof.episodes) == 3
    assert any("2 other names" in note for note in proof.notes)
    assert any("1 in recording" in note for note in proof.notes)


@pytest.mark.parametrize("path", ["nowhere", "a-file", "empty"])
def test_a_path_that_is_no_episode_is_wrong_usage(tmp_path, path):
    (tmp_path / "a-file").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="name an episode's folder"):
        find([tmp_path / path])


def test_an_empty_spool_proves_nothing(rig):
    proof = made_of(rig).prove()
    assert (proof.summary.episodes, proof.exit_status) == (0, 3)


def test_an_episode_is_proved_once_however_often_it_is_named(made):
    folder = made.folder(1)
    assert len(made.prove(folder, folder, made.spool / "accepted").episodes) == 2


def test_a_copied_folder_is_found_at_both_places(made, tmp_path):
    copy = shutil.copytree(made.folder(1), tmp_path / "x" / made.folder(1).name)
    assert outcomes(made.prove(made.folder(1), copy)) == [Outcome.ACCEPTED, Outcome.FAILED]
    assert outcomes(made.prove(copy, made.folder(1))) == [Outcome.FAILED, Outcome.ACCEPTED]


@pytest.mark.parametrize("name", ["manifest.json", "verdict.json", "evidence.mcap", "."])
def test_what_this_user_may_not_read_is_not_checked_and_no_forgery(made, name, monkeypatch):
    """Root may read everything, so the operating system's refusal is put in its place."""
    refused = made.folder(1) / name
    real_open, real_digest, real_scan = os.open, _core.digest_file, os.scandir

    def denied(path: object) -> bool:
        return Path(str(path)) == refused

    def opened(path, *arguments, **keys):
        if denied(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *arguments, **keys)

    def digested(path):
        if denied(path):
            raise DiskError(f"{path}: Permission denied")
        return real_digest(path)

    def scanned(path):
        if denied(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_scan(path)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "scandir", scanned)
    monkeypatch.setattr(_core, "digest_file", digested)
    proof = made.one(1)
    assert failed(proof) == set()
    assert proof.outcome is Outcome.UNKNOWN
    assert any("Permission denied" in check.found for check in proof.checks)


def test_a_chain_that_this_user_may_not_read_ends_the_command(made, monkeypatch):
    real = os.open

    def opened(path, *arguments, **keys):
        if Path(str(path)).name == "chain.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **keys)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(DiskError, match=r"chain\.jsonl.*Permission denied.*give this user the right"):
        made.prove()
