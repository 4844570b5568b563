"""Spools filled by real steps with made-up figures: coverage counts documents, and measures nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from firsthand_edge.model import Reason, Verdict
from firsthand_edge.spec.capture import Capture
from firsthand_edge.spec.document import parse_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spool.chain import Event
from firsthand_edge.spool.episode import Episode
from firsthand_edge.spool.identity import EpisodeId
from firsthand_edge.spool.manifest import (
    Balance,
    ClockIdentity,
    Consent,
    Ended,
    FileDigests,
    Manifest,
    Software,
    SpecIdentity,
    Take,
)
from firsthand_edge.spool.spool import Spool
from firsthand_edge.spool.states import State
from firsthand_edge.spool.verdict_file import VerdictDocument
from tests.simulated import sim_rig

if TYPE_CHECKING:
    from pathlib import Path

CODES = ("picture.frozen", "sync.ceiling", "stamp.jump", "stream.lost")
FOOTAGE = b"no footage at all"


def spec_document(**changes: str) -> bytes:
    """The simulated rig's spec, with pieces of its text replaced."""
    text = sim_rig().spec_document.decode()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text.encode()


@dataclass
class Filled:
    """A spool, filled step by step."""

    root: Path
    document: bytes = b""
    number: int = 0
    rejected: list[Episode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = self.document or sim_rig().spec_document
        self.spec = parse_spec(self.document, place="spec")
        self.digest = self.spec.digest
        self.spool = Spool(self.root / "spool", KeyPair.load_or_create(self.root / "keys"))

    def seal(
        self, *, day: str = "2026-11-30", torn: bool = False, capture: Capture | None = None, **tags: Any
    ) -> Episode:
        """A sealed episode; without `capture`, of `tags`."""
        self.number += 1
        name = str(EpisodeId.new("sim-01", self.number))
        path = self.spool.root / (State.TORN if torn else State.RECORDING) / name
        path.mkdir()
        (path / "episode.mcap").write_bytes(FOOTAGE)
        fields = {"task": "pick-cup", "cell": "daylight", "scene": "kitchen-1", "contributor": "sim-a", **tags}
        manifest = Manifest(
            episode=name,
            rig="sim-01",
            software=Software(version="0.1.0", commit="unknown"),
            spec=SpecIdentity(id=self.spec.id, version=self.spec.version, digest=self.digest),
            take=Take(number=1, claimed_utc=f"{day}T12:00:00Z" if day else ""),
            capture=capture or (Capture.model_validate(fields) if tags.get("cell", "") is not None else None),
            consent=Consent(state="not_checked", why="nobody is recorded"),
            clock=ClockIdentity(timebase="arb", source="simulated"),
            devices=(),
            balance={"head": Balance(received=1, written=1, durable=1)},
            files={
                "episode.mcap": FileDigests(bytes=len(FOOTAGE), blake3=blake3(FOOTAGE).hexdigest(), crc64nvme="0" * 16)
            },
            ended=Ended(how="torn" if torn else "stopped"),
            recovery={"kept": 1} if torn else None,
        )
        return self.spool.seal(Episode(name, State.TORN if torn else State.RECORDING, path), manifest)

    def judge(self, episode: Episode, *codes: str, ticks: int = 600, period_ns: int | None = 16_666_667) -> Episode:
        """Accepts, or rejects for `codes`."""
        committed = self.spool.committed(episode)
        capture = committed.manifest.capture
        verdict = VerdictDocument.of(
            episode=episode.id,
            manifest=committed.manifest_digest,
            spec=self.digest,
            core="0.1.0",
            cell=None if capture is None else capture.cell,
            verdict=Verdict(accepted=not codes, reasons=tuple(Reason(code, f"made up: {code}") for code in codes)),
            report={"schema": "firsthand.sync-report/1", "period_ns": period_ns, "span": {"ticks": ticks}},
            recaptures=self.spec.reject.recaptures,
        )
        return self.spool.judge_done(episode, verdict)

    def accepted(self, *, ticks: int = 600, **tags: Any) -> Episode:
        return self.judge(self.seal(**tags), ticks=ticks)

    def reject(self, *codes: str, **tags: Any) -> Episode:
        return self.judge(self.seal(**tags), *(codes or ("picture.frozen",)))


def at_random(filled: Filled, draw: random.Random, count: int) -> None:
    """Episodes of every kind: waiting, judged once and again, torn, recapturing, removed and set aside."""
    spec = filled.spec
    rejected: list[str] = []
    for _ in range(count):
        cell = draw.choice(spec.cells)
        tasks = cell.tasks or tuple(task.id for task in spec.tasks)
        tags: dict[str, Any] = {
            "day": draw.choice(["", "2026-11-30", "2026-12-01", "2026-12-04"]),
            "cell": cell.id,
            "task": draw.choice(tasks),
            "scene": draw.choice(["kitchen-1", "kitchen-2", "kitchen-3"]),
            "contributor": draw.choice(["sim-a", "sim-b", "sim-c"]),
            "objects": tuple(draw.sample(["cup-ceramic", "cup-glass", "jug-2l", "spoon"], draw.randrange(3))),
            "outcome": draw.choice(["success", "failure", "near_miss", "unstated"]),
            "stage": draw.choice([None, "pilot", "production"]),
        }
        if rejected and draw.random() < 0.4:
            tags["recaptures"] = draw.choice(rejected)
        if draw.random() < 0.1:
            tags["cell"] = None
        torn = draw.random() < 0.1
        episode = filled.seal(torn=torn, **tags)
        if draw.random() < 0.1 and not torn:
            continue
        codes = draw.sample(CODES, draw.randrange(1, 3)) if torn or draw.random() < 0.4 else ()
        episode = filled.judge(
            episode, *codes, ticks=draw.randrange(1000), period_ns=draw.choice([None, 16_666_667, 5])
        )
        while not torn and draw.random() < 0.2:
            codes = () if draw.random() < 0.5 else (draw.choice(CODES),)
            episode = filled.judge(episode, *codes, ticks=draw.randrange(1000))
        if episode.state is State.REJECTED:
            rejected.append(episode.id)
        last = draw.random()
        if last < 0.05:
            filled.spool.remove(episode, Event.WITHDRAWN, "asked for")
        elif last < 0.1:
            filled.spool.remove(episode, Event.DISCARDED, "a person threw it away")
        elif last < 0.15 and episode.state is State.REJECTED:
            filled.spool.remove(episode, Event.EXPIRED, "its time is over")
        elif last < 0.2:
            filled.spool.set_aside(episode, "a disk lied")
