"""Where two JSON documents differ, by their places: `report.residual_ns.max: 1 here, 2 there`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["differences"]


def differences(left: Any, right: Any, *, most: int = 3) -> list[str]:
    """The first places at which two documents differ, at most `most`; empty when they are equal, types included."""
    found: list[str] = []
    for sentence in _walk(left, right, ""):
        found.append(sentence)
        if len(found) == most:
            break
    return found


def _walk(left: Any, right: Any, place: str) -> Iterator[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            where = f"{place}.{key}" if place else key
            if key not in left or key not in right:
                yield f"{where}: only {'there' if key not in left else 'here'}"
            else:
                yield from _walk(left[key], right[key], where)
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) != len(right):
            yield f"{place}: {len(left)} entries here, {len(right)} there"
        else:
            for index, (ours, theirs) in enumerate(zip(left, right, strict=True)):
                yield from _walk(ours, theirs, f"{place}[{index}]")
    elif type(left) is not type(right) or left != right:
        yield f"{place}: {_short(left)} here, {_short(right)} there"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
