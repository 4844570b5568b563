"""`manifest.json`: what an episode is bound to and how it ended. Signed when sealed, never changed, no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from firsthand_edge.spec.capture import Capture  # noqa: TC001 - the model is made of it
from firsthand_edge.spec.signing import document_bytes, read_document, sign_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from firsthand_edge.model import DeviceInfo
    from firsthand_edge.spec.keys import KeyPair

__all__ = [
    "MANIFEST_NAME",
    "Balance",
    "ClockIdentity",
    "ClockMapIdentity",
    "Consent",
    "DeviceRecord",
    "Ended",
    "FileDigests",
    "Lost",
    "Manifest",
    "Software",
    "SpecIdentity",
    "SpecSigner",
    "StreamRecord",
    "Take",
]

MANIFEST_NAME: Final = "manifest.json"
SCHEMA: Final = "firsthand.manifest/2"
OLD_SCHEMA: Final = "firsthand.manifest/1"
NEWER: Final = (("capture",), ("spec", "signatures"), ("spec", "throw_away"), ("take", "claimed_utc"))
"""What `firsthand.manifest/1` does not have."""

Count: TypeAlias = Annotated[int, Field(ge=0)]
Digest: TypeAlias = Annotated[str, Field(pattern=r"^blake3:[0-9a-f]{64}$")]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Software(_Frozen):
    """What recorded the episode."""

    version: str
    commit: str
    """Of the source tree; `unknown` where the installation does not tell."""


class SpecSigner(_Frozen):
    """One signature under the spec, as its signature file holds it (`firsthand.spec-signatures/1`)."""

    key_id: str
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    ed25519: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


class SpecIdentity(_Frozen):
    """Which spec the episode is measured against. The document itself is in the evidence."""

    id: str
    version: int
    digest: Digest
    signatures: tuple[SpecSigner, ...] = ()
    """Whose signatures put the spec into force on this rig; none are known of `firsthand.manifest/1`."""
    throw_away: bool = False
    """It was signed by a key that the rig made for itself, as simulated and replayed rigs may: nobody agreed to it."""


class Take(_Frozen):
    """Which attempt this is."""

    number: Count
    """Counts the takes of one run of the daemon from 1; 0 where a crash left nothing that tells."""
    name: str = ""
    """As the plan calls it; empty where no plan asked for it."""
    claimed_utc: Annotated[str, Field(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$")] = ""
    """Start of the take by the wall clock of the rig's host, empty where unknown. A claim, proved by nothing."""


class Consent(_Frozen):
    """What is known of consent."""

    state: str
    """`not_checked` where nobody checked."""
    why: str = ""


class ClockMapIdentity(_Frozen):
    """How the counter of one device became rig time."""

    kind: Literal["identity", "envelope"]
    splits: Count = 0
    """Steps of the device's clock at which the map was split."""
    wraps: Count = 0
    rate_ppb: int | None = None
    """Rate of the device clock against the rig's at the end of the take, parts per billion."""


class ClockIdentity(_Frozen):
    """Whose time it is."""

    timebase: Literal["arb", "ptp"]
    """`arb`: nothing claims TAI."""
    source: str
    """What keeps the rig's time, as `simulated`, `monotonic`, or a grandmaster's identity."""
    utc_offset_s: int | None = None
    """TAI - UTC in force; None where the timebase is not TAI."""
    maps: dict[str, ClockMapIdentity] = Field(default_factory=dict)
    """By device."""


class StreamRecord(_Frozen):
    """A stream as its device described it."""

    name: str
    media: str
    triggered: bool
    stamp_point: str
    offset_ns: int = 0
    period_ns: int | None = None


class DeviceRecord(_Frozen):
    """A device that took part."""

    name: str
    driver: str
    model: str
    serial: str
    firmware: str
    domain: str
    """Of its stamps: `ptp`, `device`, `monotonic`, `utc`."""
    starts: Annotated[int, Field(ge=1)] = 1
    """How often its worker was started during the take; more than 1 means that it died."""
    streams: tuple[StreamRecord, ...] = ()

    @classmethod
    def of(cls, info: DeviceInfo, *, starts: int = 1) -> DeviceRecord:
        """What a manifest keeps of `info`."""
        return cls(
            name=info.name,
            driver=info.driver,
            model=info.model,
            serial=info.serial,
            firmware=info.firmware,
            domain=info.domain.name.lower(),
            starts=starts,
            streams=tuple(
                StreamRecord(
                    name=stream.name,
                    media=stream.media,
                    triggered=stream.triggered,
                    stamp_point=stream.stamp_point.value,
                    offset_ns=stream.offset_ns,
                    period_ns=stream.period_ns,
                )
                for stream in info.streams
            ),
        )


