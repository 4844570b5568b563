"""A LeRobot data set's stamps (format v3.0), with the public `pyarrow` package.

What such a data set knows of time is little. Its `timestamp` column is written as `frame_index / fps`, a 32-bit float
of seconds from the start of the episode: no clock was read for it, and all cameras and sensors of a row share it. So it
is one stream, the row clock, and never one stream a camera: a figure of how far cameras disagree could not be anything
but zero. Columns that whoever recorded added, of whole nanoseconds or of seconds, are streams of their own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.channels import COARSE_NS, Channel, Recording, classify, float_ns, within_int64
from firsthand_edge.gate.figures import Grade
from firsthand_edge.gate.wording import count, listed
from firsthand_edge.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from firsthand_edge.gate.figures import Int64

__all__ = ["INFO", "read_lerobot"]

INFO = "meta/info.json"
ROW_CLOCK = "timestamp"
LARGEST_INFO = 1 << 26
CAMERA = re.compile(r"(?:observation\.)?images?\.")
STAMP_COLUMN = re.compile(r"(?:^|[._/])(?:timestamps?|stamps?|time)(?:_(ns|us|ms|s|sec|nsec|nanos))?$", re.IGNORECASE)
PLACE_IN_PATH = re.compile(r"\{(\w*)(?::?((?:0?[1-9])?d?)\})?")
"""`{chunk_index:03d}`; without a second group, it is something else in braces."""
FACTORS = {"ns": 1, "nsec": 1, "nanos": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9}
SMALLEST = ((10**18, "ns"), (10**15, "us"), (10**12, "ms"), (10**9, "s"))
"""From which number on an integer is taken for what; as for lists of stamps (sync.md section 7)."""


@dataclass(frozen=True, slots=True)
class _Episode:
    """Where one episode's rows are, by the data set's own tables."""

    index: int
    length: int
    file: Path


def read_lerobot(folder: Path, episode: int | None) -> Recording:
    """Reads the stamps of one episode. Each episode begins at 0 s of its own, so no two are put on one time axis.

    Args:
        folder: The data set: `meta/`, `data/` and, unread, `videos/`.
        episode: Its `episode_index`; None for the only one.

    Raises:
        RecordingUnreadable: when the data set is of another version, incomplete, damaged, or contradicts itself.
        UsageError: when the episode is not there, or none is named of several, or the package is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as exc:
        raise UsageError(f"{folder} is a LeRobot data set; install the package `pyarrow` to read it") from exc
    info = _info(folder)
    try:
        found = _chosen(_episodes(folder, info), episode, folder)
        return _recording(folder, info, found)
    except (UsageError, RecordingUnreadable):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as exc:
        why = " ".join(str(exc).split())[:200] or type(exc).__name__
        raise RecordingUnreadable(
            f"{folder} cannot be read as a LeRobot data set ({why}); download or export it again"
        ) from exc


def _info(folder: Path) -> Mapping[str, Any]:
    path = folder / INFO
    try:
        if path.stat().st_size > LARGEST_INFO:
            raise RecordingUnreadable(f"{path} is larger than {LARGEST_INFO} bytes; it is no description of a data set")
        info = json.loads(path.read_bytes())
    except OSError as exc:
        raise RecordingUnreadable(f"{path} cannot be read ({exc.strerror or exc}); check the data set") from exc
    except (ValueError, RecursionError) as exc:
        raise RecordingUnreadable(f"{path} is not JSON ({exc}); download or export the data set again") from exc
    if not isinstance(info, dict):
        raise RecordingUnreadable(f"{path} is no JSON object; download or export the data set again")
    version = info.get("codebase_version")
    if not isinstance(version, str) or not re.fullmatch(r"v3\.\d+", version):
        raise RecordingUnreadable(
            f"{folder} is a LeRobot data set of version {version!r}, and only v3 is read; convert it with LeRobot's "
            "own script for v2.1 to v3.0 and audit the result"
        )
    fps = info.get("fps")
    if not isinstance(fps, (int, float)) or isinstance(fps, bool) or not 0.001 <= fps <= 1_000_000:
        raise RecordingUnreadable(f"{path} states {fps!r} as `fps`; a rate between 0.001 and 1000000 Hz is needed")
    if not isinstance(info.get("features"), dict):
        raise RecordingUnreadable(f"{path} lists no `features`; download or export the data set again")
    return info


