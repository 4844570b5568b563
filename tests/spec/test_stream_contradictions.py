"""Streams, sync and rules that cannot be true at once."""

from __future__ import annotations

import pytest

from firsthand_edge.errors import SpecInvalid
from firsthand_edge.spec.document import Spec, parse_spec
from tests.spec.test_digest import SMALL as MINIMAL


def parse(text: str) -> Spec:
    return parse_spec(text.encode(), place="spec.toml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(SpecInvalid) as caught:
        parse(text)
    assert caught.value.exit_status == 4
    return [str(m) for m in caught.value.mistakes]


SECOND = '[[streams]]\nname = "x"\nkind = "{kind}"\n{more}\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            MINIMAL + '[sync]\nreference = "hed"\n',
            "no stream is called `hed`; name a required triggered one: head, wrist",
        ),
        (
            MINIMAL.replace('"head"\nkind = "triggered"', '"head"\nkind = "sampled"'),
            "only a triggered stream numbers ticks",
        ),
        (
            MINIMAL.replace("rate_hz = 60\n", "rate_hz = 60\nrequired = false\n", 1),
            "not required; the reference must be",
        ),
        (MINIMAL.replace("rate_hz = 60\n", "rate_hz = 60\ndecimate = 2\n", 1), "the reference has one for each"),
        (MINIMAL.replace('name = "wrist"', 'name = "head"'), "`head` is there 2 times"),
        (MINIMAL + "[sync]\nceiling_ms = 0\n", "greater than 0"),
        (MINIMAL + "[sync]\nceiling_ms = 16.666667\n", "no residual could ever exceed it"),
        (MINIMAL + "[sync]\nceiling_ms = 0.00000001\n", "finer than one nanosecond"),
        (MINIMAL + '[sync]\nstatistic = "mean"\n', "'max', 'p99' or 'p99.9'"),
        (MINIMAL + "[rules]\nmissing_ratio_max = 1.5\n", "less than or equal to 1"),
        (MINIMAL + "[rules]\nmissing_run_max = 2.5\n", "whole number"),
        (MINIMAL + "[rules]\nmissing_run_max = true\n", "whole number"),
        (MINIMAL + "[rules]\nsilence_max_ms = 16\n", "already breaks rules.silence_max_ms"),
        (MINIMAL + "[rules]\nmising_ratio_max = 0\n", "unknown key"),
        (MINIMAL + SECOND.format(kind="sampled", more="rate_hz = 9\ndecimate = 2"), "is for triggered streams"),
        (MINIMAL + SECOND.format(kind="sampled", more=""), "sampled and required, so its rate must be stated"),
        (MINIMAL + SECOND.format(kind="interpolated", more=""), "add rate_hz, or max_gap_ms"),
        (
            MINIMAL + SECOND.format(kind="interpolated", more="rate_hz = 60\nmax_gap_ms = 9"),
            "every tick would be missing",
        ),
        (
            MINIMAL + SECOND.format(kind="triggered", more="decimate = 2\nphase = 2"),
            "must be below decimate, which is 2",
        ),
        (MINIMAL + SECOND.format(kind="triggered", more="rate_hz = 30"), "does not follow `head` at 60 Hz"),
        (MINIMAL + SECOND.format(kind="triggered", more="max_gap_ms = 30"), "is for interpolated streams"),
        (MINIMAL + SECOND.format(kind="event", more="rate_hz = 30"), "holds events, which have no rate"),
        (MINIMAL + SECOND.format(kind="dance", more=""), "'triggered', 'sampled', 'interpolated' or 'event'"),
        (MINIMAL + SECOND.format(kind="event", more="").replace('"x"', '"a/b"'), "pattern"),
        (
            MINIMAL.replace('[[streams]]\nname = "wrist"\nkind = "triggered"\nrate_hz = 60\n', ""),
            "a residual needs a second triggered or sampled stream",
        ),
        (
            MINIMAL + SECOND.format(kind="triggered", more='rate_hz = 60\nstamp_points = ["start", "unknown"]'),
            "allows `unknown`, and a required stream whose stamps cannot be verified is always rejected",
        ),
        (
            MINIMAL + SECOND.format(kind="event", more='stamp_points = ["start", "start"]'),
            "`start` is in the list twice",
        ),
        (MINIMAL + SECOND.format(kind="event", more='stamp_domains = ["utc", "utc"]'), "`utc` is in the list twice"),
        (MINIMAL + SECOND.format(kind="event", more='stamp_domains = ["utc"]'), "allows only UTC, which steps"),
        (MINIMAL + SECOND.format(kind="event", more="stamp_domains = []"), "at least 1 item"),
        (
            MINIMAL + SECOND.format(kind="event", more='stamp_domains = ["gps"]'),
            "'ptp', 'device', 'monotonic' or 'utc'",
        ),
        (MINIMAL + SECOND.format(kind="event", more='provenance = "guessed"'), "'live' or 'derived'"),
    ],
)
def test_a_contradiction_is_one_sentence_at_its_place(text: str, sentence: str) -> None:
    found = mistakes(text)
    assert any(sentence in m for m in found), found


def test_events_and_loose_streams_need_no_rate() -> None:
    parse(MINIMAL + SECOND.format(kind="event", more=""))
    parse(MINIMAL + SECOND.format(kind="sampled", more="required = false"))
    parse(MINIMAL + SECOND.format(kind="interpolated", more="max_gap_ms = 30"))
    parse(MINIMAL + SECOND.format(kind="triggered", more="rate_hz = 30\ndecimate = 2\nphase = 1"))
    parse(MINIMAL + SECOND.format(kind="sampled", more='required = false\nstamp_domains = ["utc"]'))
    parse(MINIMAL + SECOND.format(kind="event", more='stamp_domains = ["ptp", "utc"]\nprovenance = "live"'))
