"""`firsthand-edge episodes verify`: proof by a stranger, with nothing but the public key and the spec."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - cyclopts resolves annotations at run time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from firsthand_edge.qa.proof import Proof

__all__ = ["verify"]

Each = Parameter(negative="", consume_multiple=False)


def verify(
    paths: Annotated[tuple[Path, ...], Parameter(name="PATH")] = (),
    /,
    *,
    key: Annotated[tuple[str, ...], Each] = (),
    spec: Path | None = None,
    chain: Path | None = None,
    signer: Annotated[tuple[str, ...], Each] = (),
    footage: Annotated[bool, Parameter(name="--footage", negative="--no-footage")] = True,
    jobs: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Proves episodes with nothing but the rig's public key and the spec.

    Exit status: 0 every episode is proved and accepted; 1 a proof failed, or an episode is rejected or taken back; 2
    wrong usage; 3 something that counts could not be checked; 4 the spec is malformed or not there.

    Args:
        paths: An episode's folder, a folder of episodes, or the root of a spool, of a rig's state or of a store.
        key: Public key of the rig: 64 hex digits, or the file that holds them; once for each rig.
        spec: The spec that the episodes are to be measured against.
        chain: The rig's chain of events; by default the one that lies beside the episodes.
        signer: Public key that must have signed the spec, as `--key`; once for each party.
        footage: Read the footage too; without it, digests of the evidence alone are checked.
        jobs: Processes to share the work; as many as there are processors by default.
        json: Print one JSON object, `firsthand.proof/1`, instead of a page.
    """
    from firsthand_edge.config import read_file
    from firsthand_edge.errors import SpecInvalid, UsageError
    from firsthand_edge.qa.places import find
    from firsthand_edge.qa.prove_many import prove
    from firsthand_edge.qa.standard import Asked
    from firsthand_edge.spec.keys import public_key_of

    if not paths:
        raise UsageError("name the episodes to be proved: a folder of one, a folder of many, or the root of a store")
    if not key:
        raise UsageError("name the rig's public key with --key: 64 hex digits, or the file that holds them")
    if spec is None:
        raise UsageError("name the spec with --spec: a proof says what the episodes were measured against")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: at least one process is needed")
    if chain is not None and not chain.is_file():
        raise UsageError(f"--chain {chain} is not there; name the rig's chain.jsonl or a store's copy of it")
    asked = Asked(
        keys=tuple(dict.fromkeys(public_key_of(text) for text in key)),
        spec=read_file(spec, error=SpecInvalid),
        spec_place=str(spec),
        signers=tuple(dict.fromkeys(public_key_of(text) for text in signer)),
        footage=footage,
    )
    found = find(paths, chain=chain)
    proof = prove(found, asked, jobs=jobs, progress=_progress(len(found.places)))
    if json:
        from firsthand_edge.cli.output import write_document
        from firsthand_edge.qa.proof import proof_bytes

        write_document(proof_bytes(proof))
    else:
        _print(proof)
    return proof.exit_status


def _progress(total: int) -> Callable[[int], None]:
    """Counts on a terminal's standard error, so that a long proof is seen to go on."""
    if total < 100 or not sys.stderr.isatty():
        return lambda _done: None

    def say(done: int) -> None:
        end = "\r" if done < total else "\r\x1b[K"
        print(f"{done} of {total} episodes" if done < total else "", end=end, file=sys.stderr, flush=True)

    return say


def _print(proof: Proof) -> None:
    from firsthand_edge.cli.proof_page import one, several

    one(proof) if len(proof.episodes) == 1 else several(proof)