def _episodes(folder: Path, info: Mapping[str, Any]) -> list[_Episode]:
    """Every episode that the data set's own table lists."""
    import pyarrow.parquet

    template = str(info.get("data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"))
    found: list[_Episode] = []
    for path in sorted((folder / "meta" / "episodes").glob("*/*.parquet")):
        names = ["episode_index", "length", "data/chunk_index", "data/file_index"]
        table = pyarrow.parquet.read_table(path, columns=names)
        for row in zip(*(table.column(name).to_pylist() for name in names), strict=True):
            if not all(isinstance(value, int) for value in row):
                raise RecordingUnreadable(f"{path} has a row without {listed(names)}; export the data set again")
            index, length, chunk, number = row
            file = (folder / _filled(template, chunk, number)).resolve()
            if not file.is_relative_to(folder.resolve()):
                raise RecordingUnreadable(f"{folder / INFO} names data outside of its folder; {template!r} is not used")
            found.append(_Episode(index, length, file))
    if not found:
        raise RecordingUnreadable(f"{folder} lists no episodes in meta/episodes; download or export it again")
    return found


def _filled(template: str, chunk: int, number: int) -> str:
    """The path of a data file. No more of a template is obeyed than numbers of up to nine digits."""
    places = {"chunk_index": chunk, "file_index": number}

    def fill(found: re.Match[str]) -> str:
        name, width = found[1], found[2]
        if name not in places or width is None:
            raise ValueError(f"`data_path` holds {found[0]!r}, and only chunk_index and file_index are known there")
        return f"{places[name]:{width}}"

    return PLACE_IN_PATH.sub(fill, template)


def _chosen(episodes: list[_Episode], wanted: int | None, folder: Path) -> _Episode:
    if wanted is None and len(episodes) > 1:
        last = max(episode.index for episode in episodes)
        raise UsageError(
            f"{folder} holds {len(episodes)} episodes, the last is {last}, and each has a time axis of its own; name "
            "one with --episode N"
        )
    chosen = [episode for episode in episodes if wanted is None or episode.index == wanted]
    if len(chosen) > 1:
        raise RecordingUnreadable(f"{folder} lists episode {wanted} {len(chosen)} times; export it again")
    if not chosen:
        indices = sorted(episode.index for episode in episodes)
        raise UsageError(
            f"{folder} has no episode {wanted}; it has {count(len(indices), 'episode')} from {indices[0]} to "
            f"{indices[-1]}"
        )
    return chosen[0]


def _recording(folder: Path, info: Mapping[str, Any], episode: _Episode) -> Recording:
    import pyarrow.parquet

    file = pyarrow.parquet.ParquetFile(episode.file)
    names = [name for name in file.schema_arrow.names if _may_be_stamps(name, file.schema_arrow.field(name).type)]
    needed = ["episode_index", "frame_index", ROW_CLOCK]
    absent = [name for name in needed if name not in file.schema_arrow.names]
    if absent:
        raise RecordingUnreadable(f"{episode.file} has no column {listed(absent)}; export the data set again")
    rows = _Rows(file, episode, [*needed, *(name for name in names if name not in needed)])
    frames = rows.column("frame_index")
    if frames.size != episode.length:
        raise RecordingUnreadable(
            f"{folder} contradicts itself: episode {episode.index} has {episode.length} rows by meta/episodes and "
            f"{frames.size} in {episode.file.relative_to(folder.resolve())}; export it again"
        )
    if not np.array_equal(frames, np.arange(frames.size)):
        raise RecordingUnreadable(
            f"{folder} contradicts itself: the rows of episode {episode.index} are not numbered 0 to {frames.size - 1} "
            "by `frame_index`; export it again"
        )
    notes: list[str] = []
    period = round(1e9 / info["fps"])
    channels = [_row_clock(rows, frames, info, notes)]
    channels += [channel for name in names if name != ROW_CLOCK for channel in _own_stamps(rows, name, notes)]
    cameras = [
        name
        for name, feature in info["features"].items()
        if isinstance(feature, dict) and feature.get("dtype") in ("video", "image")
    ]
    notes += _about_cameras(cameras, [channel.name for channel in channels])
    channels = [_with_period(channel, period) for channel in channels]
    return Recording("lerobot", tuple(sorted(channels, key=lambda c: c.name)), tuple(notes), episode=episode.index)


