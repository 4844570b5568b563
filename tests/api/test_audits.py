"""The library's verdict is the command's: same stamps, same report, to the byte."""

import json
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import firsthand_edge as fe
from firsthand_edge.cli import run
from firsthand_edge.gate.report import report_bytes
from tests.gate.making import MS, START, P, ticks
from tests.gate.recorded import SPEC


def streams(offset=MS, count=60):
    return {"head": ticks(count), "wrist": ticks(count) + offset}


def printed(folder, capsys, given, *more):
    """What `audit --json` prints of lists of the same stamps."""
    arguments = []
    for name, stream in given.items():
        path = folder / f"{name}.txt"
        path.write_text("".join(f"{t}\n" for t in np.asarray(stream.stamps_ns).tolist()))
        keys = [f"kind={stream.kind}", f"decimate={stream.decimate}", f"offset_ns={stream.offset_ns}"]
        keys += [f"rate={stream.rate_hz}"] if stream.rate_hz is not None else []
        arguments += ["--stream", ",".join([f"{name}={path}", "unit=ns", *keys])]
    status = run(["audit", *arguments, "--json", *more])
    said = capsys.readouterr()
    assert status in (0, 1), said.err
    document = json.loads(said.out)
    for source in document["sources"].values():
        del source["file"]
    return document


