"""Reads a VRS file in a process of its own, with the public `vrs` package: damaged bytes end that library by a signal.

`python -m firsthand_edge.gate.vrs_records FILE` writes one msgpack map to standard output: `streams`, a list of what
`VrsStream` holds, or `damage`, a sentence. What the library itself says goes to standard error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np

from firsthand_edge.process import describe_exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["VrsDamaged", "VrsStream", "read_streams"]

MOST_SAID = 65_536
LARGEST = (1 << 63) - 1


class VrsDamaged(Exception):
    """The library cannot read the file; the sentence is its own."""


@dataclass(frozen=True, slots=True)
class VrsStream:
    """What the records of a stream say."""

    name: str
    device: str
    image: bool
    """Whether there is a picture in them."""
    record_s: bytes
    """(n,) float64, the time of each record, in seconds."""
    capture_ns: bytes
    """(m,) int64, the stamps of capture of those that hold one."""


def read_streams(path: Path) -> tuple[list[VrsStream], str]:
    """Reads every data record of a file. Returns the streams, and what the library said meanwhile.

    Raises:
        VrsDamaged: it cannot be read, whichever way the library ended.
    """
    command = [sys.executable, "-P", "-m", __name__, str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(place or os.curdir for place in sys.path)}
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=said, env=environment, check=False)
        words = os.pread(said.fileno(), MOST_SAID, 0).decode("utf-8", "replace")
    if done.returncode:
        raise VrsDamaged(f"its reader ended with {describe_exit(done.returncode)}")
    found = msgpack.unpackb(done.stdout)
    if "damage" in found:
        raise VrsDamaged(found["damage"])
    return [VrsStream(**stream) for stream in found["streams"]], words


def _read(path: str) -> dict[str, Any]:
    import pyvrs

    try:
        reader = pyvrs.SyncVRSReader(path)
        return {"streams": [asdict(_stream(reader, name)) for name in sorted(reader.stream_ids)]}
    except Exception as exc:  # noqa: BLE001 - damaged bytes end the library in as many ways as there are
        return {"damage": str(exc) or type(exc).__name__}


def _stream(reader: Any, name: str) -> VrsStream:
    records = reader.filtered_by_fields(stream_ids={name}, record_types={"data"})
    captured: list[int] = []
    floats: list[float] = []
    image = False
    for record in records:
        image = image or record.n_image_blocks > 0
        floats.append(float(record.timestamp))
        blocks = record.metadata_blocks if record.n_metadata_blocks else ()
        stamp = blocks[0].get("capture_timestamp_ns") if blocks else None
        if isinstance(stamp, int):
            captured.append(max(-LARGEST, min(LARGEST, stamp)))
    device = str(reader.get_stream_info(name).get("device_name", ""))
    return VrsStream(name, device, image, np.array(floats).tobytes(), np.array(captured, np.int64).tobytes())


def _main(arguments: Sequence[str]) -> None:
    """Standard output is the answer's alone, so the library's own goes elsewhere."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        answer.write(msgpack.packb(_read(*arguments)))


if __name__ == "__main__":
    _main(sys.argv[1:])
