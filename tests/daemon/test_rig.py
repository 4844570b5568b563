"""The rig file: contradictions are found all at once, and the spec it names is read beside it."""

import pytest

from firsthand_edge.daemon.rig import load_rig
from firsthand_edge.errors import ConfigInvalid, SpecInvalid
from tests.daemon.rigs import RIG, write_rig
from tests.simulated import CONFIGS


@pytest.mark.parametrize("name", ["sim.toml", "replay-aria.toml"])
def test_the_rig_files_of_the_project_are_good(name):
    rig = load_rig(CONFIGS / name)
    assert rig.spec.required
    assert rig.document == (CONFIGS / name).read_bytes()


def test_the_period_is_the_triggers_rate_rounded_to_a_nanosecond(tmp_path):
    assert load_rig(write_rig(tmp_path)).period_ns == 16_666_667


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('name = "wrist"\ndriver', 'name = "head"\ndriver'), "'head' is device[0] already"),
        (("rate_hz = 60\nmid_exposure_us = 2000\n", ""), "needs `rate_hz`"),
        (('kind = "simulated"', 'kind = "replayed"'), "needs pulses"),
        (('timebase = "arb"', 'timebase = "gps"'), "'ptp' or 'arb'"),
        (('id = "test-01"', 'id = "Test 01"'), "rig.id"),
        (("[store]\n", "[stroe]\n"), "stroe"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, says):
    with pytest.raises(ConfigInvalid) as caught:
        load_rig(write_rig(tmp_path, rig=RIG.replace("{fault}", "").replace(*change)))
    assert says in str(caught.value)


def test_a_bad_spec_is_an_error_of_the_spec(tmp_path):
    with pytest.raises(SpecInvalid, match=r"spec\.toml"):
        load_rig(write_rig(tmp_path, spec="id = 3\n"))