def _with_period(channel: Channel, period_ns: int) -> Channel:
    """One value a row: the rate of rows is the stream's nominal rate, where it is pictures or the row clock."""
    if channel.kind is not Kind.TRIGGERED:
        return channel
    return replace(channel, period_ns=period_ns)


class _Rows:
    """The rows of one episode, some columns of them, in the order of the file."""

    def __init__(self, file: Any, episode: _Episode, names: list[str]) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in names}
        self.types = {name: file.schema_arrow.field(name).type for name in names}
        for batch in _batches(file, episode.index, names):
            for name in names:
                self._columns[name].append(batch.column(batch.schema.get_field_index(name)))

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Values of the rows as they are stored. Raises ValueError where one is missing."""
        import pyarrow as pa

        column = pa.chunked_array(self._columns[name], type=self.types[name])
        if column.null_count:
            raise ValueError(f"column `{name}` has {column.null_count} rows without a value")
        if pa.types.is_fixed_size_list(column.type):  # of one: a column of that shape
            column = pa.chunked_array([chunk.flatten() for chunk in column.chunks], type=column.type.value_type)
        values: np.ndarray[Any, Any] = column.to_numpy()
        return values


def _batches(file: Any, index: int, names: list[str]) -> Iterator[Any]:
    """The episode's rows, group after group; groups that the file's statistics exclude are not read."""
    import pyarrow.compute

    place = file.schema_arrow.names.index("episode_index")
    for number in range(file.num_row_groups):
        column = file.metadata.row_group(number).column(place)
        about = column.statistics if column.path_in_schema == "episode_index" else None
        if about is not None and about.has_min_max and not about.min <= index <= about.max:
            continue
        for batch in file.iter_batches(batch_size=65_536, row_groups=[number], columns=names):
            mine = pyarrow.compute.equal(batch.column(batch.schema.get_field_index("episode_index")), index)
            kept = batch.filter(mine)
            if kept.num_rows:
                yield kept


def _may_be_stamps(name: str, of_type: Any) -> bool:
    """Whether a column is a stamp a row: named as one, one number a row, and no picture's payload."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(of_type) and of_type.list_size == 1:
        of_type = of_type.value_type
    number = pa.types.is_integer(of_type) or pa.types.is_floating(of_type) or pa.types.is_timestamp(of_type)
    return bool(number and STAMP_COLUMN.search(name))


def _row_clock(rows: _Rows, frames: Int64, info: Mapping[str, Any], notes: list[str]) -> Channel:
    """The `timestamp` column: made up from the row's number, or a float of seconds from somewhere else."""
    stored = rows.column(ROW_CLOCK)
    times = _nanoseconds(ROW_CLOCK, stored, "s")
    made_up = np.array_equal(stored, (frames / info["fps"]).astype(stored.dtype))
    if made_up:
        notes.append(
            f"{ROW_CLOCK}: every value is frame_index / {info['fps']:g} to the last digit, so no clock was read: it "
            "says how many rows there are, and not when anything was taken (grade `synthetic`)."
        )
    grade = _float_grade(ROW_CLOCK, stored, "s", notes)
    return Channel(
        ROW_CLOCK, Kind.TRIGGERED, times, "column", grade=Grade.SYNTHETIC if made_up else grade, of_rows=True
    )


