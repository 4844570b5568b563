"""The rig file: which devices, which trigger, which spec, which store. One TOML document, every mistake at once."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from firsthand_edge.config import parse_document, read_file
from firsthand_edge.sensors.configuration import DeviceConfig  # noqa: TC001 - as above
from firsthand_edge.spec.document import Spec, load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LoadedRig", "RigFile", "load_rig"]


PROCESSES = ("captured", "recorder", "uploadd")
"""Whose logs and process ids a device of the same name would share."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RigSection(_Document):
    """`[rig]`: what the whole rig is."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
    """Name of the rig; starts the id of every episode."""
    spec: str
    """Path of the skill spec, relative to the rig file."""
    timebase: Literal["ptp", "arb"]
    """`ptp`: the PTP timescale (TAI). `arb`: no grandmaster declares one; nothing claims TAI."""
    latency_ms: Annotated[Decimal, Field(gt=0, le=5000)] = Decimal(150)
    """How late a sample may arrive and still count live. The verdict does not depend on it."""
    settle_limit_s: Annotated[Decimal, Field(gt=0, le=300)] = Decimal(30)
    """How long to wait for every clock map to settle before the rig is called unfit."""


class TriggerSection(_Document):
    """`[trigger]`: who makes the pulses."""

    kind: Literal["simulated", "replayed"]
    """`replayed`: nothing is triggered; the players start together and the recorded edges, if any, are kept."""
    rate_hz: Annotated[Decimal, Field(gt=0, le=1000)] | None = None
    mid_exposure_us: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """From a pulse to the planned middle of every exposure: the rig's constant c of t_tick = edge + c (sync.md
    section 1). With it the recorded edges number the ticks; without it, the spec's reference stream does."""


class ConsentSection(_Document):
    """`[consent]`: why no consent record is bound. A rig that records people has no such section."""

    state: Literal["not_checked"]
    why: Literal["simulated", "replayed"]


class StoreSection(_Document):
    """`[store]`: where accepted episodes go."""

    directory: str
    """A directory store, relative to the state directory."""


class RigFile(_Document):
    """The whole document."""

    rig: RigSection
    trigger: TriggerSection
    consent: ConsentSection
    store: StoreSection
    device: Annotated[tuple[DeviceConfig, ...], Field(min_length=1)]


class LoadedRig:
    """A rig file with the spec it names, both as models and as the bytes that go into the evidence verbatim."""

    def __init__(self, path: Path, document: bytes, file: RigFile, spec: Spec, spec_document: bytes) -> None:
        self.path = path
        self.document = document
        self.file = file
        self.spec = spec
        self.spec_document = spec_document

    @property
    def tick_offset_ns(self) -> int | None:
        """The rig's constant between a pulse and the planned middle of the exposures."""
        microseconds = self.file.trigger.mid_exposure_us
        return None if microseconds is None else 1000 * microseconds

    @property
    def period_ns(self) -> int | None:
        """Nominal period of the trigger (T), None where the rig has no trigger of its own."""
        rate = self.file.trigger.rate_hz
        return None if rate is None else round(Decimal(10**9) / rate)


def load_rig(path: Path) -> LoadedRig:
    """Reads a rig file and its spec.

    Raises:
        ConfigInvalid: with every mistake of the rig file.
        SpecInvalid: with every mistake of the spec.
    """
    document = read_file(path)
    file = parse_document(
        document,
        RigFile,
        place=str(path),
        contradictions=lambda f: list(_contradictions(f)),
        context={"directory": path.parent},
    )
    spec_path = path.parent / file.rig.spec
    return LoadedRig(path, document, file, load_spec(spec_path), read_file(spec_path))


def _contradictions(file: RigFile) -> Iterator[tuple[tuple[str | int, ...], str]]:
    seen: dict[str, int] = {}
    for place, device in enumerate(file.device):
        if device.name in seen:
            yield ("device", place, "name"), f"'{device.name}' is device[{seen[device.name]}] already; name each once"
        seen.setdefault(device.name, place)
        if device.name in PROCESSES:
            yield ("device", place, "name"), f"'{device.name}' is the name of a process of the rig; choose another"
    if file.trigger.kind == "simulated" and any(d.driver == "replay" for d in file.device):
        yield ("trigger", "kind"), "recordings bring their own pulses; make it `replayed`"
    if file.trigger.kind == "simulated" and file.trigger.rate_hz is None:
        yield ("trigger",), "a simulated trigger needs `rate_hz`; add it"
    if file.trigger.kind == "replayed" and any(d.driver == "sim" for d in file.device):
        yield ("trigger", "kind"), "a rig with simulated devices needs pulses; make it `simulated`"
