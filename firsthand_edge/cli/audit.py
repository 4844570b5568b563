"""`firsthand-edge audit`: how far the streams of anybody's recording disagree, and whether that is good enough."""

from __future__ import annotations

import sys
from decimal import Decimal  # noqa: TC003 - cyclopts resolves annotations at run time
from pathlib import Path  # noqa: TC003 - as above
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from firsthand_edge.qa.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

__all__ = ["audit"]

PIPE_WIDTH = 120
COLUMNS = ("stream", "kind", "grade", "samples", "Hz", "missing", "extra", "median ms", "|p99| ms", "|max| ms")


def audit(
    recording: Path | None = None,
    /,
    *,
    stream: Annotated[tuple[str, ...], Parameter(name="--stream", negative="", consume_multiple=False)] = (),
    reference: str | None = None,
    ceiling_ms: Decimal | None = None,
    statistic: Literal["max", "p99", "p99.9"] | None = None,
    spec: Path | None = None,
    stamps: Literal["header", "log", "publish"] | None = None,
    episode: int | None = None,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
    plot: Path | None = None,
) -> int:
    """Judge anybody's recording: how far do its streams disagree?

    Exit status: 0 accepted, 1 rejected, 2 wrong usage, 3 could not judge; 4 when the spec is malformed or not there, 6
    when the picture or the report cannot be written.

    Args:
        recording: One of our episodes (its folder or a file of it), any other MCAP, a ROS 1 bag, a VRS file, or the
            folder of a LeRobot data set.
        stream: A channel of the recording, `CHANNEL[,key=value...]`, or without a recording a plain list of stamps,
            `NAME=FILE[,key=value...]`; once for each. Every stream named is required. Keys: kind=triggered, sampled,
            interpolated or event; rate= in Hz; decimate=; offset_ns=; for lists unit=auto, ns, us, ms or s.
        reference: The triggered stream whose samples number the ticks; `head` unless the spec names another.
        ceiling_ms: How far streams may disagree, in milliseconds; 2.0 unless the spec says otherwise.
        statistic: Which statistic of the residuals is held against the ceiling; `max` unless the spec says otherwise.
        spec: A skill spec to judge against.
        stamps: Which times of an MCAP or a bag to take; by default the header's where the schema has one, else the log
            time. Log times are read from the file's index, without its messages.
        episode: Which episode of a LeRobot data set; each has a time axis of its own.
        json: Print one JSON object instead of a report for people.
        plot: Draw the disagreement over time, the gaps and every pair: a page (.html) or an image (.png).
    """
    from firsthand_edge.cli.progress import reading
    from firsthand_edge.errors import UsageError
    from firsthand_edge.gate import audit as gate

    if plot is not None:
        from firsthand_edge.gate.picture import refuse_undrawable

        refuse_undrawable(plot)
    ceiling_ns = None
    if ceiling_ms is not None:
        if not ceiling_ms.is_finite() or ceiling_ms <= 0 or ceiling_ms > 3_600_000:
            raise UsageError(f"--ceiling-ms {ceiling_ms}: state milliseconds above 0 and up to an hour")
        from firsthand_edge.spec.document import ms_to_ns

        try:
            ceiling_ns = ms_to_ns(ceiling_ms)
        except ValueError as exc:
            raise UsageError(f"--ceiling-ms {ceiling_ms} {exc}") from exc
    contract = None
    if spec is not None:
        from firsthand_edge.spec.document import load_spec

        contract = load_spec(spec)
    with reading(quiet=json and not sys.stdout.isatty()) as progress:
        found = gate.audit(
            recording,
            stream,
            reference=reference,
            spec=contract,
            ceiling_ns=ceiling_ns,
            statistic=statistic,
            stamps=stamps,
            episode=episode,
            progress=progress,
        )
    # The report comes first: what was judged for a long time is not lost with a picture that cannot be written.
    if json:
        from firsthand_edge.cli.output import write_document
        from firsthand_edge.gate.report import report_bytes

        write_document(report_bytes(found.report))
    else:
        _print(found.report)
    if plot is not None:
        from firsthand_edge.gate.picture import Panel, write_picture

        title = recording.name if recording is not None else "Lists of stamps"
        write_picture(plot, [Panel(title, found.report, found.figures)])
        if not json:
            print(f"Picture: {printable(str(plot))}")
    return 0 if found.verdict.accepted else 1