def _own_stamps(rows: _Rows, name: str, notes: list[str]) -> Iterator[Channel]:
    """A column of stamps that whoever recorded added; none where its unit cannot be told."""
    import pyarrow as pa

    stored = rows.column(name)
    of_type = rows.types[name]
    named = STAMP_COLUMN.search(name)
    unit = named[1].lower() if named is not None and named[1] else None
    if pa.types.is_timestamp(of_type):
        stored, unit = stored.astype("datetime64[ns]").astype(np.int64), "ns"
    if unit is None:
        unit = _told_unit(stored)
    if unit is None:
        notes.append(f"{name}: the unit of its values cannot be told, so it is not used; end its name in _ns or _s.")
        return
    times = _nanoseconds(name, stored, unit)
    stamped = times[stored != 0]
    kind = Kind.TRIGGERED if CAMERA.match(name) else Kind.SAMPLED if "imu" in name.lower() else classify(stamped)
    grade = _float_grade(name, stored, unit, notes)
    yield Channel(name, kind, stamped, "column", unstamped=int(times.size - stamped.size), grade=grade)


def _told_unit(stored: np.ndarray[Any, Any]) -> str | None:
    """Floats are seconds; integers by their size, when smallest and largest agree."""
    if stored.dtype.kind == "f":
        return "s"
    there = stored[stored != 0]
    if not there.size:
        return None
    units = {next((u for least, u in SMALLEST if value >= least), None) for value in (there.min(), there.max())}
    return units.pop() if len(units) == 1 else None


def _nanoseconds(name: str, stored: np.ndarray[Any, Any], unit: str) -> Int64:
    """Stored values in ns: integers exactly, floats to the nearest nanosecond that they stand for.

    Raises:
        RecordingUnreadable: for a value that is no time, or beyond the year 2116.
    """
    factor = FACTORS[unit]
    if stored.dtype.kind == "f":
        if not np.isfinite(stored).all() or float(np.abs(stored).max(initial=0)) * factor >= 1 << 62:
            raise RecordingUnreadable(f"column `{name}` holds a value that is no time; export the data set again")
        return np.array([float_ns(value, factor) for value in stored.tolist()], dtype=np.int64)
    if stored.size and max(int(stored.max()), -int(stored.min())) * factor >= 1 << 62:
        raise RecordingUnreadable(f"column `{name}` holds a time after the year 2116; its unit is not {unit}")
    return within_int64(name, stored.astype(np.int64) * factor)


def _float_grade(name: str, stored: np.ndarray[Any, Any], unit: str, notes: list[str]) -> Grade:
    """What stored values are worth by their type alone; notes how well floats resolve the end of the episode."""
    if stored.dtype.kind != "f" or not stored.size:
        return Grade.DECLARED
    spacing_ns = float(np.spacing(np.abs(stored).max())) * FACTORS[unit]
    if spacing_ns < COARSE_NS:
        return Grade.DECLARED
    bits = stored.dtype.itemsize * 8
    notes.append(f"{name}: held as {bits}-bit floats, which resolve {spacing_ns:.0f} ns at the end of this episode.")
    return Grade.FLOAT32 if bits <= 32 else Grade.FLOAT64


def _about_cameras(cameras: list[str], streams: list[str]) -> list[str]:
    """What nothing in the data set tells of its pictures."""
    without = [camera for camera in cameras if not any(s.startswith((f"{camera}.", f"{camera}_")) for s in streams)]
    notes = ["Videos were not opened, so their number of pictures was not compared with the number of rows."]
    if without:
        notes.insert(
            0,
            f"Nothing in this data set says when the pictures of {listed(without)} were taken: each row has one time "
            "for all of them.",
        )
    return notes if cameras else []
