"""The rig file: contradictions are found all at once, and the spec it names is read beside it."""

import re

import pytest

from firsthand_edge.daemon.rig import ContractSection, _signing, load_rig
from firsthand_edge.errors import ConfigInvalid, PlanInvalid, SpecInvalid
from tests.daemon.rigs import PLAN, RIG, write_rig
from tests.simulated import CONFIGS


@pytest.mark.parametrize("name", ["sim.toml", "replay-aria.toml"])
def test_the_rig_files_of_the_project_are_good(name):
    rig = load_rig(CONFIGS / name)
    assert rig.spec.required
    assert rig.document == (CONFIGS / name).read_bytes()
    assert rig.plan is not None
    assert rig.spec_path.read_bytes() == rig.spec_document


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
        (("throw_away_key = true\n", ""), "contract: names nobody who signs the spec"),
        (("throw_away_key = true", f'throw_away_key = true\nsigners = ["{"0" * 64}"]'), "keep one of the two"),
        (("throw_away_key = true", "signers = []"), "contract.signers"),
        (("throw_away_key = true", 'signers = ["abc"]'), "contract.signers"),
        (("throw_away_key = true", f'signers = ["{"0" * 64}", "{"0" * 64}"]'), "signers[1]: is there already"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, change, says):
    with pytest.raises(ConfigInvalid) as caught:
        load_rig(write_rig(tmp_path, rig=RIG.replace("{fault}", "").replace(*change)))
    assert says in str(caught.value)


def test_only_where_nobody_is_recorded_the_rig_signs_for_itself():
    contract = ContractSection(spec="spec.toml", throw_away_key=True)
    assert list(_signing(contract, "not_checked")) == []
    [(place, sentence)] = list(_signing(contract, "recorded"))
    assert place == ("contract", "throw_away_key")
    assert "have the spec signed by the parties" in sentence


def test_a_plan_that_does_not_fit_is_an_error_of_the_plan(tmp_path):
    path = write_rig(tmp_path, plan=PLAN.replace("pick-cup", "juggle"))
    with pytest.raises(PlanInvalid, match=r"plan\.toml has 1 mistake.*\n.*no task `juggle`"):
        load_rig(path)
    (tmp_path / "other.toml").write_text(PLAN)
    plan = load_rig(path, plan=tmp_path / "other.toml").plan
    assert plan is not None
    assert plan.name == "other.toml"


def test_every_field_of_the_contract_is_in_the_manual():
    page = (CONFIGS.parent / "docs/capture.md").read_text().split("## The contract")[1]
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", page, flags=re.MULTILINE))
    assert rows == set(ContractSection.model_fields)


def test_a_rig_needs_no_plan(tmp_path):
    assert load_rig(write_rig(tmp_path, rig=RIG.replace('plan = "plan.toml"\n', ""))).plan is None


def test_a_bad_spec_is_an_error_of_the_spec(tmp_path):
    with pytest.raises(SpecInvalid, match=r"spec\.toml"):
        load_rig(write_rig(tmp_path, spec="id = 3\n"))
