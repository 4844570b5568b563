"""The clock maps on recorded clocks: a Project Aria recording, whose device notes when each sample reached it.

Capture and arrival are by one clock there, so that the true offset is nought: what the map makes of it is its error.
"""

import functools

import numpy as np
import pytest

from firsthand_edge import _core
from tests.sensors.test_replay_vrs import raw_records

pytestmark = pytest.mark.real

CAMERAS_AND_IMUS = ("1202-1", "1202-2", "1201-1", "1201-2", "211-1", "214-1")
TIMECODE = "285-2"


@functools.cache
def recorded():
    """Fields of the data records, by stream."""
    out = {}
    for record in raw_records():
        if record["type"] == "data":
            fields = {name: value for block in record["metadata"] for name, value in block.items()}
            out.setdefault(record["stream"], []).append(fields)
    return out


def pairs(*streams):
    """(capture, arrival), each (n,) int64 ns, in order of arrival."""
    both = [(f["arrival_timestamp_ns"], f["capture_timestamp_ns"]) for s in streams for f in recorded()[s]]
    arrival, capture = np.array(sorted(both), dtype=np.int64).T
    return capture.copy(), arrival.copy()


def test_real_samples_of_seven_sensors_share_one_map_and_none_lies_after_its_arrival():
    capture, arrival = pairs(*CAMERAS_AND_IMUS)
    assert capture.size == 287
    delay = arrival - capture
    mapped = _core.map_clock(capture, arrival, min_delay_ns=int(delay.min()))
    assert np.all(mapped.rig_ns <= arrival - delay.min())
    assert np.all(np.abs(mapped.rig_ns - capture) <= mapped.uncertainty_ns)
    assert (mapped.splits.size, mapped.future) == (0, 0)
    # 0.15 s are no 2 s: it does not claim to know.
    assert mapped.uncertainty_ns.min() > 500_000


@pytest.mark.parametrize("stream", ["1202-1", "1202-2"])
@pytest.mark.parametrize("ppm", [-100, 50])
def test_delays_as_recorded_behind_a_clock_that_drifts(stream, ppm):
    # The recording is 0.15 s long. Its delays, a saw of the device's own batches, are repeated in their order for a
    # minute of a clock that drifts and whose 32 bits of a microsecond wrap.
    capture, arrival = pairs(stream)
    delay = np.tile(arrival - capture, 60 * 1000 // capture.size + 1)[: 60 * 1000]
    step = int(np.median(np.diff(capture)))
    truth = 10**12 + np.arange(delay.size, dtype=np.int64) * step
    device = truth + (truth - truth[0]) * ppm // 1_000_000
    base = 2**32 - 30_000_000 - device[0] // 1000
    mapped = _core.map_clock(
        (device // 1000 + base) % 2**32,
        truth + delay,
        bits=32,
        tick_num=1000,
        min_delay_ns=int(delay.min()),
    )
    error = np.abs(mapped.rig_ns - truth)
    settled = truth - truth[0] > 3 * 10**9
    print(f"\n{stream} {ppm} ppm: median error {np.median(error[settled]):.0f} ns, max {error[settled].max()} ns")  # noqa: T201 - figures
    assert np.median(error[settled]) < 20_000
    assert np.all(error <= mapped.uncertainty_ns)
    assert abs(mapped.rate_ppb + ppm * 1000) < 2_000
    assert (mapped.wraps, mapped.splits.size) == (1, 0)


def test_a_recorded_timecode_is_fitted_within_a_microsecond():
    # Real pairs of two clocks: the timecode's frames, 1/30 s apart, and when the device's clock saw them.
    fields = recorded()[TIMECODE]
    frame = np.array([f["real_timestamp_ns"] for f in fields], dtype=np.int64)
    device = np.array([f["monotonic_timestamp_ns"] for f in fields], dtype=np.int64)
    index = np.arange(frame.size, dtype=np.int64)
    mapped = _core.map_clock_by_edges(
        device,
        frame + 1_000_000,
        np.zeros(frame.size, dtype=np.int64),
        trigger_index=index,
        edge_index=index,
        edge_ns=frame,
        calibrated=False,
    )
    error = np.abs(mapped.rig_ns - frame)
    print(f"\n{TIMECODE}: {frame.size} frames, off by {error.tolist()} ns")  # noqa: T201 - a figure
    assert mapped.pairs == 5
    assert error.max() < 1_000
    assert np.all(error <= mapped.uncertainty_ns)
