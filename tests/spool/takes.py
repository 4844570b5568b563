"""Makes episodes for tests of the spool, as a recorder and a gate would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blake3 import blake3

from firsthand_edge.model import Reason, Verdict
from firsthand_edge.spec.capture import Capture
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
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.verdict_file import VerdictDocument

if TYPE_CHECKING:
    from pathlib import Path

    from firsthand_edge.spool.episode import Episode
    from firsthand_edge.spool.spool import Spool

SPEC_DIGEST = "blake3:" + "5" * 64
FOOTAGE = b"footage that is a little longer than nothing " * 40
CAPTURE = Capture(task="pour-kettle", cell="daylight", scene="kitchen-1", contributor="p-01")
TORN = Reason(code="record.torn", sentence="the take was cut short")


def record(episode: Episode, *, footage: bytes = FOOTAGE) -> None:
    """The files of a take, closed."""
    (episode.path / "episode.mcap").write_bytes(footage)
    (episode.path / "evidence.mcap").write_bytes(b"evidence of " + episode.id.encode())


def digests(path: Path) -> FileDigests:
    data = path.read_bytes()
    return FileDigests(bytes=len(data), blake3=blake3(data).hexdigest(), crc64nvme="0" * 16)


def manifest(episode: Episode, *, recovery: dict[str, Any] | None = None, **changes: Any) -> Manifest:
    files = {n: digests(episode.path / n) for n in ("episode.mcap", "evidence.mcap") if (episode.path / n).exists()}
    fields: dict[str, Any] = {
        "episode": episode.id,
        "rig": "sim",
        "software": Software(version="0.1.0", commit="unknown"),
        "spec": SpecIdentity(id="sim-kitchen", version=1, digest=SPEC_DIGEST),
        "take": Take(number=1),
        "capture": CAPTURE,
        "consent": Consent(state="not_checked", why="simulated"),
        "clock": ClockIdentity(timebase="arb", source="simulated"),
        "devices": (),
        "balance": {"head": Balance(received=1, written=1, durable=1)},
        "files": files,
        "ended": Ended(how="torn" if recovery is not None else "stopped"),
        "recovery": recovery,
    }
    return Manifest(**{**fields, **changes})


def verdict(spool: Spool, episode: Episode, *reasons: Reason, **changes: Any) -> VerdictDocument:
    fields: dict[str, Any] = {
        "episode": episode.id,
        "manifest": spool.committed(episode).manifest_digest,
        "spec": SPEC_DIGEST,
        "core": "0.1.0",
        "cell": CAPTURE.cell,
        "recaptures": lambda code: code != "record.torn",
        "verdict": Verdict(accepted=not reasons, reasons=reasons),
        "report": {"schema": "firsthand.sync-report/1", "streams": {"head": {"rate_hz": 59.99}}},
    }
    return VerdictDocument.of(**{**fields, **changes})


def sealed(spool: Spool, *, footage: bytes = FOOTAGE) -> Episode:
    episode = spool.begin("sim")
    record(episode, footage=footage)
    return spool.seal(episode, manifest(episode))


def judged(spool: Spool, *reasons: Reason, footage: bytes = FOOTAGE) -> Episode:
    episode = sealed(spool, footage=footage)
    return spool.judge_done(episode, verdict(spool, episode, *reasons))


def torn(spool: Spool) -> Episode:
    """A torn episode, recovered and sealed."""
    record(spool.begin("sim"))
    restart(spool)
    [episode] = [e for e in spool.episodes() if e.state == "torn" and not spool.standing(e).sealed]
    return spool.seal(episode, manifest(episode, recovery={"kept": 1}))
