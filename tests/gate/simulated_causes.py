"""How the simulator makes each cause of a disagreement, and what has to be said of the take that it befell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from firsthand_edge.sensors.configuration import SimDevice
from tests.simulated import sim_rig, spec_of_streams, with_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firsthand_edge.daemon.rig import LoadedRig

S = 1_000_000_000
US = 1000
PERIOD_NS = 16_666_667
CAMERAS = ("head", "left", "right", "chest")
SECONDS = 6.5
SIZE_NS = 300 * US
"""Tolerance of a size: every stamp is uncertain by its device's least delay, known to 200 us, and a tick of 1 us."""


@dataclass(frozen=True)
class Cause:
    """How the simulator makes one kind, and what must be said about it."""

    kind: str
    faults: tuple[dict[str, Any], ...]
    device: dict[str, Any] = field(default_factory=dict)
    stream: dict[str, Any] = field(default_factory=dict)
    began_ns: int | None = 0
    began_within_ns: int = PERIOD_NS
    expected: dict[str, Any] = field(default_factory=dict)
    """Field to value, or to (value, tolerance)."""
    code: str = "sync.ceiling"
    """Of the reason that the take is rejected for."""
    note: str = ""


COUNTS = {"has_trigger_index": True}
LONG_COUNTER = {"counter_bits": 40, "counter_start": 2**39, "tick_num": 1000}
WITHIN_PLAN = {"kind": "exposure", "to_us": 4500, "at_s": "1", "over_s": "2"}
"""Auto exposure as an honest camera has it: middles move by 0.75 ms, which the ceiling allows."""

