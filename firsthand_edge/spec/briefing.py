"""The document as a page for people: what a wearer does, what a buyer gets, in the order in which they ask."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal

from firsthand_edge.spec.canonical import decimal_text
from firsthand_edge.spec.codes import REJECTING_CODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from firsthand_edge.spec.document import Spec
    from firsthand_edge.spec.streams import StreamSpec

__all__ = ["Block", "Chapter", "briefing"]

AXIS_WORDS: Final = {
    "scenes": "places",
    "tasks": "tasks",
    "objects": "things",
    "participants": "contributors",
}
STATISTICS: Final = {
    "max": "at every tick",
    "p99": "at 99 of 100 ticks",
    "p99.9": "at 999 of 1000 ticks",
}
BYSTANDERS: Final = {
    "none": "Nobody else may be in the frame.",
    "consented": "Others may be in the frame only if they have signed as well.",
    "anonymized": "Others may be in the frame; they are made unrecognisable before anything is handed on.",
}
WITHDRAWAL: Final = {
    "until_delivery": "A withdrawal removes footage until it is delivered.",
    "any_time": "A withdrawal removes footage at any time, also what was delivered.",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a chapter."""

    kind: Literal["paragraph", "quote", "entry", "bullet"]
    text: str = ""
    label: str = ""
    """Of an entry: what it is about."""
    aside: str = ""
    """Of an entry: a figure that stands beside the label."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading and what stands below it."""

    heading: str
    blocks: tuple[Block, ...]


def briefing(spec: Spec) -> tuple[Chapter, ...]:
    """The chapters, first what a wearer must know, then what a buyer asks: all that stands below the title."""
    chapters = (
        ("What to do", _tasks(spec)),
        ("What must stay in frame", _geometry(spec)),
        ("Where, and how much of it", _cells(spec)),
        ("What gets a take rejected", _rejects(spec)),
        ("Your consent", _consent(spec)),
        ("Who takes part", _population(spec)),
        ("How varied it must be", _axes(spec)),
        ("When a batch is accepted", _acceptance(spec)),
        ("What is recorded", _streams(spec)),
        ("Calibration", _calibration(spec)),
        ("What is delivered", _delivery(spec)),
        ("How long it is kept", _retention(spec)),
    )
    return tuple(Chapter(heading, tuple(blocks)) for heading, blocks in chapters)


def _tasks(spec: Spec) -> Iterator[Block]:
    for task in spec.tasks:
        yield Block("entry", label=task.title[:1].upper() + task.title[1:], aside=task.id)
        yield Block("bullet", f"Success: {task.success}")
        yield Block("bullet", f"Near miss: {task.near_miss}")
        yield Block("bullet", f"Failure: {task.failure}")
    if spec.reject.retain_failures:
        yield Block(
            "paragraph", "Failed attempts and near misses belong to the collection: do not repeat or hide them."
        )
    else:
        yield Block("paragraph", "Only successes belong to the collection: a failed attempt or near miss is rejected.")


def _geometry(spec: Spec) -> Iterator[Block]:
    for geometry in spec.capture.geometry:
        yield Block("bullet", f"{geometry.stream}: {geometry.keep}")


def _cells(spec: Spec) -> Iterator[Block]:
    for cell in spec.cells:
        weeks = _count(cell.staffing_weeks, "week")
        only = [task.title for task in spec.tasks if cell.tasks is not None and task.id in cell.tasks]
        tasks = f" Only: {', '.join(only)}." if only else ""
        yield Block(
            "entry",
            f"{cell.condition}{tasks} {weeks} to find and staff.",
            label=f"{cell.title} ({cell.id})",
            aside=f"{decimal_text(cell.hours)} h",
        )
    total = sum((cell.hours for cell in spec.cells), Decimal(0))
    yield Block(
        "paragraph",
        f"{decimal_text(total)} hours of accepted footage; hours of one condition do not fill another.",
    )


