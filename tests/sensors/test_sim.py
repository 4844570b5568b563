from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firsthand_edge.errors import DeviceAbsent, DeviceError
from firsthand_edge.model import ABSENT, Domain, StampPoint
from firsthand_edge.sensors.seam import SensorSilent
from firsthand_edge.sensors.sim import SimSensor
from firsthand_edge.testing.clock import FakeClock
from firsthand_edge.testing.scripts import SCRIPTS
from firsthand_edge.testing.sensors import check_sensor
from firsthand_edge.testing.simulated_time import SimulatedRig
from firsthand_edge.trigger.line import Pulses
from firsthand_edge.trigger.simulated import SimulatedTrigger

from .rigs import PERIOD_NS, S, camera, events, imu


def take(tmp_path, device, *, seconds=2.0, number=1, preview_s=0.0, step_s=0.02):
    """One take of one device; returns its samples and the edges."""
    rig = SimulatedRig([device], tmp_path)
    if preview_s:
        rig.arm()
        rig.trigger.start(0, period_ns=PERIOD_NS)
        rig.run(preview_s, lambda samples: None)
        rig.trigger.stop()
        rig.run(0.2, lambda samples: None)
        rig.disarm()
    out = []
    rig.arm()
    rig.trigger.start(number, period_ns=PERIOD_NS)
    until = rig.clock.monotonic_ns() + int(seconds * S)
    while rig.clock.monotonic_ns() < until:
        out += rig.advance(step_s)
    edges = rig.trigger.stop()
    rig.run(0.2, out.extend)
    rig.close()
    return out, edges


