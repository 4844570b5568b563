"""Real episodes, many of them: takes of the simulated rig, recorded once, and bound under as many ids as are wanted.

Every episode has evidence of its own (the id stands in it), a manifest, chain rows and a verdict, all made by the code
that a rig runs. Footage files are one file of the disk under many names.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from firsthand_edge import _core
from firsthand_edge.daemon.judging import bind
from firsthand_edge.model import DeviceInfo
from firsthand_edge.record.plan import recorder_plan
from firsthand_edge.spec.document import Spec, parse_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signed import sign_spec
from firsthand_edge.spool.episode import Episode
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.judgement import judgement
from firsthand_edge.spool.manifest import Balance, Ended, Manifest
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import VerdictDocument
from firsthand_edge.testing.simulated_time import SimulatedRig, record_simulated
from tests.simulated import sim_rig

RIG = "sim-01"
PLACEHOLDER = f"{RIG}-00000001-0123456789abcdef"
CAPTURE = {
    "task": "pick-cup",
    "cell": "daylight",
    "scene": "kitchen-1",
    "objects": ["cup-ceramic"],
    "contributor": "sim-a",
    "outcome": "success",
}


@dataclass(frozen=True)
class Take:
    """A take that was recorded once."""

    folder: Path
    description: dict[str, Any]
    devices: tuple[DeviceInfo, ...]

    @property
    def evidence(self) -> bytes:
        return (self.folder / "evidence.mcap").read_bytes()


def record(
    folder: Path,
    *,
    signer: KeyPair,
    number: int = 1,
    seconds: float = 1.2,
    warm_up_s: float = 3.0,
    spec: bytes | None = None,
    **capture: Any,
) -> Take:
    """Records take `number` of the simulated rig, in simulated time, under a spec that `signer` signed.

    Takes 2 and 4 are rejected: the rig file makes a camera freeze, and a clock jump.
    """
    loaded = sim_rig()
    document = loaded.spec_document if spec is None else spec
    contract = parse_spec(document, place="spec")
    rig = SimulatedRig(loaded.file.device, folder / "run")
    plan = recorder_plan(contract, period_ns=loaded.period_ns, latency_ns=150_000_000)
    intake = _core.Intake(json.dumps([info.to_json() for info in rig.infos]), plan=plan, live=folder / "live")
    directory = folder / "take"
    directory.mkdir()
    description = {
        "episode": PLACEHOLDER,
        "rig": RIG,
        "number": number,
        "name": "",
        "claimed_utc": "2026-11-30T12:00:00Z",
        "software": {"version": _core.__version__, "commit": "unknown"},
        "spec": {
            "id": contract.id,
            "version": contract.version,
            "digest": contract.digest,
            "signatures": [sign_spec(contract, signer).to_json()],
            "throw_away": False,
        },
        "capture": {**CAPTURE, **capture},
        "consent": {"state": "not_checked", "why": "simulated"},
        "clock": {"timebase": "arb", "source": "simulated"},
        "period_ns": loaded.period_ns,
        "tick_offset_ns": loaded.tick_offset_ns,
    }
    record_simulated(
        rig,
        intake,
        directory=directory,
        seconds=seconds,
        warm_up_s=warm_up_s,
        period_ns=loaded.period_ns or 0,
        number=number,
        take=description,
        attachments=[
            ("spec.toml", "application/toml", document),
            ("rig.toml", "application/toml", loaded.document),
        ],
    )
    rig.close()
    return Take(directory, description, rig.infos)


def renamed(evidence: bytes, episode: str) -> bytes:
    """`evidence` as the recorder would have written it for an episode of another id of the same length."""
    assert len(episode) == len(PLACEHOLDER)
    data = bytearray(evidence.replace(PLACEHOLDER.encode(), episode.encode()))
    assert bytes(data) != evidence or episode == PLACEHOLDER
    start, end = _data_section(evidence)
    (stored,) = struct.unpack_from("<I", evidence, end + 9)
    if stored:
        assert stored == zlib.crc32(evidence[start:end])
        struct.pack_into("<I", data, end + 9, zlib.crc32(data[start:end]))
    return bytes(data)


def _data_section(evidence: bytes) -> tuple[int, int]:
    """From the start of the file to its record DataEnd (0x0f): what the checksum of that record covers."""
    offset = 8
    while evidence[offset] != 0x0F:
        (length,) = struct.unpack_from("<Q", evidence, offset + 1)
        offset += 9 + length
    return 0, offset


@dataclass
class Rig:
    """A spool with its key, and takes to fill it with."""

    root: Path
    spool: Spool = field(init=False)
    signer: KeyPair = field(default_factory=KeyPair.generate)
    spec_document: bytes = b""
    numbers: int = 0

    def __post_init__(self) -> None:
        self.spool = Spool(self.root / "spool", KeyPair.load_or_create(self.root / "keys"))
        if not self.spec_document:
            self.spec_document = sim_rig().spec_document

    @property
    def spec(self) -> Spec:
        return parse_spec(self.spec_document, place="spec")

    @property
    def spec_path(self) -> Path:
        path = self.root / "spec.toml"
        path.write_bytes(self.spec_document)
        return path

    @property
    def key(self) -> str:
        return self.spool.key.public.hex()

    def take(self, *, number: int = 1, seconds: float = 1.2, warm_up_s: float = 3.0, **capture: Any) -> Take:
        folder = self.root / "takes" / str(self.numbers) / f"{number}-{len(list(self.root.glob('takes/*/*')))}"
        folder.mkdir(parents=True)
        return record(
            folder,
            signer=self.signer,
            number=number,
            seconds=seconds,
            warm_up_s=warm_up_s,
            spec=self.spec_document,
            **capture,
        )

    def begin(self, take: Take) -> Episode:
        """The closed files of a new episode. Numbered here: the spool's own `begin` lists all that are there first."""
        self.numbers += 1
        name = str(EpisodeId.new(RIG, self.numbers))
        path = self.spool.root / State.RECORDING / name
        path.mkdir()
        (path / "evidence.mcap").write_bytes(renamed(take.evidence, name))
        os.link(take.folder / "episode.mcap", path / "episode.mcap")
        return Episode(name, State.RECORDING, path)

    def seal(self, take: Take, *, recovery: dict[str, Any] | None = None) -> Episode:
        episode = self.begin(take)
        return self.spool.seal(episode, self.manifest(episode, take, recovery=recovery))

    def manifest(self, episode: Episode, take: Take, *, recovery: dict[str, Any] | None = None) -> Manifest:
        return bind(
            take={**take.description, "episode": episode.id},
            devices=take.devices,
            balance={"head": Balance(received=1, written=1, durable=1)},
            files={
                "episode.mcap": _footage(take.folder / "episode.mcap"),
                "evidence.mcap": _core.digest_file(episode.path / "evidence.mcap"),
            },
            ended=Ended(how="stopped"),
            recovery=recovery,
        )

    def judge(self, episode: Episode) -> Episode:
        committed = self.spool.committed(episode)
        return self.spool.judge_done(episode, judgement(episode.path, committed.manifest, committed.manifest_digest))

    def add(self, take: Take) -> Episode:
        """A whole episode, sealed and judged."""
        return self.judge(self.seal(take))

    def judge_like(self, episode: Episode, before: VerdictDocument) -> Episode:
        """Judges an episode of the same take as `before` without measuring again: only the names differ."""
        committed = self.spool.committed(episode)
        took = {**before.report["take"], "episode": episode.id}
        verdict = before.model_copy(
            update={
                "episode": episode.id,
                "manifest": committed.manifest_digest,
                "report": {**before.report, "take": took},
            }
        )
        return self.spool.judge_done(episode, verdict)


@lru_cache(maxsize=64)
def _footage(path: Path) -> dict[str, Any]:
    return _core.digest_file(path)
