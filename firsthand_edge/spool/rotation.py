"""Giving a rig a new key, so that a crash at any instant leaves one key in force and one that can go on.

The order, all of it with the chain held: the new private key is made durable as `next.key`; a row of the chain, signed
by the old key, makes it the rig's; `next.key` becomes `rig.key`, and the old private key is overwritten. Whoever opens
the spool after a crash asks the chain: where the row is durable the rest is done, where it is not the rotation never
happened and `next.key` is destroyed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from firsthand_edge.durable import PART, disk_errors, fsync_folder, make_folder
from firsthand_edge.errors import ConfigInvalid, UsageError
from firsthand_edge.spec.keys import NEXT, RIG, KeyPair, keys_held, private_path, public_path
from firsthand_edge.spool.chain import held_chain
from firsthand_edge.spool.chain_index import ChainIndex
from firsthand_edge.spool.restart import agree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from firsthand_edge.spool.keyring import KeyRing, RingKey
    from firsthand_edge.spool.restart import Found
    from firsthand_edge.spool.spool import Spool

__all__ = ["KEY_HOLDERS", "Rotation", "finish_rotation", "key_unused", "rotate", "unfinished"]

KEY_HOLDERS: Final = {"captured.lock": "the daemon (captured)", "uploadd.lock": "the sender (uploadd)"}
"""Locks in `run/` of the processes that hold the rig's key for as long as they run."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation did."""

    row: int
    """Number of the row that records it: the last one of the old key."""
    old: RingKey
    new: RingKey
    found: tuple[Found, ...]
    """What was brought to agree before, as after a crash."""


@contextmanager
def key_unused(state_dir: Path) -> Iterator[None]:
    """Keeps a rig's processes from running meanwhile. Raises UsageError when one runs or there is no rig, DiskError."""
    if not (state_dir / "spool").is_dir():
        raise UsageError(f"{state_dir} holds no spool; name the state directory of a rig with --state")
    run = state_dir / "run"
    with ExitStack() as held:
        for name, who in KEY_HOLDERS.items():
            path = run / name
            with disk_errors(f"{path} cannot be used"):
                make_folder(run)
                lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                held.callback(os.close, lock)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise UsageError(
                        f"{who} runs on {state_dir} and holds its key ({path}); stop it, then rotate"
                    ) from None
        yield


def rotate(spool: Spool, keys: Path) -> Rotation:
    """Makes a new key the rig's and destroys the old private key. `spool` is of the old key, and of no use afterwards.

    Every step that a crash cut short is finished first, so nothing that the old key signed is left without its row.

    Args:
        spool: Of the rig; no other process of the rig runs (`key_unused`).
        keys: The folder of the rig's key.

    Raises:
        KeyRotated: somebody else rotated it just now.
        ChainBroken: the chain is not whole; restore it first.
        DiskFull, DiskError: the disk refuses; whoever opens the spool next finishes it, or finds that nothing happened.
    """
    with spool.chain.locked() as chain:
        found = agree(spool, chain)
        spool.chain.require_whole()  # restored from a copy, it would lack the row of the new key
        old = spool.chain.keyring()
        with disk_errors(f"a new key cannot be made in {keys}"):
            _settle(keys, old)
            new = KeyPair.generate()
            new.write_private(private_path(keys, NEXT))
        row = chain.append_rotation(new)
        ring = old.after(row)
        with disk_errors(f"the new key cannot be put in its place in {keys}; the next start does it"):
            _install(keys, new)
    return Rotation(row.n, old.keys[-1], ring.keys[-1], tuple(found))


def unfinished(keys: Path) -> bool:
    """Whether a rotation was begun and not ended, or is under way. Raises DiskError."""
    with disk_errors(f"{keys} cannot be read"):
        return private_path(keys, NEXT).exists() or bool(_parts(keys))


def finish_rotation(keys: Path, chain_path: Path) -> list[str]:
    """Finishes or undoes a rotation that a crash cut short; waits for one that is under way.

    Returns:
        What was done, in sentences.

    Raises:
        ConfigInvalid: neither key is the one that the chain says; nothing was changed.
        DiskFull, DiskError: the disk refuses.
    """
    with disk_errors(f"{chain_path} cannot be read"):
        if not chain_path.exists():
            return []  # no row ever named a key, so nothing tells which of two it is
    with held_chain(chain_path) as (descriptor, torn):
        index = ChainIndex()
        with disk_errors("a rotation of the rig's key that was cut short cannot be finished"):
            index.follow(descriptor)
            said = [] if index.ring is None else _settle(keys, index.ring)
        return said if torn is None else [torn, *said]


def _settle(keys: Path, ring: KeyRing) -> list[str]:
    """Leaves one private key: the one in force. The chain is held."""
    for part in _parts(keys):
        _destroy(part)
    path = private_path(keys, NEXT)
    if not path.exists():
        return []
    waiting = KeyPair.load(keys, NEXT)
    if waiting.public == ring.current:
        _install(keys, waiting)
        return [f"a crash had cut the rotation to key {waiting.key_id} short after its row; now it is the rig's key"]
    if KeyPair.load(keys, RIG).public != ring.current:
        raise ConfigInvalid(
            str(keys),
            [f"holds neither in rig.key nor in next.key the key in force, {ring.keys[-1].key_id}; restore that one"],
        )
    _destroy(path)
    return [f"a crash had cut the rotation to key {waiting.key_id} short before its row; it never was the rig's key"]


def _install(keys: Path, new: KeyPair) -> None:
    """Makes `next.key` the rig's key; what was there is overwritten once nothing names it any more."""
    rig = private_path(keys)
    with keys_held(keys):
        old = os.open(rig, os.O_RDWR | os.O_CLOEXEC) if rig.exists() else None
        try:
            private_path(keys, NEXT).replace(rig)
            fsync_folder(keys)
            if old is not None:
                _overwrite(old)
        finally:
            if old is not None:
                os.close(old)
        new.write_public(public_path(keys))


def _destroy(path: Path) -> None:
    """Removes a private key. A disk that writes elsewhere, as flash does, may keep the old blocks for a while."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        path.unlink()
        fsync_folder(path.parent)
        _overwrite(descriptor)
    finally:
        os.close(descriptor)


def _overwrite(descriptor: int) -> None:
    os.pwrite(descriptor, bytes(os.fstat(descriptor).st_size), 0)
    os.fsync(descriptor)


def _parts(keys: Path) -> list[Path]:
    """New private keys that were never finished. They are written with the chain held only."""
    return sorted(keys.glob(f".{NEXT}.key.*{PART}"))
