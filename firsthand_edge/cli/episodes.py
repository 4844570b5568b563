"""`firsthand-edge episodes`: what is on this rig's disk, and judging it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.words import milliseconds, outcome_lines
from firsthand_edge.errors import CannotJudge

if TYPE_CHECKING:
    from firsthand_edge.spool.manifest import Manifest, SpecIdentity
    from firsthand_edge.spool.spool import Spool

__all__ = ["judge", "list_", "show"]

State = Annotated[Path, Parameter(help="State directory, which holds spool and keys.")]
DEFAULT_STATE = Path("build/demo")


def _spool(state: Path) -> Spool:
    from firsthand_edge.spool.spool import open_spool

    return open_spool(state, create=False)


def list_(*, state: State = DEFAULT_STATE, json_: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Lists every episode: id, take, state, verdict, largest residual, reasons."""
    spool = _spool(state)
    rows = [_row(spool, episode) for episode in spool.episodes()]
    if json_:
        print(json.dumps(rows, indent=2))
        return 0
    if not rows:
        print(f"no episodes in {state / 'spool'}")
        return 0
    width = max(len(row["episode"]) for row in rows)
    for row in rows:
        words = ", ".join(row["reasons"]) or "-"
        print(f"{row['episode']:<{width}}  {row['state']:<9} {row['verdict'] or '-':<9} {row['largest']:>12}  {words}")
    return 0


def _row(spool: Spool, episode: Any) -> dict[str, Any]:
    from firsthand_edge.errors import EpisodeDamaged

    row: dict[str, Any] = {
        "episode": episode.id,
        "state": episode.state.value,
        "verdict": None,
        "largest": "-",
        "reasons": [],
    }
    try:
        committed = spool.committed(episode)
    except EpisodeDamaged as exc:
        return {**row, "reasons": [f"not readable: {exc}"]}
    if committed.verdict is None:
        return row
    return {
        **row,
        "verdict": committed.verdict.verdict,
        "largest": milliseconds(committed.verdict.report["residual_ns"]["max"]),
        "reasons": [reason["code"] for reason in committed.verdict.reasons],
    }


