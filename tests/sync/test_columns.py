"""Numpy columns on their way into the core and out of it: what is copied, what is not, and what cannot be changed."""

from __future__ import annotations

import numpy as np
import pytest

from firsthand_edge import _core

TICKS = np.arange(300, dtype=np.int64) * 16_666_667


def frozen(times):
    times = times.copy()
    times.flags.writeable = False
    return times


def copied_by(call) -> int:
    before = _core.copied_bytes()
    call()
    return _core.copied_bytes() - before


def measured(times):
    return _core.measure([_core.Stream("head", "triggered", times)], reference="head")


def test_what_nobody_can_write_to_is_not_copied():
    assert copied_by(lambda: measured(frozen(TICKS))) == 0
    assert copied_by(lambda: measured(np.frombuffer(TICKS.tobytes(), dtype=np.int64))) == 0
    assert copied_by(lambda: measured(frozen(TICKS)[10:200])) == 0, "a view of it"
    ours = measured(frozen(TICKS)).reference_ns
    assert copied_by(lambda: _core.quantiles(ours, [(1, 2)])) == 0, "a column of the core"


def test_what_somebody_can_write_to_is_copied_and_counted():
    assert copied_by(lambda: measured(TICKS.copy())) == TICKS.nbytes
    whole = TICKS.copy()
    view = whole[:100]
    view.flags.writeable = False  # and yet `whole` can be written to
    assert copied_by(lambda: measured(view)) == view.nbytes
    over_bytearray = np.frombuffer(bytearray(TICKS.tobytes()), dtype=np.int64)
    over_bytearray.flags.writeable = False
    assert copied_by(lambda: measured(over_bytearray)) == TICKS.nbytes
    assert copied_by(lambda: measured(frozen(TICKS)[::2])) == TICKS[::2].nbytes, "entries do not lie side by side"
    assert copied_by(lambda: _core.match_nearest(TICKS.copy(), frozen(TICKS), 5)) == TICKS.nbytes


def test_a_stream_keeps_what_it_was_given():
    times = TICKS.copy()
    stream = _core.Stream("head", "triggered", times)
    times[:] = 0
    assert _core.measure([stream], reference="head").ticks == TICKS.size


def test_columns_of_figures_are_made_once_and_cannot_be_written_to():
    figures = measured(frozen(TICKS))
    for column in (figures.tick, figures.reference_ns, figures.residual_ns, figures.offset_ns("head")):
        assert column.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    assert figures.tick is figures.tick
    assert figures.offset_ns("head") is figures.offset_ns("head")


def test_the_core_says_which_kernels_it_runs():
    assert _core.simd in ("avx2", "portable")
