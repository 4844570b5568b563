"""Whatever becomes of the output, the exit status is the verdict's; and 1 means rejected, nothing else."""

import json
import os
import subprocess
import sys

import pytest

from firsthand_edge import cli
from firsthand_edge.cli import run
from firsthand_edge.cli.running import _status_of
from firsthand_edge.gate import audit as gate
from tests.gate import foreign
from tests.gate.foreign import Bag
from tests.gate.making import MS, ticks

COMMAND = [sys.executable, "-m", "firsthand_edge.cli"]


@pytest.fixture
def lists(tmp_path):
    def write(offset_ns, name="wrist"):
        arguments = []
        for stream, times in (("head", ticks(60)), (name, ticks(60) + offset_ns)):
            path = tmp_path / f"{len(arguments)}.txt"
            path.write_text("".join(f"{t}\n" for t in times.tolist()))
            arguments += ["--stream", f"{stream}={path}"]
        return arguments

    return write


def started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **env):
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=stdout, stderr=stderr, env={**os.environ, **env}, stdin=subprocess.DEVNULL
    )


def without_a_reader(*arguments):
    """Runs a command whose reader is gone before it begins; gives status and stderr."""
    read, write = os.pipe()
    os.close(read)
    try:
        process = started(*arguments, stdout=write)
    finally:
        os.close(write)
    _, said = process.communicate(timeout=60)
    return process.returncode, said.decode()


@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize(("offset_ns", "status"), [(MS, 0), (3 * MS, 1)])
def test_a_reader_that_has_gone_changes_no_verdict(lists, more, offset_ns, status):
    assert without_a_reader("audit", *lists(offset_ns), *more) == (status, "")


def test_a_reader_that_has_gone_changes_no_other_status_either(lists, tmp_path):
    assert without_a_reader("--help") == (0, "")
    status, said = without_a_reader("audit", *lists(MS), "--reference", "nope")
    assert (status, said.count("\n")) == (2, 1)


@pytest.mark.parametrize("arguments", [["--help"], ["audit"], ["audit", "--json"]])
def test_a_full_disk_under_the_output_is_an_error_of_the_disk(lists, arguments):
    more = lists(3 * MS) if "audit" in arguments else []
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device, opened as a shell opens it
        process = started(*arguments, *more, stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 6
    assert said.decode() == (
        "firsthand-edge: standard output cannot be written (No space left on device); send it where there is room\n"
    )


def shell(script, *arguments):
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {script}', "sh", *COMMAND, *arguments], capture_output=True, timeout=60, check=False
    )


def test_a_closed_output_is_an_error_of_the_disk(lists):
    done = shell(">&-", "audit", *lists(MS))
    assert (done.returncode, done.stderr.count(b"\n")) == (6, 1)
    assert b"standard output is closed" in done.stderr


@pytest.mark.parametrize("script", ["2>&-", "2>/dev/full"])
def test_errors_that_nobody_can_be_told_keep_their_status(lists, script):
    done = shell(script, "audit", *lists(MS), "--reference", "nope")
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1", "utf-8"])
@pytest.mark.parametrize("name", ["wr\u00edst", b"wr\xffst"], ids=["accent", "no-utf8"])
def test_any_name_in_any_encoding(lists, encoding, name):
    arguments = lists(3 * MS, name="wrist")
    arguments[3] = os.fsencode(arguments[3]).replace(b"wrist=", os.fsencode(name) + b"=", 1)
    process = started("audit", *arguments, "--json", PYTHONIOENCODING=encoding, LC_ALL="C.UTF-8")
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, b"")
    (other,) = set(json.loads(out.decode("utf-8"))["streams"]) - {"head"}
    assert other == (name if isinstance(name, str) else "wr\\udcffst")
    process = started("audit", *arguments, PYTHONIOENCODING=encoding, LC_ALL="C.UTF-8")
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, b"")
    assert b"REJECTED" in out


