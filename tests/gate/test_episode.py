"""An episode's evidence to figures: clocks are mapped again and held against the recorded times."""

import json

import numpy as np
import pytest

from firsthand_edge.errors import CannotJudge
from firsthand_edge.gate import rules
from firsthand_edge.gate.episode import figures_of
from firsthand_edge.gate.evidence import Evidence
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.limits import Limits
from firsthand_edge.gate.report import report
from firsthand_edge.model import Domain, StampPoint
from firsthand_edge.spec.document import parse_spec
from tests.gate.recorded import BEGIN, MS, SPEC, WARMUP, Camera, P, evidence, raw


def judged(*cameras, spec=SPEC, **rest):
    contract = parse_spec(spec.encode(), place="a test")
    limits = Limits.of_spec(contract)
    found = figures_of(evidence(*cameras, spec=spec, **rest), contract, limits)
    return found, rules.apply(found, limits)


def codes(verdict):
    return [reason.code for reason in verdict.reasons]


HEAD = Camera("head", ppm=31)
WRIST = Camera("wrist", ppm=-47, seed=2)


def test_two_drifting_clocks_behind_delays_agree():
    found, verdict = judged(HEAD, WRIST)
    assert verdict.accepted, verdict.reasons
    assert found.sync.ticks == 120
    assert found.sync.residual.max_ns < MS // 2
    assert [f.grade for f in found.streams] == [Grade.MAPPED, Grade.MAPPED]
    assert found.stream("head").samples == 120  # warm-up rows feed the map and are no part of the take


def test_a_counter_that_wraps_in_the_take_is_a_note_and_no_fault():
    found, verdict = judged(Camera("head", start_ticks=2**32 - 1_000_000), WRIST)
    assert verdict.accepted, verdict.reasons
    assert found.stream("head").wraps == 1