@st.composite
def takes(draw):
    """Streams of every kind, with jitter, drops, duplicates and late starts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(5, 60))
    out = {}
    for number in range(draw(st.integers(1, 4))):
        kind = "triggered" if number == 0 else draw(st.sampled_from(["triggered", "sampled", "interpolated", "event"]))
        period = P if kind == "triggered" else 5 * MS
        samples = count * P // period
        times = ticks(samples, period=period) + rng.integers(-2 * MS, 2 * MS, samples)
        times = times[rng.random(samples) > draw(st.sampled_from([0.0, 0.1]))][draw(st.integers(0, 2)) :]
        if times.size and draw(st.booleans()):
            times = np.append(times, times[-1])
        out["head" if number == 0 else f"s{number}"] = fe.StreamStamps(
            times,
            kind=kind,
            rate_hz=draw(st.sampled_from([None, Decimal(60), Decimal("59.94")])) if kind == "triggered" else 200,
            decimate=draw(st.sampled_from([1, 2])) if number and kind == "triggered" else 1,
            offset_ns=draw(st.sampled_from([0, -MS, 3 * MS])),
        )
    return out


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(takes())
def test_the_report_is_what_the_command_prints(tmp_path, capsys, given):
    lists = {name: stream for name, stream in given.items() if np.asarray(stream.stamps_ns).size}
    if "head" not in lists:
        return
    report = fe.audit_streams(lists)
    assert report.to_json() == printed(tmp_path, capsys, lists)


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        ({"ceiling_ms": 1}, ["--ceiling-ms", "1"]),
        ({"ceiling_ms": 0.999999}, ["--ceiling-ms", "0.999999"]),
        ({"ceiling_ms": Decimal("0.5"), "statistic": "p99"}, ["--ceiling-ms", "0.5", "--statistic", "p99"]),
        ({"ceiling_ms": Fraction(1, 8), "statistic": "p99.9"}, ["--ceiling-ms", "0.125", "--statistic", "p99.9"]),
        ({"reference": "wrist"}, ["--reference", "wrist"]),
    ],
)
def test_arguments_mean_what_the_command_s_mean(tmp_path, capsys, arguments, more):
    given = {name: fe.StreamStamps(times, kind="triggered") for name, times in streams().items()}
    assert fe.audit_streams(given, **arguments).to_json() == printed(tmp_path, capsys, given, *more)


def test_the_report_says_who_when_and_by_how_much():
    times = streams(0, 600)
    times["wrist"][300:] += 3 * MS
    times["wrist"] = np.delete(times["wrist"], [10, 11])
    report = fe.audit_streams(times, ceiling_ms=2)
    assert not report.accepted
    assert [reason.code for reason in report.reasons] == ["sync.ceiling"]
    assert report.reasons[0].first_tick == 300
    assert "wrist" in report.reasons[0].sentence
    assert (report.residual.max_ns, report.residual.worst_tick, report.residual.worst_pair) == (
        3 * MS,
        300,
        ("head", "wrist"),
    )
    assert report.residual.over_ceiling == 300
    assert (report.streams["wrist"].missing, report.streams["wrist"].longest_missing_run) == (2, 2)
    assert report.streams["wrist"].offset.max_abs_ns == 3 * MS
    assert (report.span.ticks, report.span.start_ns) == (600, START)
    assert report.period_ns == P
    (pair,) = report.pairs
    assert (pair.streams, pair.ticks, pair.max_ns, pair.over_ceiling) == (("head", "wrist"), 598, 3 * MS, 300)


def test_series_are_columns_by_tick():
    report = fe.audit_streams(streams(-MS), reference="head")
    assert report.tick.tolist() == list(range(60))
    assert report.reference_ns.tolist() == ticks(60).tolist()
    assert set(report.residual_ns.tolist()) == {MS}
    assert set(report.guarded_ns.tolist()) == {MS}
    assert set(report.offset_ns("wrist").tolist()) == {-MS}
    assert set(report.offset_ns("head").tolist()) == {0}
    assert set(report.pair_ns("wrist", "head").tolist()) == {MS}
    for series in (report.residual_ns, report.offset_ns("wrist")):
        with pytest.raises(ValueError, match="read-only"):
            series[0] = 1


def test_what_has_no_match_is_absent():
    report = fe.audit_streams({"head": ticks(60), "wrist": np.delete(ticks(60), [7])})
    assert report.offset_ns("wrist")[7] == fe.ABSENT
    assert report.residual_ns[7] == fe.ABSENT
    assert report.pair_ns("head", "wrist")[7] == fe.ABSENT


def test_where_nothing_was_matched_series_are_empty():
    report = fe.audit_streams({"head": ticks(60), "wrist": ticks(60) + 37 * 10**9})
    assert [reason.code for reason in report.reasons] == ["stamp.tai_utc"]
    assert report.residual.max_ns is None
    assert report.streams["wrist"].missing is None
    assert report.pairs == ()
    for series in (report.tick, report.reference_ns, report.residual_ns, report.guarded_ns):
        assert series.size == 0
    assert report.offset_ns("wrist").size == 0
    assert report.pair_ns("head", "wrist").size == 0
    assert "no tick could be judged" in str(report)


def test_a_report_is_frozen():
    report = fe.audit_streams(streams())
    with pytest.raises(FrozenInstanceError):
        report.accepted = True
    with pytest.raises(TypeError):
        report.streams["x"] = None
    report.to_json()["verdict"] = "bought"
    assert report.to_json()["verdict"] == "accepted"
    assert json.loads(report_bytes(report.to_json()))["verdict"] == "accepted"


def test_every_figure_of_the_document_is_in_the_report():
    report = fe.audit_streams(
        {**streams(), "imu": fe.StreamStamps(ticks(1020, period=MS), kind="sampled", rate_hz=1000)}
    )
    document = report.to_json()
    known = {f.name for f in fields(type(report.streams["imu"]))}
    beyond = {"unstamped", "stamp_point", "sequence_gaps", "frozen_run", "wraps", "splits", "offset_ns"}
    assert set(document["streams"]["imu"]) <= known | beyond
    for name, row in document["streams"].items():
        for key in set(row) - beyond:
            assert getattr(report.streams[name], key) == row[key]
    for key, value in document["span"].items():
        assert getattr(report.span, key) == value
    for said, held in ((document["residual_ns"], report.residual), (document["guarded_ns"], report.guarded)):
        for key, value in said.items():
            found = getattr(held, key if hasattr(held, key) else f"{key}_ns")
            assert (list(found) if isinstance(found, tuple) else found) == value


def test_it_tells_a_colleague():
    report = fe.audit_streams(streams(3 * MS))
    assert repr(report) == "<Report of 2 streams, 60 ticks, rejected: sync.ceiling>"
    assert str(report).splitlines()[0] == "rejected"
    assert "max 3.0 ms; 60 over 2.0 ms" in str(report)
    assert repr(fe.audit_streams(streams())) == "<Report of 2 streams, 60 ticks, accepted>"


def test_it_draws(tmp_path):
    report = fe.audit_streams(streams(3 * MS), title="bench 7")
    report.plot(tmp_path / "a.html")
    assert "bench 7" in (tmp_path / "a.html").read_text()
    report.plot(str(tmp_path / "a.png"), title="again")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(fe.UsageError, match=r"\.html or \.png"):
        report.plot(tmp_path / "a.pdf")


def test_the_input_is_neither_copied_nor_changed():
    given = streams()
    for times in given.values():
        times.flags.writeable = False
    before = {name: times.copy() for name, times in given.items()}
    fe.audit_streams(given)
    assert all(np.array_equal(given[name], before[name]) for name in given)


@pytest.mark.parametrize(
    ("given", "arguments", "said"),
    [
        ({}, {}, "streams is empty"),
        ([ticks(60)], {}, "pass a mapping"),
        ({"left": ticks(60)}, {}, "no stream `head` to number the ticks"),
        ({"head": ticks(60)}, {"reference": "nobody"}, "no stream `nobody`"),
        ({"head": fe.StreamStamps(ticks(60), kind="sampled")}, {}, "only a triggered stream numbers ticks"),
        ({"head": fe.StreamStamps(ticks(60), decimate=2)}, {}, "leave decimate out"),
        ({"head": ticks(60), "imu": fe.StreamStamps(ticks(60), kind="sampled", decimate=2)}, {}, "leave it out"),
        ({"head": fe.StreamStamps(ticks(60), decimate=1.5)}, {}, "not a whole number from 1"),
        ({"head": fe.StreamStamps(ticks(60), offset_ns=2 * 3600 * 10**9)}, {}, "not a whole number from"),
        ({"head": ticks(60), 7: ticks(60)}, {}, "no name of a stream"),
        ({"head": ticks(60), "": ticks(60)}, {}, "no name of a stream"),
        ({"head": ticks(60), "\ud800": ticks(60)}, {}, "surrogate"),
        ({"head": ticks(60)}, {"ceiling_ms": 0}, "above 0"),
        ({"head": ticks(60)}, {"ceiling_ms": "2"}, "state a number"),
        ({"head": ticks(60)}, {"ceiling_ms": 1e-9}, "finer than one nanosecond"),
        ({"head": ticks(60)}, {"statistic": "mean"}, "not one of max, p99, p99.9"),
    ],
)
def test_calls_that_make_no_sense_are_refused(given, arguments, said):
    with pytest.raises(fe.UsageError) as refused:
        fe.audit_streams(given, **arguments)
    assert said in str(refused.value)
    assert "--" not in str(refused.value)


def test_stamps_as_far_apart_as_they_may_be():
    report = fe.audit_streams({"head": ticks(60, start=-(2**62) + 1), "wrist": ticks(60, start=2**62 - 10**10)})
    assert {reason.code for reason in report.reasons} == {"stream.late", "stream.early", "sync.no_ticks"}


def test_an_unknown_stream_of_a_report():
    report = fe.audit_streams(streams())
    for call in (lambda: report.offset_ns("x"), lambda: report.pair_ns("head", "x")):
        with pytest.raises(fe.UsageError, match="there are head and wrist"):
            call()


def test_a_spec_that_is_not_there(tmp_path):
    with pytest.raises(fe.FirsthandError, match="cannot be read"):
        fe.audit_streams(streams(), spec=tmp_path / "spec.toml")


def test_a_spec_states_what_is_left_out(tmp_path, capsys):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC + "\n[sync]\nceiling_ms = 0.5\n")
    given = {name: fe.StreamStamps(times, kind="triggered") for name, times in streams().items()}
    report = fe.audit_streams(given, spec=path)
    assert (report.ceiling_ns, report.accepted) == (500_000, False)
    assert report.to_json() == printed(tmp_path, capsys, given, "--spec", str(path))
    assert fe.audit_streams(given, spec=str(path), ceiling_ms=1).accepted
