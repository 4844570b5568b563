"""Of takes with nothing wrong, nothing is claimed: random rigs, from drivers to verdict, in simulated time."""

from __future__ import annotations

import shutil

import pytest

from firsthand_edge.gate.diagnosis import diagnoses
from firsthand_edge.gate.verdict import examine
from tests.random_rigs import clean_take
from tests.simulated import record_take


def claimed(folder, seeds):
    """Seed to what is claimed of its take, of those where anything is."""
    out = {}
    for seed in seeds:
        take = clean_take(seed)
        place = folder / str(seed)
        place.mkdir()
        judgement = examine(record_take(place, seconds=take.seconds, loaded=take.rig) / "evidence.mcap")
        shutil.rmtree(place)
        reasons = [reason.code for reason in judgement.verdict.reasons]
        found = [(d["stream"], d["kind"]) for d in diagnoses(judgement.report)]
        if reasons or found:
            out[seed] = (reasons, found)
    return out


def test_nothing_is_claimed_of_clean_takes(tmp_path):
    assert claimed(tmp_path, range(30)) == {}


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(10))
def test_nothing_is_claimed_of_a_thousand_clean_takes(tmp_path, hundred):
    assert claimed(tmp_path, range(100 * hundred, 100 * (hundred + 1))) == {}
