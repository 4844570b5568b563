"""Each fault is recognised by name, stream, beginning and size, alone and in pairs; clean takes show none."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firsthand_edge import _core
from firsthand_edge.gate.diagnosis import diagnose, diagnoses
from firsthand_edge.gate.figures import Figures
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report
from firsthand_edge.gate.rules import apply
from firsthand_edge.model import Fault, Kind
from tests.gate.making import MS, START, P, figures, stream, ticks

CEILING = 2 * MS
N = 3000
NAMES = ("head", "left", "right", "depth")


def noise(seed, n=N, amount=100_000):
    return np.random.default_rng(seed).integers(-amount, amount, n)


def rig(faults, *, n=N, names=NAMES, seed=0, **rest):
    """Streams of one rig, each with a little noise; `faults` maps a name to a function of (times, rng)."""
    streams = []
    for place, name in enumerate(names):
        times = ticks(n) + noise(seed + place, n)
        streams.append(stream(name, faults.get(name, lambda t: t)(times), **rest))
    return figures(*streams)


def found(figures_):
    series_ns = figures_.sync.residual_ns
    return diagnose(figures_, figures_.sync, ceiling_ns=CEILING, series_ns=series_ns)[0]


def kinds(figures_):
    return [(one.stream, one.kind) for one in found(figures_)]


def constant(size):
    return lambda t: t + size


def step(at, size):
    return lambda t: t + np.where(np.arange(t.size) >= at, size, 0)


def drift(ppm, at=0):
    return lambda t: t + np.maximum(0, np.arange(t.size) - at) * (P * ppm // 1_000_000)


def jitter(amount, seed=5):
    return lambda t: t + np.random.default_rng(seed).integers(-amount, amount, t.size)


ONE = {
    Fault.CONSTANT: constant(3 * MS),
    Fault.STEP: step(1200, -4 * MS),
    Fault.DRIFT: drift(90),
    Fault.JITTER: jitter(4 * MS),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ONE)
def test_each_kind_is_named_with_its_stream_even_if_it_is_the_reference(kind, name):
    assert kinds(rig({name: ONE[kind]})) == [(name, kind)]


@given(
    name=st.sampled_from(NAMES),
    size=st.integers(2_300_000, 7_000_000),
    sign=st.sampled_from([-1, 1]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=25)
def test_the_size_of_a_constant(name, size, sign, seed):
    (one,) = found(rig({name: constant(sign * size)}, seed=seed))
    assert (one.kind, one.stream, one.began_tick) == (Fault.CONSTANT, name, 0)
    assert abs(one.offset_ns - sign * size) < 50_000


@example(at=479, size=2_300_000, sign=-1)
@given(at=st.integers(150, N - 150), size=st.integers(2_300_000, 7_000_000), sign=st.sampled_from([-1, 1]))
@settings(deadline=None, max_examples=25)
def test_the_place_and_the_size_of_a_step(at, size, sign):
    (one,) = found(rig({"left": step(at, sign * size)}))
    assert (one.kind, one.stream) == (Fault.STEP, "left")
    assert abs(one.began_tick - at) <= 1
    assert abs(one.offset_ns - sign * size) < 60_000
    assert one.began_ns == pytest.approx(at * P, abs=3 * P)


@given(ppm=st.integers(60, 900), sign=st.sampled_from([-1, 1]))
@settings(deadline=None, max_examples=25)
def test_the_rate_of_a_drift_that_goes_through_whole_periods(ppm, sign):
    (one,) = found(rig({"right": drift(sign * ppm)}))
    assert (one.kind, one.stream, one.began_tick) == (Fault.DRIFT, "right", 0)
    assert abs(one.drift_ppb - sign * ppm * 1000) < 3000


@given(at=st.integers(400, 1800), ppm=st.integers(150, 400))
@settings(deadline=None, max_examples=25)
def test_a_drift_that_begins_within_the_take(at, ppm):
    (one,) = found(rig({"depth": drift(ppm, at)}))
    assert (one.kind, one.stream) == (Fault.DRIFT, "depth")
    assert abs(one.began_tick - at) < 200
    assert abs(one.drift_ppb - ppm * 1000) < 0.05 * ppm * 1000


PAIRS = [(a, b) for i, a in enumerate(ONE) for b in list(ONE)[i:]]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_faults_of_two_streams_are_both_named(one, other):
    names = ("head", "left", "right", "depth", "wide")
    assert set(kinds(rig({"left": ONE[one], "depth": ONE[other]}, names=names))) == {("left", one), ("depth", other)}


@pytest.mark.parametrize(("one", "other"), [(a, b) for a, b in PAIRS if a is not b])
def test_two_faults_of_one_stream_are_both_named(one, other):
    both = rig({"left": lambda t: ONE[other](ONE[one](t))})
    assert set(kinds(both)) == {("left", one), ("left", other)}


def test_two_streams_alone_do_not_tell_which_of_them_it_is():
    (one,) = found(rig({"left": constant(3 * MS)}, names=("head", "left")))
    assert (one.kind, one.stream) == (Fault.CONSTANT, None)
    assert "left stays" in one.sentence
    assert "it may be either" in one.sentence


def test_that_it_may_be_either_is_said_once_however_much_is_found():
    both = rig({"left": lambda t: ONE[Fault.STEP](ONE[Fault.CONSTANT](t))}, names=("head", "left"))
    several, words = diagnose(both, both.sync, ceiling_ns=CEILING, series_ns=both.sync.residual_ns)
    assert len(several) > 1
    assert all("it may be either" in one.sentence for one in several)
    assert words.count("it may be either") == 1
    assert words.endswith("it may be either)")


def slipped(index, *, period=P):
    sync = _core.measure(
        [
            _core.Stream("head", "triggered", ticks(200), trigger_index=np.arange(200)),
            _core.Stream("right", "triggered", ticks(200), trigger_index=np.arange(200)),
            _core.Stream("left", "triggered", ticks(200), trigger_index=index),
        ],
        reference="head",
        period_ns=period,
    )
    by_time = figures(stream("head", ticks(200)), stream("right", ticks(200)), stream("left", ticks(200)))
    return Figures(reference="head", streams=by_time.streams, sync=sync)


def test_a_slip_of_the_trigger_count_from_the_beginning():
    (one,) = found(slipped(np.arange(200) - 2))
    assert (one.kind, one.stream, one.ticks, one.began_tick) == (Fault.SLIP, "left", 2, 0)


def test_a_slip_of_the_trigger_count_within_the_take():
    index = np.arange(200) - np.where(np.arange(200) >= 80, 1, 0)
    (one,) = found(slipped(index))
    assert (one.kind, one.stream, one.ticks) == (Fault.SLIP, "left", 1)
    assert abs(one.began_tick - 80) <= 1


def exposed(exposure_ns, middle_ns, **rest):
    """One camera with these exposures, among others that are right."""
    others = [stream(name, ticks(N) + noise(i)) for i, name in enumerate(("head", "right", "depth"))]
    left = stream("left", ticks(N) + middle_ns + noise(9))
    taken = [*others, type(left)(left.facts, left.times_ns, exposure_ns=np.asarray(exposure_ns, np.int64))]
    return figures(*taken)


RAMP = np.linspace(1 * MS, 5 * MS, N).astype(np.int64)


def test_exposures_that_move_the_middle_of_a_fixed_delay():
    (one,) = found(exposed(RAMP, (RAMP - RAMP[0]) // 2))
    assert (one.kind, one.stream) == (Fault.EXPOSURE_SPREAD, "left")


@pytest.mark.parametrize("halves", [-1, 2])
def test_a_stamp_point_that_is_stated_wrong_shows_in_the_slope(halves):
    (one,) = found(exposed(RAMP, (halves * RAMP - RAMP[0]) // 2))
    assert (one.kind, one.stream) == (Fault.STAMP_POINT, "left")


@pytest.mark.parametrize(("sign", "instant"), [(-1, "start"), (1, "end")])
def test_a_constant_of_half_the_exposure_is_the_stamp_point(sign, instant):
    (one,) = found(exposed(np.full(N, 6 * MS), sign * 3 * MS))
    assert (one.kind, one.stream) == (Fault.STAMP_POINT, "left")
    assert f"stamps the {instant} of the exposure" in one.sentence


def test_exposures_that_explain_nothing_are_left_out():
    assert [one.kind for one in found(exposed(RAMP, 3 * MS))] == [Fault.CONSTANT]


def test_missing_samples_beside_a_fault_change_nothing():
    def dropped(t):
        return np.delete(drift(90)(t), np.arange(100, 2900, 7))

    (one,) = found(rig({"left": dropped}))
    assert (one.kind, one.stream) == (Fault.DRIFT, "left")
    assert abs(one.drift_ppb - 90_000) < 3000


def test_single_frames_are_no_known_cause_and_it_says_what_is_known():
    def spiked(t):
        return t + np.where(np.isin(np.arange(t.size), [700, 701, 1500]), 3 * MS, 0)

    taken = rig({"left": spiked})
    none, words = diagnose(taken, taken.sync, ceiling_ns=CEILING, series_ns=taken.sync.residual_ns)
    assert none == ()
    assert "left is up to" in words
    assert "at 3 ticks, the first tick 700; what lies behind it is not known" in words


def test_edges_tell_even_of_two_streams():
    times = ticks(600)
    taken = figures(stream("head", times), stream("left", times + 3 * MS), ticks_ns=times, reference="head")
    assert kinds(taken) == [("left", Fault.CONSTANT)]


def test_the_reason_carries_it_and_the_report_lists_it():
    taken = rig({"left": constant(3 * MS)})
    verdict = apply(taken, Limits())
    document = report(taken, verdict, Limits())
    (row,) = (reason for reason in document["reasons"] if reason["code"] == "sync.ceiling")
    assert row["stream"] == "left"
    assert row["cause"] in row["sentence"]
    (one,) = row["diagnosis"]
    assert one == {**diagnoses(document)[0]}
    assert (one["kind"], one["stream"], one["began_tick"], one["drift_ppb"]) == ("constant", "left", 0, None)
    assert abs(one["offset_ns"] - 3 * MS) < 50_000


def test_time_scale_unit_and_wrap_carry_theirs():
    late = rig({"left": constant(37 * 10**9)})
    unit = rig({}, period_ns=P * 1000)
    wrapped = ticks(400).copy()
    wrapped[200:] -= 2**32 * 1000
    wrap = figures(stream("head", ticks(400)), stream("left", wrapped))
    for taken, kind, size in ((late, "tai_utc", 37 * 10**9), (unit, "unit", None), (wrap, "wrap", None)):
        rows = diagnoses(report(taken, apply(taken, Limits()), Limits()))
        assert kind in {row["kind"] for row in rows}
        if size:
            assert [row["offset_ns"] for row in rows] == [size]


def clean(seed):
    """A random rig with nothing wrong: rates, decimation, an IMU, a glove, jitter, drops below the limits."""
    rng = np.random.default_rng(seed)
    period = int(rng.choice([8_333_333, 11_111_111, 16_666_667, 33_333_333, 66_666_667]))
    n = int(rng.integers(40, 1200))
    grid = START + period * np.arange(n, dtype=np.int64)
    made = []
    for place in range(int(rng.integers(2, 9))):
        every = int(rng.choice([1, 1, 1, 2])) if place else 1
        times = (
            grid[::every] + rng.integers(-300_000, 300_000, grid[::every].size) + int(rng.integers(-300_000, 300_000))
        )
        kept = rng.random(times.size) > rng.choice([0, 0.002])
        kept[:2] = kept[-2:] = True
        made.append(stream(f"c{place}", times[kept], decimate=every, period_ns=period * every))
    imu = START - 10 * MS + MS * np.arange((n * period) // MS + 20, dtype=np.int64) + rng.integers(-9000, 9000)
    made.append(stream("imu", imu, kind=Kind.SAMPLED, period_ns=MS))
    return figures(*made, reference="c0", period=period, limits=Limits(missing_run=40))


def assert_clean_takes_are_claimed_nothing_of(seeds):
    for seed in seeds:
        taken = clean(seed)
        document = report(taken, apply(taken, Limits()), Limits())
        assert diagnoses(document) == [], seed
        assert not [r for r in document["reasons"] if r["code"] == "sync.ceiling"], seed


def test_nothing_is_claimed_of_clean_takes():
    assert_clean_takes_are_claimed_nothing_of(range(60))


@pytest.mark.soak
def test_nothing_is_claimed_of_a_thousand_clean_takes():
    assert_clean_takes_are_claimed_nothing_of(range(1000))


def test_what_is_within_the_ceiling_departs_from_nothing():
    # Not even if somebody asks about a take that nothing is wrong with.
    for seed in range(20):
        taken = clean(seed)
        series_ns = taken.sync.residual_ns
        assert diagnose(taken, taken.sync, ceiling_ns=CEILING, series_ns=series_ns) == ((), "")


def test_who_departs_only_from_a_middle_that_others_pulled_aside_is_not_accused():
    """At tick 100 two streams pull the middle 1.05 ms from the head; without them, and without one that is wild at tick
    200, the head agrees with what is left.
    """
    at = {"left": {100: 0.5}, "chest": {100: 1.05, 200: 5}, "right": {100: 2.2}, "depth": {100: 2.3}}
    streams = [stream("head", ticks(N))]
    for name, moved in at.items():
        times = ticks(N)
        for tick, by_ms in moved.items():
            times[tick] += int(by_ms * MS)
        streams.append(stream(name, times))
    taken = figures(*streams)
    (reason,) = [one for one in apply(taken, Limits()).reasons if one.code == "sync.ceiling"]
    assert "head is up to" not in reason.cause
    assert "chest is up to" in reason.cause


@pytest.mark.parametrize("seed", range(20))
def test_jitter_of_most_of_a_period_is_jitter_and_steps_nowhere(seed):
    """Neighbours three quarters of a period apart look like a drift that went on at the other side of a period."""
    assert kinds(rig({"left": jitter(P * 38 // 100, seed)}, n=2000, seed=seed)) == [("left", Fault.JITTER)]


@pytest.mark.parametrize("n", [60, 200])
def test_the_middle_of_a_little_jitter_is_no_constant(n):
    for seed in range(40):
        assert ("left", Fault.CONSTANT) not in kinds(rig({"left": jitter(P * 38 // 100, seed)}, n=n, seed=seed))