def _rejects(spec: Spec) -> Iterator[Block]:
    limits = _limits(spec)
    again = [code for code in REJECTING_CODES if spec.reject.recaptures(code)]
    rest = [code for code in REJECTING_CODES if not spec.reject.recaptures(code)]
    for codes, words in (
        (again, "Rejected, and recorded again, when"),
        (rest, "Rejected, and not recorded again, when"),
    ):
        shown = [code for code in codes if code != "take.outcome_not_retained" or not spec.reject.retain_failures]
        if shown:
            yield Block("paragraph", f"{words}:")
        for code in shown:
            limit = f" ({limits[code]})" if limits.get(code) else ""
            yield Block("bullet", f"{REJECTING_CODES[code]}{limit}")
    near = _percent(spec.rules.near_ratio)
    yield Block("paragraph", f"From {near} of the ceiling on, a take is accepted with a warning.")


def _limits(spec: Spec) -> dict[str, str]:
    """The limit of each rule that has one, in words."""
    sync, rules = spec.sync, spec.rules
    ceiling = f"{_ms(sync.ceiling_ms)}, kept {STATISTICS[sync.statistic]}"
    trim = f"{_ms(rules.trim_max_ms)} at most"
    return {
        "sync.ceiling": ceiling + (", counting what is not known of the times" if sync.guard_band else ""),
        "sync.missing": f"{_percent(rules.missing_ratio_max)} of a sensor's at most, {rules.missing_run_max} in a row",
        "sync.no_ticks": f"{sync.min_ticks} pictures at least",
        "stream.rate": f"{_percent(rules.rate_ratio_max)} off at most",
        "stream.late": trim,
        "stream.early": trim,
        "stream.lost": f"{_ms(rules.silence_max_ms)} of silence at most",
        "picture.frozen": f"{rules.frozen_run_max} equal pictures in a row at most",
        "record.overrun": _tolerated(rules.overrun_max, "sample"),
        "stamp.duplicate": f"{_percent(rules.duplicate_ratio_max)} at most",
        "stamp.backwards": _tolerated(rules.backwards_max, "sample"),
        "stamp.jump": _tolerated(rules.jump_max, "jump"),
        "stamp.wrap": _tolerated(rules.wrap_max, "time"),
        "stamp.future": _tolerated(rules.future_max, "sample"),
    }


def _tolerated(number: int, one: str) -> str:
    return f"{_count(number, one)} at most" if number else ""


def _consent(spec: Spec) -> Iterator[Block]:
    consent = spec.consent
    yield Block("quote", consent.text)
    yield Block(
        "paragraph", f"Text {consent.version}, language {consent.language}. For: {', '.join(consent.purposes)}."
    )
    every = "Asked again at every session." if consent.every_session else "Signed once, before the first take."
    yield Block("paragraph", f"{every} {BYSTANDERS[consent.bystanders]}")
    yield Block("paragraph", f"{WITHDRAWAL[consent.withdrawal]} How: {consent.withdraw_by}")
    yield Block("paragraph", f"Who answers for the data: {consent.controller}.")


def _population(spec: Spec) -> Iterator[Block]:
    yield Block("paragraph", f"{spec.population.name}.")
    for screening in spec.population.screening:
        yield Block("bullet", f"{screening.field}: {screening.accepts}")


def _axes(spec: Spec) -> Iterator[Block]:
    for name, words in AXIS_WORDS.items():
        axis = getattr(spec.axes, name)
        others = "others are welcome" if axis.open else "no others"
        listed = [
            (f"{value.title} ({value.id})" if value.title else value.id)
            + (f", {decimal_text(value.hours)} h" if value.hours is not None else "")
            for value in axis.values
        ]
        text = f"{'; '.join(listed)}; {others}." if listed else "None is named up front; any counts."
        yield Block("entry", text, label=words.capitalize(), aside=f"{axis.distinct} or more")


