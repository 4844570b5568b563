"""The rule set as a whole: order, what is withheld, what is listed as not judged."""

import numpy as np

from firsthand_edge.gate import rules
from firsthand_edge.gate.figures import Death, DomainChange, Edges, Frozen, Future, Grade, Loss, Stamps, Step
from firsthand_edge.gate.limits import Limits
from firsthand_edge.model import Domain, Kind
from tests.gate.making import MS, P, figures, stream, ticks, with_facts

SECOND = 10**9
DEVICE = {
    "grade": Grade.MAPPED,
    "domain": Domain.DEVICE,
    "future": Future(0),
    "loss": Loss(),
    "frozen": Frozen(1, 0),
    "media": "picture/png",
    "period_ns": P,
    "has_sequence": True,
}


def codes(reasons):
    return [reason.code for reason in reasons]


def good(**rest):
    return figures(stream("head", ticks(60), **DEVICE), stream("wrist", ticks(60), **DEVICE), recorded=True, **rest)


def test_a_good_take_is_accepted_and_says_what_nobody_judged():
    verdict = rules.apply(good(), Limits())
    assert verdict.accepted
    assert verdict.reasons == verdict.warnings == ()
    assert verdict.not_judged == (
        "calibration.*",
        "clock.*",
        "consent.*",
        "trigger.doubled",
        "trigger.missed",
        "trigger.rate",
    )


def test_pulses_that_were_recorded_are_judged():
    edges = Edges(60, P, 0, None, 0, None, 59 * P)
    verdict = rules.apply(good(edges=edges), Limits())
    assert verdict.not_judged == ("calibration.*", "clock.*", "consent.*")


def test_plain_lists_list_every_rule_that_had_nothing_to_go_by():
    verdict = rules.apply(figures(stream("head", ticks(60)), stream("wrist", ticks(60))), Limits())
    assert verdict.accepted
    assert set(verdict.not_judged) == {
        "calibration.*",
        "clock.*",
        "consent.*",
        "picture.frozen",
        "record.overrun",
        "record.torn",
        "stamp.domain",
        "stamp.future",
        "stamp.tai_utc:head",
        "stamp.tai_utc:wrist",
        "stamp.unit",
        "stamp.unverified",
        "stream.rate",
        "trigger.doubled",
        "trigger.missed",
        "trigger.rate",
    }


def test_a_rule_that_lacks_figures_of_some_streams_names_them():
    found = with_facts(with_facts(good(), "wrist", period_ns=None), "head", loss=None)
    lacking = rules.apply(found, Limits()).not_judged
    assert {"stream.rate:wrist", "stamp.unit:wrist", "record.overrun:head"} <= set(lacking)
    assert "stream.rate" not in lacking


