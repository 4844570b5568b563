"""Each cause is made by the simulator, recorded, mapped, judged, and recognised by name: alone, and two at a time.

Nothing that only the simulator knows reaches the gate: a take is `evidence.mcap`, as on a rig.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import pytest

from firsthand_edge.gate.diagnosis import diagnoses
from firsthand_edge.gate.verdict import examine
from tests.simulated import record_take, with_devices

from .simulated_causes import CAUSES, MATCHED, NEEDS_EDGES, SECONDS, VARIATIONS, Cause, S, rig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from firsthand_edge.daemon.rig import LoadedRig


def report_of(folder: Path, loaded: LoadedRig, **how: Any) -> dict[str, Any]:
    """The report of a take of a rig."""
    return examine(record_take(folder, seconds=SECONDS, loaded=loaded, **how) / "evidence.mcap").report


def judged(folder: Path, loaded: LoadedRig, **how: Any) -> list[dict[str, Any]]:
    """What is diagnosed of a take of a rig."""
    return diagnoses(report_of(folder, loaded, **how))


def check(
    found: Sequence[dict[str, Any]], expected: Sequence[tuple[str, Cause]], *, beside_jitter: bool = False
) -> None:
    """Exactly these are found, each on its stream, with its beginning and its size.

    Beside 8 ms of jitter in the same stream sizes are three times less certain (of 300 ticks, the standard error of a
    middle is 0.2 ms and that of a slope 9 % of 1000 ppm), and beginnings are known to a quarter of a second.
    """
    assert sorted((d["stream"], d["kind"]) for d in found) == sorted((name, c.kind) for name, c in expected), found
    for name, cause in expected:
        (said,) = (d for d in found if (d["stream"], d["kind"]) == (name, cause.kind))
        if cause.began_ns is not None:
            within_ns = max(cause.began_within_ns, S // 4) if beside_jitter else cause.began_within_ns
            assert said["began_ns"] is not None, said
            assert abs(said["began_ns"] - cause.began_ns) <= within_ns, said
        for key, value in cause.expected.items():
            size, within = value if isinstance(value, tuple) else (value, 0)
            exact = isinstance(size, str) or not within
            assert said[key] == size if exact else abs(said[key] - size) <= within * (3 if beside_jitter else 1), said
        assert name in said["sentence"], said


@pytest.mark.parametrize("kind", CAUSES)
def test_a_cause_alone_is_recognised(tmp_path, kind):
    report = report_of(tmp_path, rig({"left": [CAUSES[kind]]}))
    check(diagnoses(report), [("left", CAUSES[kind])])
    by_code = {reason["code"]: reason for reason in report["reasons"] if reason.get("diagnosis")}
    (first, *_) = by_code[CAUSES[kind].code]["diagnosis"]
    assert first["kind"] == kind
    assert by_code[CAUSES[kind].code]["cause"] == first["sentence"]


def test_a_rig_without_faults_has_none(tmp_path):
    assert judged(tmp_path, rig({})) == []


@pytest.mark.parametrize("cause", VARIATIONS, ids=lambda cause: f"{cause.kind}-{cause.note}")
def test_a_cause_of_another_size_is_recognised(tmp_path, cause):
    check(judged(tmp_path, rig({"right": [cause]})), [("right", cause)])


@pytest.mark.parametrize("kind", [k for k in CAUSES if k not in NEEDS_EDGES])
def test_a_cause_in_the_stream_that_numbers_the_ticks_is_found_there(tmp_path, kind):
    """Without edges the reference stream is compared with itself; the rest tell that it is the one that disagrees."""
    check(judged(tmp_path, rig({"head": [CAUSES[kind]]}, edges_number_ticks=False)), [("head", CAUSES[kind])])


def test_a_clock_that_always_was_on_the_other_time_scale_is_recognised(tmp_path):
    """Clocks that stamp rig time need no map, and no map takes their difference away."""
    loaded = rig({}, edges_number_ticks=False)
    plain = {"counter_bits": 64, "tick_num": 1, "tick_den": 1, "wrap_after_s": None, "drift_ppm": 0}
    devices = [
        device.model_copy(update={**plain, "counter_start": 37 * S if device.name == "left" else 0})
        for device in loaded.file.device
    ]
    found = judged(tmp_path, with_devices(loaded, devices), bypass_clock_maps=True)
    assert [(d["stream"], d["kind"]) for d in found] == [("left", "tai_utc")], found


def hidden(one: str, other: str, *, one_stream: bool) -> tuple[str, str] | None:
    """Which of two kinds cannot be seen beside the other, and why; None where both can."""
    for seen, unseen in ((one, other), (other, one)):
        if seen == "tai_utc" and unseen in MATCHED:
            return unseen, "stamp.tai_utc is looked at first, and no stream is matched across two time scales"
        if one_stream and seen == "unit":
            return unseen, "in a wrong unit no other figure of the stream means anything"
    return None


IMPOSSIBLE = {
    frozenset({"drift", "slip"}): "a camera that follows no pulses cannot slip against them",
}
"""Pairs that no single device can have."""
BLURRED = {
    frozenset({"stamp_point", "exposure_spread"}): ("stamp_point", "both move with the exposure, as one slope"),
    frozenset({"stamp_point", "jitter"}): ("jitter", "of 300 ticks, 8 ms of jitter hide a slope of half an exposure"),
    frozenset({"exposure_spread", "jitter"}): ("jitter", "as above"),
    frozenset({"drift", "jitter"}): ("jitter", "together they pass half a period, where matches change their ticks"),
}
"""Pairs in one stream of which only one is sure to be named: which, and why."""
PAIRS = list(combinations_with_replacement(CAUSES, 2))
ONE_STREAM = [
    pair
    for pair in PAIRS
    if pair[0] != pair[1] and frozenset(pair) not in IMPOSSIBLE and frozenset(pair) not in BLURRED
]


def spread(pairs: Sequence[tuple[str, str]], every: int) -> list[Any]:
    """All of them, of which every so manieth runs always and the rest in long runs only."""
    return [
        pytest.param(*pair, marks=() if n % every == 0 else pytest.mark.soak, id="-".join(pair))
        for n, pair in enumerate(pairs)
    ]


def seen_of(pair: tuple[str, str], names: tuple[str, str], *, one_stream: bool) -> list[tuple[str, Cause]]:
    unseen = hidden(*pair, one_stream=one_stream)
    return [(name, CAUSES[kind]) for kind, name in zip(pair, names, strict=True) if unseen is None or kind != unseen[0]]


@pytest.mark.parametrize(("one", "other"), spread(PAIRS, 2))
def test_two_causes_in_two_streams_are_both_recognised(tmp_path, one, other):
    loaded = rig({"left": [CAUSES[one]], "right": [CAUSES[other]]})
    check(judged(tmp_path, loaded), seen_of((one, other), ("left", "right"), one_stream=False))


@pytest.mark.parametrize(("one", "other"), spread(ONE_STREAM, 2))
def test_two_causes_in_one_stream_are_both_recognised(tmp_path, one, other):
    loaded = rig({"left": [CAUSES[one], CAUSES[other]]})
    check(
        judged(tmp_path, loaded),
        seen_of((one, other), ("left", "left"), one_stream=True),
        beside_jitter="jitter" in (one, other),
    )


@pytest.mark.parametrize("pair", BLURRED, ids=lambda pair: "-".join(sorted(pair)))
def test_of_two_causes_that_blur_each_other_one_is_recognised(tmp_path, pair):
    found = judged(tmp_path, rig({"left": [CAUSES[kind] for kind in sorted(pair)]}))
    assert {d["stream"] for d in found} == {"left"}
    assert BLURRED[pair][0] in {d["kind"] for d in found}
