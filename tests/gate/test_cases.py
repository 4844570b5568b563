"""Public failures of people who do this job, each met by the gate; a test carries the id of its case."""

import numpy as np
import pytest

from firsthand_edge import _core
from firsthand_edge.clock.exposure import mid_exposure
from firsthand_edge.gate import rules
from firsthand_edge.gate.episode import figures_of
from firsthand_edge.gate.figures import DomainChange, Grade
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report, report_bytes
from firsthand_edge.gate.stamp_lists import parse_stamps
from firsthand_edge.model import ABSENT, Domain, Kind, StampPoint
from firsthand_edge.spec.document import parse_spec
from tests.gate.making import MS, figures, stream
from tests.gate.recorded import SPEC, Camera, evidence

EPOCH = 1_764_537_600_000_000_000


def column(values):
    return np.array(list(values), dtype=np.int64)


def codes(reasons):
    return [reason.code for reason in reasons]


def judge(*streams, limits=None, **rest):
    found = figures(*streams, limits=limits, **rest)
    return found, rules.apply(found, limits or Limits())


class TestK01CounterWraps:
    RAW = column((4_294_900_000 + i * 33_333) % 2**32 for i in range(12))
    PEER = column((4_294_900_000 + i * 33_333) * 1000 + 580_000 for i in range(12))

    def test_k01_the_unwrapped_series_runs_on(self):
        device_ns = _core.unwrap(self.RAW, bits=32, tick_num=1000)
        assert (np.diff(device_ns) == 33_333_000).all()
        # An unwrapped counter starts where it starts; against a peer only its steps count.
        head = device_ns - device_ns[0] + self.PEER[0] - 580_000
        found, verdict = judge(
            stream("head", head), stream("peer", self.PEER), period=33_333_000, limits=Limits(min_ticks=10)
        )
        assert verdict.accepted, verdict.reasons
        assert found.sync.residual.max_ns == 580_000

    def test_k01_the_wrap_is_noted_and_rejects_nothing(self):
        contract = parse_spec(SPEC.encode(), place="a test")
        found = figures_of(evidence(Camera("head", start_ticks=2**32 - 500_000), Camera("wrist")), contract, Limits())
        verdict = rules.apply(found, Limits())
        assert verdict.accepted, verdict.reasons
        assert report(found, verdict, Limits())["streams"]["head"]["wraps"] == 1

    def test_k01_a_list_that_nobody_unwrapped_is_rejected(self):
        _, verdict = judge(stream("head", self.RAW * 1000), stream("peer", self.PEER), period=33_333_000)
        assert "stamp.wrap" in codes(verdict.reasons)

    @pytest.mark.parametrize(("bits", "tick"), [(16, 1_000_000), (32, 1), (24, 39)])
    def test_k01_other_counters(self, bits, tick):
        step = 2**bits // 10
        raw = column((2**bits - 3 * step + i * step) % 2**bits for i in range(8))
        assert (np.diff(_core.unwrap(raw, bits=bits, tick_num=tick)) == step * tick).all()


class TestK04DomainSwitch:
    @pytest.mark.parametrize("other", [Domain.UTC, Domain.MONOTONIC, Domain.PTP])
    @pytest.mark.parametrize("at", [1, 5, 119])
    def test_k04_the_change_ends_the_stream_at_its_frame(self, at, other):
        domains = [int(Domain.DEVICE)] * at + [int(other)] * (120 - at)
        contract = parse_spec(SPEC.encode(), place="a test")
        found = figures_of(evidence(Camera("head"), Camera("wrist", domains=domains)), contract, Limits())
        verdict = rules.apply(found, Limits())
        assert not verdict.accepted
        assert verdict.reasons[0].code == "stamp.domain"
        assert verdict.reasons[0].first_sample == at
        assert found.stream("wrist").domain_change == DomainChange(at, Domain.DEVICE, other)
        # The two are never subtracted: no stamp after the change is in any figure.
        assert found.stream("wrist").samples == at
        assert found.sync is None or found.sync.streams["wrist"].samples == at


class TestK12ImuBackwards:
    @pytest.mark.parametrize("back_ns", [600_000_000, 6_000_000, 1_000_000_000])
    def test_k12_the_step_is_reported_and_never_sorted_away(self, back_ns):
        imu = column(EPOCH + i * 5_000_000 - (back_ns if i >= 1000 else 0) for i in range(2000))
        head = column(EPOCH + i * 33_333_333 for i in range(300))
        _, verdict = judge(
            stream("head", head), stream("imu", imu, kind=Kind.SAMPLED, period_ns=5_000_000), period=33_333_333
        )
        reason = next(r for r in verdict.reasons if r.code == "stamp.backwards")
        assert (reason.stream, reason.first_sample) == ("imu", 1000)
        size = back_ns - 5_000_000
        assert f"{size // MS}.0 ms" in reason.sentence


