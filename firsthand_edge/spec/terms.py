"""The terms: when a batch is accepted, how good calibration is, what is delivered under which licence and consent."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from firsthand_edge.spec.fields import Days, Line, Milliseconds, Name, Number, Ratio, Section, Text

__all__ = ["AcceptanceTest", "CalibrationLimits", "ConsentTerms", "Delivery", "Licence", "Retention"]


class AcceptanceTest(Section):
    """The one acceptance test (`[acceptance]`): the same for the pilot and for every batch."""

    test: Text
    """What is done to an accepted episode, and which result passes it."""
    inspected_ratio: Annotated[Ratio, Field(gt=0)]
    """Share of each batch's accepted episodes that the test is done to; 1 is every one. Never lowered at scale."""
    failed_ratio_max: Ratio
    """Greatest share of the inspected episodes that may fail for the batch to be accepted."""
    reviewers: Annotated[int, Field(ge=1, le=100)] = 1
    """How many people look at each inspected episode, independently of each other."""


class CalibrationLimits(Section):
    """How good a calibration must be, and how old it may be (`[calibration]`).

    Every limit holds for fresh pictures against the *stored* parameters: what is left after solving anew hides drift.
    Orders of magnitude, from published tools: reprojection below 0.5 px good, 1.0 px bearable; epipolar 0.8 px;
    camera to IMU 1 ms (Android CTS); 0.1 degrees are 3.4 px in a 4K picture of 90 degrees.
    """

    reprojection_px_max: Annotated[Number, Field(gt=0, le=Decimal(20))]
    """Root mean square of the reprojection error of each camera, in pixels."""
    epipolar_px_max: Annotated[Number, Field(gt=0, le=Decimal(20))] | None = None
    """Root mean square of the epipolar error of each stereo pair, in pixels; None on a rig without one."""
    rotation_deg_max: Annotated[Number, Field(gt=0, le=Decimal(45))]
    """How far a camera may have turned against the reference pose, in degrees."""
    translation_mm_max: Annotated[Number, Field(gt=0, le=Decimal(1000))]
    """How far a camera may have moved against the reference pose, in millimetres."""
    camera_imu_offset_ms_max: Milliseconds | None = None
    """Time offset between cameras and IMU, in milliseconds; None on a rig without an IMU."""
    age_hours_max: Annotated[Number, Field(gt=0, le=Decimal(87_600))]
    """Age of the last passed check when a take begins, in hours."""
    every_session: bool
    """Whether each session needs a passed check of its own, however young the last one is."""


class Delivery(Section):
    """What the buyer receives (`[delivery]`)."""

    format: Literal["rlds", "lerobot", "webdataset", "hdf5", "zarr", "rerun", "mcap", "wav", "jsonl"]
    """The named format."""
    schema_: Annotated[Line, Field(alias="schema")]
    """The named schema and its version: `lerobot/v3.0`."""


class Licence(Section):
    """What the buyer may do with it (`[licence]`)."""

    name: Line
    """The licence by name and version."""
    owner: Line
    """Who owns the delivered data."""
    commercial: bool
    """Whether commercial use is allowed."""
    perpetual: bool
    """Whether it holds for good; false: as long as its text says."""
    exclusive: bool
    """Whether nobody else receives the same footage."""


class ConsentTerms(Section):
    """The release that everyone signs before the first take (`[consent]`)."""

    text: Text
    """The words, exactly as they are shown and signed."""
    version: Name
    """Version of the words; a consent record names it."""
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", max_length=35)]
    """Language of the words, a BCP 47 tag: `en`, `pt-BR`."""
    controller: Line
    """Who answers for the personal data."""
    purposes: Annotated[tuple[Line, ...], Field(strict=False, min_length=1, max_length=50)]
    """What the footage may be used for."""
    every_session: bool
    """Whether consent is confirmed at each session, besides the signature before the first one."""
    bystanders: Literal["none", "consented", "anonymized"]
    """Others in the frame: `none` may be, only `consented` ones, or any, who are then `anonymized`."""
    withdrawal: Literal["until_delivery", "any_time"]
    """Until when a withdrawal removes footage: until it is delivered, or also from what was delivered."""
    withdraw_by: Text
    """How consent is withdrawn: as easily as it was given."""


class Retention(Section):
    """How long footage is kept where (`[retention]`); whole days, counted from the event that is named."""

    rejected_days: Days
    """On the rig, after a take was rejected."""
    uploaded_days: Days
    """On the rig, after the store has proved that it holds the same bytes."""
    withdrawn_days: Days
    """Everywhere, after a withdrawal: the longest that removal may take."""
    store_days: Days | None = None
    """At the store, after delivery; None: for as long as the licence holds."""
    consent_days: Days | None = None
    """Consent records, after the delivery of the last footage that they cover; None: for good."""