def show(
    episode: Annotated[str, Parameter(help="Id, its beginning, or its number.")],
    /,
    *,
    state: State = DEFAULT_STATE,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Shows what an episode captured and is bound to, its balance sheet, its figures and its reasons.

    Exit status 0 accepted, 1 rejected, 3 not judged yet.
    """
    from firsthand_edge.daemon.recaptures import recapture_links

    spool = _spool(state)
    found = spool.find(episode)
    committed = spool.committed(found)
    manifest, verdict = committed.manifest, committed.verdict
    recaptured = recapture_links(spool).get(found.id, [])
    if json_:
        document = {
            "state": found.state.value,
            "recaptured_by": [{"episode": name, "accepted": accepted} for name, accepted in recaptured],
            "manifest": manifest.model_dump(mode="json", by_alias=True),
            "verdict": None if verdict is None else verdict.model_dump(mode="json", by_alias=True),
        }
        print(json.dumps(document, indent=2))
    else:
        print("\n".join(_page(found, manifest, committed, recaptured)))
    if verdict is None:
        return CannotJudge.exit_status
    return 0 if verdict.accepted else 1


def _captured(manifest: Manifest, recaptured: list[tuple[str, bool]]) -> list[str]:
    """What was captured, a line a fact."""
    capture = manifest.capture
    if capture is None:
        told = "not told" if manifest.ended.how == "torn" else f"not told by {manifest.schema_}"
        return [f"captured  {told}"]
    lines = [
        f"captured  task {capture.task}, cell {capture.cell}, scene {capture.scene}",
        f"          objects {', '.join(capture.objects) or 'none'}",
        f"          contributor {capture.contributor}, consent record {capture.consent_record or 'none'}",
        f"          attempt {capture.attempt}, outcome {capture.outcome.value}",
    ]
    if capture.stage is not None or capture.batch is not None:
        lines.append(f"          stage {capture.stage or 'not said'}, batch {capture.batch or 'not said'}")
    if capture.recaptures is not None:
        lines.append(f"          in the place of {capture.recaptures}")
    for name, accepted in recaptured:
        lines.append(f"          recaptured by {name}, which was {'' if accepted else 'not '}accepted")
    return lines


def _signed(spec: SpecIdentity) -> str:
    """Who signed the spec."""
    if spec.throw_away:
        return "a throw-away key of this rig: nobody agreed to it"
    return ", ".join(one.key_id for one in spec.signatures) or "nobody, as far as the manifest tells"


def _page(found: Any, manifest: Manifest, committed: Any, recaptured: list[tuple[str, bool]]) -> list[str]:
    take = manifest.take
    lines = [
        f"episode   {found.id}  ({found.state.value})",
        f"take      {take.number} of rig {manifest.rig}" + (f" ({take.name})" if take.name else ""),
        f"began     {take.claimed_utc or 'unknown'} by the host's clock, which proves nothing",
        *_captured(manifest, recaptured),
        f"software  {manifest.software.version} ({manifest.software.commit})",
        f"spec      {manifest.spec.id} version {manifest.spec.version}",
        f"          {manifest.spec.digest}",
        f"          signed by {_signed(manifest.spec)}",
        f"consent   {manifest.consent.state}: {manifest.consent.why}",
        f"clock     {manifest.clock.timebase}, {manifest.clock.source}",
        f"ended     {manifest.ended.how}" + (f": {manifest.ended.why}" if manifest.ended.why else ""),
        f"manifest  {committed.manifest_digest}",
        "",
        f"{'stream':<14}{'pulses':>8}{'exposures':>11}{'received':>10}{'written':>9}{'durable':>9}   lost",
    ]
    for name, row in manifest.balance.items():
        lost = row.lost
        words = f"device {lost.device}, socket {lost.socket}, queue {lost.queue}, disk {lost.disk}"
        none = not any((lost.device, lost.socket, lost.queue, lost.disk))
        lines.append(
            f"{name:<14}{_count(row.pulses):>8}{_count(row.exposures):>11}{row.received:>10}{row.written:>9}"
            f"{row.durable:>9}   {'nothing' if none else words}"
        )
    if committed.verdict is None:
        return [*lines, "", "not judged yet"]
    report = committed.verdict.report
    lines += ["", *outcome_lines({"episode": found.id, "report": report})]
    lines.append(f"    not judged: {', '.join(committed.verdict.not_judged) or 'nothing'}")
    return lines


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def judge(
    episode: Annotated[str, Parameter(help="Id, its beginning, or its number.")],
    /,
    *,
    state: State = DEFAULT_STATE,
    json_: Annotated[bool, Parameter(name="--json")] = False,
    file: Annotated[
        bool, Parameter(negative=(), help="File the judgement where it differs from the one on file.")
    ] = False,
) -> int:
    """Judges an episode again from its evidence alone, and says whether the verdict is the same in every field.

    Writes nothing without `--file`, which keeps a different verdict beside the earlier ones, as `verdict-2.json`, by a
    row `rejudged` of the chain. Exit status 0 accepted, 1 rejected, 3 when there is no verdict or it differs from the
    one on file and was not filed.
    """
    from firsthand_edge.spool.judgement import judgement

    spool = _spool(state)
    found = spool.find(episode)
    committed = spool.committed(found)
    document = judgement(found.path, committed.manifest, committed.manifest_digest)
    same = committed.verdict is not None and document.same_as(committed.verdict)
    if json_:
        print(json.dumps(document.report, indent=2))
    else:
        print("\n".join(outcome_lines({"episode": found.id, "report": document.report})))
        if committed.verdict is None:
            print("    there is no verdict on file to compare with")
        else:
            print(f"    {'equal in every field to' if same else 'DIFFERS FROM'} {committed.verdict_file}")
    if committed.verdict is not None and not same:
        if not file:
            raise CannotJudge(
                f"the verdict of {found.id} differs from the one on file; compare core versions "
                f"({committed.verdict.core} then, {document.core} now), or file it with --file"
            )
        filed = spool.judge_done(found, document)
        print(f"    filed; the episode is {filed.state.value}", file=sys.stderr if json_ else sys.stdout)
    return 0 if document.accepted else 1