class TestK18HostArrival:
    CAPTURE = column(EPOCH + i * 50_000_000 for i in range(40))

    def test_k18_residuals_come_from_capture_times(self):
        delays = (12, 25, 31, 47)
        found, verdict = judge(
            *(stream(name, self.CAPTURE) for name in ("head", "cam1", "cam2", "cam3")), period=50_000_000
        )
        assert verdict.accepted
        assert found.sync.residual.max_ns == 0
        arrived = [stream(f"cam{i}" if i else "head", self.CAPTURE + d * MS) for i, d in enumerate(delays)]
        assert "sync.ceiling" in codes(judge(*arrived, period=50_000_000)[1].reasons)

    def test_k18_arrival_alone_cannot_be_verified(self):
        contract = parse_spec(SPEC.encode(), place="a test")
        found = figures_of(evidence(Camera("head"), Camera("wrist", bound_ns=None)), contract, Limits())
        verdict = rules.apply(found, Limits())
        assert found.stream("wrist").grade is Grade.ARRIVAL
        assert codes(verdict.reasons) == ["stamp.unverified"]


class TestK21Float64:
    VALUES = (10_117_469_579, 1_486_215_887_584_922_537, 1_486_215_941_624_710_199, 1_764_537_600_123_456_789)

    def test_k21_decimals_are_read_as_decimals(self):
        lines = [f"{value // 10**9}.{value % 10**9:09d}" for value in self.VALUES]
        assert parse_stamps(lines, place="a test").times_ns.tolist() == list(self.VALUES)

    def test_k21_integers_stay_integers_to_the_end_of_the_report(self):
        times = np.array(self.VALUES, dtype=np.int64)[1:]
        found, verdict = judge(stream("head", times), stream("wrist", times), limits=Limits(min_ticks=1))
        document = report(found, verdict, Limits())
        assert document["streams"]["head"]["first_ns"] == self.VALUES[1]
        assert str(self.VALUES[3]).encode() in report_bytes(document)

    def test_k21_stamps_that_were_floats_are_warned_about(self):
        damaged = column(int(float(EPOCH + 123 + i * 50_000_000)) for i in range(200))
        assert (damaged % 256 == 0).all()
        _, verdict = judge(stream("head", damaged), stream("wrist", damaged), period=50_000_000)
        assert [(w.code, w.stream, w.measured) for w in verdict.warnings] == [
            ("stamp.float64", "head", 256),
            ("stamp.float64", "wrist", 256),
        ]


class TestK25StampPoint:
    EXPOSURE = column(1_000_000 + i * 70_000 for i in range(100))
    START = column(EPOCH + i * 33_333_333 for i in range(100))

    def test_k25_middles_agree(self):
        end = mid_exposure(self.START + self.EXPOSURE, self.EXPOSURE, StampPoint.END, 0)
        start = mid_exposure(self.START, self.EXPOSURE, StampPoint.START, 0)
        found, verdict = judge(stream("head", end), stream("b", start), period=33_333_333)
        assert verdict.accepted
        assert found.sync.residual.max_ns == 0

    def test_k25_without_the_correction_the_ceiling_breaks_from_frame_15_on(self):
        _, verdict = judge(stream("head", self.START + self.EXPOSURE), stream("b", self.START), period=33_333_333)
        (reason,) = [r for r in verdict.reasons if r.code == "sync.ceiling"]
        assert reason.first_tick == 15

    def test_k25_an_unknown_stamp_point_cannot_be_verified(self):
        with pytest.raises(ValueError, match="stamp point is unknown"):
            mid_exposure(self.START, self.EXPOSURE, StampPoint.UNKNOWN, 0)
        contract = parse_spec(SPEC.encode(), place="a test")
        found = figures_of(evidence(Camera("head"), Camera("wrist", point=StampPoint.UNKNOWN)), contract, Limits())
        assert codes(rules.apply(found, Limits()).reasons) == ["stamp.unverified"]