class Lost(_Frozen):
    """Where samples of a stream were lost."""

    device: Count = 0
    """Between exposure and the worker: the device counted them, nobody read them."""
    socket: Count = 0
    """Between the worker and the recorder, dropped and counted by the sender."""
    queue: Count = 0
    """Between receipt and the writer."""
    disk: Count = 0
    """Between the writer and the disk."""


class Balance(_Frozen):
    """The balance sheet of one stream. None: nobody counts that."""

    pulses: Count | None = None
    """Sent to the trigger input during the take."""
    exposures: Count | None = None
    """Reported by the device."""
    received: Count = 0
    written: Count = 0
    durable: Count = 0
    lost: Lost = Lost()

    def faults(self) -> list[str]:
        """Where the columns do not add up, one sentence each; empty when every sample is accounted for.

        exposures = lost.device + lost.socket + received; received = lost.queue + written;
        written = lost.disk + durable.
        """
        lost = self.lost
        sums = [
            ("received", self.received, "lost.queue + written", lost.queue + self.written),
            ("written", self.written, "lost.disk + durable", lost.disk + self.durable),
        ]
        if self.exposures is not None:
            there = lost.device + lost.socket + self.received
            sums.insert(0, ("exposures", self.exposures, "lost.device + lost.socket + received", there))
        return [f"{name} is {have} and {parts} is {total}" for name, have, parts, total in sums if have != total]


class FileDigests(_Frozen):
    """A file of the episode, as it was when it was closed."""

    bytes: Count
    blake3: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    crc64nvme: str
    """What an S3 store can prove of a whole multipart object."""


class Ended(_Frozen):
    """How the take ended."""

    how: Literal["stopped", "device", "disk", "torn", "daemon"]
    """`stopped` as asked; by a `device` that died; by the `disk`; `torn` by a crash; by the `daemon` being stopped."""
    why: str = ""


class Manifest(_Frozen):
    """The document, without its signature. `Spool.seal` signs and writes it.

    `firsthand.manifest/1`, which has no capture, no signatures of the spec and no claimed time, is read and never
    written.
    """

    schema_: Literal["firsthand.manifest/2", "firsthand.manifest/1"] = Field(default=SCHEMA, alias="schema")
    episode: str
    rig: str
    software: Software
    spec: SpecIdentity
    take: Take
    capture: Capture | None = None
    """What was captured; None only where a crash left nothing that tells, and in `firsthand.manifest/1`."""
    consent: Consent
    clock: ClockIdentity
    devices: tuple[DeviceRecord, ...]
    balance: dict[str, Balance]
    """By stream."""
    files: dict[str, FileDigests]
    """By name within the episode's folder; every file but manifest, verdicts and receipts."""
    ended: Ended
    recovery: dict[str, Any] | None = None
    """What recovery found in a torn episode; None when there was nothing to recover."""

    def document(self, key: KeyPair) -> bytes:
        """The signed bytes of `manifest.json`.

        Raises ValueError when `recovery` holds a float, and for a manifest of an old schema: it was signed long ago.
        """
        if self.schema_ != SCHEMA:
            raise ValueError(f"a manifest of {self.schema_} is read and never written again; keep the file as it is")
        return document_bytes(sign_document(self.model_dump(mode="python", by_alias=True), key))

    @classmethod
    def read(cls, data: bytes) -> Manifest:
        """The inverse of `document`; signatures are checked elsewhere. Raises ValueError with a sentence."""
        document = read_document(data)
        document.pop("signature", None)
        schema = document.get("schema")
        if schema == OLD_SCHEMA:
            _require_old(document)
        try:
            return cls.model_validate(document)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(
                f"does not fit {schema if schema == OLD_SCHEMA else SCHEMA}: {place}: {first['msg']}"
            ) from exc


def _require_old(document: Mapping[str, Any]) -> None:
    """Nothing of a later version may stand in a document that says it is of the old one."""
    for place in NEWER:
        table: Any = document
        for part in place[:-1]:
            table = table.get(part, {})
        if isinstance(table, dict) and place[-1] in table:
            raise ValueError(f"does not fit {OLD_SCHEMA}: {'.'.join(place)}: is not a field of that version")
