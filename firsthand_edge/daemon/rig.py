"""The rig file: which devices, which trigger, which contract, which store. One TOML document, every mistake at once."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from firsthand_edge.config import parse_document, read_file
from firsthand_edge.errors import SpecInvalid
from firsthand_edge.model import Kind
from firsthand_edge.sensors.configuration import DeviceConfig  # noqa: TC001 - as above
from firsthand_edge.spec.document import Spec, parse_spec
from firsthand_edge.spec.plan import Plan, load_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LoadedRig", "RigFile", "load_rig"]


PublicKey: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

PROCESSES = ("captured", "recorder", "uploadd")
"""Whose logs and process ids a device of the same name would share."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RigSection(_Document):
    """`[rig]`: what the whole rig is."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
    """Name of the rig; starts the id of every episode."""
    timebase: Literal["ptp", "arb"]
    """`ptp`: the PTP timescale (TAI). `arb`: no grandmaster declares one; nothing claims TAI."""
    latency_ms: Annotated[Decimal, Field(gt=0, le=5000)] = Decimal(150)
    """How late a sample may arrive and still count live. The verdict does not depend on it."""
    settle_limit_s: Annotated[Decimal, Field(gt=0, le=300)] = Decimal(30)
    """How long to wait for every clock map to settle before the rig is called unfit."""


class ContractSection(_Document):
    """`[contract]`: what is recorded against, who must have signed it, and which takes are planned."""

    spec: str
    """Path of the skill spec, relative to the rig file; its signatures lie beside it (`<spec>.sig`)."""
    plan: str | None = None
    """Path of the plan file, relative to the rig file; without it each take is said by command."""
    signers: Annotated[tuple[PublicKey, ...], Field(min_length=1)] | None = None
    """Public keys of the parties, 64 hex digits each: every one of them must have signed this very spec."""
    throw_away_key: bool = False
    """The rig signs the spec itself, with a key made at set-up, and every manifest says so. Only where nobody is
    recorded."""


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
    contract: ContractSection
    trigger: TriggerSection
    consent: ConsentSection
    store: StoreSection
    device: Annotated[tuple[DeviceConfig, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRig:
    """A rig file with the spec and the plan it names; rig file and spec also as the bytes that go into the evidence."""

    path: Path
    document: bytes
    file: RigFile
    spec: Spec
    spec_document: bytes
    plan: Plan | None

    @property
    def spec_path(self) -> Path:
        """Where the spec lies, and its signatures beside it."""
        return self.path.parent / self.file.contract.spec

    @property
    def sparse(self) -> frozenset[str]:
        """Streams whose silence says nothing while a take runs: events, and everything that is replayed."""
        replayed = self.file.trigger.kind == "replayed"
        return frozenset(s.name for s in self.spec.streams if replayed or s.kind is Kind.EVENT)

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


def load_rig(path: Path, *, plan: Path | None = None) -> LoadedRig:
    """Reads a rig file, its spec and its plan. Who signed the spec is another check's to tell.

    Args:
        path: The rig file.
        plan: A plan file instead of the one that the rig file names.

    Raises:
        ConfigInvalid: with every mistake of the rig file.
        SpecInvalid: with every mistake of the spec.
        PlanInvalid: with every mistake of the plan.
    """
    document = read_file(path)
    file = parse_document(
        document,
        RigFile,
        place=str(path),
        contradictions=lambda f: list(_contradictions(f)),
        context={"directory": path.parent},
    )
    spec_path = path.parent / file.contract.spec
    spec_document = read_file(spec_path, error=SpecInvalid)
    spec = parse_spec(spec_document, place=str(spec_path))
    if plan is None and file.contract.plan is not None:
        plan = path.parent / file.contract.plan
    return LoadedRig(
        path=path,
        document=document,
        file=file,
        spec=spec,
        spec_document=spec_document,
        plan=None if plan is None else load_plan(plan, spec),
    )


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
    yield from _signing(file.contract, str(file.consent.state))


def _signing(contract: ContractSection, consent: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Either the parties sign the spec, or nobody is recorded."""
    if contract.throw_away_key and consent != "not_checked":
        yield (
            ("contract", "throw_away_key"),
            "is for simulated and replayed rigs; have the spec signed by the parties and name their keys in `signers`",
        )
    if contract.throw_away_key and contract.signers is not None:
        yield ("contract", "throw_away_key"), "stands beside `signers`; keep one of the two"
    if not contract.throw_away_key and contract.signers is None:
        yield (
            ("contract",),
            (
                "names nobody who signs the spec; write the parties' public keys in `signers` "
                "(`throw_away_key = true` is for simulated and replayed rigs)"
            ),
        )
    for place, key in enumerate(contract.signers or ()):
        if key in (contract.signers or ())[:place]:
            yield ("contract", "signers", place), "is there already; name each key once"
