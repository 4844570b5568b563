"""What the package itself offers: by name, typed, and not paid for by those who do not ask for it."""

import subprocess
import sys

import pytest

import firsthand_edge

TYPED = """
import numpy as np
import firsthand_edge as fe
from decimal import Decimal

head = np.arange(0, 10**10, 16_666_667, dtype=np.int64)
report: fe.Report = fe.audit_streams(
    {"head": head, "imu": fe.StreamStamps(head, kind="sampled", rate_hz=Decimal(60))}, ceiling_ms=2.0, statistic="p99"
)
good: bool = report.accepted
words: str = report.reasons[0].sentence
largest: int | None = report.residual.max_ns
missing: int | None = report.streams["imu"].missing
steps: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = np.diff(report.offset_ns("imu"))
absent: int = fe.ABSENT
version: str = fe.__version__
try:
    other: fe.Report = fe.audit_recording("take.mcap", streams={"/imu": fe.Channel(kind="sampled")}, stamps="log")
except (fe.UsageError, fe.CannotJudge, fe.FirsthandError):
    pass
"""

WRONG = """
import firsthand_edge as fe
fe.audit_streams({}, statistic="mean")
fe.audit_stream({})
fe.StreamStamps([1], kind="free")
fe.audit_streams({}).accepted = True
"""


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_importing_it_imports_nothing_else():
    done = python("-c", "import sys, firsthand_edge; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "firsthand_edge" in loaded
    assert not {name for name in loaded if name.startswith(("firsthand_edge.", "numpy", "pydantic"))}


def test_an_audit_without_a_spec_does_not_pay_for_reading_specs():
    done = python("-c", "import sys, firsthand_edge.gate.audit; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert "firsthand_edge.gate.audit" in loaded
    assert not {name for name in loaded if name.startswith(("firsthand_edge.spec.document", "pydantic", "rich"))}


def test_every_name_it_offers_is_there_and_told_of():
    for name in firsthand_edge.__all__:
        assert getattr(firsthand_edge, name) is not None
        assert name in dir(firsthand_edge)
        assert name in firsthand_edge.__doc__ or name == "__version__"


def test_another_name_is_not():
    with pytest.raises(AttributeError, match="no attribute 'audit_stream'"):
        firsthand_edge.audit_stream  # noqa: B018 - the access is what is tested


def test_a_program_that_uses_it_is_checked_by_type(tmp_path):
    for name, text in (("typed", TYPED), ("wrong", WRONG)):
        (tmp_path / f"{name}.py").write_text(text)
    files = [str(tmp_path / "typed.py"), str(tmp_path / "wrong.py")]
    done = python("-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", *files)
    found = [line.rsplit("/", 1)[1].split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [["wrong.py", line] for line in "3456"], done.stdout + done.stderr
