"""The reject log: one row for every reason, the same fields in every row, in the chain where nobody can take it back.

It answers "what was measured, against which limit of which rule, where, and is it recorded again" without the verdict
at hand. Numbers that are no integers are decimal texts: a signed row holds no floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FIELDS", "reject_row"]

FIELDS: Final = (
    "code",
    "rule",
    "measured",
    "limit",
    "unit",
    "stream",
    "pair",
    "range",
    "cell",
    "recapture",
    "sentence",
)
RANGE: Final = ("first_tick", "last_tick", "first_sample", "last_sample")


def reject_row(reason: Mapping[str, Any], *, cell: str | None) -> dict[str, Any]:
    """The row of one reason of a verdict.

    Args:
        reason: As `verdict.json` holds it, of any version; it has no floats.
        cell: The condition cell that the episode was to count for; None where nobody said.

    Returns:
        Every field of `FIELDS`; None where the reason says nothing of it. `rule` is the code and the version of the
        rule, `range` has the first and last tick or sample that offend, and `recapture` is None where no spec was left
        to say whether the take is recorded again.
    """
    places = {name: reason[name] for name in RANGE if reason.get(name) is not None}
    return {
        **{name: reason.get(name) for name in FIELDS},
        "cell": cell,
        "range": places or None,
        "rule": f"{reason['code']}/{reason.get('rule_version', 1)}",
    }
