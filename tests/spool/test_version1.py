"""A spool as the first version of this software left it: everything in it is read, goes on, and is never rewritten.

`version1` was made by that version. Its key was made from fixed bytes; it signs nothing else.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.chain_check import check_chain
from firsthand_edge.spool.folder_check import check_folders
from firsthand_edge.spool.reject_log import FIELDS
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import VerdictDocument
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader
from tests.spool.takes import TORN, judged, verdict

KEY = KeyPair(Ed25519PrivateKey.from_private_bytes(b"first version of this software.."))


@pytest.fixture
def old(tmp_path: Path) -> Spool:
    shutil.copytree(Path(__file__).parent / "version1", tmp_path / "spool")
    return Spool(tmp_path / "spool", KEY)


def test_chain_and_folders_are_good(old: Spool) -> None:
    checked = check_chain(old.chain.path.read_bytes(), KEY.public)
    assert checked.report.good
    assert check_folders(old.root, old.chain.path, checked.rows, checked.keyring).findings == ()
    assert restart(old) == []
    assert [episode.state for episode in old.episodes()] == [
        State.UPLOADED,
        State.REJECTED,
        State.ACCEPTED,
        State.REJECTED,
        State.SEALED,
        State.TORN,
    ]


def test_documents_are_read_with_what_they_do_not_say_left_open(old: Spool) -> None:
    committed = old.committed(old.find("2"))
    assert (committed.manifest.schema_, committed.manifest.capture) == ("firsthand.manifest/1", None)
    found = committed.verdict
    assert found is not None
    assert (found.schema_, found.cell, found.accepted) == ("firsthand.verdict/1", None, False)
    assert "recapture" not in found.reasons[0]
    with pytest.raises(ValueError, match="never written again"):
        found.document(KEY)


@pytest.mark.parametrize(("old_bytes", "new"), [(b'"core"', b'"cell":null,"core"'), (b"reasons", b"raisons")])
def test_nothing_of_a_later_version_stands_in_an_old_verdict(old: Spool, old_bytes: bytes, new: bytes) -> None:
    data = (old.find("2").path / "verdict.json").read_bytes()
    with pytest.raises(ValueError, match=r"does not fit firsthand\.verdict/1|canonical"):
        VerdictDocument.read(data.replace(old_bytes, new))


def test_judging_again_gives_the_same_as_far_as_both_versions_say_it(old: Spool) -> None:
    episode = old.find("2")
    before = old.committed(episode).verdict
    assert before is not None
    fields = {name: value for name, value in before.model_dump(by_alias=True).items() if name != "schema"}
    again = VerdictDocument(
        **{**fields, "cell": "daylight", "reasons": [{**reason, "recapture": True} for reason in before.reasons]}
    )
    assert again.schema_ == "firsthand.verdict/2"
    assert again.same_as(before)
    assert before.same_as(again)
    assert not again.model_copy(update={"core": "0.2.0"}).same_as(before)


def test_every_episode_goes_on(old: Spool, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    sealed, torn = old.find("5"), old.find("6")
    old.judge_done(sealed, verdict(old, sealed))
    old.judge_done(torn, verdict(old, torn, TORN))
    judged(old)
    done = Uploader(old, DirectoryStore(tmp_path / "store")).run_once()
    assert (len(done.uploaded), len(done.reported), done.failures) == (3, 3, [])
    old.remove(old.find("1"), Event.WITHDRAWN, "asked")
    checked = check_chain(old.chain.path.read_bytes(), KEY.public)
    assert checked.report.good
    assert check_folders(old.root, old.chain.path, checked.rows, checked.keyring).findings == ()
    assert restart(old) == []


def test_an_old_verdict_whose_row_a_crash_prevented_is_followed_forward(old: Spool) -> None:
    """The software was renewed between crash and start."""
    lines = old.chain.path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"rejudged"' in line)
    data = b"".join(lines[:at])
    names = {episode.id for episode in old.episodes() if episode.id.encode() in data}
    for episode in old.episodes():
        if episode.id not in names:
            shutil.rmtree(episode.path)
    old.chain.path.write_bytes(data)
    assert [found.what for found in restart(old)] == ["step_finished"]
    row = old.chain.rows(old.find("2").id)[-1]
    assert row.event == "rejudged"
    [reason] = json.loads(row.line)["body"]["reasons"]
    assert set(reason) == set(FIELDS)
    assert (reason["recapture"], reason["cell"], reason["rule"]) == (None, None, "sync.ceiling/1")
