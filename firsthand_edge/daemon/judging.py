"""From closed files to a judged episode: manifests of whole and of torn takes, verdicts, their filing in the spool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from firsthand_edge import _core
from firsthand_edge.errors import (
    CannotJudge,
    ChainBroken,
    ConfigInvalid,
    EpisodeDamaged,
    RecordingUnreadable,
    UsageError,
)
from firsthand_edge.model import DeviceInfo
from firsthand_edge.spec.capture import Capture
from firsthand_edge.spool.judgement import EVIDENCE_NAME, judgement
from firsthand_edge.spool.manifest import (
    Balance,
    ClockIdentity,
    Consent,
    DeviceRecord,
    Ended,
    FileDigests,
    Manifest,
    Software,
    SpecIdentity,
    Take,
)
from firsthand_edge.spool.restart import restart
from firsthand_edge.spool.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from firsthand_edge.spool.episode import Episode
    from firsthand_edge.spool.spool import Spool
    from firsthand_edge.spool.verdict_file import VerdictDocument

__all__ = ["bind", "judge_and_file", "recover_torn", "summary_of"]


def bind(
    *,
    take: Mapping[str, Any],
    devices: Sequence[DeviceInfo],
    balance: Mapping[str, Balance],
    files: Mapping[str, Mapping[str, Any]],
    ended: Ended,
    outcome: str | None = None,
    starts: Mapping[str, int] | None = None,
    recovery: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest of a take.

    Args:
        take: The take's own description, as the evidence holds it (`Rig.start_take` wrote it).
        devices: Devices that took part.
        balance: Balance sheet by stream.
        files: Digests by file name.
        ended: How the take ended.
        outcome: How the attempt ended, as was said last; None: as was said at the start.
        starts: How often each device's worker was started.
        recovery: What recovery found, for a torn take.
    """
    return Manifest(
        episode=take["episode"],
        rig=take["rig"],
        software=Software(**take["software"]),
        spec=SpecIdentity(**take["spec"]),
        take=Take(number=take["number"], name=take.get("name", ""), claimed_utc=take.get("claimed_utc", "")),
        capture=_capture(take, outcome),
        consent=Consent(**take["consent"]),
        clock=ClockIdentity(**take["clock"]),
        devices=tuple(DeviceRecord.of(d, starts=(starts or {}).get(d.name, 1)) for d in devices),
        balance=dict(balance),
        files={name: FileDigests(**digests) for name, digests in files.items()},
        ended=ended,
        recovery=dict(recovery) if recovery is not None else None,
    )


def _capture(take: Mapping[str, Any], outcome: str | None) -> Capture | None:
    """What the take captured; None where its description does not tell."""
    fields = take.get("capture")
    if fields is None:
        return None
    return Capture.model_validate(fields if outcome is None else {**fields, "outcome": outcome})


def judge_and_file(spool: Spool, episode: Episode) -> dict[str, Any]:
    """Judges a sealed episode and moves it to `accepted` or `rejected`; returns its summary.

    Raises:
        ChainBroken: it is good, and nothing may be accepted by a broken chain: it waits where it is, and is judged
            again at the first start after the chain was restored.
    """
    committed = spool.committed(episode)
    document = judgement(episode.path, committed.manifest, committed.manifest_digest)
    filed = spool.judge_done(episode, document)
    return _summary(filed, committed.manifest, document)


def summary_of(spool: Spool, name: str) -> dict[str, Any]:
    """The summary of an episode that has been judged.

    Raises:
        UsageError: when no episode has this name.
        CannotJudge: when it has not been judged yet.
    """
    episode = spool.find(name)
    committed = spool.committed(episode)
    if committed.verdict is None:
        raise CannotJudge(f"episode {episode.id} is {episode.state} and not judged yet; ask again")
    return _summary(episode, committed.manifest, committed.verdict)


def _summary(episode: Episode, manifest: Manifest, verdict: VerdictDocument) -> dict[str, Any]:
    capture = None if manifest.capture is None else manifest.capture.model_dump(mode="json")
    return {"episode": episode.id, "state": episode.state.value, "capture": capture, "report": verdict.report}


def recover_torn(spool: Spool) -> list[str]:
    """Brings the spool to agree after a crash, recovers what is torn, and judges what waits for it.

    Returns:
        One sentence for each thing found and done; empty after a clean end.

    Raises:
        DiskFull, DiskError: the disk does not obey; what is torn stays torn, and the next call goes on.
    """
    said = [found.sentence for found in restart(spool)]
    for state in (State.TORN, State.SEALED):
        for episode in spool.episodes(state):
            try:
                if not spool.standing(episode).sealed:
                    spool.seal(episode, _recovered(episode))
                summary = judge_and_file(spool, episode)
            except ChainBroken as exc:
                said.append(f"episode {episode.id}: stays in {episode.state}: {exc}")
            except (CannotJudge, EpisodeDamaged, UsageError, ConfigInvalid, ValueError) as exc:
                # One episode that nothing can be made of must not keep the rig from the next.
                spool.set_aside(episode, str(exc))
                said.append(f"episode {episode.id}: set aside: {exc}")
            else:
                said.append(f"episode {episode.id}: recovered and judged: {summary['report']['verdict']}")
    return said


def _recovered(episode: Episode) -> Manifest:
    """Recovers the files of a torn take and binds what is left."""
    note = _core.recover(episode.path)
    files = note.pop("files")
    try:
        evidence = _core.read_evidence(episode.path / EVIDENCE_NAME)
    except RecordingUnreadable:
        take, devices, balance, outcome = _unknown_take(episode), [], {}, None
    else:
        take = json.loads(evidence["take"])
        devices = [DeviceInfo.from_json(d) for d in json.loads(evidence["devices"])]
        balance = {name: _left_balance(columns) for name, columns in evidence["samples"].items()}
        # A take that was closed and not sealed has been told how the attempt ended.
        outcome = None if evidence["close"] is None else json.loads(evidence["close"]).get("outcome")
    return bind(
        take=take,
        devices=devices,
        balance=balance,
        files=files,
        ended=Ended(how="torn", why="the recording was not closed; recovered at the next start"),
        outcome=outcome,
        recovery=note,
    )


def _left_balance(columns: Mapping[str, Any]) -> Balance:
    """What is known of a stream after a crash: what became durable; the counters of the dead are not."""
    kept = int((columns["warmup"] == 0).sum())
    return Balance(pulses=None, exposures=None, received=kept, written=kept, durable=kept)


def _unknown_take(episode: Episode) -> dict[str, Any]:
    """Stands for the description of a take whose evidence holds nothing: said as unknown, not guessed."""
    return {
        "episode": episode.id,
        "rig": episode.id.rsplit("-", 2)[0],
        "number": 0,
        "software": {"version": _core.__version__, "commit": "unknown"},
        "spec": {"id": "unknown", "version": 0, "digest": "blake3:" + "0" * 64},
        "consent": {"state": "not_checked", "why": "the evidence was lost"},
        "clock": {"timebase": "arb", "source": "unknown"},
    }