def true_stamp_ns(device, edges, sample_numbers):
    stream = device.stream[0]
    after = {StampPoint.MIDDLE: stream.exposure_us // 2, StampPoint.END: stream.exposure_us}.get(stream.stamp_point, 0)
    return edges.time_ns[sample_numbers] + (stream.trigger_delay_us + after) * 1000


def device_ns(device, samples):
    """Unwrapped device time of the samples, from the configuration alone."""
    ticks = np.array([s.device_ticks for s in samples], dtype=np.int64)
    wraps = np.concatenate([[0], np.cumsum(np.diff(ticks) < 0)])
    return (ticks + wraps * 2**device.counter_bits) * device.tick_num // device.tick_den


# ---- the contract


@pytest.mark.parametrize("make", [camera, imu, events])
def test_keeps_the_contract_of_every_sensor(tmp_path, make):
    clock = FakeClock()
    trigger = SimulatedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    info = check_sensor(
        lambda: SimSensor(make(), tmp_path, monotonic_ns=clock.monotonic_ns, sleep=clock.sleep),
        timeout_s=20,
        start=lambda: trigger.start(1, period_ns=PERIOD_NS),
        stop=lambda: (trigger.stop(), clock.sleep(0.1)),
    )
    assert info.domain is Domain.DEVICE


def test_a_sensor_is_refused_where_no_trigger_line_is(tmp_path):
    with pytest.raises(DeviceAbsent, match="no trigger line at"):
        SimSensor(camera(), tmp_path).open()


# ---- exposures, stamps, arrivals


@pytest.mark.parametrize("point", ["start", "middle", "end", "readout_start"])
def test_each_pulse_gives_one_exposure_stamped_at_its_point(tmp_path, point):
    device = camera(with_stream={"stamp_point": point, "trigger_delay_us": 500}, counter_start=77)
    samples, edges = take(tmp_path, device)
    assert [s.sequence for s in samples] == list(range(len(edges.index)))
    after_us = {"start": 500, "middle": 1500, "end": 2500, "readout_start": 2500}[point]
    since_power_ns = edges.time_ns - (edges.time_ns[0] - 1_000_000) + after_us * 1000
    assert [s.device_ticks for s in samples] == (since_power_ns // 1000 + 77).tolist()
    assert {s.exposure_ns for s in samples} == {2_000_000}
    assert {s.trigger_index for s in samples} == {ABSENT}


def test_a_counter_drifts_as_told_and_wraps_when_told(tmp_path):
    device = camera(drift_ppm=50, wrap_after_s=Decimal("3.5"))
    samples, edges = take(tmp_path, device, seconds=8)
    ticks = np.array([s.device_ticks for s in samples])
    (wrap,) = np.flatnonzero(np.diff(ticks) < 0)
    power_ns = int(edges.time_ns[0]) - 1_000_000
    assert 0 <= int(edges.time_ns[wrap + 1]) - power_ns - 3.5 * S < PERIOD_NS + 1_000_000
    got = device_ns(device, samples)
    elapsed = edges.time_ns - edges.time_ns[0]
    rate = (got - got[0]) - (elapsed + elapsed * 50 // 1_000_000)
    assert abs(rate).max() <= 2000  # a tick of each of the two readings


def test_arrivals_are_late_by_the_least_delay_and_a_tail_and_never_overtake(tmp_path):
    device = camera(delay_tail_us=400, delay_error_us=50, spike_share=Decimal("0.02"))
    samples, edges = take(tmp_path, device, seconds=20)
    arrivals = np.array([s.arrival_ns for s in samples])
    delays = arrivals - true_stamp_ns(device, edges, [s.sequence for s in samples])
    assert delays.min() >= 3_050_000
    assert delays.min() < 3_060_000
    assert 3_300_000 < np.median(delays) < 3_400_000  # 3.05 ms + 0.4 ms * ln 2
    assert delays.max() > 8_000_000
    assert (np.diff(arrivals) >= 0).all()


def test_nothing_is_delivered_before_its_arrival(tmp_path):
    rig = SimulatedRig([camera(), imu()], tmp_path)
    rig.arm()
    rig.trigger.start(1, period_ns=PERIOD_NS)
    seen = 0
    for _ in range(500):
        for sample in rig.advance(0.001):
            seen += 1
            assert rig.clock.monotonic_ns() - 1_000_001 <= sample.arrival_ns <= rig.clock.monotonic_ns()
    assert seen > 400
    rig.close()


def test_every_picture_differs(tmp_path):
    samples, _ = take(tmp_path, camera(), seconds=5)
    assert len({bytes(s.payload) for s in samples}) == len(samples)


def test_decimated_streams_expose_on_their_phase(tmp_path):
    device = camera(with_stream={"rate_hz": 30, "decimate": 2, "phase": 1, "has_trigger_index": True})
    samples, edges = take(tmp_path, device)
    assert [s.trigger_index for s in samples] == edges.index[1::2].tolist()
    assert [s.sequence for s in samples] == list(range(len(samples)))


def test_a_free_running_stream_keeps_its_own_rate_and_delivers_in_batches(tmp_path):
    device = imu(drift_ppm=100)
    samples, _ = take(tmp_path, device, seconds=10)
    numbers = np.array([s.sequence for s in samples])
    assert (np.diff(numbers) == 1).all()
    # By its own clock the period is nominal.
    assert abs(np.diff(device_ns(device, samples)) - 1_000_000).max() <= 1000
    arrivals = np.array([s.arrival_ns for s in samples])
    whole = len(numbers[numbers % 10 == 9])
    assert abs(len(np.unique(arrivals)) - whole) <= 1
    # A batch arrives after its last sample.
    first_of_batch = numbers % 10 == 0
    assert np.diff(arrivals[first_of_batch]).mean() == pytest.approx(10_000_000 / 1.0001, rel=1e-4)


def test_events_are_sparse_in_order_and_continue_over_armings(tmp_path):
    samples, _ = take(tmp_path, events(), seconds=20, preview_s=3)
    numbers = [s.sequence for s in samples]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] >= 11
    assert 78 <= len(numbers) <= 82
    assert (np.diff(device_ns(events(), samples)) > 0).all()


def test_a_device_armed_in_mid_train_takes_up_with_the_next_pulse(tmp_path):
    rig = SimulatedRig([camera(with_stream={"has_trigger_index": True})], tmp_path)
    first_ns = rig.trigger.start(1, period_ns=PERIOD_NS)
    rig.clock.set(first_ns + 10 * PERIOD_NS + 1)
    rig.arm()
    samples = rig.advance(0.2)
    assert samples[0].trigger_index == 11
    assert samples[0].sequence == 0
    rig.close()


# ---- determinism


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), step_ms=st.integers(1, 200), script=st.sampled_from(sorted(SCRIPTS)))
def test_same_seed_and_same_pulses_give_the_same_however_it_is_read(tmp_path_factory, seed, step_ms, script):
    faults = () if script in ("die", "come_back") else SCRIPTS[script]
    counts = {"has_trigger_index": True}
    device = camera(seed=seed, counter_bits=40, counter_start=2**39, drift_ppm=-33, faults=faults, with_stream=counts)
    a, _ = take(tmp_path_factory.mktemp("a"), device, seconds=1.2, step_s=0.02)
    b, _ = take(tmp_path_factory.mktemp("b"), device, seconds=1.2, step_s=step_ms / 1000)
    # The train ends when the reader's last step does, so one of them may have a few pulses more.
    same = min(len(a), len(b)) - 1
    assert same > 30
    assert a[:same] == b[:same]