def test_an_imu_has_no_pictures_to_be_frozen():
    imu = stream("imu", ticks(600, period=P // 10), kind=Kind.SAMPLED, **{**DEVICE, "frozen": None, "media": "imu"})
    found = figures(stream("head", ticks(60), **DEVICE), imu, recorded=True)
    assert not any(code.startswith("picture") for code in rules.apply(found, Limits()).not_judged)


def test_nothing_is_matched_across_two_time_scales():
    wrist = stream("wrist", ticks(60) + 37 * SECOND, **DEVICE)
    verdict = rules.apply(figures(stream("head", ticks(60), **DEVICE), wrist, recorded=True), Limits())
    assert codes(verdict.reasons) == ["stamp.tai_utc"]
    assert {"sync.*", "stream.late", "stream.early"} <= set(verdict.not_judged)


def test_a_step_of_the_time_scale_is_said_once():
    times = ticks(120)
    times[60:] += 37 * SECOND
    step = Step(60, 37 * SECOND + P, P, "tai_utc", "37 s")
    found = figures(
        stream("head", ticks(120), **DEVICE),
        stream("wrist", times, **{**DEVICE, "stamps": Stamps(samples=120, steps=(step,), tai_utc_count=1)}),
        recorded=True,
    )
    verdict = rules.apply(found, Limits())
    assert codes(verdict.reasons) == ["stamp.tai_utc"]
    assert {"sync.*", "stream.lost:wrist", "stream.rate:wrist"} <= set(verdict.not_judged)


def test_what_does_not_rest_on_the_match_still_speaks():
    frozen = {**DEVICE, "frozen": Frozen(9, 4)}
    found = figures(
        stream("head", ticks(60), **frozen),
        stream("wrist", ticks(60) + 37 * SECOND, **DEVICE),
        recorded=True,
        torn="cut",
    )
    assert codes(rules.apply(found, Limits()).reasons) == ["stamp.tai_utc", "record.torn", "picture.frozen"]


def test_every_rejecting_rule_can_speak():
    """Faults of every kind in one take or another, so that no rule is a rule that never says anything."""
    spoken = set()

    def judge(found, **limits):
        spoken.update(codes(rules.apply(found, Limits(**limits)).reasons))

    def changed(**facts):
        return with_facts(good(), "wrist", **facts)

    jump = Step(3, 90 * MS, P, "jump", "")
    wrap = Step(3, -(2**32) * 1000, None, "wrap", "2^32 us")
    judge(figures(stream("head", ticks(60)), stream("wrist", ticks(60) + 37 * SECOND)))
    judge(good(torn="cut"))
    judge(changed(loss=Loss(socket=1)))
    judge(changed(domain_change=DomainChange(5, Domain.DEVICE, Domain.UTC)))
    judge(changed(grade=Grade.ARRIVAL))
    judge(changed(stamps=Stamps(samples=60, median_step_ns=P // 1000)))
    judge(changed(stamps=Stamps(samples=60, steps=(wrap,), wrap_count=1)))
    judge(changed(stamps=Stamps(samples=60, backwards=1, first_backwards=3, late_by=1, largest_backwards_ns=9)))
    judge(changed(stamps=Stamps(samples=60, steps=(jump,), jump_count=1)))
    judge(changed(stamps=Stamps(samples=60, duplicate=1)))
    judge(changed(future=Future(1, 0, 9)))
    judge(figures(stream("head", ticks(600)), stream("wrist", ticks(600)[100:])))
    judge(figures(stream("head", ticks(600)), stream("wrist", ticks(600)[:500])))
    judge(changed(deaths=(Death("wrist", ""),)))
    judge(figures(stream("head", ticks(60), period_ns=2 * P)))
    judge(changed(frozen=Frozen(4, 0)))
    judge(good(edges=Edges(60, P, 1, 3, 1, 3, 40 * P)))
    judge(figures(stream("head", ticks(60)), stream("wrist", np.delete(ticks(60), [9]) + 3 * MS)))
    judge(good(outcome="failure"), retain_failures=False)
    assert spoken == {code for code, _ in rules.REJECTING}


def test_every_warning_can_speak():
    late = stream("wrist", ticks(59)[1:] + 1_900_000)
    stamps = Stamps(samples=60, distinct=60, steps_gcd_ns=256)
    found = with_facts(figures(stream("head", ticks(60)), late), "head", stamps=stamps)
    verdict = rules.apply(found, Limits())
    assert verdict.accepted
    assert set(codes(verdict.warnings)) == {code for code, _ in rules.WARNING}


def test_reasons_come_in_the_order_of_the_rules():
    found = figures(
        stream("head", ticks(60), **DEVICE),
        stream("wrist", np.delete(ticks(60), [5]) + 3 * MS, **{**DEVICE, "frozen": Frozen(9, 0)}),
        torn="cut",
        recorded=True,
    )
    spoken = codes(rules.apply(found, Limits()).reasons)
    order = [code for code, _ in rules.REJECTING]
    assert spoken == sorted(spoken, key=order.index)
    assert spoken == ["record.torn", "picture.frozen", "sync.missing", "sync.ceiling"]


def test_without_sequence_numbers_steps_of_a_time_scale_are_not_told():
    found = with_facts(good(), "wrist", has_sequence=False)
    assert "stamp.tai_utc:wrist" in rules.apply(found, Limits()).not_judged
    assert not any(code.startswith("stamp.tai_utc") for code in rules.apply(good(), Limits()).not_judged)


def test_pictures_in_bytes_of_their_own_media_are_not_judged():
    bytes_only = {**DEVICE, "frozen": None, "media": "record"}
    found = figures(stream("head", ticks(60), **DEVICE), stream("wrist", ticks(60), **bytes_only), recorded=True)
    assert "picture.frozen:wrist" in rules.apply(found, Limits()).not_judged
    glove = stream("glove", ticks(60), kind=Kind.INTERPOLATED, **bytes_only)
    found = figures(stream("head", ticks(60), **DEVICE), glove, recorded=True)
    assert not any(code.startswith("picture") for code in rules.apply(found, Limits()).not_judged)


def test_where_nothing_was_matched_the_rules_on_the_match_are_not_judged():
    blank = rules.apply(figures(stream("head", []), stream("wrist", ticks(60))), Limits())
    assert codes(blank.reasons) == ["sync.no_ticks"]
    assert {"sync.ceiling", "sync.missing"} <= set(blank.not_judged)
    alone = rules.apply(figures(stream("head", ticks(60))), Limits())
    assert "sync.ceiling" in alone.not_judged  # one stream has nobody to disagree with
    assert "sync.missing" not in alone.not_judged
    apart = rules.apply(figures(stream("head", ticks(60)), stream("wrist", ticks(60) + 5 * SECOND)), Limits())
    assert {"sync.ceiling", "sync.missing"} <= set(apart.not_judged)
    assert not any(code.startswith("sync") for code in rules.apply(good(), Limits()).not_judged)
