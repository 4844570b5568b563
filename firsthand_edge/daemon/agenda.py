"""What the next take captures: the plan's next entry, or what a command says. Decided before an episode is begun.

How far a plan has been followed is kept in the state directory, so that a daemon that is started again goes on where it
was: a take that was begun counts, whatever became of it. It counts from the moment that it is being recorded; a crash
just before leaves it to be made again, so none is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from firsthand_edge.daemon.recaptures import recapture_mistakes, recapturing
from firsthand_edge.durable import disk_errors, make_folder, replace
from firsthand_edge.errors import CaptureInvalid, ConfigInvalid, UsageError
from firsthand_edge.spec.capture import MISSING, parse_capture
from firsthand_edge.spec.signing import document_bytes, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from firsthand_edge.spec.capture import Capture
    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.plan import Plan, PlannedTake
    from firsthand_edge.spool.spool import Spool

__all__ = ["Agenda", "Chosen"]

PROGRESS_NAME: Final = "plan-progress.json"
SCHEMA: Final = "firsthand.plan-progress/1"
BY_COMMAND: Final = "say what it captures with --task, --cell, --scene and --contributor"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a take that is about to begin captures."""

    capture: Capture
    name: str
    """As the plan calls the take; empty where a command asked for it."""
    position: int | None
    """In the plan, from 1; None where a command asked for it."""


class Agenda:
    """The plan of a rig, and how far it has been followed."""

    def __init__(self, plan: Plan | None, spec: Spec, spool: Spool, state_dir: Path) -> None:
        """Reads how far the plan has been followed.

        Raises:
            ConfigInvalid: what is kept of that cannot be read.
            DiskError: as above, by the disk.
        """
        self._plan = plan
        self._spec = spec
        self._spool = spool
        self._path = state_dir / PROGRESS_NAME
        self._begun = 0 if plan is None else self._followed(plan)

    def coming(self) -> PlannedTake | None:
        """The plan's next take; None without a plan, and after its last."""
        if self._plan is None or self._begun >= len(self._plan.takes):
            return None
        return self._plan.takes[self._begun]

    def choose(self, given: Mapping[str, Any] | None) -> Chosen:
        """What the take that begins now captures.

        Args:
            given: Fields of a capture, as a command says them; None for the plan's next take. With `recaptures`, what
                is not said is taken from that episode.

        Raises:
            UsageError: nothing is given, and there is no plan, or it is used up.
            CaptureInvalid: with every mistake, when it does not fit the spec, or cannot recapture what it names.
        """
        if given is not None:
            return Chosen(self._checked(given), "", None)
        coming = self.coming()
        if coming is None:
            raise UsageError(self._nothing_left())
        capture = self._checked(coming.capture.model_dump(exclude_unset=True))
        count = 0 if self._plan is None else len(self._plan.takes)
        name = "" if self._plan is None else f"{self._plan.name}, take {coming.position} of {count}"
        return Chosen(capture, name, coming.position)

    def begun(self, chosen: Chosen) -> None:
        """A take of `chosen` runs: the plan goes on from the next one. Raises DiskFull or DiskError."""
        if chosen.position is not None:
            self._keep(chosen.position)

    def restart(self) -> None:
        """Follows the plan from its first take again. Raises DiskFull or DiskError."""
        if self._plan is not None:
            self._keep(0)

    def to_json(self) -> dict[str, Any]:
        """For `status`: `plan` with its name, takes and takes begun, and `next` with what it captures."""
        coming = self.coming()
        return {
            "plan": self._plan and {"name": self._plan.name, "takes": len(self._plan.takes), "begun": self._begun},
            "next": coming
            and {
                "position": coming.position,
                "capture": coming.capture.model_dump(mode="json"),
                "seconds": None if coming.seconds is None else float(coming.seconds),
            },
        }

    def _checked(self, given: Mapping[str, Any]) -> Capture:
        try:
            fields = recapturing(given, self._spool)
        except CaptureInvalid as exc:
            raise CaptureInvalid([*exc.mistakes, *self._besides(given)]) from exc
        capture = parse_capture(fields, self._spec)
        mistakes = recapture_mistakes(capture, self._spec, self._spool)
        if mistakes:
            raise CaptureInvalid(mistakes)
        return capture

    def _besides(self, given: Mapping[str, Any]) -> list[str]:
        """What is wrong besides the episode to be recaptured, which cannot be found and so completes nothing."""
        try:
            parse_capture({name: value for name, value in given.items() if name != "recaptures"}, self._spec)
        except CaptureInvalid as exc:
            return [mistake for mistake in exc.mistakes if not mistake.endswith(MISSING)]
        return []

    def _nothing_left(self) -> str:
        if self._plan is None:
            return (
                "nothing says what this take captures; name a plan (`plan` in the rig file's [contract], or --plan), "
                f"or {BY_COMMAND}"
            )
        return (
            f"the plan {self._plan.name} is used up: all of its {len(self._plan.takes)} takes were begun; add takes to "
            f"it, follow it once more with --again, or {BY_COMMAND}"
        )

    def _followed(self, plan: Plan) -> int:
        """How many takes of `plan` were begun: as kept, where it still begins with the same takes."""
        with disk_errors(f"{self._path} cannot be read"):
            data = self._path.read_bytes() if self._path.exists() else None
        if data is None:
            return 0
        try:
            kept = read_document(data)
        except ValueError as exc:
            raise ConfigInvalid(
                str(self._path), [f"{exc}, so nobody knows which take is next; remove it to begin the plan anew"]
            ) from exc
        begun = kept.get("begun")
        if type(begun) is not int or not 0 <= begun <= len(plan.takes):
            return 0
        return begun if kept == self._progress(plan, begun) else 0

    def _progress(self, plan: Plan, begun: int) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "plan": plan.name,
            "spec": self._spec.digest,
            "begun": begun,
            "takes": plan.digest(begun),
        }

    def _keep(self, begun: int) -> None:
        if self._plan is None:
            return
        with disk_errors(f"{self._path} cannot be written"):
            make_folder(self._path.parent)
            replace(self._path, document_bytes(self._progress(self._plan, begun)))
        self._begun = begun
