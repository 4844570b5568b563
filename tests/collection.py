"""The sections of a spec that say what is collected, complete: for tests that are about its streams and rules.

Append `COLLECTION` to `HEAD` and the streams. One task, `pick-cup`; one cell, `daylight`; every axis open. The stream
`head` must be among the required ones.
"""

SCHEMA = 'schema = "firsthand.spec/1"\n'

COLLECTION = """
[population]
name = "Adults"
[[population.screening]]
field = "age"
accepts = "18 or older"
[capture]
tier = "head and wrist cameras"
[[capture.geometry]]
stream = "head"
keep = "both hands"
[[tasks]]
id = "pick-cup"
verb = "pick up"
noun = "cup"
success = "the cup is lifted and held"
failure = "the cup stays or falls"
near_miss = "the cup is held at the second grasp"
[[cells]]
id = "daylight"
title = "Daylight"
condition = "lit by a window"
hours = 10
staffing_weeks = 1
[axes.scenes]
distinct = 1
open = true
[axes.tasks]
distinct = 1
open = true
[axes.objects]
distinct = 1
open = true
[axes.participants]
distinct = 1
open = true
[reject]
recapture = true
retain_failures = true
[acceptance]
test = "the footage shows the task from begin to end"
inspected_ratio = 1
failed_ratio_max = 0
[calibration]
reprojection_px_max = 1
rotation_deg_max = 0.2
translation_mm_max = 2
age_hours_max = 24
every_session = true
[delivery]
format = "mcap"
schema = "foxglove"
[licence]
name = "test licence"
owner = "the buyer"
commercial = true
perpetual = true
exclusive = false
[consent]
text = "I agree that my hands are recorded."
version = "1"
language = "en"
controller = "the collector"
purposes = ["training of robots"]
every_session = true
bystanders = "none"
withdrawal = "until_delivery"
withdraw_by = "a word to the technician"
[retention]
rejected_days = 7
uploaded_days = 1
withdrawn_days = 30
"""
"""Sections, in TOML."""
