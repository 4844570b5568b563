"""LeRobot data sets of format v3.0 as that project lays them out, written with the public `pyarrow` package."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CAMERAS = ("observation.images.head", "observation.images.wrist")


def feature(dtype, shape=(1,)):
    return {"dtype": dtype, "shape": list(shape), "names": None}


def write(folder, lengths=(90, 60), *, fps=30, version="v3.0", columns=None, per_file=2, timestamp=None, **changes):
    """A data set with so many episodes; some of its facts changed.

    Args:
        folder: Where to.
        lengths: Rows of each episode.
        columns: Further columns by name: a function from episode and rows to an array.
        per_file: Episodes in one data file.
        timestamp: The `timestamp` column, from episode and rows; None for frame_index / fps as float32.
        changes: `numbers` (episode_index of each), `listed` (lengths as meta/episodes says), `info` (fields of
            meta/info.json), `drop` (a column).
    """
    columns = columns or {}
    numbers = changes.get("numbers", range(len(lengths)))
    listed = changes.get("listed", lengths)
    tables, episodes, start = [], [], 0
    for place, (number, rows) in enumerate(zip(numbers, lengths, strict=True)):
        frames = np.arange(rows, dtype=np.int64)
        made = (frames / fps).astype(np.float32) if timestamp is None else timestamp(number, rows)
        table = {
            "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * 2, np.float32)), 2),
            "timestamp": made,
            "frame_index": frames,
            "episode_index": np.full(rows, number, np.int64),
            "index": frames + start,
            "task_index": np.zeros(rows, np.int64),
            **{name: make(number, rows) for name, make in columns.items()},
        }
        table.pop(changes.get("drop"), None)
        tables.append(pa.table(table))
        episodes.append(
            {
                "episode_index": number,
                "tasks": ["pick the cup"],
                "length": listed[place],
                "data/chunk_index": 0,
                "data/file_index": place // per_file,
                "dataset_from_index": start,
                "dataset_to_index": start + rows,
            }
        )
        start += rows
    data = folder / "data" / "chunk-000"
    data.mkdir(parents=True)
    for number in range(0, len(tables), per_file):
        with pq.ParquetWriter(data / f"file-{number // per_file:03d}.parquet", tables[number].schema) as writer:
            for table in tables[number : number + per_file]:
                writer.write_table(table)
    about = folder / "meta" / "episodes" / "chunk-000"
    about.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(episodes), about / "file-000.parquet")
    features = {
        **{name: feature("video", (480, 640, 3)) for name in CAMERAS},
        "observation.state": feature("float32", (2,)),
        "timestamp": feature("float32"),
        **{name: feature("int64") for name in ("frame_index", "episode_index", "index", "task_index")},
        **{name: feature("int64") for name in columns},
    }
    info = {
        "codebase_version": version,
        "robot_type": "so101",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 1,
        "chunks_size": 1000,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": features,
        **changes.get("info", {}),
    }
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    return folder
