"""A chain that is broken: what was taken back by a row that is lost is not promoted, and nothing leaves by it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand_edge.errors import ChainBroken, EpisodeDamaged
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool import soundness
from firsthand_edge.spool.chain import Chain, Event
from firsthand_edge.spool.episode import Episode, Standing
from firsthand_edge.spool.restart import finish_steps, restart
from firsthand_edge.spool.rotation import rotate
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from firsthand_edge.upload.directory import DirectoryStore
from firsthand_edge.upload.uploader import Uploader
from tests.spool.forging import forge, grown
from tests.spool.takes import TORN, judged, sealed, torn, verdict

KEY = KeyPair.generate()
CHANGE = Callable[[list[bytes]], list[bytes]]


def another_episode(lines: list[bytes]) -> list[bytes]:
    """One byte of the last row, in the id of the episode that it speaks of."""
    return [*lines[:-1], lines[-1].replace(b'"episode":"sim', b'"episode":"tim')]


def unreadable(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], b"x" + lines[-1][1:]]


def old_row_again(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-2]]


def middle_row_gone(lines: list[bytes]) -> list[bytes]:
    return [*lines[:1], *lines[2:]]


BREAKS = pytest.mark.parametrize(
    ("change", "line"),
    [(another_episode, 4), (unreadable, 4), (old_row_again, 5), (middle_row_gone, 2)],
)


def edit(path: Path, change: CHANGE) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().split(b"\n")[:-1])))


def rejected_again(spool: Spool) -> Episode:
    """Accepted, then judged again and rejected: rows 1 to 3."""
    episode = judged(spool)
    return spool.judge_done(episode, verdict(spool, episode, TORN))


def store_of(tmp_path: Path) -> DirectoryStore:
    (tmp_path / "store").mkdir(exist_ok=True)
    return DirectoryStore(tmp_path / "store")


@BREAKS
@pytest.mark.parametrize("look", [restart, finish_steps])
def test_nothing_is_promoted_and_nothing_leaves(
    spool: Spool, tmp_path: Path, change: CHANGE, line: int, look: Callable[[Spool], list[object]]
) -> None:
    bad = rejected_again(spool)
    edit(spool.chain.path, change)
    for spool_now in (spool, Spool(spool.root, spool.key)):
        found = restart(spool_now) if look is restart else finish_steps(spool_now)
        assert found[0].what == "chain_broken"
        assert f"broken at line {line}," in found[0].sentence
        assert spool_now.find(bad.id).state in {State.REJECTED, State.ASIDE, State.TORN, State.SEALED}
        done = Uploader(spool_now, store_of(tmp_path)).run_once()
        assert (done.uploaded, done.reported) == ([], [])
        assert "chain" in {name for name, _ in done.failures}
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert list(spool.root.rglob("episode.mcap")), "what was recorded is lost"


@BREAKS
def test_takes_are_recorded_and_rejected_meanwhile_and_accepted_once_it_is_restored(
    spool: Spool, tmp_path: Path, change: CHANGE, line: int
) -> None:
    rejected_again(spool)
    copy = spool.chain.path.read_bytes()
    edit(spool.chain.path, change)
    assert spool.chain.broken() is not None
    good, bad = sealed(spool), judged(spool, TORN)
    assert bad.state is State.REJECTED
    with pytest.raises(ChainBroken, match=f"broken at line {line},.*nothing is accepted") as caught:
        spool.judge_done(good, verdict(spool, good))
    assert caught.value.exit_status == 6
    assert spool.find(good.id).state is State.SEALED
    with pytest.raises(ChainBroken):
        spool.remove(bad, Event.EXPIRED, "its retention ended")
    assert spool.remove(judged(spool, TORN), Event.WITHDRAWN, "asked").state is State.GONE
    assert spool.remove(judged(spool, TORN), Event.DISCARDED, "asked").state is State.GONE
    spool.chain.path.write_bytes(copy)
    now = Spool(spool.root, spool.key)
    restart(now)
    good = now.find(good.id)
    assert now.judge_done(good, verdict(now, good)).state is State.ACCEPTED
    assert Uploader(now, store_of(tmp_path)).run_once().uploaded == [good.id]


@pytest.mark.parametrize("back", [State.SEALED, State.REJECTED])
def test_no_folder_moves_to_where_it_would_leave(spool: Spool, back: State) -> None:
    """The row that accepts it is there; the one that took it back may have been the one that is broken."""
    rejected_again(spool)
    good = judged(spool, TORN)
    good = spool.judge_done(good, verdict(spool, good))
    sent = spool.uploaded(judged(spool), {"store": "test"})
    copy = spool.chain.path.read_bytes()
    for episode in (good, sent):
        episode.path.rename(spool.root / back / episode.id)
    edit(spool.chain.path, middle_row_gone)
    for _ in range(2):
        assert [found.what for found in restart(spool) if found.episode in {good.id, sent.id}] == ["held", "held"]
        assert [spool.find(episode.id).state for episode in (good, sent)] == [back, back]
    spool.chain.path.write_bytes(copy)
    restart(spool)
    assert [spool.find(episode.id).state for episode in (good, sent)] == [State.ACCEPTED, State.UPLOADED]


def test_a_verdict_that_is_ahead_of_a_broken_chain_waits(spool: Spool) -> None:
    rejected_again(spool)
    good, bad = sealed(spool), sealed(spool)
    (good.path / "verdict.json").write_bytes(verdict(spool, good).document(spool.key))
    (bad.path / "verdict.json").write_bytes(verdict(spool, bad, TORN).document(spool.key))
    copy = spool.chain.path.read_bytes()
    edit(spool.chain.path, middle_row_gone)
    assert {"chain_broken", "held", "step_finished"} <= {found.what for found in restart(spool)}
    assert [spool.find(e.id).state for e in (good, bad)] == [State.SEALED, State.REJECTED]
    spool.chain.path.write_bytes(copy)
    restart(spool)
    assert spool.find(good.id).state is State.ACCEPTED


def test_a_key_is_not_rotated_over_a_broken_chain(spool: Spool, tmp_path: Path) -> None:
    """The restored copy would lack the row of the new key, and the old one would be destroyed."""
    rejected_again(spool)
    edit(spool.chain.path, middle_row_gone)
    with pytest.raises(ChainBroken):
        rotate(spool, tmp_path / "keys")
    assert KeyPair.load(tmp_path / "keys").public == spool.key.public


# ---- rows and documents that are signed and do not belong


def test_a_judgement_counts_once_and_in_its_order(spool: Spool) -> None:
    rows = spool.chain.rows(rejected_again(spool).id)
    standing = Standing.of(rows)
    assert (standing.state, standing.judgements, standing.rejected) == (State.REJECTED, 2, True)
    assert not any(standing.takes(row) for row in rows)
    assert Standing.of([*rows, rows[1], rows[0]]) == standing
    assert Standing.of([rows[0], rows[2]]) == Standing.of(rows[:1])


def test_an_old_row_that_fits_its_place_moves_nothing(spool: Spool) -> None:
    """As somebody would write it who has the key: numbered and linked, with the judgement of an earlier one."""
    episode = rejected_again(spool)
    body = dict(spool.chain.rows(episode.id)[1].body)
    forge(spool.chain.path, spool.key, event="judged", episode=episode.id, body=body)
    assert spool.chain.broken() is None
    with pytest.raises(EpisodeDamaged, match="repeats an earlier one"):
        spool.standing(episode)
    assert [found.what for found in restart(spool)] == ["damaged"]
    assert spool.find(episode.id).state is State.ASIDE


def test_a_copy_of_an_earlier_verdict_promotes_nothing(spool: Spool) -> None:
    episode = rejected_again(spool)
    shutil.copy(episode.path / "verdict.json", episode.path / "verdict-3.json")
    [found] = restart(spool)
    assert found.what == "held"
    assert "judge it again" in found.sentence
    assert spool.find(episode.id).state is State.REJECTED
    assert (episode.path / "verdict-3.json.aside").exists()
    assert restart(spool) == []
    assert spool.judge_done(episode, verdict(spool, episode)).state is State.ACCEPTED


@pytest.mark.parametrize("dropped", [False, True])
def test_a_row_cut_off_the_end_promotes_nothing(spool: Spool, *, dropped: bool) -> None:
    """What is left is a whole chain; the folder tells that rows were lost."""
    episode = rejected_again(spool)
    edit(spool.chain.path, lambda lines: lines[:-1])
    if dropped:
        (episode.path / "verdict-2.json").unlink()
    assert spool.chain.broken() is None
    [found] = restart(spool)
    assert (found.what, "rows were lost" in found.sentence) == ("damaged", True)
    assert spool.find(episode.id).state is State.ASIDE


def test_a_row_without_its_rename_still_makes_a_rejected_one_accepted(spool: Spool) -> None:
    episode = judged(spool, TORN)
    episode = spool.judge_done(episode, verdict(spool, episode))
    episode.path.rename(spool.root / "rejected" / episode.id)
    assert [found.what for found in restart(spool)] == ["step_finished"]
    assert spool.find(episode.id).state is State.ACCEPTED


def test_torn_ones_stay_whatever_is_broken(spool: Spool) -> None:
    episode = torn(spool)
    edit(spool.chain.path, unreadable)
    restart(spool)
    assert (spool.find(episode.id).path / "episode.mcap").exists()


# ---- how it is looked at


def test_it_is_followed_as_it_grows(tmp_path: Path) -> None:
    chain = grown(tmp_path / "chain.jsonl", KEY, 3)
    assert chain.broken() is None
    grown(chain.path, KEY, 2, first=3)
    assert chain.broken() is None
    forge(chain.path, KeyPair.generate())
    for _ in range(2):
        found = chain.broken()
        assert found is not None
        assert (found.line, found.why) == (7, "is not as the key in force signed it")
    grown(chain.path, KEY, 1, first=9)
    assert chain.broken() == found
    assert Chain(chain.path, KEY).broken() == found


@pytest.mark.parametrize(
    ("changes", "why"), [({"n": 3}, "is row 3 where row 4 belongs"), ({"prev": "blake3:0"}, "does not continue")]
)
def test_a_row_that_is_signed_and_does_not_fit_its_place(tmp_path: Path, changes: dict[str, object], why: str) -> None:
    chain = grown(tmp_path / "chain.jsonl", KEY, 3)
    forge(chain.path, KEY, **changes)  # type: ignore[arg-type]
    found = chain.broken()
    assert found is not None
    assert (found.line, why in found.why) == (5, True)


def test_only_what_was_appended_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = grown(tmp_path / "chain.jsonl", KEY, 20)
    assert chain.broken() is None
    seen = []
    real = soundness.read_row
    monkeypatch.setattr(soundness, "read_row", lambda line: seen.append(line) or real(line))
    assert chain.broken() is None
    grown(chain.path, KEY, 1, first=20)
    assert chain.broken() is None
    assert len(seen) == 1
    assert chain.broken(anew=True) is None
    assert len(seen) == 23


def test_without_a_key_s_row_it_is_broken_and_without_a_file_it_is_not(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "chain.jsonl", KEY)
    assert chain.broken() is None
    grown(chain.path, KEY, 2)
    edit(chain.path, lambda lines: lines[1:])
    found = chain.broken()
    assert found is not None
    assert (found.line, "proves no key" in found.why) == (1, True)