def _acceptance(spec: Spec) -> Iterator[Block]:
    test = spec.acceptance
    yield Block("paragraph", test.test)
    share = "Every take" if test.inspected_ratio == 1 else f"{_percent(test.inspected_ratio)} of the takes"
    people, failed = _count(test.reviewers, "reviewer"), _percent(test.failed_ratio_max)
    yield Block("paragraph", f"{share} of each batch, pilot included, by {people}; at most {failed} of them may fail.")


def _streams(spec: Spec) -> Iterator[Block]:
    yield Block("paragraph", f"Capture tier: {spec.capture.tier}. Time is counted by `{spec.sync.reference}`.")
    for stream in spec.streams:
        yield Block("bullet", f"{stream.name}: {', '.join(_facts(stream))}")


def _facts(stream: StreamSpec) -> Iterator[str]:
    yield stream.kind.value if stream.required else f"{stream.kind.value}, recorded and not judged"
    if stream.rate_hz is not None:
        yield f"{decimal_text(stream.rate_hz)} Hz"
    if stream.decimate != 1:
        phase = "" if stream.phase is None else f", from tick {stream.phase} on"
        yield f"one sample in {stream.decimate} ticks{phase}"
    if stream.max_gap_ms is not None:
        yield f"samples at most {_ms(stream.max_gap_ms)} apart"
    if stream.stamp_domains is not None:
        yield f"times of {' or '.join(stream.stamp_domains)}"
    if stream.stamp_points is not None:
        yield f"stamped at {' or '.join(point.value for point in stream.stamp_points)}"
    if stream.provenance is not None:
        yield "captured live" if stream.provenance == "live" else "derived later"


def _calibration(spec: Spec) -> Iterator[Block]:
    limits = spec.calibration
    yield Block("bullet", f"reprojection: {decimal_text(limits.reprojection_px_max)} pixels at most")
    if limits.epipolar_px_max is not None:
        yield Block("bullet", f"stereo, epipolar: {decimal_text(limits.epipolar_px_max)} pixels at most")
    yield Block("bullet", f"a camera may have turned by {decimal_text(limits.rotation_deg_max)} degrees")
    yield Block("bullet", f"and moved by {decimal_text(limits.translation_mm_max)} mm")
    if limits.camera_imu_offset_ms_max is not None:
        yield Block("bullet", f"cameras to IMU: {_ms(limits.camera_imu_offset_ms_max)} at most")
    session = " and at every session" if limits.every_session else ""
    yield Block("paragraph", f"Checked every {decimal_text(limits.age_hours_max)} hours{session}.")


def _delivery(spec: Spec) -> Iterator[Block]:
    licence = spec.licence
    yield Block("paragraph", f"Format {spec.delivery.format}, schema {spec.delivery.schema_}.")
    use = "commercial use" if licence.commercial else "no commercial use"
    length = "for good" if licence.perpetual else "for a time"
    others = "nobody else receives the footage" if licence.exclusive else "others may receive the footage too"
    yield Block("paragraph", f"Licence: {licence.name}. Owned by {licence.owner}; {use}, {length}; {others}.")


def _retention(spec: Spec) -> Iterator[Block]:
    kept = spec.retention
    yield Block("bullet", f"on the rig, after a rejection: {_count(kept.rejected_days, 'day')}")
    yield Block("bullet", f"on the rig, after the store proved that it has it: {_count(kept.uploaded_days, 'day')}")
    yield Block("bullet", f"anywhere, after a withdrawal: {_count(kept.withdrawn_days, 'day')} at most")
    store = "as long as the licence holds" if kept.store_days is None else _count(kept.store_days, "day")
    yield Block("bullet", f"at the store, after delivery: {store}")
    consent = "for good" if kept.consent_days is None else _count(kept.consent_days, "day")
    yield Block("bullet", f"records of consent: {consent}")


def _ms(value: Decimal) -> str:
    return f"{decimal_text(value)} ms"


def _percent(value: Decimal) -> str:
    return f"{decimal_text(value * 100)} %"


def _count(number: int | Decimal, one: str) -> str:
    text = decimal_text(number) if isinstance(number, Decimal) else str(number)
    return f"{text} {one if number == 1 else one + 's'}"
