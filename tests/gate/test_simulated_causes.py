"""What the causes of `simulated_causes` leave in the evidence, read without any diagnosis: they are really there."""

from __future__ import annotations

import numpy as np
import pytest

from firsthand_edge.gate.verdict import examine
from firsthand_edge.model import ABSENT
from tests.simulated import record_take

from .simulated_causes import CAMERAS, CAUSES, PERIOD_NS, SECONDS, SIZE_NS, US, VARIATIONS, S, rig


def judged(folder, causes, stream="left"):
    return examine(record_take(folder, seconds=SECONDS, loaded=rig({stream: causes})) / "evidence.mcap")


def offsets_of(judgement, name="left"):
    """(n,) seconds into the take, and offset from the tick in us, where the stream has a sample."""
    sync = judgement.figures.sync
    offset = sync.offset_ns(name)
    there = offset != ABSENT
    return (sync.reference_ns[there] - sync.reference_ns[0]) / S, offset[there] / US


def made(kind, folder):
    return offsets_of(judged(folder, [CAUSES[kind]]))


def near(values, expected):
    """Whether offsets in us are as expected, but for what the clock map may be off."""
    return bool((np.abs(values - expected) <= SIZE_NS / US).all())


@pytest.mark.parametrize("cause", [*CAUSES.values(), *VARIATIONS], ids=lambda cause: f"{cause.kind}-{cause.note}")
def test_a_take_with_a_cause_is_rejected_for_it_and_no_other_stream_is_named(tmp_path, cause):
    verdict = judged(tmp_path, [cause]).verdict
    assert cause.code in {reason.code for reason in verdict.reasons}
    assert {reason.stream for reason in verdict.reasons} == {"left"}


def test_a_take_without_a_cause_is_accepted_and_every_camera_is_on_the_tick(tmp_path):
    clean = judged(tmp_path, [])
    assert clean.verdict.accepted
    assert not clean.verdict.warnings
    for name in CAMERAS:
        assert near(offsets_of(clean, name)[1], 0)


def test_a_constant_is_one(tmp_path):
    _, offset = made("constant", tmp_path)
    assert near(offset, 3500)


def test_a_step_is_one(tmp_path):
    at, offset = made("step", tmp_path)
    assert near(offset, np.where(at >= 3, -3000, 0))


def test_a_camera_without_trigger_drifts(tmp_path):
    at, offset = made("drift", tmp_path)
    assert near(offset, 1000 * at)


def test_a_slip_is_one_period(tmp_path):
    at, offset = made("slip", tmp_path)
    assert near(offset, np.where(at >= 2, PERIOD_NS / US, 0))


def test_a_wrong_stamp_point_adds_half_of_each_exposure(tmp_path):
    at, offset = made("stamp_point", tmp_path)
    exposure = 6000 - 1500 * np.clip((at - 1) / 2, 0, 1)
    # Claimed middles are ends: 2000 us after the pulse and one exposure, where 5000 us are planned.
    assert near(offset, 2000 + exposure - 5000)


def test_auto_exposure_moves_middles_by_half_of_its_change(tmp_path):
    at, offset = made("exposure_spread", tmp_path)
    assert near(offset, -2750 * np.clip((at - 1) / 2, 0, 1))


def test_jitter_is_spread_over_twice_its_amount(tmp_path):
    at, offset = made("jitter", tmp_path)
    assert near(offset[at < 1.45], 0)
    jittered = offset[at >= 1.5]
    assert np.abs(jittered).max() <= 4000 + SIZE_NS / US
    assert np.percentile(jittered, 95) - np.percentile(jittered, 5) == pytest.approx(7200, abs=800)
