"""LeRobot data sets: the row clock is no clock, episodes are never put on one axis, real stamps are streams."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.audit import audit
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.recordings import read_recording
from firsthand_edge.model import Kind
from tests.gate import lerobot

START = 1_764_537_600_000_000_000
MS = 1_000_000
P = 33_333_333

STAMPED = {
    "observation.images.head.timestamp_ns": lambda episode, rows: START + episode * 10**10 + P * np.arange(rows),
    "observation.images.wrist.timestamp_ns": lambda episode, rows: START + episode * 10**10 + P * np.arange(rows) + MS,
}


def test_the_row_clock_is_synthetic_and_says_so(tmp_path):
    found = read_recording(lerobot.write(tmp_path / "set"), episode=0)
    (row,) = found.channels
    assert (row.name, row.kind, row.grade, row.times_ns.size) == ("timestamp", Kind.TRIGGERED, Grade.SYNTHETIC, 90)
    assert row.period_ns == P
    assert found.episode == 0
    made_up, coarse, cameras, videos = found.notes
    assert made_up.startswith("timestamp: every value is frame_index / 30 to the last digit, so no clock was read")
    assert coarse == "timestamp: held as 32-bit floats, which resolve 238 ns at the end of this episode."
    assert "when the pictures of observation.images.head and observation.images.wrist were taken" in cameras
    assert videos.startswith("Videos were not opened")


def test_a_synthetic_clock_is_never_accepted(tmp_path):
    found = audit(lerobot.write(tmp_path / "set"), episode=1, reference="timestamp")
    assert {r.code for r in found.verdict.reasons} == {"sync.no_ticks", "stamp.unverified"}
    assert found.report["streams"]["timestamp"]["grade"] == "synthetic"
    assert (found.report["recording"], found.report["episode"]) == ("lerobot", 1)
    (unverified,) = [r for r in found.verdict.reasons if r.code == "stamp.unverified"]
    assert "computed from row numbers and a nominal rate, so no clock was read" in unverified.sentence


def test_columns_of_real_stamps_are_streams(tmp_path):
    folder = lerobot.write(tmp_path / "set", columns=STAMPED)
    head, wrist = STAMPED
    found = audit(folder, [head, wrist], episode=1, reference=head)
    assert found.verdict.accepted, found.verdict.reasons
    assert found.report["residual_ns"]["max"] == MS
    assert found.report["streams"][head]["first_ns"] == START + 10**10
    assert found.report["sources"][wrist]["stamps"] == "column"
    assert not any("Nothing in this data set says" in note for note in found.report["notes"])


def test_stamps_of_a_clock_are_judged_without_the_row_clock(tmp_path):
    folder = lerobot.write(tmp_path / "set", columns=STAMPED)
    head, wrist = STAMPED
    found = audit(folder, episode=1, reference=head)
    assert found.verdict.accepted, found.verdict.reasons
    assert [name for name, row in found.report["streams"].items() if row["required"]] == [head, wrist]
    assert any("timestamp: the row clock is on a time axis of its own" in note for note in found.report["notes"])
    for streams, reference in (((), "timestamp"), ((head, wrist, "timestamp"), head)):
        with_rows = audit(folder, streams, episode=1, reference=reference)
        assert "stamp.unverified" in {reason.code for reason in with_rows.verdict.reasons}


@pytest.mark.parametrize(
    ("name", "values", "grade", "first"),
    [
        ("glove.timestamp", START + P * np.arange(90), Grade.DECLARED, START),
        ("glove.timestamp", START // 1000 + 33_333 * np.arange(90), Grade.DECLARED, START),
        ("glove.timestamp_us", 5 + 33_333 * np.arange(90), Grade.DECLARED, 5000),
        ("glove_time_s", 0.5 + np.arange(90) / 30, Grade.DECLARED, 500_000_000),
        ("glove.stamp", START / 1e9 + np.arange(90) / 30, Grade.FLOAT64, START),
        ("glove.timestamp_s", (100 + np.arange(90) / 30).astype(np.float32), Grade.FLOAT32, 100 * 10**9),
        (
            "glove.timestamp",
            np.array(START + P * np.arange(90), "datetime64[ns]").astype("datetime64[us]"),
            Grade.DECLARED,
            START,
        ),
    ],
)
def test_units_and_grades_of_such_columns(tmp_path, name, values, grade, first):
    folder = lerobot.write(tmp_path / "set", (90,), columns={name: lambda _e, _r: values})
    channel = read_recording(folder).channel(name)
    assert (channel.kind, channel.grade, int(channel.times_ns[0])) == (Kind.INTERPOLATED, grade, first)


def test_a_column_whose_unit_cannot_be_told_is_left_out(tmp_path):
    folder = lerobot.write(tmp_path / "set", (90,), columns={"glove.timestamp": lambda _e, rows: np.arange(rows)})
    found = read_recording(folder)
    assert [channel.name for channel in found.channels] == ["timestamp"]
    assert any(note.startswith("glove.timestamp: the unit of its values cannot be told") for note in found.notes)


def test_columns_with_other_names_are_no_stamps(tmp_path):
    columns = {"overtime": lambda _e, rows: np.arange(rows), "next.done": lambda _e, rows: np.zeros(rows, bool)}
    found = read_recording(lerobot.write(tmp_path / "set", (90,), columns=columns))
    assert [channel.name for channel in found.channels] == ["timestamp"]


def test_a_row_clock_that_somebody_measured_is_a_coarse_one(tmp_path):
    rng = np.random.default_rng(1)
    folder = lerobot.write(
        tmp_path / "set",
        (900,),
        timestamp=lambda _e, rows: (np.arange(rows) / 30 + rng.normal(0, 1e-3, rows)).astype(np.float32),
    )
    (row,) = read_recording(folder).channels
    assert row.grade is Grade.FLOAT32
    folder = lerobot.write(tmp_path / "double", (90,), timestamp=lambda _e, rows: np.arange(rows) / 29.9)
    assert read_recording(folder).channels[0].grade is Grade.DECLARED


def test_an_episode_must_be_named_of_several(tmp_path):
    folder = lerobot.write(tmp_path / "set")
    with pytest.raises(UsageError, match=r"holds 2 episodes, the last is 1, .* name one with --episode N"):
        audit(folder, reference="timestamp")
    with pytest.raises(UsageError, match="has no episode 2; it has 2 episodes from 0 to 1"):
        audit(folder, episode=2, reference="timestamp")
    assert read_recording(lerobot.write(tmp_path / "one", (90,))).episode == 0


def test_k76_episodes_are_found_by_their_number_and_not_by_their_place(tmp_path):
    folder = lerobot.write(tmp_path / "set", (30, 40, 50), numbers=(0, 5, 7), per_file=2)
    for number, rows in ((0, 30), (5, 40), (7, 50)):
        assert read_recording(folder, episode=number).channels[0].times_ns.size == rows
    with pytest.raises(UsageError, match="has no episode 1; it has 3 episodes from 0 to 7"):
        read_recording(folder, episode=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": "v2.1"}, "is a LeRobot data set of version 'v2.1', and only v3 is read"),
        ({"info": {"codebase_version": None}}, "of version None"),
        ({"info": {"fps": 0}}, "states 0 as `fps`"),
        ({"info": {"features": []}}, "lists no `features`"),
        ({"info": {"data_path": "../../{chunk_index}{file_index}"}}, "names data outside of its folder"),
        ({"info": {"data_path": "data/{nothing}"}}, "cannot be read as a LeRobot data set"),
        ({"info": {"data_path": "data/{chunk_index:999999999d}"}}, "only chunk_index and file_index are known there"),
        ({"info": {"data_path": "data/{chunk_index.__class__}"}}, "only chunk_index and file_index are known there"),
        ({"listed": (90, 61)}, "episode 1 has 61 rows by meta/episodes and 60 in data/chunk-000/file-000.parquet"),
        ({"numbers": (0, 0)}, "episode 1"),
        ({"drop": "timestamp"}, "has no column timestamp"),
        ({"drop": "frame_index"}, "has no column frame_index"),
        ({"timestamp": lambda _e, rows: np.full(rows, np.nan, np.float32)}, "holds a value that is no time"),
        ({"columns": {"a_time_s": lambda _e, rows: np.full(rows, 2**61)}}, "holds a time after the year 2116"),
        ({"columns": {"a_time_s": lambda _e, rows: [None] * rows}}, None),
    ],
)
def test_what_is_wrong_with_a_data_set_is_one_sentence(tmp_path, changes, said):
    folder = lerobot.write(tmp_path / "set", **changes)
    if said is None:  # a column of nothing is no column of numbers
        assert [channel.name for channel in read_recording(folder, episode=1).channels] == ["timestamp"]
        return
    with pytest.raises((RecordingUnreadable, UsageError)) as caught:
        read_recording(folder, episode=1)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_frames_that_are_not_numbered_in_order(tmp_path):
    folder = lerobot.write(tmp_path / "set", (30, 30), numbers=(4, 4))
    with pytest.raises(RecordingUnreadable, match="lists episode 4 2 times"):
        read_recording(folder, episode=4)
    import pyarrow.parquet as pq

    file = lerobot.write(tmp_path / "other", (30,)) / "data" / "chunk-000" / "file-000.parquet"
    table = pq.read_table(file)
    pq.write_table(table.take([*range(10), 11, 10, *range(12, 30)]), file)
    with pytest.raises(RecordingUnreadable, match="not numbered 0 to 29 by `frame_index`"):
        read_recording(tmp_path / "other")


@pytest.mark.parametrize("gone", ["meta/episodes", "data", "data/chunk-000/file-000.parquet"])
def test_parts_that_are_not_there(tmp_path, gone):
    folder = lerobot.write(tmp_path / "set")
    target = folder / gone
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    with pytest.raises(RecordingUnreadable, match=r"No such file|no episodes in meta/episodes"):
        read_recording(folder, episode=0)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe"])
def test_a_description_that_is_none(tmp_path, content):
    folder = lerobot.write(tmp_path / "set")
    (folder / "meta" / "info.json").write_bytes(content)
    with pytest.raises(RecordingUnreadable):
        read_recording(folder, episode=0)


def test_what_does_not_fit_a_data_set(tmp_path):
    folder = lerobot.write(tmp_path / "set")
    with pytest.raises(UsageError, match="--stamps chooses among the times of an MCAP"):
        audit(folder, stamps="log", episode=0)
    (tmp_path / "list.txt").write_text("1\n")
    with pytest.raises(UsageError, match="--episode chooses among the episodes of a LeRobot data set"):
        audit(tmp_path / "list.txt", episode=0)
    with pytest.raises(UsageError, match="--episode chooses among the episodes of a LeRobot data set"):
        audit(streams=[f"head={tmp_path / 'list.txt'}"], episode=0)


def test_every_value_of_a_float_is_read_exactly(tmp_path):
    from firsthand_edge.gate.channels import float_ns

    values = np.array([0.1, 1 / 3, 299.96667, 1e6 + 1 / 7], np.float32)
    folder = lerobot.write(tmp_path / "set", (4,), timestamp=lambda _e, _r: values)
    assert read_recording(folder).channels[0].times_ns.tolist() == [float_ns(float(value)) for value in values]
    assert float_ns(0.1) == 100_000_000
    assert float_ns(5e-10) == 1
    assert float_ns(-2.0) == -2_000_000_000


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_table_is_figures_or_one_sentence(tmp_path, data):
    folder = tmp_path / "set"
    if not folder.exists():
        lerobot.write(folder, (20, 20), columns=STAMPED)
        shutil.copytree(folder, tmp_path / "whole")
    part = data.draw(st.sampled_from(["data/chunk-000/file-000.parquet", "meta/episodes/chunk-000/file-000.parquet"]))
    damaged = bytearray((tmp_path / "whole" / part).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    (folder / part).write_bytes(damaged)
    try:
        found = read_recording(folder, episode=1)
    except (RecordingUnreadable, UsageError) as exc:
        said = str(exc)
        assert said
        assert "\n" not in said
    else:
        assert all(channel.times_ns.size <= 20 for channel in found.channels)
    finally:
        (folder / part).write_bytes((tmp_path / "whole" / part).read_bytes())