@pytest.mark.parametrize("left", [0, 1, 60])
def test_a_counter_beyond_int64_nanoseconds_is_said_to_be_and_blames_nobody(left):
    # 64 bits of a microsecond: from 292 years on there is no time for it.
    found, verdict = judged(HEAD, Camera("wrist", bits=64, start_ticks=2**63 // 1000 + 1 - left * 16_666))
    assert found.stream("wrist").samples == left
    (note,) = [note for note in found.notes if note.startswith("wrist:")]
    assert f"{120 - left} of 120 samples, the first sample {left}, have no time" in note
    assert found.sync is None or found.sync.streams["wrist"].samples == left
    assert verdict.accepted == (left == 60), verdict.reasons  # what is lacking of its last second is trimmed


def test_a_step_of_the_device_clock_that_its_map_absorbs_is_said():
    """Too small for `stamp.jump`, and no residual shows it, because a step splits the map (sync.md section 1)."""
    stepped = Camera("wrist", seed=2, step_at=60, step_ns=5 * MS, jitter_ns=MS)
    found, verdict = judged(HEAD, stepped)
    assert verdict.accepted, verdict.reasons
    (note,) = report(found, verdict, Limits())["notes"]
    assert note.startswith("wrist_device: its clock stepped 1 time,")
    assert report(*judged(HEAD, WRIST), Limits())["notes"] == []


def test_exposures_differ_and_middles_agree():
    found, verdict = judged(
        Camera("head", exposure_ns=8 * MS, point=StampPoint.START, min_delay_ns=12 * MS),
        Camera("wrist", exposure_ns=MS, point=StampPoint.END),
    )
    assert verdict.accepted, verdict.reasons
    assert found.sync.residual.max_ns < MS // 2


def test_recorded_times_that_the_stamps_do_not_give_are_not_judged():
    document = raw(HEAD, WRIST)
    document["samples"]["wrist"]["rig_ns"][WARMUP + 7] += 1
    contract = parse_spec(SPEC.encode(), place="a test")
    with pytest.raises(CannotJudge, match=r"wrist: sample 7 was recorded at .* \(1 of 120 samples differ\)"):
        figures_of(Evidence.parse(document, place="a test"), contract, Limits())


def test_a_torn_take_is_judged_with_the_times_that_were_recorded():
    document = raw(HEAD, WRIST, recovery="{}", close="")
    document["samples"]["wrist"]["rig_ns"][WARMUP + 7] += 1
    contract = parse_spec(SPEC.encode(), place="a test")
    found = figures_of(Evidence.parse(document, place="a test"), contract, Limits())
    assert codes(rules.apply(found, Limits())) == ["record.torn"]
    assert "times are as recorded" in found.notes[0]


def test_a_take_that_was_never_closed_is_torn():
    _, verdict = judged(HEAD, WRIST, close="")
    assert codes(verdict) == ["record.torn"]
    assert "never closed" in verdict.reasons[0].sentence


def test_grade_arrival_is_not_verified():
    found, verdict = judged(HEAD, Camera("wrist", bound_ns=None))
    assert codes(verdict) == ["stamp.unverified"]
    assert found.stream("wrist").grade is Grade.ARRIVAL


def test_an_unknown_stamp_point_is_not_verified():
    _, verdict = judged(HEAD, Camera("wrist", point=StampPoint.UNKNOWN))
    assert codes(verdict) == ["stamp.unverified"]


def test_samples_without_a_stamp_are_counted_and_not_judged():
    found, verdict = judged(HEAD, Camera("wrist", unstamped=[50]), spec=SPEC + "\n[rules]\nmissing_ratio_max = 0.01\n")
    assert verdict.accepted, verdict.reasons
    assert (found.stream("wrist").samples, found.stream("wrist").unstamped) == (119, 1)


def test_a_required_stream_that_no_device_has_is_absent():
    _, verdict = judged(HEAD)
    assert ("sync.no_ticks", "wrist") in [(r.code, r.stream) for r in verdict.reasons]


def test_a_change_of_domain_ends_the_stream():
    domains = [int(Domain.DEVICE)] * 5 + [int(Domain.MONOTONIC)] * 115
    found, verdict = judged(HEAD, Camera("wrist", domains=domains))
    assert found.stream("wrist").samples == 5
    assert verdict.reasons[0].code == "stamp.domain"
    assert verdict.reasons[0].first_sample == 5


def test_frozen_pictures():
    digests = list(range(120))
    digests[40:50] = [40] * 10
    _, verdict = judged(HEAD, Camera("wrist", digests=digests))
    assert codes(verdict) == ["picture.frozen"]
    assert (verdict.reasons[0].measured, verdict.reasons[0].first_sample) == (10, 40)


def test_an_imu_payload_may_repeat():
    _, verdict = judged(HEAD, Camera("wrist", media="imu", digests=[1] * 120))
    assert verdict.accepted, verdict.reasons


def test_a_jump_by_37_seconds_is_a_change_of_time_scale():
    found, verdict = judged(HEAD, Camera("wrist", step_at=60, step_ns=37 * 10**9, bits=64))
    assert codes(verdict) == ["stamp.tai_utc"]
    assert (verdict.reasons[0].measured, verdict.reasons[0].first_sample) == (37, 60)
    assert found.sync is None


def test_the_first_pulse_missed_by_one_camera():
    _, verdict = judged(HEAD, Camera("wrist", first=1))
    assert verdict.accepted, verdict.reasons
    assert [(w.code, w.stream, w.measured) for w in verdict.warnings] == [("trigger.first_missed", "wrist", 1)]


def test_pulses_are_judged_where_they_were_recorded():
    edges = np.arange(120, dtype=np.int64) * P
    _, verdict = judged(HEAD, WRIST, edges=np.delete(edges, [50]))
    assert codes(verdict) == ["trigger.missed"]


def test_what_the_balance_sheet_lost():
    none = {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0}
    for place in none:
        close = json.dumps({"balance": {"head": none, "wrist": {**none, place: 3}}})
        _, verdict = judged(HEAD, WRIST, close=close)
        assert codes(verdict) == ["record.overrun"]
        assert verdict.reasons[0].measured == 3


def test_a_count_that_is_not_there_is_not_zero():
    none = {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0}
    close = json.dumps({"balance": {"head": none, "wrist": {"lost_socket": 0, "lost_disk": 0}}})
    _, verdict = judged(HEAD, WRIST, close=close)
    assert "record.overrun:wrist" in verdict.not_judged


def test_without_a_balance_sheet_overrun_is_not_judged():
    _, verdict = judged(HEAD, WRIST, close="{}")
    assert "record.overrun" in verdict.not_judged


def test_a_worker_that_died_and_came_back_with_a_new_counter():
    found, verdict = judged(
        HEAD,
        Camera("wrist", restart_at=60),
        events=[
            {"kind": "worker_died", "device": "wrist_device", "cause": "its worker ended with signal 11 (SIGSEGV)"}
        ],
    )
    assert found.stream("wrist").incarnations == 2
    assert "stamp.backwards" not in codes(verdict)
    lost = next(reason for reason in verdict.reasons if reason.code == "stream.lost")
    assert lost.cause == "the worker of wrist_device died: its worker ended with signal 11 (SIGSEGV)"


def test_a_trigger_index_matches_by_pulse():
    head, slipped = Camera("head", trigger_index=True), Camera("wrist", trigger_index=True, skew_ns=P)
    _, verdict = judged(head, slipped)
    assert "sync.ceiling" in codes(verdict)
    ceiling = next(reason for reason in verdict.reasons if reason.code == "sync.ceiling")
    assert ceiling.cause.startswith("wrist slipped by 1 tick against its trigger count")
    assert [(one.kind, one.ticks) for one in ceiling.diagnosis] == [("slip", 1)]


def test_a_trigger_index_is_void_after_a_restart():
    head = Camera("head", trigger_index=True)
    found, _ = judged(head, Camera("wrist", trigger_index=True, skew_ns=P, restart_at=60))
    assert found.sync.residual.max_ns < P // 2


def test_native_stamps_of_a_foreign_recording():
    native = {"identity": True, "bits": 64, "tick_num": 1}
    found, verdict = judged(Camera("head", **native), Camera("wrist", point=StampPoint.END, **native))
    assert verdict.accepted, verdict.reasons
    assert found.stream("head").grade is Grade.NATIVE
    assert found.sync.residual.max_ns == 0


def test_stamps_after_their_own_arrival():
    _, verdict = judged(
        HEAD, Camera("wrist", point=StampPoint.MIDDLE, identity=True, bits=64, tick_num=1, min_delay_ns=0)
    )
    assert verdict.accepted, verdict.reasons
    _, verdict = judged(
        HEAD,
        Camera("wrist", point=StampPoint.START, identity=True, bits=64, tick_num=1, min_delay_ns=-3 * MS, jitter_ns=1),
    )
    assert "stamp.future" in codes(verdict)


def test_streams_of_one_device_share_its_clock():
    left = Camera("head", device="stereo", ppm=80, start_ticks=2**32 - 900_000)
    right = Camera("wrist", device="stereo", ppm=80, start_ticks=2**32 - 900_000, seed=9)
    found, verdict = judged(left, right)
    assert verdict.accepted, verdict.reasons
    # One clock, one quantisation: what differs is the moment at which the map stood.
    assert found.sync.residual.max_ns < 20_000
    assert [f.device for f in found.streams] == ["stereo", "stereo"]
    # Uncertainties of one clock do not add up.
    assert found.sync.guarded.max_ns == found.sync.residual.max_ns


def test_a_narrow_counter_jumps_by_37_seconds():
    _, verdict = judged(HEAD, Camera("wrist", step_at=60, step_ns=37 * 10**9, start_ticks=2**32 - 700_000))
    assert codes(verdict) == ["stamp.tai_utc"]


@pytest.mark.parametrize(("lost", "trusted"), [(0, False), (3, False), (4, True)])
def test_contradicting_times_are_excused_only_where_the_loss_rejects(lost, trusted):
    spec = SPEC + "\n[rules]\noverrun_max = 3\n"
    balance = {name: {"lost_socket": 0, "lost_queue": 0, "lost_disk": 0} for name in ("head", "wrist")}
    balance["wrist"]["lost_queue"] = lost
    document = raw(HEAD, WRIST, spec=spec, close=json.dumps({"balance": balance}))
    document["samples"]["wrist"]["rig_ns"][WARMUP + 7] += 1
    contract = parse_spec(spec.encode(), place="a test")
    limits = Limits.of_spec(contract)
    found = Evidence.parse(document, place="a test")
    if not trusted:
        with pytest.raises(CannotJudge, match="no verdict can be trusted"):
            figures_of(found, contract, limits)
        return
    verdict = rules.apply(figures_of(found, contract, limits), limits)
    assert codes(verdict) == ["record.overrun"]


def test_triggered_bytes_that_are_no_picture_are_listed():
    _, verdict = judged(HEAD, Camera("wrist", media="record"))
    assert verdict.accepted
    assert "picture.frozen:wrist" in verdict.not_judged


def hidden_behind_a_missing_head(**rest):
    """The head lacks one frame of 300, and there, only there, two wrists are 5 ms apart."""
    spec = SPEC + '[[streams]]\nname = "wrist_2"\nkind = "triggered"\nrate_hz = 60\n'
    skew = np.zeros(WARMUP + 300, dtype=np.int64)
    skew[WARMUP + 100] = 5 * MS
    same = {"count": 300, "identity": True, "jitter_ns": 1, "bits": 64, "tick_num": 1}
    cameras = [
        Camera("head", gone=[100], **same),
        Camera("wrist", **same),
        Camera("wrist_2", skew_ns=skew, min_delay_ns=9 * MS, **same),
    ]
    edges = BEGIN - 5 * MS + P * np.arange(300, dtype=np.int64)
    return judged(*cameras, spec=spec, edges=edges, **rest)


def test_recorded_edges_number_the_ticks_so_that_no_missing_frame_hides_a_disagreement():
    take = {"episode": "test-1", "clock": {"timebase": "arb"}, "tick_offset_ns": 5 * MS}
    found, verdict = hidden_behind_a_missing_head(take=take)
    assert codes(verdict) == ["sync.ceiling"]
    assert verdict.reasons[0].pair == ("wrist", "wrist_2")
    assert verdict.reasons[0].first_tick == 100
    assert found.reference == "trigger"
    assert found.sync.ticks == 300
    assert found.sync.streams["head"].missing == 1


def test_edges_without_the_rigs_constant_number_nothing_and_the_report_says_so():
    found, _ = hidden_behind_a_missing_head()
    assert found.reference == "head"
    assert any("mid_exposure_us" in note for note in found.notes)


def test_with_edges_cameras_that_all_miss_the_first_pulse_are_told():
    take = {"episode": "test-1", "clock": {"timebase": "arb"}, "tick_offset_ns": 0}
    edges = BEGIN + P * np.arange(122, dtype=np.int64)
    found, verdict = judged(
        Camera("head", first=2, ppm=31), Camera("wrist", first=2, ppm=-47, seed=2), edges=edges, take=take
    )
    assert verdict.accepted, verdict.reasons
    assert {(w.code, w.stream, w.measured) for w in verdict.warnings} == {
        ("trigger.first_missed", "head", 2),
        ("trigger.first_missed", "wrist", 2),
    }
    assert found.sync.trimmed_start == 2


def test_against_edges_a_camera_that_runs_free_is_named_with_its_drift():
    take = {"episode": "test-1", "clock": {"timebase": "arb"}, "tick_offset_ns": 0}
    count = 600
    skew = np.concatenate((np.zeros(WARMUP, np.int64), np.arange(count, dtype=np.int64) * (P * 417 // 1_000_000)))
    same = {"count": count, "identity": True, "jitter_ns": 1, "min_delay_ns": 9 * MS, "bits": 64, "tick_num": 1}
    _, verdict = judged(
        Camera("head", **same),
        Camera("wrist", skew_ns=skew, **same),
        edges=BEGIN + P * np.arange(count, dtype=np.int64),
        take=take,
    )
    (reason,) = [r for r in verdict.reasons if r.code == "sync.ceiling"]
    assert reason.cause == "wrist runs 417 ppm slower than the trigger: trigger not connected"
