"""What the chain says of one episode: sealed by which manifest, judged by which verdicts, and what came later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from firsthand_edge.spool.row import Event

if TYPE_CHECKING:
    from firsthand_edge.qa.chains import EpisodeRows
    from firsthand_edge.qa.ledger import Ledger
    from firsthand_edge.spool.manifest import Manifest
    from firsthand_edge.spool.row import Row

__all__ = ["Story", "check_chain_rows", "read_story"]

JUDGED: Final = frozenset({Event.JUDGED, Event.REJUDGED})
REMOVED: Final = frozenset({Event.WITHDRAWN, Event.DISCARDED, Event.EXPIRED})
TAKEN_BACK: Final = frozenset({Event.WITHDRAWN, Event.DISCARDED, Event.DAMAGED})
"""After these nobody may use the episode. `expired` only says that the rig's copy was deleted in its time."""

WORDS: Final = {
    Event.WITHDRAWN: "was withdrawn",
    Event.DISCARDED: "was discarded",
    Event.EXPIRED: "was deleted from the rig when its retention ended",
    Event.DAMAGED: "was set aside as damaged",
}


@dataclass(frozen=True, slots=True)
class Story:
    """The rows of one episode, each with the public key in force there. The default: there is no chain."""

    known: bool = False
    """There is a chain."""
    good: bool = False
    """It is whole."""
    sealed: tuple[tuple[Row, bytes | None], ...] = ()
    judged: tuple[tuple[Row, bytes | None], ...] = ()
    removed: Row | None = None
    """The row by which files were deleted last."""
    withdrawn: Row | None = None
    """The row by which its contributor took it back."""
    taken_back: Row | None = None
    """The row after which nobody may use it."""

    @property
    def untold(self) -> bool:
        """There is a chain, and it cannot say which key was in force."""
        return self.known and not self.good

    @property
    def telling(self) -> bool:
        """The chain is whole and speaks of the episode."""
        return self.good and bool(self.sealed)

    def keys_at_sealing(self, given: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """The keys that may have signed the manifest: the one in force by the chain, else those that were given."""
        key = self.sealed[0][1] if self.telling else None
        return given if key is None else (key,)

    def keys_at_judgement(self, number: int, given: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """As `keys_at_sealing`, for the verdict of judgement `number`, counted from 1."""
        key = self.judged[number - 1][1] if self.telling and number <= len(self.judged) else None
        return given if key is None else (key,)


def read_story(rows: EpisodeRows | None) -> Story:
    """Sorts the rows of an episode."""
    if rows is None:
        return Story()

    def last(events: frozenset[Event]) -> Row | None:
        return next((row for row, _ in reversed(rows.rows) if row.event in events), None)

    return Story(
        known=True,
        good=rows.fault is None,
        sealed=tuple((row, key) for row, key in rows.rows if row.event == Event.SEALED),
        judged=tuple((row, key) for row, key in rows.rows if row.event in JUDGED),
        removed=last(REMOVED),
        withdrawn=last(frozenset({Event.WITHDRAWN})),
        taken_back=last(TAKEN_BACK),
    )


def check_chain_rows(
    ledger: Ledger, rows: EpisodeRows | None, story: Story, manifest: Manifest, manifest_digest: str
) -> None:
    """Enters `chain.whole`, `chain.sealed` and `chain.since`; where there is no chain, `chain.judged` too."""
    if rows is None:
        why = "no chain was given, and none lies at the usual places"
        for name in ("chain.whole", "chain.sealed", "chain.judged", "chain.since"):
            ledger.skipped(name, why)
        return
    if rows.fault is not None:
        ledger.fails("chain.whole", f"{rows.file}: {rows.fault}; so nothing is proved by what it says")
        for name in ("chain.sealed", "chain.judged", "chain.since"):
            ledger.skipped(name, "the chain is not whole")
        return
    ledger.holds(
        "chain.whole", f"{rows.file}, begun by key {rows.name}: every row follows the one before and is signed"
    )
    if not rows.rows:
        _unheard_of(ledger, rows)
        return
    _sealed(ledger, story, manifest, manifest_digest)
    _since(ledger, story)


def _unheard_of(ledger: Ledger, rows: EpisodeRows) -> None:
    why = "no row speaks of this episode"
    if rows.own:
        ledger.fails("chain.sealed", f"{why}, and a rig appends the row before an episode can be seen")
    else:
        ledger.skipped("chain.sealed", f"{why}: this copy of the chain is older than the episode, or was cut off")
    for name in ("chain.judged", "chain.since"):
        ledger.skipped(name, why)


def _sealed(ledger: Ledger, story: Story, manifest: Manifest, manifest_digest: str) -> None:
    if len(story.sealed) != 1:
        ledger.fails("chain.sealed", f"it was sealed {len(story.sealed)} times by the chain's rows; once is right")
        return
    row = story.sealed[0][0]
    capture = manifest.capture
    expected = {
        "manifest": manifest_digest,
        "spec": manifest.spec.digest,
        "take": manifest.take.number,
        "task": None if capture is None else capture.task,
        "cell": None if capture is None else capture.cell,
    }
    for field, value in expected.items():
        if field in {"task", "cell"} and field not in row.body and capture is None:
            continue  # rows of firsthand.manifest/1 have neither
        if row.body.get(field) != value:
            ledger.fails(
                "chain.sealed", f"row {row.n} says {field} {row.body.get(field)!r}, and the manifest {value!r}"
            )
            return
    if manifest.recovery is not None and row.body.get("torn") is not True:
        ledger.fails("chain.sealed", f"row {row.n} says nothing of the crash that the manifest tells of")
        return
    ledger.holds("chain.sealed", f"row {row.n} names this manifest, its spec, take, task and cell")


def _since(ledger: Ledger, story: Story) -> None:
    row = story.taken_back or story.removed
    if row is None:
        ledger.holds("chain.since", "nothing took it back: the last verdict stands")
        return
    why = row.body.get("why")
    more = f": {why}" if isinstance(why, str) and why else ""
    end = "; it may not be used" if story.taken_back is not None else "; that takes nothing back"
    ledger.holds("chain.since", f"it {WORDS[Event(row.event)]} (row {row.n}{more}){end}")
