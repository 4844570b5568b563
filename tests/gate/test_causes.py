"""First causes: drift, step, constant offset, slipped index, and none where it is none of these."""

import numpy as np
import pytest

from firsthand_edge import _core
from firsthand_edge.gate import causes
from firsthand_edge.gate.figures import Figures
from tests.gate.making import MS, START, P, figures, stream, ticks, with_facts

CEILING = 2 * MS


def cause(wrist, *, head=None, pair=("head", "wrist")):
    found = figures(stream("head", ticks(3000) if head is None else head), stream("wrist", wrist))
    return causes.of_pair(found, pair, CEILING)


@pytest.mark.parametrize(("ppm", "pace"), [(400, "slower"), (-400, "faster")])
def test_drift_in_ppm(ppm, pace):
    period = P + P * ppm // 1_000_000
    said = cause(ticks(3000, period=period))
    assert said == f"wrist runs {abs(ppm)} ppm {pace} than head: trigger not connected"


def test_drift_does_not_count_missing_samples_as_time():
    times = np.delete(ticks(3000, period=P + P * 400 // 1_000_000), np.arange(100, 2900, 7))
    assert "400 ppm slower" in (cause(times) or "")


def test_drift_through_a_whole_period():
    times = ticks(9000, period=P + P * 300 // 1_000_000)  # 45 ms in all: slips twice
    assert "300 ppm slower" in (cause(times, head=ticks(9000)) or "")


def test_a_step_is_named_with_its_tick():
    times = ticks(3000)
    times[1200:] += 5 * MS
    assert cause(times) == "wrist stepped by 5.0 ms at tick 1200"


def test_a_constant_offset():
    said = cause(ticks(3000) - 3 * MS, pair=("wrist", "head"))
    assert said == "wrist stays 3.0 ms before head: stamp point, trigger delay or calibrated offset"


def test_jitter_is_none_of_these():
    jitter = np.random.default_rng(7).integers(-4 * MS, 4 * MS, 3000)
    assert cause(ticks(3000) + jitter) is None


def test_too_few_ticks_tell_nothing():
    found = figures(stream("head", ticks(7)), stream("wrist", ticks(7) + 3 * MS))
    assert causes.of_pair(found, ("head", "wrist"), CEILING) is None


def test_a_slip_of_the_trigger_count():
    index = np.arange(200, dtype=np.int64)
    sync = _core.measure(
        [
            _core.Stream("head", "triggered", ticks(200), trigger_index=index),
            _core.Stream("wrist", "triggered", ticks(200, start=START + P), trigger_index=index),
        ],
        reference="head",
        period_ns=P,
    )
    by_time = figures(stream("head", ticks(200)), stream("wrist", ticks(200, start=START + P)))
    found = Figures(reference="head", streams=by_time.streams, sync=sync)
    assert causes.of_pair(found, ("head", "wrist"), CEILING) == "wrist slipped by 1 tick against its trigger count"


def test_of_two_others_the_one_that_strays_further():
    found = figures(stream("head", ticks(60)), stream("a", ticks(60) - MS), stream("b", ticks(60) + 2 * MS))
    assert causes.culprit(found, ("a", "b")) == "b"
    assert causes.culprit(found, ("a", "head")) == "a"


def test_sequence_gaps_explain_what_is_missing():
    found = figures(stream("head", ticks(60)), stream("wrist", np.delete(ticks(60), [9, 10])))
    stamps = found.stream("wrist").stamps
    changed = with_facts(found, "wrist", has_sequence=True, stamps=type(stamps)(samples=58, sequence_gaps=2))
    assert causes.of_missing(changed.stream("wrist")) == "the device counted 2 samples that did not arrive"
    assert causes.of_missing(found.stream("wrist")) is None