def test_another_seed_gives_other_delays(tmp_path):
    a, _ = take(tmp_path / "a", camera(seed=1))
    b, _ = take(tmp_path / "b", camera(seed=2))
    assert [s.arrival_ns for s in a] != [s.arrival_ns for s in b]
    assert [s.device_ticks for s in a] == [s.device_ticks for s in b]


def test_minutes_are_made_in_large_steps(tmp_path):
    rig = SimulatedRig([camera(), imu()], tmp_path)
    rig.arm()
    rig.trigger.start(1, period_ns=PERIOD_NS)
    count = 0
    for _ in range(120):
        count += len(rig.advance(1.0))
    assert 127_000 < count < 127_300
    rig.close()


# ---- faults


def with_fault(tmp_path, script, seconds=2.0, **more):
    device = camera(faults=SCRIPTS[script], counter_bits=40, counter_start=2**39, **more)
    samples, edges = take(tmp_path, device, seconds=seconds)
    clean, _ = take(tmp_path / "clean", camera(counter_bits=40, counter_start=2**39, **more), seconds=seconds)
    return samples, clean, edges


def in_fault(edges, begin_s=0.5, end_s=1.0):
    since = edges.time_ns - edges.time_ns[0]
    return (since >= begin_s * S) & (since < end_s * S)


def test_drop_loses_samples_that_the_device_counted(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "drop")
    lost = sorted({s.sequence for s in clean} - {s.sequence for s in samples})
    expected = [k for k in edges.index[in_fault(edges)].tolist() if k % 2 == 0]
    assert lost == expected
    assert samples == [s for s in clean if s.sequence not in lost]


def test_stall_repeats_the_last_picture_while_stamps_go_on(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "stall_repeat")
    assert [(s.device_ticks, s.arrival_ns, s.sequence) for s in samples] == [
        (s.device_ticks, s.arrival_ns, s.sequence) for s in clean
    ]
    stalled = in_fault(edges)
    last = samples[int(np.argmax(stalled)) - 1].payload
    for sample, original, is_stalled in zip(samples, clean, stalled, strict=True):
        assert sample.payload == (last if is_stalled else original.payload)


def test_a_silent_stall_makes_nothing_and_counts_nothing(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "stall_silence")
    assert len(samples) == len(clean) - int(in_fault(edges).sum())
    assert [s.sequence for s in samples] == list(range(len(samples)))


def test_repeat_delivers_twice(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "repeat")
    twice = in_fault(edges)
    assert samples == [s for s, t in zip(clean, twice, strict=True) for _ in range(1 + int(t))]


def test_jitter_moves_the_exposures_themselves(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "jitter")
    off = np.array([a.device_ticks - b.device_ticks for a, b in zip(samples, clean, strict=True)])
    jittered = in_fault(edges)
    assert (off[~jittered] == 0).all()
    assert abs(off).max() <= 4000
    assert np.abs(off[jittered]).mean() > 1000


