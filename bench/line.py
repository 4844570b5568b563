"""One line of the table that the bench prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A figure and what it should be. `goal` is the least value that meets it, or the greatest where `at_most`."""

    id: str
    what: str
    value: float
    unit: str
    goal: float | None = None
    at_most: bool = False

    @property
    def met(self) -> bool | None:
        """None where there is no goal: the figure only explains the others."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def to_json(self) -> dict[str, object]:
        """id, what, value, unit, goal, met."""
        data = asdict(self)
        del data["at_most"]
        return {**data, "value": float(f"{self.value:.4g}"), "met": self.met}

    def row(self) -> list[str]:
        """The cells of the printed table."""
        bound = "" if self.goal is None else f"{'<=' if self.at_most else '>='} {self.goal:g} {self.unit}"
        verdict = {None: "", True: "yes", False: "NO"}[self.met]
        return [self.id, self.what, bound, f"{self.value:.3g} {self.unit}", verdict]
