"""`firsthand-edge coverage`: what a collection holds, per cell and per axis, against its targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from firsthand_edge.errors import CannotJudge

if TYPE_CHECKING:
    from firsthand_edge.qa.coverage import Coverage

__all__ = ["coverage"]

DEFAULT_STATE = Path("build/demo")
Each = Parameter(negative="", consume_multiple=False)


def coverage(
    paths: Annotated[tuple[Path, ...], Parameter(name="PATH")] = (),
    /,
    *,
    state: Path | None = None,
    spec: Path | None = None,
    key: Annotated[tuple[str, ...], Each] = (),
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Shows validated seconds per condition cell and per axis value, with target, fill, speed and reject rate.

    Counted from chains, every row of which is checked, and from the documents that they name; `episodes verify` judges
    the evidence again. Exit status: 0 everything was counted; 3 an episode or a chain was not, because it cannot be
    relied on; 2 wrong usage; 4 the spec is malformed or not there.

    Args:
        paths: Roots of spools, of rigs' states or of stores, or folders of episodes.
        state: State directory of a rig, as for `episodes list`; used where no path is given.
        spec: The spec whose targets count; by default the one inside the evidence.
        key: Public key of a rig, as for `episodes verify`: only rigs that a key is given of count. Without it every
            unbroken chain does, whoever began it.
        json: Print one JSON object, `firsthand.coverage/1`, instead of a page.
    """
    from firsthand_edge.errors import UsageError
    from firsthand_edge.qa.cover import cover
    from firsthand_edge.qa.places import find
    from firsthand_edge.spec.document import load_spec
    from firsthand_edge.spec.keys import public_key_of

    if paths and state is not None:
        raise UsageError("name either paths or --state, not both")
    given = None if spec is None else load_spec(spec)
    keys = tuple(dict.fromkeys(public_key_of(text) for text in key))
    covered = cover(find(paths or (state or DEFAULT_STATE,)), given, keys)
    if json:
        from firsthand_edge.cli.output import write_document
        from firsthand_edge.qa.coverage import coverage_bytes

        write_document(coverage_bytes(covered))
    else:
        _print(covered)
    return CannotJudge.exit_status if covered.not_counted else 0


def _print(covered: Coverage) -> None:
    from firsthand_edge.cli.coverage_page import print_coverage

    print_coverage(covered)
