"""The drivers by name. Each is imported only where it is used, with whatever SDK it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.sensors.configuration import DeviceConfig
    from firsthand_edge.sensors.seam import Sensor

__all__ = ["is_lossless", "make_sensor"]


def make_sensor(config: DeviceConfig, run_dir: Path) -> Sensor:
    """The driver of a configured device, not yet open."""
    match config.driver:
        case "sim":
            from firsthand_edge.sensors.sim import SimSensor

            return SimSensor(config, run_dir)
        case "replay":
            from firsthand_edge.sensors.replay import make_replay

            return make_replay(config, run_dir)


def is_lossless(config: DeviceConfig) -> bool:
    """Whether samples wait for the recorder instead of being dropped: a recording can wait, a camera cannot."""
    return config.driver == "replay"
