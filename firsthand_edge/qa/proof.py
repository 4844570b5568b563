"""What a proof says: each check by itself, one outcome an episode, and the whole as JSON (`firsthand.proof/1`).

A stranger needs the public key and the spec. A check holds, fails, or was not made; what was not made says why, and an
episode is proved only when no check fails and none that could be asked for is missing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "DOES_NOT_SHOW",
    "ONCE",
    "Check",
    "CheckedChain",
    "EpisodeProof",
    "GivenSpec",
    "Outcome",
    "Proof",
    "Reason",
    "Result",
    "Summary",
    "VerdictOnFile",
    "exit_status",
    "outcome_of",
    "proof_bytes",
    "summary_of",
]

DOES_NOT_SHOW = (
    "when it was recorded, by the clock on the wall: the rig's date is a claim, and the chain proves order only",
    "that scene, task, person and outcome are what the manifest says: only who said so, and that it is unchanged",
    "that nobody else holds the rig's private key, or that its holder did not sign something untrue",
    "whether rows were cut off the end of the chain before anybody else had seen them",
)
"""What no proof of this kind can show; said on every page."""

ONCE = "once"
"""Name of the check that nothing is counted twice; made when all episodes are proved."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Result(StrEnum):
    """How a check came out."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_CHECKED = "not_checked"


class Outcome(StrEnum):
    """What is proved of one episode."""

    ACCEPTED = "accepted"
    """Every check holds, and the verdict in force accepts it."""
    REJECTED = "rejected"
    """Every check holds, and the verdict in force rejects it."""
    TAKEN_BACK = "taken_back"
    """Every check holds, and the chain says that the episode may not be used: withdrawn, discarded, or set aside."""
    FAILED = "failed"
    """A check fails: something is altered, missing, or of somebody else."""
    UNKNOWN = "unknown"
    """No check fails, and something that counts could not be checked, or there is no verdict."""


class Check(_Frozen):
    """One check of one episode."""

    id: str
    """Stable name, as `manifest.signature`, or `file:episode.mcap`."""
    result: Result
    what: str
    """What is claimed, in plain words."""
    found: str
    """What was found, and against what it was held; for `not_checked`, why."""
    excused: bool = False
    """Not checked as asked, or because the thing is kept elsewhere by design: no doubt comes of it."""


class Reason(_Frozen):
    """Why the verdict rejects, or what it warns of."""

    code: str
    sentence: str


class VerdictOnFile(_Frozen):
    """The verdict in force."""

    file: str
    judgement: int
    """Counts the judgements of the episode from 1."""
    digest: str
    verdict: Literal["accepted", "rejected"]
    core: str
    """Version of the core that judged."""
    signed_by: str | None
    """Key id that the signature names."""
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    not_judged: tuple[str, ...] = ()


class EpisodeProof(_Frozen):
    """Everything that was checked of one episode."""

    folder: str
    episode: str | None = None
    """As its manifest says; None where that cannot be read."""
    outcome: Outcome
    signed_by: str | None = None
    """Key id that the manifest's signature names."""
    manifest: str | None = None
    """Digest of the manifest's bytes."""
    spec: str | None = None
    """Digest of the spec that the manifest names."""
    claims: dict[str, Any] = Field(default_factory=dict)
    """What the signed manifest says of the take: rig, software, take, capture, how it ended. Empty unless its signature
    holds."""
    verdict: VerdictOnFile | None = None
    checks: tuple[Check, ...]

    def check(self, name: str) -> Check:
        """The check of that id. Raises KeyError when it is not there."""
        for check in self.checks:
            if check.id == name:
                return check
        raise KeyError(name)


class GivenSpec(_Frozen):
    """The spec document that the proof was made with."""

    id: str
    version: int
    title: str
    digest: str


class CheckedChain(_Frozen):
    """A chain file, checked once for all episodes."""

    file: str
    name: str
    """Key id of the key that began it."""
    rows: int
    head: str | None
    """Digest of its last row: who keeps it can tell later whether the end was cut off."""
    findings: tuple[str, ...]
    """What is wrong with it, a sentence each; empty when nothing is."""
    cannot_know: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """How it was checked, where that has to be said."""


class Summary(_Frozen):
    """How many episodes came out how."""

    episodes: int
    accepted: int
    rejected: int
    taken_back: int
    failed: int
    unknown: int
    copies: int = 0
    """So many of those that failed are copies of an episode that is proved at another place, and counts there."""


class Proof(_Frozen):
    """The whole document."""

    schema_: Literal["firsthand.proof/1"] = Field(default="firsthand.proof/1", alias="schema")
    core: str
    """Version of the core that judged again."""
    keys: tuple[str, ...]
    """The public keys that were given, hex."""
    spec: GivenSpec
    chains: tuple[CheckedChain, ...]
    footage: bool
    """Whether footage was read; false: left out as asked."""
    episodes: tuple[EpisodeProof, ...]
    notes: tuple[str, ...] = ()
    """What was found beside the episodes and not looked at."""
    summary: Summary
    does_not_show: tuple[str, ...] = DOES_NOT_SHOW
    exit_status: int


def outcome_of(checks: tuple[Check, ...], verdict: VerdictOnFile | None, *, taken_back: bool) -> Outcome:
    """What the checks of one episode amount to."""
    if any(check.result is Result.FAILS for check in checks):
        return Outcome.FAILED
    if taken_back:
        return Outcome.TAKEN_BACK
    if verdict is None or any(check.result is Result.NOT_CHECKED and not check.excused for check in checks):
        return Outcome.UNKNOWN
    return Outcome.ACCEPTED if verdict.verdict == "accepted" else Outcome.REJECTED


def summary_of(episodes: tuple[EpisodeProof, ...]) -> Summary:
    """Counts outcomes."""
    counts = dict.fromkeys(Outcome, 0)
    copies = 0
    for episode in episodes:
        counts[episode.outcome] += 1
        copies += any(check.id == ONCE and check.result is Result.FAILS for check in episode.checks)
    return Summary(episodes=len(episodes), copies=copies, **{outcome.value: count for outcome, count in counts.items()})


def exit_status(summary: Summary) -> int:
    """0 all proved and accepted; 1 a proof failed, or an episode is rejected or taken back; 3 not all could be checked.

    A failed proof outweighs what could not be checked, and that outweighs a rejection: a 3 says that the answer may
    still be worse.
    """
    if summary.failed:
        return 1
    if summary.unknown or not summary.episodes:
        return 3
    return 1 if summary.rejected or summary.taken_back else 0


def proof_bytes(proof: Proof) -> bytes:
    """The bytes of the JSON document: UTF-8, fields in their order, one line feed at the end."""
    return proof.model_dump_json(by_alias=True, indent=2).encode() + b"\n"