def test_a_file_whose_name_is_no_utf8(lists, tmp_path):
    arguments = lists(MS)
    path = os.fsencode(tmp_path) + b"/w\xff.txt"
    with open(path, "wb") as file:  # noqa: PTH123 - a name that is bytes
        file.write((tmp_path / "2.txt").read_bytes())
    arguments[3] = b"wrist=" + path
    process = started("audit", *arguments, "--json", "--plot", str(tmp_path / "a.html"), LC_ALL="C.UTF-8")
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, b"")
    assert json.loads(out.decode("utf-8"))["sources"]["wrist"]["file"].endswith("w\udcff.txt")


def test_brackets_in_names_are_no_markup(tmp_path, capsys):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/cam[/left]", "/[red]arm[0]"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp, foreign.cdr(stamp))
    plot = tmp_path / "[bold]:smile:.html"
    assert run(["audit", str(made.write()), "--plot", str(plot)]) == 0
    said = capsys.readouterr().out
    for name in ("/cam[/left] ", "/[red]arm[0] ", str(plot)):
        assert name in said


def test_a_name_does_not_steer_the_terminal(tmp_path, capsys):
    made = Bag(tmp_path / "a.mcap")
    for name in ("/head", "/\x1b[31mwrist\n"):
        made.topic(name, "sensor_msgs/msg/Image", foreign.IMAGE_ROS2)
        for stamp in ticks(60).tolist():
            made.add(name, stamp, foreign.cdr(stamp))
    path = str(made.write())
    assert run(["audit", path]) == 0
    assert run(["audit", path, "--reference", "absent"]) == 2
    said = capsys.readouterr()
    for shown in (said.out, said.err):
        assert "\x1b" not in shown
        assert "/\\x1b[31mwrist" in shown


def test_brackets_in_the_table_of_a_demo_are_no_markup(capsys):
    from firsthand_edge.cli.demo import TAKES, _table

    report = {
        "verdict": "rejected",
        "reasons": [{"code": "x[/y]"}],
        "warnings": [],
        "residual_ns": {"ticks": 0, "max": None},
        "streams": {},
        "span": {"trimmed_start": 0},
    }
    _table([(TAKES[1], {"report": report})])
    assert "x[/y]" in capsys.readouterr().out


@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), OSError("odd"), RecursionError("deep\nand deeper")])
def test_what_nobody_foresaw_is_one_sentence_and_no_rejection(lists, monkeypatch, capsys, error):
    def fails(*arguments, **keys):
        raise error

    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.setattr(gate, "audit", fails)
    assert run(["audit", *lists(MS)]) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"firsthand-edge: unexpected {type(error).__name__}")
    assert "fault of this software" in said
    assert said.count("\n") == 1
    monkeypatch.setenv(cli.DEBUG, "1")
    with pytest.raises(type(error)):
        run(["audit", *lists(MS)])


def test_what_this_user_may_not_do_is_no_fault_of_this_software(lists, monkeypatch, capsys):
    def fails(*arguments, **keys):
        raise PermissionError(13, "Permission denied", "/rig/spool")

    monkeypatch.setattr(gate, "audit", fails)
    assert run(["audit", *lists(MS)]) == 6
    said = capsys.readouterr().err
    assert said == (
        "firsthand-edge: /rig/spool cannot be used (Permission denied); give this user the right to read and write "
        "there\n"
    )


def test_a_broken_pipe_elsewhere_is_no_success(lists, monkeypatch):
    def fails(*arguments, **keys):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(gate, "audit", fails)
    assert run(["audit", *lists(MS)]) == 3


@pytest.mark.parametrize(("returncode", "status"), [(7, 7), (2, 2), (1, 3), (-9, 3), (0, 3), (120, 3)])
def test_a_process_that_crashed_has_rejected_nothing(returncode, status):
    assert _status_of(returncode) == status


def test_the_live_view_ends_when_its_reader_goes(tmp_path):
    from tests.cli.test_live import PAGE

    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from firsthand_edge import _core, cli\n"
        "from firsthand_edge.cli import live\n"
        f"page = {PAGE!r}\n"
        "class Page:\n"
        "    def __init__(self, path): pass\n"
        "    def read(self): return page\n"
        "_core.LivePage = Page\n"
        "live.REFRESH_S = 0.0\n"
        f"sys.exit(cli.run(['live', '--state', {str(tmp_path)!r}]))\n"
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run/live").touch()
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, b"")
