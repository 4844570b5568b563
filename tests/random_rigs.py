"""Random simulated rigs that are as they should be: everything varies that may, and nothing is wrong.

What the ceiling of 2 ms allows is shared out among what varies: clock maps 0.2 ms a stream, the nearest sample of a
free-running stream, exposures 0.3 ms, jitter 0.15 ms.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from firsthand_edge.sensors.configuration import SimDevice
from tests.simulated import sim_rig, spec_of_streams, with_devices

if TYPE_CHECKING:
    from firsthand_edge.daemon.rig import LoadedRig

__all__ = ["CleanTake", "clean_take"]

TICKS = ((1000, 1), (1, 1), (80, 3), (125, 6), (100, 1), (10_000, 1))
"""A microsecond, a nanosecond, 37.5 MHz, 48 MHz, 10 MHz, 10 us."""
MIDDLE_US = 5000
"""From a pulse to the middle of every exposure, as the rig of the demo has it."""


class CleanTake(NamedTuple):
    """A rig and how long to record it."""

    rig: LoadedRig
    seconds: float


def clean_take(seed: int) -> CleanTake:
    """The take with this seed."""
    draw = Random(seed)  # noqa: S311 - for variety, not for secrets
    rate_hz = draw.choice([30, 48, 50, 60, 60, 72, 90, 100])
    seconds = draw.uniform(5, 8)
    edges_number_ticks = draw.random() < 0.7
    devices: list[dict[str, Any]] = []
    spec: list[dict[str, Any]] = []
    for number in range(draw.randint(1, 5)):
        names = [f"camera_{number}"] if draw.random() < 0.75 else [f"stereo_{number}_left", f"stereo_{number}_right"]
        _camera(draw, names, rate_hz=rate_hz, seconds=seconds, devices=devices, spec=spec)
    if len(spec) == 1:  # a residual needs two streams
        _camera(draw, ["camera_second"], rate_hz=rate_hz, seconds=seconds, devices=devices, spec=spec)
    for number in range(draw.randint(0, 2)):
        _free_running(draw, f"motion_{number}", devices=devices, spec=spec)
    if draw.random() < 0.5:
        _events(draw, "contact", devices=devices, spec=spec)
    if not edges_number_ticks:
        for row in spec:  # tick 0 is then the first sample of the reference, which may be any pulse
            row.pop("phase", None)
    loaded = with_devices(
        sim_rig(),
        [SimDevice.model_validate(device) for device in devices],
        spec_document=spec_of_streams(spec),
        rate_hz=Decimal(rate_hz),
        edges_number_ticks=edges_number_ticks,
    )
    return CleanTake(loaded, seconds)


def _device(draw: Random, name: str, streams: list[dict[str, Any]], *, least_us: int) -> dict[str, Any]:
    """A device with a clock and a link of its own."""
    tick_num, tick_den = draw.choice(TICKS)
    bits = draw.choice([32, 32, 32, 36, 40, 48, 64])
    device: dict[str, Any] = {
        "driver": "sim",
        "name": name,
        "seed": draw.getrandbits(32),
        "stream": streams,
        "fault": [],
        "drift_ppm": str(round(draw.uniform(-100, 100), 3)),
        "counter_bits": bits,
        "tick_num": tick_num,
        "tick_den": tick_den,
        "min_delay_us": draw.randint(least_us, least_us + 12_000),
        "min_delay_bound_us": 200,
        "delay_error_us": draw.randint(0, 180) if draw.random() < 0.5 else -draw.randint(0, 180),
        "delay_tail_us": draw.randint(20, 500),
        "spike_share": str(round(draw.uniform(0, 0.01), 4)),
        "spike_us": draw.randint(0, 20_000),
    }
    if bits < 64 and draw.random() < 0.6:
        device["wrap_after_s"] = str(round(draw.uniform(0.3, 12), 3))  # in the warm-up, in the take, or after it
    else:
        device["counter_start"] = draw.randrange(min(2**bits, 2**62 * tick_den // tick_num))
    if draw.random() < 0.3:  # warming up
        at_s = round(draw.uniform(0, 4), 2)
        device["fault"].append({"kind": "drift", "ppm": str(round(draw.uniform(-3, 3), 2)), "at_s": str(at_s)})
    if draw.random() < 0.2:
        device["fault"].append({"kind": "start_late", "at_s": str(round(draw.uniform(0, 0.8), 3))})
    return device


def _camera(
    draw: Random,
    names: list[str],
    *,
    rate_hz: int,
    seconds: float,
    devices: list[dict[str, Any]],
    spec: list[dict[str, Any]],
) -> None:
    """A triggered device whose exposures have their middles on the tick."""
    # The first stream of all is the reference, which takes every tick.
    decimate = 1 if not spec or draw.random() < 0.7 else draw.choice([n for n in (2, 3) if rate_hz % n == 0])
    phase = draw.randrange(decimate)
    exposure_us = draw.randint(200, min(8000, 500_000 // rate_hz))
    exposure_us -= exposure_us % 2
    stream = {
        "content": draw.choice(["picture", "depth"]),
        "rate_hz": rate_hz // decimate,
        "decimate": decimate,
        "phase": phase,
        "exposure_us": exposure_us,
        "trigger_delay_us": MIDDLE_US - exposure_us // 2,
        "stamp_point": draw.choice(["start", "middle", "end", "readout_start"]),
        "has_trigger_index": draw.random() < 0.4,
    }
    device = _device(draw, names[0].removesuffix("_left"), [{**stream, "name": name} for name in names], least_us=9000)
    if draw.random() < 0.3:
        amount_us = draw.randint(1, min(150, MIDDLE_US - exposure_us // 2))
        device["fault"].append({"kind": "jitter", "amount_us": amount_us})
    if draw.random() < 0.4:
        compensated = draw.random() < 0.5
        to_us = draw.randint(200, 8000) if compensated else exposure_us + draw.randint(-150, 300) * 2
        fits_us = min(8000, 900_000 // rate_hz)
        device["fault"].append(
            {
                "kind": "exposure",
                "to_us": max(100, min(fits_us, to_us)),
                "at_s": str(round(draw.uniform(0, 3), 2)),
                "over_s": str(round(draw.uniform(0.1, 4), 2)),
                "compensated": compensated,
            }
        )
    expected = int((seconds - 2.2) * rate_hz / decimate)
    if draw.random() < 0.4 and expected >= 200:  # one lost sample stays below 0.5 %
        at_s = round(draw.uniform(0.1, seconds - 0.5), 3)
        device["fault"].append({"kind": "drop", "at_s": str(at_s), "for_s": str(Decimal(decimate) / rate_hz)})
    devices.append(device)
    spec.extend(
        {"name": name, "kind": "triggered", "rate_hz": rate_hz // decimate}
        | ({} if decimate == 1 else {"decimate": decimate})
        | ({"phase": phase} if decimate > 1 and draw.random() < 0.5 else {})
        for name in names
    )


def _free_running(draw: Random, name: str, *, devices: list[dict[str, Any]], spec: list[dict[str, Any]]) -> None:
    kind = draw.choice(["sampled", "interpolated"])
    rate_hz = draw.choice([800, 1000]) if kind == "sampled" else draw.choice([60, 70, 120, 200])
    stream = {
        "name": name,
        "content": "imu" if kind == "sampled" else "poses",
        "rate_hz": rate_hz,
        "triggered": False,
        "stamp_point": "instant",
        "batch": draw.choice([1, 5, 10]) if kind == "sampled" else 1,
    }
    devices.append(_device(draw, name, [stream], least_us=1000))
    spec.append(
        {"name": name, "kind": kind, "rate_hz": rate_hz} | ({"provenance": "live"} if kind != "sampled" else {})
    )


def _events(draw: Random, name: str, *, devices: list[dict[str, Any]], spec: list[dict[str, Any]]) -> None:
    stream = {"name": name, "content": "contact", "rate_hz": 8, "triggered": False, "stamp_point": "instant"}
    devices.append(_device(draw, name, [stream], least_us=1000))
    spec.append({"name": name, "kind": "event", "provenance": "live"})