def _print(report: Mapping[str, Any]) -> None:
    """The report for people: verdict and reasons first, then the figures behind them."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    good = report["verdict"] == "accepted"
    console.print(Text(report["verdict"].upper(), style="bold green" if good else "bold red"))
    for row, style in [(r, "red") for r in report["reasons"]] + [(w, "yellow") for w in report["warnings"]]:
        console.print(Text.assemble(("  ", ""), (row["code"], f"bold {style}"), ("  ", ""), printable(row["sentence"])))
        cause = row.get("cause")
        if cause and cause not in row["sentence"]:
            console.print(Text(f"      likely: {printable(cause)}", style="dim"))
    console.print()
    console.print(Text(printable(_residual_line(report))))
    console.print(Text(printable(_span_line(report))))
    if "spec" in report:
        console.print(Text(f"Spec {report['spec']['id']}, version {report['spec']['version']}."))
    _print_streams(console, [_row(printable(name), row) for name, row in report["streams"].items()])
    for note in report["notes"]:
        console.print(Text(printable(note), style="dim"))
    console.print(Text(printable(f"Not judged: {', '.join(report['not_judged'])}."), style="dim"))


def _print_streams(terminal: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """A row for each stream; a sentence where the terminal is too narrow, since a table would cut figures off."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = [max(map(cell_len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    needed = sum(widths) + len(widths)
    if needed > terminal.width and sys.stdout.isatty():
        for name, kind, grade, *figures in rows:
            said = ", ".join(f"{what} {value}" for what, value in zip(COLUMNS[3:], figures, strict=True))
            terminal.print(Text(f"{name}: {kind}, {grade}, {said}"))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    for place, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if place < 3 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    # A pipe has no width of its own.
    Console(highlight=False, width=max(needed, terminal.width)).print(table)


def _ms(value: int | None) -> str:
    from firsthand_edge.gate.wording import ms

    return "-" if value is None else ms(value)


def _residual_line(report: Mapping[str, Any]) -> str:
    held = report["guarded_ns" if report["guard_band"] else "residual_ns"]
    if not held["ticks"]:
        return "No tick could be judged."
    pair = f" ({' and '.join(held['worst_pair'])}, tick {held['worst_tick']})" if held["worst_pair"] else ""
    return (
        f"Disagreement over {held['ticks']} ticks: median {_ms(held['median'])}, p99 {_ms(held['p99'])}, "
        f"max {_ms(held['max'])}{pair}; {held['over_ceiling']} over {_ms(report['ceiling_ns'])}."
    )


def _span_line(report: Mapping[str, Any]) -> str:
    span = report["span"]
    period = "" if report["period_ns"] is None else f", period {_ms(report['period_ns'])}"
    return (
        f"Reference {report['reference']}{period}: {span['ticks']} ticks in the span, {span['absent']} absent, "
        f"trimmed {span['trimmed_start']} at the start and {span['trimmed_end']} at the end."
    )


def _row(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    offset = row.get("offset_ns", {})
    missing = f"{row['missing']}/{row['expected']}" if "expected" in row else "-"
    rate = "-" if row["rate_hz"] is None else f"{row['rate_hz']:.2f}"
    return (
        name,
        row["kind"] if row["required"] else f"{row['kind']}, not judged",
        row["grade"],
        str(row["samples"]),
        rate,
        missing,
        str(row.get("extra", "-")),
        *(_ms(offset.get(key)).removesuffix(" ms") for key in ("median", "p99_abs", "max_abs")),
    )
