"""The core is sync.md, sections 3 and 4, to the nanosecond: on random takes, at every edge of a block, on any build."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.dataset import take as rig
from firsthand_edge import _core
from tests.sync.figures import agreed, measured
from tests.sync.situations import EXPECTED, situations
from tests.sync.takes import take

ROOT = Path(__file__).parents[2]
T = 1000


def assert_random_takes_agree(examples: int) -> None:
    """Brute force and core say the same of so many takes, among which every situation occurs."""
    tried: Counter[str] = Counter()

    # A few hundred takes are always the same ones, because the shares below are of them; the long campaign explores.
    @settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=examples <= 800
    )
    @given(st.randoms(use_true_random=False).map(take))
    def check(taken):
        figures = agreed(taken.streams, taken.reference, taken.edges, **taken.settings)
        tried.update(["takes", *situations(taken, figures)])

    check()
    rare = {name: f"{100 * tried[name] / tried['takes']:.1f} % of {share} %" for name, share in EXPECTED.items()}
    rare = {name: text for name, text in rare.items() if 100 * tried[name] < EXPECTED[name] * tried["takes"]}
    assert not rare, f"{tried['takes']} takes do not try what they are for: {rare}"


def test_every_figure_of_random_takes_agrees_with_the_document():
    assert_random_takes_agree(800)


@pytest.mark.soak
def test_every_figure_of_many_random_takes_agrees_with_the_document():
    assert_random_takes_agree(300_000)


# ---- blocks: kernels judge many regular ticks at once, so what is irregular must be found at every place of a block


def dropped_sample(at, ticks, stamps):
    del stamps[at]


def dropped_tick(at, ticks, stamps):
    del ticks[at]


def repeated_sample(at, ticks, stamps):
    stamps.insert(at, stamps[at])


def late_sample(at, ticks, stamps):
    stamps.insert(min(at + 2, len(stamps) - 1), stamps.pop(at))


def one_sample_more(at, ticks, stamps):
    stamps.insert(at + 1, 2 * ticks[at] - stamps[at])  # as near to the tick, on its other side


def one_tick_more(at, ticks, stamps):
    ticks.insert(at + 1, 2 * stamps[at] - ticks[at])


def half_a_period(at, ticks, stamps):
    stamps[at] = ticks[at] + T // 2


def nearly_half_a_period(at, ticks, stamps):
    stamps[at] = ticks[at] - T // 2 + 1


def step_of_the_clock(at, ticks, stamps):
    stamps[at:] = [t + T // 3 for t in stamps[at:]]


def pause(at, ticks, stamps):
    stamps[at:] = [t + 3 * T for t in stamps[at:]]
    ticks[at:] = [t + 3 * T for t in ticks[at:]]


IRREGULAR = [
    dropped_sample, dropped_tick, repeated_sample, late_sample, one_sample_more, one_tick_more, half_a_period,
    nearly_half_a_period, step_of_the_clock, pause,
]  # fmt: skip


def assert_found_at(places, n):
    noise = [(37 * i) % 301 - 150 for i in range(n)]
    for at in places:
        for bend in IRREGULAR:
            ticks = [i * T for i in range(n)]
            stamps = [t + off for t, off in zip(ticks, noise, strict=True)]
            bend(at, ticks, stamps)
            streams = [
                {"name": "ref", "kind": "triggered", "times_ns": ticks},
                {"name": "p", "kind": "triggered", "times_ns": stamps, "uncertainty_ns": 7},
            ]
            agreed(streams, "ref", period_ns=T, ceiling_ns=150)


def test_what_is_irregular_is_found_at_every_place_of_a_block():
    assert_found_at(range(100), 100)
    # Longer blocks: 128, 256, 512.
    assert_found_at([127, 128, 256, 511, 512, 513, 598, 599], 600)


@pytest.mark.soak
def test_what_is_irregular_is_found_at_every_place_of_a_long_take():
    assert_found_at(range(1200), 1200)


# ---- builds


def digest_of_takes(count: int) -> str:
    """Of every figure and column of so many fixed takes, and of minutes of a rig: columns far longer than any block."""
    digest = hashlib.sha256()
    for seed in range(count):
        taken = take(Random(seed))  # noqa: S311 - no secrets
        figures = measured(taken.streams, taken.reference, taken.edges, **taken.settings)
        digest.update(json.dumps(figures, sort_keys=True).encode())
    long = rig(90)
    streams = [
        {"name": f"p{i}", "kind": "triggered", "times_ns": times, "uncertainty_ns": 30_000 * i, "clock": "xy"[i % 2]}
        for i, times in enumerate(long.pictures)
    ]
    streams += [{"name": kind, "kind": kind, "times_ns": long.imu} for kind in ("sampled", "interpolated")]
    digest.update(json.dumps(measured(streams, "p0"), sort_keys=True).encode())
    reference, partner = long.pictures[:2]
    for column in _core.match_nearest(reference, partner, 8_333_333):
        digest.update(column.tobytes())
    ranks = [_core.quantile(long.imu % 2_000_003, num, 1000) for num in (1, 500, 990, 999, 1000)]
    digest.update(json.dumps(ranks).encode())
    return digest.hexdigest()


def test_figures_are_the_same_on_the_portable_path():
    """In a process where the core takes no instructions but those that every processor has."""
    count = 300
    code = f"""
from firsthand_edge import _core
from tests.sync.test_exact import digest_of_takes
print(getattr(_core, "simd", "portable"), digest_of_takes({count}))
"""
    portable = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FIRSTHAND_EDGE_PORTABLE": "1"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    assert portable.stdout.split() == ["portable", digest_of_takes(count)]
