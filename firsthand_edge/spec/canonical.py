"""Canonical bytes of a JSON document and their digest: what every signature and every "same document?" rests on.

The form is RFC 8785 (JSON Canonicalization Scheme) restricted to documents without floats: keys sorted by UTF-16 code
units, no white space, UTF-8, shortest escapes; integers in decimal. A `Decimal` becomes a string in plain notation
without trailing zeros (`2.0`, `2.00` and `20E-1` are all `"2"`), so that no reader needs floating point to check a
digest. Floats are refused: two machines may print one differently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Final, cast

from blake3 import blake3

__all__ = ["canonical_bytes", "decimal_text", "digest", "digest_bytes"]

LARGEST_EXPONENT = 64
"""Decimals beyond 10^64 or finer than 10^-64 measure nothing here and would blow up in plain notation."""


def canonical_bytes(document: object) -> bytes:
    """The canonical bytes of `document`.

    Args:
        document: None, bool, int, `Decimal`, str, an enum of these, or mappings with str keys and sequences of them.

    Raises:
        ValueError: for a float, a non-finite decimal, a key that is not a string, a text that is not Unicode, or any
            other type; names the place.
    """
    if _plain(document):
        text = _ENCODER.encode(document)
    else:
        parts: list[str] = []
        _write(document, "document", parts)
        text = "".join(parts)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise ValueError("document: holds half of a surrogate pair; only Unicode text can be digested") from exc


def digest(document: object) -> str:
    """`blake3:<64 hex digits>` of the canonical bytes of `document`. Raises ValueError as `canonical_bytes` does."""
    return digest_bytes(canonical_bytes(document))


def digest_bytes(data: bytes) -> str:
    """`blake3:<64 hex digits>` of `data` as it is."""
    return f"blake3:{blake3(data).hexdigest()}"


def decimal_text(value: Decimal) -> str:
    """Plain notation without trailing zeros, exact at any length: `2.50` -> `2.5`, `-0` -> `0`."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite number")  # noqa: TRY004 - the value is wrong, not its type
    if not any(digits):
        return "0"
    if value.adjusted() > LARGEST_EXPONENT or exponent < -LARGEST_EXPONENT:
        raise ValueError(f"{value} is out of range; decimals lie within 10^-64 and 10^64")
    text = format(Decimal((sign, digits, exponent)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":"))
"""Writes the same bytes as `_write` for what is `_plain`, in compiled code: most documents are."""


_LEAVES: Final = frozenset({str, int, bool, type(None)})


def _plain(value: object) -> bool:
    """Whether `value` is made of JSON's own types alone, with keys that code points and UTF-16 units order alike."""
    kind = type(value)
    if kind in _LEAVES:
        return True
    if kind is dict:
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str or not key.isascii() or (type(item) not in _LEAVES and not _plain(item)):
                return False
        return True
    if kind is list or kind is tuple:
        return all(type(item) in _LEAVES or _plain(item) for item in cast("list[object]", value))
    return False


def _write(value: object, place: str, parts: list[str]) -> None:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, int):
        parts.append(int.__repr__(value))
    elif isinstance(value, Decimal):
        try:
            parts.append(f'"{decimal_text(value)}"')
        except ValueError as exc:
            raise ValueError(f"{place}: {exc}") from None
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, Mapping):
        _write_object(value, place, parts)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        parts.append("[")
        for index, item in enumerate(value):
            if index:
                parts.append(",")
            _write(item, f"{place}[{index}]", parts)
        parts.append("]")
    elif isinstance(value, float):
        raise ValueError(f"{place}: is the float {value!r}; use an integer or a Decimal")
    else:
        raise ValueError(f"{place}: {type(value).__name__} has no canonical form")


def _write_object(value: Mapping[object, object], place: str, parts: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"{place}: the key {key!r} is not a string")  # noqa: TRY004
    keys = sorted((key for key in value if isinstance(key, str)), key=_utf16)
    parts.append("{")
    for index, key in enumerate(keys):
        if index:
            parts.append(",")
        parts.append(json.dumps(key, ensure_ascii=False))
        parts.append(":")
        _write(value[key], f"{place}.{key}", parts)
    parts.append("}")


def _utf16(text: str) -> bytes:
    """RFC 8785 section 3.2.3: keys are ordered by their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
