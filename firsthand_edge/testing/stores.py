"""The conformance suite of stores: what every implementation of `upload.store.Store` must do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from firsthand_edge.errors import StoreRefused
from firsthand_edge.upload.store import SourceChanged, StoreFile, UploadStopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from firsthand_edge.upload.store import Store

__all__ = ["StoreFailed", "check_store"]

SIDE: Final = "episodes"
LARGE: Final = 5 * (1 << 20) + 7
"""Bytes; more than one block of any sender."""


class StoreFailed(AssertionError):
    """A store does not do what stores must do."""


def check_store(make_store: Callable[[], Store], scratch: Path) -> None:
    """Runs every check, each against a store that `make_store` makes.

    Args:
        make_store: Makes a new, empty store with every call.
        scratch: An empty folder for local files.

    Raises:
        StoreFailed: with the sentence of the first check that failed.
    """
    for check in (
        _keeps_what_it_is_given,
        _same_again_is_nothing,
        _other_bytes_are_refused,
        _sides_and_episodes_are_apart,
        _changed_source_is_not_kept,
        _goes_on_after_a_stop,
        _holds_is_proof,
        _stops_before_the_last_file,
        _takes_back,
        _names_cannot_leave,
        _chain_only_grows,
    ):
        folder = scratch / check.__name__.strip("_")
        folder.mkdir()
        check(make_store(), folder)


def _need(condition: object, sentence: str) -> None:
    if not condition:
        raise StoreFailed(sentence)


def _file(folder: Path, name: str, data: bytes) -> StoreFile:
    path = folder / name
    path.write_bytes(data)
    return StoreFile(name, path, len(data), blake3(data).hexdigest())


def _refuses(what: Callable[[], object], sentence: str) -> None:
    try:
        what()
    except StoreRefused:
        return
    raise StoreFailed(sentence)


def _keeps_what_it_is_given(store: Store, folder: Path) -> None:
    files = [_file(folder, "a.bin", b"a" * LARGE), _file(folder, "empty.bin", b""), _file(folder, "m.json", b"{}\n")]
    receipt = store.put("e-1", files, side=SIDE)
    _need(receipt.store == store.name, "the receipt names another store")
    _need((receipt.episode, receipt.side) == ("e-1", SIDE), "the receipt names another episode or side")
    _need(receipt.files == tuple(files), "the receipt does not list what was put")
    _need(store.holds("e-1", files, side=SIDE), "the store does not hold what it gave a receipt for")
    _need(all(f.path.stat().st_size == f.bytes for f in files), "putting changed the local files")


def _same_again_is_nothing(store: Store, folder: Path) -> None:
    files = [_file(folder, "a.bin", b"same"), _file(folder, "m.json", b"{}\n")]
    first = store.put("e-1", files, side=SIDE)
    _need(store.put("e-1", files, side=SIDE) == first, "putting the same bytes again gives another receipt")


def _other_bytes_are_refused(store: Store, folder: Path) -> None:
    first = _file(folder, "a.bin", b"first")
    store.put("e-1", [first], side=SIDE)
    other = folder / "other"
    other.mkdir()
    second = _file(other, "a.bin", b"other")
    _refuses(lambda: store.put("e-1", [second], side=SIDE), "other bytes under one name were taken")
    _need(store.holds("e-1", [first], side=SIDE), "other bytes under one name replaced the first ones")


def _sides_and_episodes_are_apart(store: Store, folder: Path) -> None:
    file = _file(folder, "a.bin", b"apart")
    store.put("e-1", [file], side=SIDE)
    _need(not store.holds("e-2", [file], side=SIDE), "the store claims to hold an episode that it was never given")
    _need(not store.holds("e-1", [file], side="rejected"), "the store claims to hold a side that it was never given")


def _changed_source_is_not_kept(store: Store, folder: Path) -> None:
    whole = _file(folder, "a.bin", b"b" * LARGE)
    for data in (b"b" * (LARGE - 1), b"b" * (LARGE + 1), b"b" * (LARGE - 7) + bytes(7)):
        whole.path.write_bytes(data)
        try:
            store.put("e-1", [whole], side=SIDE)
        except SourceChanged:
            pass
        else:
            raise StoreFailed(f"a source of {len(data)} other bytes was taken for the one that was announced")
        _need(
            not store.holds("e-1", [replace(whole, bytes=len(data))], side=SIDE), "bytes of a changed source were kept"
        )
    whole.path.write_bytes(b"b" * LARGE)
    store.put("e-1", [whole], side=SIDE)
    _need(store.holds("e-1", [whole], side=SIDE), "after a changed source the right one is not taken")


def _goes_on_after_a_stop(store: Store, folder: Path) -> None:
    files = [
        _file(folder, "a.bin", b"c" * LARGE),
        _file(folder, "b.bin", b"d" * LARGE),
        _file(folder, "m.json", b"{}\n"),
    ]
    asked = 0
    limit = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > limit

    while True:
        asked = 0
        try:
            store.put("e-1", files, side=SIDE, stopping=stopping)
        except UploadStopped:
            limit += 1
            _need(limit < 1000, "the store never gets to the end between stops")
            _need(not store.holds("e-1", files, side=SIDE), "a stopped call left everything there and said otherwise")
        else:
            break
    _need(limit > 0, "the store never asks whether to stop")
    _need(store.holds("e-1", files, side=SIDE), "after stops the store does not hold everything")


def _stops_before_the_last_file(store: Store, folder: Path) -> None:
    """Whoever learns while the footage is sent that it may not leave says so, and no manifest appears."""
    first, last = _file(folder, "a.bin", b"e" * LARGE), _file(folder, "m.json", b"{}\n")
    store.put("e-1", [first], side=SIDE)
    try:
        store.put("e-1", [first, last], side=SIDE, stopping=lambda: True)
    except UploadStopped:
        _need(not store.holds("e-1", [last], side=SIDE), "the last file appeared after the sender said stop")
    else:
        raise StoreFailed("a sender who said stop from the beginning was not heard")


def _takes_back(store: Store, folder: Path) -> None:
    files = [_file(folder, "a.bin", b"f" * LARGE), _file(folder, "m.json", b"{}\n")]
    _need(not store.retract("e-1", side=SIDE), "an empty store says that it removed something")
    for episode, side in (("e-1", SIDE), ("e-2", SIDE), ("e-1", "rejected")):
        store.put(episode, files, side=side)
    _need(store.retract("e-1", side=SIDE), "the store says that it held nothing of what it removed")
    _need(not any(store.holds("e-1", [file], side=SIDE) for file in files), "what was taken back is still there")
    _need(store.holds("e-2", files, side=SIDE), "another episode went too")
    _need(store.holds("e-1", files, side="rejected"), "the other side went too")
    _need(not store.retract("e-1", side=SIDE), "what was taken back is taken back once more")
    store.put("e-1", files[:1], side=SIDE)
    store.sweep("e-1")
    _need(store.holds("e-1", files[:1], side=SIDE), "a whole file was swept away")
    _need(store.retract("e-1", side=SIDE), "a part of an episode is not taken back")
    _need(not store.holds("e-1", files[:1], side=SIDE), "a part of an episode that was taken back is still there")
    store.put("e-1", files, side=SIDE)
    _need(store.holds("e-1", files, side=SIDE), "after it was taken back an episode is not kept again")


def _holds_is_proof(store: Store, folder: Path) -> None:
    file = _file(folder, "a.bin", b"proof")
    _need(not store.holds("e-1", [file], side=SIDE), "an empty store claims to hold something")
    store.put("e-1", [file], side=SIDE)
    _need(
        not store.holds("e-1", [replace(file, blake3=blake3(b"other").hexdigest())], side=SIDE), "holds ignores digests"
    )
    _need(not store.holds("e-1", [replace(file, bytes=6)], side=SIDE), "holds ignores sizes")


def _names_cannot_leave(store: Store, folder: Path) -> None:
    file = _file(folder, "a.bin", b"x")
    for name in ("../a.bin", "/a.bin", "..", "", "a/b", ".hidden"):
        bad = replace(file, name=name)
        _refuses(lambda bad=bad: store.put("e-1", [bad], side=SIDE), f"the name {name!r} was taken")  # type: ignore[misc]
        _refuses(lambda name=name: store.put(name, [file], side=SIDE), f"the episode {name!r} was taken")  # type: ignore[misc]
        _refuses(lambda name=name: store.retract(name, side=SIDE), f"the episode {name!r} was removed")  # type: ignore[misc]


def _chain_only_grows(store: Store, _folder: Path) -> None:
    store.mirror_chain("key", b"1\n2\n")
    store.mirror_chain("key", b"1\n2\n")
    store.mirror_chain("key", b"1\n2\n3\n")
    _refuses(lambda: store.mirror_chain("key", b"1\n2\n"), "a chain with its end cut off was taken")
    _refuses(lambda: store.mirror_chain("key", b"1\nX\n3\n4\n"), "a chain with a changed row was taken")
    store.mirror_chain("other", b"9\n")
