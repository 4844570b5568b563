"""Simulated devices for the tests of this room."""

from firsthand_edge.sensors.configuration import SimDevice

PERIOD_NS = 16_666_667
S = 1_000_000_000


def camera(name="head", faults=(), **more):
    stream = {"name": name, "content": "picture", "rate_hz": 60, "exposure_us": 2000, **more.pop("with_stream", {})}
    fields = {"driver": "sim", "name": name, "seed": 3, "min_delay_us": 3000, "stream": [stream], "fault": faults}
    return SimDevice.model_validate({**fields, **more})


def imu(name="imu", faults=(), **more):
    stream = {
        "name": name,
        "content": "imu",
        "rate_hz": 1000,
        "triggered": False,
        "stamp_point": "instant",
        "batch": 10,
        **more.pop("with_stream", {}),
    }
    fields = {"driver": "sim", "name": name, "seed": 4, "stream": [stream], "fault": faults}
    return SimDevice.model_validate({**fields, **more})


def events(name="contact", faults=(), **more):
    stream = {"name": name, "content": name, "rate_hz": 4, "triggered": False, "stamp_point": "instant"}
    fields = {"driver": "sim", "name": name, "seed": 5, "stream": [stream], "fault": faults}
    return SimDevice.model_validate({**fields, **more})
