"""The recorder process's own arithmetic; its life is tested with the daemon."""

import json

import pytest
import zmq

from firsthand_edge.errors import UsageError
from firsthand_edge.record.recorder import Recorder, losses
from firsthand_edge.sensors.transport import endpoint
from tests.daemon.rigs import until


def test_losses_are_told_by_place():
    worker = {"head": {"exposures": 10, "sent": 8, "dropped_socket": 2}}
    recorder = {
        "head": {"received": 7, "lost_queue": 3, "lost_disk": 1},
        "imu": {"received": 4, "lost_queue": 0, "lost_disk": 0},
    }
    assert losses(worker, recorder) == {
        "head": {"under_way": 1, "lost_socket": 2, "lost_queue": 3, "lost_disk": 1},
        "imu": {"under_way": 0, "lost_socket": 0, "lost_queue": 0, "lost_disk": 0},
    }


def test_it_must_be_prepared_first_and_only_once(tmp_path):
    recorder = Recorder()
    with pytest.raises(UsageError, match="not been prepared"):
        recorder.status()
    recorder.close()


def test_what_is_not_of_our_workers_is_counted_and_harms_nothing(tmp_path):
    device = {
        "name": "head", "driver": "sim", "model": "m", "serial": "s", "firmware": "1", "domain": 1,
        "counter": {"bits": 32, "tick_num": 1000, "tick_den": 1}, "identity_map": False, "min_delay_ns": 0,
        "min_delay_bound_ns": 0,
        "streams": [
            {
                "name": "head", "media": "picture/png", "triggered": True, "stamp_point": "middle",
                "period_ns": 16_666_667, "offset_ns": 0, "reorder_bound": 0, "has_trigger_index": False,
            }
        ],
    }  # fmt: skip
    plan = {
        "reference": "head", "period_ns": 16_666_667, "ceiling_ns": 2_000_000, "latency_ns": 100_000_000,
        "streams": [
            {
                "name": "head", "kind": "triggered", "period_ns": 16_666_667, "decimate": 1, "phase": 0,
                "required": True,
            }
        ],
    }  # fmt: skip
    recorder = Recorder()
    recorder.prepare(devices=json.dumps([device]), plan=json.dumps(plan), run_dir=str(tmp_path))
    context = zmq.Context()
    stranger = context.socket(zmq.PUSH)
    stranger.connect(endpoint(tmp_path, "head"))
    for frames in ([b"one"], [b"", b""], [b"\xc1" * 9, b"x"], [b"a", b"b", b"c"], [bytes(56), bytes(9)]):
        stranger.send_multipart(frames)

    def all_counted() -> bool:
        recorder.pump()
        return recorder.status()["malformed"] == 5

    until(all_counted, "five malformed messages")
    stranger.close(linger=0)
    context.term()
    recorder.close()
    recorder.close()