class TestK27FreeRunning:
    def test_k27_the_first_crossing_and_the_slope_are_named(self):
        a = column(EPOCH + i * 33_333_333 for i in range(2700))
        b = column(EPOCH + i * 33_347_228 for i in range(2699))
        _, verdict = judge(stream("head", a), stream("b", b), period=33_333_333)
        (reason,) = [r for r in verdict.reasons if r.code == "sync.ceiling"]
        assert reason.first_tick == 144  # 4.8 s: 144 steps of 13895 ns are the first over 2 ms
        assert reason.cause.startswith("b runs 417 ppm slower than head: trigger not connected")
        (one,) = reason.diagnosis
        assert (one.kind, one.began_tick, one.stream) == ("drift", 0, None)  # of two streams nobody can tell which
        assert abs(one.drift_ppb - 416_854) < 100

    @pytest.mark.parametrize("ppm", [-1000, -60, 60, 1000])
    def test_k27_other_slopes(self, ppm):
        period = 33_333_333
        count = 2700
        a = column(EPOCH + i * period for i in range(count))
        b = column(EPOCH + i * period * (1_000_000 + ppm) // 1_000_000 for i in range(count))
        _, verdict = judge(stream("head", a), stream("b", b), period=period)
        (reason,) = [r for r in verdict.reasons if r.code == "sync.ceiling"]
        assert f"{abs(ppm)} ppm {'slower' if ppm > 0 else 'faster'}" in reason.cause


class TestK30FirstTrigger:
    PERIOD = 10_000_000

    def cameras(self, late_by):
        late = {f"cam{i}" for i in (1, 2, 3)}
        names = ["head", *(f"cam{i}" for i in range(1, 8))]
        return [
            stream(n, column(EPOCH + (i + (late_by if n in late else 0)) * self.PERIOD for i in range(500)))
            for n in names
        ]

    @pytest.mark.parametrize("late_by", [1, 2, 7])
    def test_k30_matched_by_time_and_said_for_each_camera(self, late_by):
        found, verdict = judge(*self.cameras(late_by), period=self.PERIOD)
        assert verdict.accepted, verdict.reasons
        assert found.sync.residual.max_ns == 0
        assert (found.sync.trimmed_start, found.sync.trimmed_end) == (late_by, 0)
        said = [(w.stream, w.measured) for w in verdict.warnings if w.code == "trigger.first_missed"]
        assert said == [("cam1", late_by), ("cam2", late_by), ("cam3", late_by)]


class TestK28SequenceOffset:
    COLOUR = column([495_108_749_637, 495_175_183_360, 495_241_616_975, 495_308_050_837, 495_407_702_637])
    COLOUR_SEQUENCE = column([14_800, 14_802, 14_804, 14_806, 14_809])
    DISPARITY = column(
        [494_817_001_587, 494_883_632_532, 494_983_573_518, 495_050_203_940, 495_116_839_211, 495_216_777_394]
    )
    DISPARITY_SEQUENCE = column([14_747, 14_749, 14_752, 14_754, 14_756, 14_759])
    PERIOD = 33_333_333

    def test_k28_pairs_further_apart_than_half_a_period_are_left_and_counted(self):
        streams = [
            _core.Stream("disparity", "triggered", self.DISPARITY),
            _core.Stream("colour", "triggered", self.COLOUR),
        ]
        found = _core.measure(streams, reference="disparity", period_ns=self.PERIOD)
        # 14756 and 14800 are one; 14759 lies 24.84 ms from 14804, the nearest, and has no partner.
        assert found.offset_ns("colour").tolist() == [495_108_749_637 - 495_116_839_211, ABSENT]
        row = found.streams["colour"]
        assert (found.ticks, row.matched, row.missing, row.extra, row.trimmed) == (2, 1, 1, 1, 3)

    @pytest.mark.parametrize(
        ("times", "sequence", "lost"), [(COLOUR, COLOUR_SEQUENCE, 5), (DISPARITY, DISPARITY_SEQUENCE, 7)]
    )
    def test_k28_what_the_device_counted_and_did_not_deliver_is_lost_and_no_jump(self, times, sequence, lost):
        scan = _core.scan_stamps(times, sequence=sequence, period_ns=self.PERIOD)
        assert (scan.sequence_gaps, scan.jump_count) == (lost, 0)

    @pytest.mark.parametrize("behind_ms", [300, 1000])
    def test_k28_a_stream_that_comes_so_late_finds_its_partners_live(self, behind_ms):
        disparity = [EPOCH + i * self.PERIOD for i in range(300) if i % 13]
        colour = [EPOCH + i * self.PERIOD + 8 * MS for i in range(300)]
        live = _core.Monitor(
            [("disparity", "triggered", self.PERIOD, 1, 0), ("colour", "triggered", self.PERIOD, 1, 0)],
            reference="disparity",
            period_ns=self.PERIOD,
            latency_ns=behind_ms * MS,
            keep=False,
        )
        pushes = [(t, 0, t) for t in disparity] + [(t + behind_ms * MS - 8 * MS, 1, t) for t in colour]
        ticks = []
        for now, stream_at, time in sorted(pushes):
            live.push(stream_at, time)
            ticks += live.advance(now)
        ticks += live.advance(2**63 - 1)
        assert [(time, residual) for _, time, residual, _ in ticks] == [(time, 8 * MS) for time in disparity]
        assert live.late == 0
