"""A proof as a page: for one episode in words that a lawyer can read, for many as a table with a summary."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.cli.page import Page
from firsthand_edge.qa.printable import printable
from firsthand_edge.qa.proof import DOES_NOT_SHOW, Outcome, Result
from firsthand_edge.spec.keys import key_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.qa.proof import Check, CheckedChain, EpisodeProof, Proof, VerdictOnFile

__all__ = ["one", "several"]

HEADLINES: Final = {
    Outcome.ACCEPTED: ("PROVED, AND ACCEPTED", "bold green", "Every check holds, and the verdict in force accepts it."),
    Outcome.REJECTED: ("PROVED, AND REJECTED", "bold red", "Every check holds, and the verdict in force rejects it."),
    Outcome.TAKEN_BACK: ("TAKEN BACK", "bold red", "The rig's chain says that this episode may not be used."),
    Outcome.FAILED: ("NOT PROVED: A CHECK FAILS", "bold red", "Something is altered, missing, or of somebody else."),
    Outcome.UNKNOWN: (
        "NOT PROVED: SOMETHING COULD NOT BE CHECKED",
        "bold yellow",
        "No check fails, and not everything that counts could be checked.",
    ),
}
MARKS: Final = {
    Result.HOLDS: ("holds", "green"),
    Result.FAILS: ("FAILS", "bold red"),
    Result.NOT_CHECKED: ("not checked", "yellow"),
}
SHOWN: Final = 40
"""Up to so many proved and accepted episodes are listed; beyond, only the others are."""


def one(proof: Proof) -> None:
    """Prints the page of a single episode."""
    page, episode = Page(), proof.episodes[0]
    headline, style, meaning = HEADLINES[episode.outcome]
    page.line(headline, style)
    page.text(meaning)
    page.space()
    page.row("Episode", episode.episode or "unknown: its manifest cannot be read")
    page.row("Folder", episode.folder)
    page.row("Key", ", ".join(key_id(bytes.fromhex(key)) for key in proof.keys) + ", the rig's, given")
    page.row("Spec", f"{proof.spec.id} version {proof.spec.version} (given): {proof.spec.title}")
    page.row("", proof.spec.digest)
    _claims(page, episode)
    _verdict(page, episode.verdict)
    page.head("What was checked")
    for check in episode.checks:
        _check(page, check)
    for chain in proof.chains:
        _chain(page, chain)
    if proof.notes:
        page.head("Beside it")
        for note in proof.notes:
            page.item(note)
    _limits(page)


def several(proof: Proof) -> None:
    """Prints the table of many episodes, and what they amount to."""
    page = Page()
    page.row("Spec", f"{proof.spec.id} version {proof.spec.version}: {proof.spec.title}")
    page.row("", proof.spec.digest)
    page.row("Keys", ", ".join(key_id(bytes.fromhex(key)) for key in proof.keys))
    if not proof.footage:
        page.row("Footage", "left out, as asked")
    for chain in proof.chains:
        _chain(page, chain)
    listed = [e for e in proof.episodes if e.outcome is not Outcome.ACCEPTED or proof.summary.accepted <= SHOWN]
    if listed:
        page.space()
        page.line(f"{'episode':<34}  {'outcome':<10}what decides it", "dim")
    for episode in listed:
        _table_row(page, episode)
    if len(listed) < len(proof.episodes):
        page.text(f"{proof.summary.accepted} proved and accepted, not listed here; --json lists all.", "dim")
    page.head("Summary")
    _summary(page, proof)
    for note in proof.notes:
        page.text(note, "dim")
    _limits(page)


def _claims(page: Page, episode: EpisodeProof) -> None:
    page.head("What its signed manifest says")
    if not episode.claims:
        page.text("Nothing that can be relied on: its signature is not proved.")
        return
    for name, text in _claimed(episode.claims):
        page.row(name, printable(text))


def _claimed(claims: dict[str, Any]) -> Iterator[tuple[str, str]]:
    take, capture = claims["take"], claims["capture"]
    yield "Take", f"number {take['number']} of rig {claims['rig']}" + (f", {take['name']}" if take["name"] else "")
    yield "Begun", f"{take['claimed_utc'] or 'unknown'}, by the clock of the rig's computer: a claim"
    if capture is None:
        yield "Captured", "nothing is said"
    else:
        yield "Captured", f"task {capture['task']}, in cell {capture['cell']}, scene {capture['scene']}"
        yield "", f"objects: {', '.join(capture['objects']) or 'none named'}"
        yield "", f"contributor {capture['contributor']}, consent record {capture['consent_record'] or 'none named'}"
        yield "", f"attempt {capture['attempt']}, outcome: {capture['outcome'].replace('_', ' ')}"
        if capture["recaptures"]:
            yield "", f"in the place of {capture['recaptures']}"
        if capture["stage"] or capture["batch"]:
            yield "", f"stage {capture['stage'] or 'not said'}, batch {capture['batch'] or 'not said'}"
    yield "Consent", ": ".join(filter(None, (claims["consent"]["state"].replace("_", " "), claims["consent"]["why"])))
    yield "Clock", f"{claims['clock']['timebase']}, kept by {claims['clock']['source']}"
    yield "Software", f"{claims['software']['version']}, commit {claims['software']['commit']}"
    yield "Ended", ": ".join(filter(None, (claims["ended"]["how"], claims["ended"]["why"])))


def _verdict(page: Page, verdict: VerdictOnFile | None) -> None:
    page.head("The verdict in force")
    if verdict is None:
        page.text("There is none that could be read.")
        return
    page.row("Verdict", verdict.verdict, "green" if verdict.verdict == "accepted" else "red")
    page.row("On file", f"{verdict.file}, judgement {verdict.judgement}, by core {verdict.core}")
    page.row("Signed", verdict.signed_by or "nobody")
    for reason in verdict.reasons:
        page.row("Because", printable(f"{reason.code}: {reason.sentence}"))
    for warning in verdict.warnings:
        page.row("Warning", printable(f"{warning.code}: {warning.sentence}"))
    if verdict.not_judged:
        page.row("Unjudged", printable(", ".join(verdict.not_judged)))


def _check(page: Page, check: Check) -> None:
    mark, style = MARKS[check.result]
    page.marked(mark, style, check.what)
    page.indented(check.found)


def _chain(page: Page, chain: CheckedChain) -> None:
    page.space()
    page.row("Chain", f"{chain.file}, {chain.rows} rows" + (f", begun by key {chain.name}" if chain.name else ""))
    if chain.head is not None:
        page.row("", chain.head)
        page.row("", "is its last row: who keeps that can tell later whether rows were cut off")
    for sentence in chain.findings[:5]:
        page.row("FAULT", sentence, "bold red")
    if len(chain.findings) > 5:
        page.row("", f"and {len(chain.findings) - 5} more; `firsthand-edge chain verify` lists all")
    for note in chain.notes:
        page.row("", note)


def _limits(page: Page) -> None:
    page.head("What this does not show")
    for sentence in DOES_NOT_SHOW:
        page.item(f"{sentence[0].upper()}{sentence[1:]}.")


def _table_row(page: Page, episode: EpisodeProof) -> None:
    name = episode.episode or episode.folder.rsplit("/", 1)[-1]
    style = "" if episode.outcome is Outcome.ACCEPTED else "red" if episode.outcome is not Outcome.UNKNOWN else "yellow"
    lines = wrap(_decides(episode), 80 - 46, max_lines=3, placeholder=" ...", break_on_hyphens=False) or [""]
    page.columns(((f"{name:<34}  ", ""), (f"{episode.outcome.value.replace('_', ' '):<10}", style), (lines[0], "")))
    for line in lines[1:]:
        page.line(" " * 46 + line)


def _decides(episode: EpisodeProof) -> str:
    """The first thing that makes an episode's outcome what it is."""
    if episode.outcome is Outcome.FAILED:
        failed = [check for check in episode.checks if check.result is Result.FAILS]
        return f"{failed[0].id}: {failed[0].found}" if failed else ""
    if episode.outcome is Outcome.UNKNOWN:
        open_ = [check for check in episode.checks if check.result is Result.NOT_CHECKED and not check.excused]
        return f"{open_[0].id}: {open_[0].found}" if open_ else "there is no verdict"
    if episode.outcome is Outcome.TAKEN_BACK:
        return episode.check("chain.since").found
    return ", ".join(reason.code for reason in episode.verdict.reasons) if episode.verdict is not None else ""


def _summary(page: Page, proof: Proof) -> None:
    summary = proof.summary
    if not summary.episodes:
        page.text("There is no episode here, so nothing is proved.")
        return
    words = {
        "proved and accepted": (summary.accepted, "green"),
        "proved and rejected": (summary.rejected, "red"),
        "taken back by the chain": (summary.taken_back, "red"),
        "a check fails": (summary.failed, "bold red"),
        "not everything could be checked": (summary.unknown, "yellow"),
    }
    copies = f"; {summary.copies} of them only as copies of another" if summary.copies else ""
    for text, (count, style) in words.items():
        said = text + (copies if text == "a check fails" else "")
        page.columns(((f"{count:>8}  ", style if count else "dim"), (said, "" if count else "dim")))
    page.columns(((f"{summary.episodes:>8}  ", ""), ("episodes in all", "")))