def test_drift_changes_the_rate_from_then_on(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "drift")
    off = np.array([a.device_ticks - b.device_ticks for a, b in zip(samples, clean, strict=True)])
    since_ns = edges.time_ns - edges.time_ns[0] - S // 2
    assert abs(off - np.maximum(since_ns, 0) * 500 // 1_000_000 // 1000).max() <= 1


def test_wrap_falls_back_by_a_power_of_two_ticks(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "wrap")
    off = np.array([a.device_ticks - b.device_ticks for a, b in zip(samples, clean, strict=True)])
    late = edges.time_ns - edges.time_ns[0] >= S // 2
    assert set(off[late].tolist()) == {-(2**31)}
    assert set(off[~late].tolist()) == {0}


@pytest.mark.parametrize(("script", "ticks"), [("jump_tai", 37_000_000), ("jump_back", -600_000)])
def test_jump_moves_the_clock_and_nothing_else(tmp_path, script, ticks):
    samples, clean, edges = with_fault(tmp_path, script)
    late = edges.time_ns - edges.time_ns[0] >= S // 2
    for sample, original, is_late in zip(samples, clean, late, strict=True):
        assert sample.device_ticks - original.device_ticks == (ticks if is_late else 0)
        assert (sample.sequence, sample.arrival_ns) == (original.sequence, original.arrival_ns)


def test_a_jump_lasts_beyond_its_take_and_one_that_was_never_reached_never_happens(tmp_path):
    for at_s, moved in ((1, True), (10, False)):
        fault = {"kind": "jump", "take": 1, "at_s": at_s, "seconds": 37}
        rig = SimulatedRig([camera(faults=[fault])], tmp_path / str(at_s))
        out = {}
        for number in (1, 0):
            rig.arm()
            rig.trigger.start(number, period_ns=PERIOD_NS)
            out[number] = []
            rig.run(2.0, out[number].extend)
            rig.trigger.stop()
            rig.run(0.2, out[number].extend)
            rig.disarm()
        took_ns = out[0][-1].arrival_ns - out[1][0].arrival_ns
        counted_ns = (out[0][-1].device_ticks - out[1][0].device_ticks) * 1000
        assert (counted_ns - took_ns > 36 * S) is moved
        rig.close()


def moved_us(samples, clean):
    """By how many ticks of a microsecond each sample was stamped later than in the clean take."""
    return np.array([a.device_ticks - b.device_ticks for a, b in zip(samples, clean, strict=True)])


@pytest.mark.parametrize(
    ("fault", "amount_us"),
    [
        ({"amount_us": 5000}, 5000),
        ({"amount_us": -500}, -500),
        ({"amount_us": 700, "at_s": "0.5"}, 700),
        ({"amount_us": 700, "at_s": "0.5", "for_s": "0.5"}, 700),
    ],
)
def test_offset_moves_exposures_stamps_and_arrivals_together(tmp_path, fault, amount_us):
    planned = {"trigger_delay_us": 500}
    samples, edges = take(tmp_path, camera(faults=[{"kind": "offset", **fault}], with_stream=planned))
    clean, _ = take(tmp_path / "clean", camera(with_stream=planned))
    since = edges.time_ns + 500_000 - edges.time_ns[0]
    begin_ns = S // 2 if "at_s" in fault else 0
    off = (since >= begin_ns) & (since < (S if "for_s" in fault else 99 * S))
    assert off.any()
    assert moved_us(samples, clean).tolist() == np.where(off, amount_us, 0).tolist()
    arrived = np.array([a.arrival_ns - b.arrival_ns for a, b in zip(samples, clean, strict=True)])
    assert abs(arrived - np.where(off, amount_us * 1000, 0)).max() <= abs(amount_us) * 1000
    assert np.median(arrived[off]) == amount_us * 1000


@pytest.mark.parametrize("ppm", [2000, -2000, "0.5"])
def test_free_run_exposes_by_the_devices_own_period_and_its_counter_keeps_true_time(tmp_path, ppm):
    device = camera(faults=[{"kind": "free_run", "ppm": ppm, "at_s": 1}], with_stream={"has_trigger_index": True})
    samples, edges = take(tmp_path, device, seconds=10)
    since_ns = (np.array([s.device_ticks for s in samples]) - samples[0].device_ticks) * 1000
    first_free = 60
    slots = np.arange(len(samples))
    late_ns = np.maximum(slots - first_free, 0) * PERIOD_NS * int(Decimal(ppm) * 1000) // S
    assert abs(since_ns - slots * PERIOD_NS - late_ns).max() <= 1000
    # It exposes until the train ends, more or less often than there were pulses.
    last_ns = int(edges.time_ns[-1] - edges.time_ns[0]) + PERIOD_NS
    assert last_ns - 2 * PERIOD_NS < since_ns[-1] <= last_ns
    # What it counts at its input are the pulses, which go on.
    assert [s.trigger_index for s in samples] == ((slots * PERIOD_NS + late_ns) // PERIOD_NS).tolist()
    assert [s.sequence for s in samples] == slots.tolist()


def test_free_run_of_a_decimated_stream_keeps_its_decimation(tmp_path):
    decimated = {"rate_hz": 30, "decimate": 2, "phase": 1}
    samples, _ = take(tmp_path, camera(faults=SCRIPTS["free_run"], with_stream=decimated))
    steps = np.diff([s.device_ticks for s in samples])
    assert abs(steps - 2 * PERIOD_NS * 1.002 / 1000).max() <= 1


def test_a_device_that_runs_free_and_is_armed_in_mid_train_exposes_nothing_before(tmp_path):
    rig = SimulatedRig([camera(faults=SCRIPTS["free_run"])], tmp_path)
    first_ns = rig.trigger.start(1, period_ns=PERIOD_NS)
    armed_ns = first_ns + 10 * PERIOD_NS + 1
    rig.clock.set(armed_ns)
    rig.arm()
    samples = rig.advance(0.2)
    assert samples[0].sequence == 0
    power_ns = first_ns - 1_000_000
    assert armed_ns <= power_ns + samples[0].device_ticks * 1000 + 1000 < armed_ns + 2 * PERIOD_NS
    rig.close()


@pytest.mark.parametrize("ticks", [1, 3, -2])
def test_slip_parts_exposures_from_the_count_of_pulses(tmp_path, ticks):
    counts = {"has_trigger_index": True}
    slip = {"kind": "slip", "ticks": ticks, "at_s": "0.5"}
    samples, edges = take(tmp_path, camera(faults=[slip], with_stream=counts))
    first = int(np.argmax(edges.time_ns - edges.time_ns[0] >= S // 2))
    pulses = [k for k in edges.index.tolist() if not first <= k < first + ticks]
    power_ns = int(edges.time_ns[0]) - 1_000_000
    assert [s.device_ticks for s in samples] == [(int(edges.time_ns[k]) - power_ns) // 1000 for k in pulses]
    assert [s.trigger_index for s in samples] == [k - ticks if k >= first else k for k in pulses]
    assert [s.sequence for s in samples] == list(range(len(samples)))


@pytest.mark.parametrize(("counts", "tick_ns"), [("ms", 1_000_000), ("ns", 1), ("s", 1_000_000_000)])
def test_unit_counts_another_unit_than_the_device_claims(tmp_path, counts, tick_ns):
    device = camera(faults=[{"kind": "unit", "counts": counts}], counter_bits=64)
    rig = SimulatedRig([device], tmp_path / "info")
    assert (rig.infos[0].counter.tick_num, rig.infos[0].counter.tick_den) == (1000, 1)
    rig.close()
    samples, _ = take(tmp_path, device, preview_s=1.0)
    clean, _ = take(tmp_path / "clean", camera(counter_bits=64, tick_num=1), preview_s=1.0)
    assert [s.device_ticks for s in samples] == [s.device_ticks // tick_ns for s in clean]
    assert [s.arrival_ns for s in samples] == [s.arrival_ns for s in clean]


@pytest.mark.parametrize(
    ("claims", "stamps", "moved"),
    [("middle", "start", -1000), ("middle", "end", 1000), ("start", "readout_start", 2000), ("end", "middle", -1000)],
)
def test_stamp_point_moves_stamps_and_not_exposures(tmp_path, claims, stamps, moved):
    claim = {"stamp_point": claims}
    device = camera(faults=[{"kind": "stamp_point", "stamps": stamps}], with_stream=claim)
    rig = SimulatedRig([device], tmp_path / "info")
    assert rig.infos[0].streams[0].stamp_point == claims
    rig.close()
    samples, _ = take(tmp_path, device)
    clean, _ = take(tmp_path / "clean", camera(with_stream=claim))
    assert set(moved_us(samples, clean)) == {moved}
    assert [(s.exposure_ns, s.payload) for s in samples] == [(s.exposure_ns, s.payload) for s in clean]


@pytest.mark.parametrize("compensated", [False, True])
@pytest.mark.parametrize(("point", "share"), [("start", 0), ("middle", 1), ("end", 2)])
@pytest.mark.parametrize("to_us", [3000, 500])
def test_exposure_ramps_and_moves_middles_unless_the_delay_moves_along(tmp_path, compensated, point, share, to_us):
    ramp = {"kind": "exposure", "to_us": to_us, "at_s": "0.5", "over_s": "0.5", "compensated": compensated}
    stream = {"stamp_point": point, "trigger_delay_us": 2000}
    samples, edges = take(tmp_path, camera(faults=[ramp], with_stream=stream))
    clean, _ = take(tmp_path / "clean", camera(with_stream=stream))
    since_ns = edges.time_ns - edges.time_ns[0] - S // 2
    length_us = 2000 + (to_us - 2000) * np.clip(since_ns, 0, S // 2) // (S // 2)
    assert [s.exposure_ns for s in samples] == (length_us * 1000).tolist()
    assert {int(length_us[0]), int(length_us[-1])} == {2000, to_us}
    grown_us = length_us - 2000
    expected = grown_us * share / 2 - (grown_us / 2 if compensated else 0)
    assert abs(moved_us(samples, clean) - expected).max() <= 1


def test_start_late_begins_at_its_time(tmp_path):
    samples, clean, edges = with_fault(tmp_path, "start_late")
    late = edges.time_ns - edges.time_ns[0] >= S // 2
    assert [s.device_ticks for s in samples] == [s.device_ticks for s, t in zip(clean, late, strict=True) if t]
    assert samples[0].sequence == 0


def test_miss_first_slips_by_one_and_makes_up_for_it_at_the_end(tmp_path):
    missed, clean, edges = with_fault(tmp_path, "miss_first")
    assert len(missed) == len(edges.index) - 1
    assert [s.device_ticks for s in missed] == [s.device_ticks for s in clean[1:]]
    made_up, _ = take(
        tmp_path / "2", camera(faults=SCRIPTS["miss_first_equal_counts"], counter_bits=40, counter_start=2**39)
    )
    assert len(made_up) == len(edges.index)
    assert [s.device_ticks for s in made_up[:-1]] == [s.device_ticks for s in missed]
    step = made_up[-1].device_ticks - made_up[-2].device_ticks
    assert abs(step - PERIOD_NS // 1000) <= 1


def test_faults_befall_their_own_take_only(tmp_path):
    fault = {"kind": "drop", "take": 2}
    assert take(tmp_path / "1", camera(faults=[fault]), number=1)[0]
    assert not take(tmp_path / "2", camera(faults=[fault]), number=2)[0]
    every = {"kind": "drop"}
    assert take(tmp_path / "0", camera(faults=[every]), number=0)[0]
    assert not take(tmp_path / "3", camera(faults=[every]), number=3)[0]


def test_a_driver_told_to_raise_does_and_a_vanished_device_comes_back(tmp_path):
    die = {"kind": "die", "how": "raise", "at_s": "0.5"}
    with pytest.raises(DeviceError, match="reports an internal error"):
        take(tmp_path / "1", camera(faults=[die]))
    rig = SimulatedRig([camera(faults=SCRIPTS["come_back"])], tmp_path / "2")
    sensor = rig._sensors[0]
    rig.arm()
    rig.trigger.start(1, period_ns=PERIOD_NS)
    with pytest.raises(DeviceAbsent, match="vanished from its bus"):
        rig.run(2.0, lambda samples: None)
    sensor.close()
    with pytest.raises(DeviceAbsent, match="is not there; plug it in again"):
        sensor.open()
    rig.clock.sleep(0.5)
    sensor.open()
    sensor.arm()
    assert rig.advance(0.2)
    rig.close()


def test_read_waits_no_longer_than_it_is_told(tmp_path):
    clock = FakeClock()
    SimulatedTrigger(tmp_path, monotonic_ns=clock.monotonic_ns)
    sensor = SimSensor(camera(), tmp_path, monotonic_ns=clock.monotonic_ns, sleep=clock.sleep)
    sensor.open()
    sensor.arm()
    before = clock.monotonic_ns()
    with pytest.raises(SensorSilent, match=r"device head delivered nothing within 0.05 s"):
        sensor.read(timeout_s=0.05)
    assert 50_000_000 <= clock.monotonic_ns() - before < 51_000_000
    sensor.close()


def test_pulses_of_an_empty_line_are_none():
    assert Pulses().count(10**15) == 0
