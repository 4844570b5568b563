"""What callers hand in: stamps of any array library as int64 nanoseconds, rates and limits as exact numbers.

Nothing is guessed. Floats, missing values and other units are refused with what to do, because each of them would give
a verdict on times that nobody stamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from firsthand_edge.errors import UsageError
from firsthand_edge.gate.channels import LARGEST_NS
from firsthand_edge.gate.stamp_lists import PLACES, SMALLEST, Unit
from firsthand_edge.gate.wording import count, fixed
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from firsthand_edge.gate.figures import Int64

__all__ = ["Channel", "KindName", "Number", "StreamStamps", "as_stamps", "exact", "kind_of", "rate_of"]

Number: TypeAlias = int | float | Decimal | Fraction
"""A float counts as what it prints as: 59.94 is 59.94, not the binary fraction next to it."""
KindName: TypeAlias = Literal["triggered", "sampled", "interpolated", "event"]

FASTEST = {Kind.TRIGGERED: 1_000_000, Kind.INTERPOLATED: 1_000_000, Kind.SAMPLED: 100_000}
"""Smallest median step, ns, that is believed of a stream whose rate nobody stated: 1 kHz; 10 kHz for an IMU."""
LOOKED_AT = 4096
"""Samples from the first on that the median step is taken of."""


@dataclass(frozen=True, slots=True, eq=False)
class StreamStamps:
    """The stamps of one stream, and how it is judged."""

    stamps_ns: Any
    """(n,) int64 nanoseconds of mid-exposure, in the order in which samples arrived; one timebase for all streams.

    A numpy array that cannot be written to is not copied. Lists of int and integer or datetime64 columns of pandas,
    polars and Arrow do as well.
    """
    kind: KindName | Kind | None = None
    """`triggered` where neither this nor a spec says otherwise."""
    rate_hz: Number | None = None
    """Nominal rate, Hz; without it the median step counts, and `stream.rate` and `stamp.unit` are not judged."""
    decimate: int = 1
    """A triggered stream has a sample at every so many ticks."""
    offset_ns: int = 0
    """Added to every stamp."""


@dataclass(frozen=True, slots=True)
class Channel:
    """How one channel of a recording is judged. What is None is as the recording or the spec has it."""

    kind: KindName | Kind | None = None
    rate_hz: Number | None = None
    """Nominal rate, Hz."""
    decimate: int | None = None
    """A triggered stream has a sample at every so many ticks."""
    offset_ns: int = 0
    """Added to every stamp."""


def as_stamps(name: str, values: Any, *, least_step_ns: int | None) -> Int64:
    """Stamps of any array library as int64 nanoseconds; a numpy int64 array is passed through.

    Args:
        name: Of the stream, for errors.
        values: One column of whole nanoseconds or of datetime64.
        least_step_ns: A smaller median step is taken for another unit; None where the rate is stated.

    Raises:
        UsageError: what is there is not that.
    """
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise UsageError(f"{name}: masked entries are no stamps; leave them out, as by `.compressed()`")
    dated = str(getattr(values, "dtype", "")).startswith("datetime64[")  # pandas hands zoned times out as objects
    try:
        column = np.asarray(values, dtype="M8[ns]" if dated and not isinstance(values, np.ndarray) else None)
    except (TypeError, ValueError, OverflowError) as exc:
        raise UsageError(f"{name}: this is no column of stamps ({exc}); pass one array of int64 nanoseconds") from exc
    if column.ndim != 1:
        raise UsageError(
            f"{name}: stamps of shape {column.shape} are no column; pass one, as by `[:, 0]` or `.ravel()`"
        )
    stamps = _int64(name, column)
    if stamps.size:
        _refuse_unlikely(name, stamps, least_step_ns)
    if stamps.flags.writeable or not stamps.flags.aligned:
        # Whoever can write to them could do so while they are judged. One copy here instead of one at each step.
        # A field of packed records lies at odd addresses, where the core does not read.
        stamps = stamps.copy()
        stamps.flags.writeable = False
    return stamps


def _int64(name: str, column: np.ndarray[Any, Any]) -> Int64:
    kind = column.dtype.kind
    if column.size == 0 and kind in "fO":  # an empty list has no type of its own
        return np.empty(0, dtype=np.int64)
    if kind in "mM":
        return _from_datetime(name, column)
    if kind == "f":
        raise UsageError(
            f"{name}: stamps are {column.dtype}; floats hold no nanoseconds (seconds since 1970: 238 ns), "
            "and integers become floats where values are missing. Read the stamps as integers and drop what is "
            "missing; if seconds are all there is, `np.rint(seconds * 1e9).astype(np.int64)`"
        )
    if kind not in "iu":
        raise UsageError(
            f"{name}: stamps are {column.dtype}, not integers; pass int64 nanoseconds, as by `.astype('int64')` after "
            "dropping what is missing"
        )
    if column.dtype == np.uint64 and column.size and int(column.max()) >= LARGEST_NS:
        raise UsageError(f"{name}: a stamp of {int(column.max())} ns is beyond the year 2116; see its unit")
    return column.astype(np.int64, copy=False)


def _from_datetime(name: str, column: np.ndarray[Any, Any]) -> Int64:
    if np.isnat(column).any():
        raise UsageError(f"{name}: {count(int(np.isnat(column).sum()), 'entry', 'entries')} NaT; drop what has no time")
    unit, number = np.datetime_data(column.dtype)
    if unit == "generic":
        raise UsageError(f"{name}: {column.dtype} has no unit; convert to datetime64[ns]")
    if (unit, number) == ("ns", 1):
        return column.view(np.int64)
    finer = column.astype(f"{'M8' if column.dtype.kind == 'M' else 'm8'}[ns]")
    if not np.array_equal(finer.astype(column.dtype), column):
        raise UsageError(f"{name}: {column.dtype} goes beyond what int64 nanoseconds hold, the years 1678 to 2262")
    return finer.view(np.int64)


def _refuse_unlikely(name: str, stamps: Int64, least_step_ns: int | None) -> None:
    smallest, largest = int(stamps.min()), int(stamps.max())
    if smallest == -(2**63):
        absent = int(np.count_nonzero(stamps == -(2**63)))
        raise UsageError(
            f"{name}: {count(absent, 'entry', 'entries')} of -2**63, which stands for a missing value; leave it out"
        )
    beyond = largest if largest >= LARGEST_NS else smallest
    if abs(beyond) >= LARGEST_NS:
        raise UsageError(f"{name}: a stamp of {beyond} ns is beyond the year 2116; see its unit")
    if least_step_ns is None:
        return
    steps = np.abs(np.diff(stamps[:LOOKED_AT]))
    steps = steps[steps > 0]
    if steps.size == 0:
        return
    median = int(np.partition(steps, steps.size // 2)[steps.size // 2])
    if median >= least_step_ns:
        return
    unit = _likely(largest, median)
    raise UsageError(
        f"{name}: the median step of its stamps is {median} ns, {_hertz(median)} Hz. Stamps are nanoseconds, and these "
        f"look like {unit}: multiply by {10 ** PLACES[unit]}; if the stream is that fast, state it with rate_hz"
    )


def _likely(largest: int, step: int) -> Unit:
    """The unit that dates these stamps after 2001, as in a list; else the one in which a step is 1 ms or more."""
    dated = next((unit for least, unit in SMALLEST if largest >= least), Unit.NS)
    if dated is not Unit.NS:
        return dated
    return next((unit for unit in (Unit.US, Unit.MS) if step * 10 ** PLACES[unit] >= 1_000_000), Unit.S)


def _hertz(step_ns: int) -> str:
    return fixed((10**12 + step_ns // 2) // step_ns, places=3, keep=1)


def exact(value: Any, what: str) -> Decimal | Fraction:
    """A number as callers write it: of a float, the decimal that it prints as.

    Raises:
        UsageError: it is no finite number.
    """
    if isinstance(value, np.generic):
        value = value.item() if not isinstance(value, np.floating) else Decimal(str(value))
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise UsageError(f"{what}={value!r}: state a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise UsageError(f"{what}={value}: state a finite number")
    return Decimal(value) if isinstance(value, int) else value


def rate_of(name: str, value: Number | None) -> Decimal | Fraction | None:
    """A nominal rate in Hz, within what the audit takes; None stays None."""
    if value is None:
        return None
    rate = exact(value, f"{name}: rate_hz")
    if not Fraction(1, 1000) <= Fraction(rate) <= 1_000_000:
        raise UsageError(f"{name}: rate_hz={value} is not between 0.001 and 1000000; state it in Hz")
    return rate


def kind_of(name: str, value: KindName | Kind | None) -> Kind | None:
    """A kind by its name; None stays None."""
    try:
        return None if value is None else Kind(value)
    except ValueError as exc:
        raise UsageError(f"{name}: kind={value!r} is not one of {', '.join(Kind)}") from exc
