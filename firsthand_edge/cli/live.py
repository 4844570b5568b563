"""The running take on a terminal, read from the live page by a process that is not the recorder."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from firsthand_edge.cli.output import reader_gone
from firsthand_edge.cli.words import milliseconds
from firsthand_edge.errors import CannotJudge
from firsthand_edge.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

__all__ = ["LiveView", "live", "live_lines", "wrongs"]

SILENT_NS = 500_000_000
"""`stream.lost` of sync.md section 5: silent for longer than this is said at once."""
FROZEN_RUN = 3
"""`picture.frozen` of sync.md section 5."""
REFRESH_S = 0.25


def signed(value_ns: int | None) -> str:
    """Nanoseconds as signed milliseconds, or a dash."""
    return "-" if value_ns is None else f"{'' if value_ns < -500 else '+'}{milliseconds(value_ns)}"


def times(number: int) -> str:
    """`once`, `2 times`."""
    return "once" if number == 1 else f"{number} times"


def wrongs(page: Mapping[str, Any], *, ceiling_ns: int, sparse: AbstractSet[str] = frozenset()) -> list[str]:
    """What is wrong right now, a sentence each, from one reading of the live page.

    Args:
        page: The reading.
        ceiling_ns: Ceiling of the residual.
        sparse: Streams that may be silent: events.
    """
    out = []
    if page["over"]:
        largest = milliseconds(page["max_ns"])
        out.append(f"{page['over']} ticks over the ceiling of {ceiling_ns / 1e6:g} ms, largest {largest}")
    for name, stream in page["streams"].items():
        if stream["frozen_run"] > FROZEN_RUN:
            out.append(f"{name} repeats its last picture ({stream['frozen_run']} frames)")
        if stream["splits"]:
            out.append(f"the clock of {name} stepped ({times(stream['splits'])} in this take)")
        if stream["missing"]:
            out.append(f"{name} has no sample at some ticks ({stream['missing']} so far)")
        silent_ns = 0 if stream["last_ns"] in (None, ABSENT) else page["updated_ns"] - stream["last_ns"]
        if page["recording"] and name not in sparse and silent_ns > SILENT_NS:
            out.append(f"{name} is silent for {silent_ns / 1e9:.1f} s")
        lost = stream["lost_queue"] + stream["lost_disk"]
        if lost:
            where = f"queue {stream['lost_queue']}, disk {stream['lost_disk']}"
            out.append(f"{name} lost {lost} samples on this rig ({where})")
    return out


def live_lines(
    page: Mapping[str, Any], *, title: str, seconds: float, ceiling_ns: int, sparse: AbstractSet[str] = frozenset()
) -> list[str]:
    """The take as lines of text: one for the take, one a stream, one for each thing that is wrong."""
    residual, largest = milliseconds(page["residual_ns"]), milliseconds(page["max_ns"])
    figures = f"residual {residual}  largest {largest}  over {page['over']}  late {page['late']}"
    out = [f"{title}  {seconds:4.1f} s  tick {page['tick']}  {figures}"]
    for name, stream in page["streams"].items():
        rate = f"{stream['rate_mhz'] / 1000:7.1f} Hz"
        out.append(f"  {name:<14}{rate}  {signed(stream['offset_ns']):>12}  {stream['received']:>7} samples")
    out += [f"  ! {sentence}" for sentence in wrongs(page, ceiling_ns=ceiling_ns, sparse=sparse)]
    return out


class LiveView:
    """Redraws in place on a terminal; elsewhere prints one line a second and every new wrong thing once."""

    def __init__(
        self, *, ceiling_ns: int, sparse: AbstractSet[str] = frozenset(), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ceiling_ns = ceiling_ns
        self._sparse = sparse
        self._clock = clock
        self._tty = sys.stdout.isatty()
        self._drawn = 0
        self._said: set[str] = set()
        self._next_line = 0.0

    def show(self, page: Mapping[str, Any], *, title: str, seconds: float) -> None:
        """Shows one reading of the live page."""
        lines = live_lines(page, title=title, seconds=seconds, ceiling_ns=self._ceiling_ns, sparse=self._sparse)
        if self._tty:
            up = f"\x1b[{self._drawn}F" if self._drawn else ""
            sys.stdout.write(up + "".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[J")
            self._drawn = len(lines)
        else:
            self._plain(page, lines)
        sys.stdout.flush()

    def _plain(self, page: Mapping[str, Any], lines: list[str]) -> None:
        for sentence in wrongs(page, ceiling_ns=self._ceiling_ns, sparse=self._sparse):
            kind = sentence.split("(")[0].rstrip("0123456789. s")
            if kind not in self._said:
                self._said.add(kind)
                print(f"  ! {sentence}")
        now = self._clock()
        if now >= self._next_line:
            self._next_line = now + 1.0
            rates = " ".join(f"{n} {s['rate_mhz'] / 1000:.0f}" for n, s in page["streams"].items() if s["rate_mhz"])
            print(f"{lines[0]}  Hz: {rates}")

    def done(self) -> None:
        """Leaves what is drawn and starts afresh below it."""
        self._drawn = 0
        self._said.clear()
        self._next_line = 0.0


def live(
    *,
    state: Annotated[Path, Parameter(help="State directory of the running daemon.")] = Path("build/demo"),
    seconds: Annotated[float | None, Parameter(help="Stop after so long; without it, until interrupted.")] = None,
) -> int:
    """Shows the take that a daemon records, tick by tick. Reads one page of memory and disturbs nobody."""
    from firsthand_edge import _core

    path = state / "run" / "live"
    if not path.exists():
        raise CannotJudge(f"no daemon publishes figures at {path}; start one, or name its state directory with --state")
    page = _core.LivePage(path)
    now: Mapping[str, Any] = {}
    view, shown = _view(now), None
    start = time.monotonic()
    while (seconds is None or time.monotonic() - start < seconds) and not reader_gone():
        reading = page.read()
        if (state_of_page := (reading["recording"], reading["take"])) != shown:
            now, shown = _now(path.parent), state_of_page
            view.done()
            view = _view(now)
        view.show(
            reading, title=_title(now) if reading["recording"] else "between takes", seconds=time.monotonic() - start
        )
        time.sleep(REFRESH_S)
    return 0


def _now(run_dir: Path) -> Mapping[str, Any]:
    """What the daemon says beside the live page of the take that runs; nothing where it has not said anything."""
    try:
        now = json.loads((run_dir / "now.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return now if isinstance(now, dict) and {"number", "capture", "ceiling_ns", "sparse"} <= now.keys() else {}


def _view(now: Mapping[str, Any]) -> LiveView:
    """Held against the spec's ceiling; without one, against the default of sync.md section 5."""
    return LiveView(ceiling_ns=now.get("ceiling_ns", 2_000_000), sparse=frozenset(now.get("sparse", ())))


def _title(now: Mapping[str, Any]) -> str:
    """Number of the take, and what it captures."""
    return f"take {now['number']}: {now['capture']['task']}, {now['capture']['cell']}" if now else "take"
