"""`firsthand-edge keys`: who signs. A rig's key is made on its first start; a signer of specs makes one."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path  # noqa: TC003 - cyclopts resolves annotations at run time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.episodes import DEFAULT_STATE, State
from firsthand_edge.errors import CannotJudge

if TYPE_CHECKING:
    from firsthand_edge.spool.keyring import KeyRing

__all__ = ["new", "rotate", "show"]

WIDTH = 80


def new(directory: Annotated[Path, Parameter(help="Folder for the two files; made if it is not there.")], /) -> int:
    """Makes a key pair for signing specs: a private file (mode 0600) and a public one. Replaces nothing."""
    from firsthand_edge.spec.keys import SIGNER, KeyPair, private_path, public_path

    key = KeyPair.create(directory)
    print(f"key      {key.key_id}")
    print(f"public   {key.public.hex()}")
    print(f"         in {public_path(directory, SIGNER)}: give this one to whoever is to check")
    print(f"private  {private_path(directory, SIGNER)}: keep it, show it to nobody; nothing can make it again")
    return 0


def show(*, state: State = DEFAULT_STATE, json_: Annotated[bool, Parameter(name="--json", negative="")] = False) -> int:
    """Shows the rig's public key, since which row of the chain it signs, and the keys before it.

    Reads the chain and public files only, never the private key. Exit status 0; 3 when there is no key yet, or the
    chain and the public file do not agree.
    """
    from firsthand_edge.spec.keys import key_id, public_key_of, public_path

    path = public_path(state / "keys")
    own = public_key_of(str(path)) if path.exists() else None
    ring = _ring(state)
    if ring is None and own is None:
        raise CannotJudge(f"{state} holds no key yet; a rig makes its own on its first start")
    current = own if ring is None else ring.current
    document: dict[str, Any] = {
        "schema": "firsthand.keys/1",
        "state": str(state),
        "key_id": key_id(current) if current is not None else None,
        "public_key": current.hex() if current is not None else None,
        "since_row": ring.keys[-1].since if ring is not None else None,
        "earlier": [
            {"key_id": one.key_id, "public_key": one.public.hex(), "since_row": one.since}
            for one in (ring.keys[:-1] if ring is not None else ())
        ],
        "public_file": own.hex() if own is not None else None,
    }
    print(json.dumps(document, indent=2) if json_ else "\n".join(_page(document)))
    if own is not None and own != current:
        raise CannotJudge(
            f"{path} holds key {key_id(own)}, which is not the one in force; the next start of the rig mends that if a "
            "rotation was cut short, else restore the rig's key"
        )
    return 0


def rotate(*, state: State = DEFAULT_STATE) -> int:
    """Gives the rig a new key. A row of the chain, signed by the old key, vouches for it.

    Neither the daemon nor the sender may run. The old private key is destroyed; all that it signed stays good.
    """
    from firsthand_edge.spec.keys import public_path
    from firsthand_edge.spool.rotation import key_unused, rotate
    from firsthand_edge.spool.spool import open_spool

    keys = state / "keys"
    with key_unused(state):
        done = rotate(open_spool(state, create=False), keys)
    for found in done.found:
        print(f"found    {found.sentence}")
    print(f"key      {done.new.key_id}, the rig's from row {done.new.since} of the chain on")
    print(f"public   {done.new.public.hex()}")
    print(f"         in {public_path(keys)}")
    print(f"before   {done.old.key_id}, for rows {done.old.since} to {done.row}; what it signed stays good")
    said = (
        "The old private key was overwritten and deleted, and nothing can make it again. A backup may still hold it, "
        "and flash may keep the old blocks for a while."
    )
    print("\n".join(textwrap.wrap(said, WIDTH)))
    return 0


def _ring(state: Path) -> KeyRing | None:
    """The keys of the rig's chain; None where there is no chain, or its first row proves none."""
    from firsthand_edge.durable import disk_errors
    from firsthand_edge.spool.chain import CHAIN_NAME
    from firsthand_edge.spool.keyring import ring_of

    path = state / "spool" / CHAIN_NAME
    with disk_errors(f"{path} cannot be read"):
        return ring_of(path.read_bytes()) if path.exists() else None


def _page(document: dict[str, Any]) -> list[str]:
    since = document["since_row"]
    lines = [
        f"key      {document['key_id']}" + ("" if since is None else f", since row {since} of the chain"),
        f"public   {document['public_key']}",
    ]
    for one in reversed(document["earlier"]):
        lines += [f"before   {one['key_id']}, since row {one['since_row']}", f"         {one['public_key']}"]
    return lines
