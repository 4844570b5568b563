"""Where episodes and chains are looked for."""

from __future__ import annotations

import shutil

from firsthand_edge.qa.places import find, is_spool, is_store, sources


def ids(found):
    return [place.folder.name for place in found.places]


def test_a_spool_is_found_by_its_root_its_state_a_folder_or_one_episode(pristine):
    everything = sorted(path.name for path in pristine.spool.glob("*/sim-01-*"))
    chain = (pristine.spool / "chain.jsonl",)
    for path in (pristine.root, pristine.spool):
        found = find([path])
        assert sorted(ids(found)) == everything
        assert {place.source.files for place in found.places} == {chain}
        assert all(place.source.own for place in found.places)
    accepted = find([pristine.spool / "accepted"])
    assert len(accepted.places) == 2
    [one] = find([pristine.folder(1)]).places
    assert (one.source.files, one.side, one.name) == (chain, "accepted", pristine.folder(1).name)


def test_a_store_is_found_by_its_root_and_its_sides(made, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(made.spool / "accepted", store / "episodes")
    shutil.copytree(made.spool / "rejected", store / "rejected")
    (store / "chains").mkdir()
    for name in ("a.jsonl", "b.jsonl", "notes.txt"):
        (store / "chains" / name).write_text("")
    assert (is_store(store), is_spool(store), is_spool(made.spool), is_store(made.spool)) == (True, False, True, False)
    copies = (store / "chains" / "a.jsonl", store / "chains" / "b.jsonl")
    for path, count in ((store, 3), (store / "episodes", 2), (store / "rejected", 1)):
        found = find([path])
        assert len(found.places) == count
        assert {place.source.files for place in found.places} == {copies}
        assert not any(place.source.own for place in found.places)


def test_only_the_usual_places_are_looked_at_for_a_chain(made, tmp_path):
    lone = shutil.copytree(made.folder(1), tmp_path / "deep" / "down" / "copy")
    (tmp_path / "deep" / "chain.jsonl").write_bytes((made.spool / "chain.jsonl").read_bytes())
    assert find([lone]).places[0].source.files == ()
    (lone.parent / "chain.jsonl").symlink_to(tmp_path / "deep" / "chain.jsonl")
    assert sources(lone.parent).files == ()
    [place] = find([lone], chain=lone.parent / "chain.jsonl").places
    assert place.source.files == (tmp_path / "deep" / "chain.jsonl",)
    assert place.name == made.folder(1).name  # by its manifest


def test_a_folder_of_copies_under_other_names_is_a_folder_of_episodes(made, tmp_path):
    for number in (1, 2):
        shutil.copytree(made.folder(number), tmp_path / "many" / f"copy-{number}")
    (tmp_path / "many" / "readme.txt").write_text("x")
    found = find([tmp_path / "many"])
    assert ids(found) == ["copy-1", "copy-2"]
    assert found.notes == [f"{tmp_path / 'many'}: 1 other name, no episodes, not looked at"]


def test_paths_are_shown_as_they_were_given(made, monkeypatch):
    from pathlib import Path

    monkeypatch.chdir(made.root)
    assert {place.shown.split("/")[0] for place in find([Path("spool")]).places} == {"spool"}
    assert find([Path("spool/accepted")]).places[0].shown.startswith("spool/accepted/sim-01-00000001-")