CAUSES = {
    cause.kind: cause
    for cause in (
        Cause("constant", ({"kind": "offset", "amount_us": 3500},), expected={"offset_ns": (3500 * US, SIZE_NS)}),
        Cause(
            "step",
            ({"kind": "offset", "amount_us": -3000, "at_s": "3"},),
            stream={"trigger_delay_us": 3500, "exposure_us": 3000},
            began_ns=3 * S,
            expected={"offset_ns": (-3000 * US, SIZE_NS)},
        ),
        Cause(
            "drift",
            ({"kind": "free_run", "ppm": 1000},),
            began_within_ns=S // 2,
            expected={"drift_ppb": (1_000_000, 50_000)},
        ),
        Cause(
            "slip", ({"kind": "slip", "ticks": 1, "at_s": "2"},), stream=COUNTS, began_ns=2 * S, expected={"ticks": 1}
        ),
        Cause("tai_utc", ({"kind": "jump", "seconds": 37, "at_s": "2.5"},), began_ns=5 * S // 2, code="stamp.tai_utc"),
        Cause(
            "unit", ({"kind": "unit", "counts": "ms"},), began_ns=None, expected={"factor": "1000"}, code="stamp.unit"
        ),
        Cause(
            "wrap",
            ({"kind": "wrap", "bits": 32, "at_s": "3.5"},),
            device=LONG_COUNTER,
            began_ns=7 * S // 2,
            code="stamp.wrap",
        ),
        Cause("stamp_point", ({"kind": "stamp_point", "stamps": "end"}, WITHIN_PLAN)),
        Cause(
            "exposure_spread",
            ({"kind": "exposure", "to_us": 500, "at_s": "1", "over_s": "2"},),
            began_ns=2 * S,
            began_within_ns=S,
        ),
        Cause(
            "jitter",
            ({"kind": "jitter", "amount_us": 4000, "at_s": "1.5"},),
            began_ns=3 * S // 2,
            began_within_ns=S // 4,
            expected={"offset_ns": (7200 * US, 800 * US)},  # 90 % of 8 ms of an even distribution
        ),
    )
}


MATCHED = set(CAUSES) - {"tai_utc", "unit", "wrap"}
"""Kinds that show where streams are matched, not in a stream's own stamps."""


def varied(kind: str, note: str, *faults: dict[str, Any], **changes: Any) -> Cause:
    """A cause of another size."""
    return replace(CAUSES[kind], note=note, faults=faults, **changes)


VARIATIONS = [
    varied(
        "constant",
        "early",
        {"kind": "offset", "amount_us": -2800},
        stream={"trigger_delay_us": 3500, "exposure_us": 3000},
        expected={"offset_ns": (-2800 * US, SIZE_NS)},
    ),
    varied(
        "step",
        "late-in-the-take",
        {"kind": "offset", "amount_us": 6000, "at_s": "5.5"},
        stream={},
        began_ns=11 * S // 2,
        expected={"offset_ns": (6000 * US, SIZE_NS)},
    ),
    varied("drift", "fast", {"kind": "free_run", "ppm": -700}, expected={"drift_ppb": (-700_000, 50_000)}),
    varied(
        "drift",
        "cable-comes-off",
        {"kind": "free_run", "ppm": 1500, "at_s": "2"},
        began_ns=2 * S,
        expected={"drift_ppb": (1_500_000, 75_000)},
    ),
    varied(
        "drift",
        "past-a-period",
        {"kind": "free_run", "ppm": 6000},
        expected={"drift_ppb": (6_000_000, 300_000)},
    ),
    varied(
        "slip",
        "back",
        {"kind": "slip", "ticks": -1, "at_s": "2"},
        began_within_ns=2 * PERIOD_NS,  # the tick that is skipped has no sample
        expected={"ticks": -1},
    ),
    varied("slip", "three", {"kind": "slip", "ticks": 3, "at_s": "4"}, began_ns=4 * S, expected={"ticks": 3}),
    varied("tai_utc", "back", {"kind": "jump", "seconds": -37, "at_s": "2"}, began_ns=2 * S),
    varied("unit", "nanoseconds", {"kind": "unit", "counts": "ns"}, expected={"factor": "1000"}),
    varied("stamp_point", "start", {"kind": "stamp_point", "stamps": "start"}, WITHIN_PLAN),
    varied(
        "exposure_spread",
        "brightens",
        {"kind": "exposure", "to_us": 12_000, "at_s": "1", "over_s": "2"},
        device={"min_delay_us": 13_000},
    ),
    varied(
        "jitter",
        "a-while",
        {"kind": "jitter", "amount_us": 3000, "at_s": "2", "for_s": "2"},
        began_ns=2 * S,
        expected={},
    ),
]
NEEDS_EDGES = {"slip"}
"""A slip is one against the count of the pulses: the stream that numbers the ticks is its own count."""


def rig(befallen: dict[str, list[Cause]], *, edges_number_ticks: bool = True) -> LoadedRig:
    """Four cameras and an IMU, each on a clock of its own; some with the faults of causes."""
    devices = [camera(number, name, befallen.get(name, [])) for number, name in enumerate(CAMERAS)]
    stream = {"name": "imu", "content": "imu", "rate_hz": 1000, "triggered": False, "stamp_point": "instant"}
    devices.append({"driver": "sim", "name": "imu", "seed": 44, "drift_ppm": -100, "stream": [{**stream, "batch": 10}]})
    spec = [{"name": name, "kind": "triggered", "rate_hz": 60} for name in CAMERAS]
    spec.append({"name": "imu", "kind": "sampled", "rate_hz": 1000})
    return with_devices(
        sim_rig(),
        [SimDevice.model_validate(device) for device in devices],
        spec_document=spec_of_streams(spec),
        edges_number_ticks=edges_number_ticks,
    )


def camera(number: int, name: str, causes: Sequence[Cause]) -> dict[str, Any]:
    """The table of a camera that all these causes befall."""
    stream = {
        "name": name,
        "content": "picture",
        "rate_hz": 60,
        "exposure_us": 6000,
        "trigger_delay_us": 2000,
        "stamp_point": "middle",
    }
    device = {
        "driver": "sim",
        "name": name,
        "seed": 40 + number,
        "drift_ppm": (37, -52, 88, -20)[number],
        "counter_bits": 32,
        "wrap_after_s": str(7 + number / 4),
        "min_delay_us": 9000,
        "delay_error_us": (60, -80, 40, -30)[number],
        "delay_tail_us": 250,
    }
    faults: list[dict[str, Any]] = []
    for cause in causes:
        device |= cause.device
        stream |= cause.stream
        faults += cause.faults
    if sum(fault["kind"] == "exposure" for fault in faults) > 1:
        faults.remove(WITHIN_PLAN)  # exposures vary anyhow, by more than is planned
    if "counter_start" in device:
        del device["wrap_after_s"]
    return {**device, "stream": [stream], "fault": faults}
