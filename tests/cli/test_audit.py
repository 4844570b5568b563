"""The audit command as one types it: output, exit status, one sentence for every mistake."""

import json

import pytest

from firsthand_edge.cli import run
from tests.gate.making import MS, ticks


@pytest.fixture
def lists(tmp_path):
    """Arguments of a pair of lists that agree, and of one that does not."""

    def write(offset_ns, count=60):
        arguments = []
        for name, times in (("head", ticks(count)), ("wrist", ticks(count) + offset_ns)):
            path = tmp_path / f"{name}.txt"
            path.write_text("".join(f"{t}\n" for t in times.tolist()))
            arguments += ["--stream", f"{name}={path}"]
        return arguments

    return write


def test_accepted_is_0_and_rejected_is_1(lists, capsys):
    assert run(["audit", *lists(MS)]) == 0
    assert "ACCEPTED" in capsys.readouterr().out
    assert run(["audit", *lists(3 * MS)]) == 1
    said = capsys.readouterr()
    assert "REJECTED" in said.out
    assert "sync.ceiling" in said.out
    assert "taken as declared mid-exposure times" in said.out
    assert said.err == ""


def test_json_is_one_object(lists, capsys):
    assert run(["audit", *lists(MS), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "firsthand.sync-report/1"
    assert document["residual_ns"]["max"] == MS


def test_the_ceiling_is_exact(lists):
    assert run(["audit", *lists(MS), "--ceiling-ms", "1"]) == 0
    assert run(["audit", *lists(MS), "--ceiling-ms", "0.999999"]) == 1
    assert run(["audit", *lists(MS), "--ceiling-ms", "0.999999", "--statistic", "p99"]) == 1


def test_a_picture(lists, tmp_path, capsys):
    assert run(["audit", *lists(MS), "--plot", str(tmp_path / "a.html")]) == 0
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert "a.html" in capsys.readouterr().out.replace("\n", "")
    assert run(["audit", *lists(3 * MS), "--plot", str(tmp_path / "a.png")]) == 1
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--plot", "a.pdf"], 2, "let the name end in .html or .png"),
        (["--ceiling-ms", "-1"], 2, "state milliseconds above 0"),
        (["--ceiling-ms", "nan"], 2, "--ceiling-ms"),
        (["--ceiling-ms", "0.0000001"], 2, "finer than one nanosecond"),
        (["--ceiling-ms", "x"], 2, "ceiling-ms"),
        (["--statistic", "mean"], 2, "statistic"),
        (["--reference", "left"], 2, "there is no stream `left`"),
        (["--stamps", "log"], 2, "leave it out"),
        (["--stream", "x=/nonexistent/x.txt"], 3, "cannot be read"),
        (["--spec", "/nonexistent/spec.toml"], 4, "cannot be read"),
        (["--colour"], 2, "--colour"),
    ],
)
def test_mistakes(lists, capsys, more, status, said):
    assert run(["audit", *lists(MS), *more]) == status
    streams = capsys.readouterr()
    assert said in streams.err
    assert "Traceback" not in streams.err
    assert streams.out == ""


def test_a_picture_that_cannot_be_written(lists, tmp_path, capsys):
    assert run(["audit", *lists(MS), "--plot", str(tmp_path / "absent" / "a.html")]) == 6
    assert "cannot be written" in capsys.readouterr().err
    # It is said before anything is read, and a report that was made is not lost with its picture.
    assert run(["audit", "--stream", "head=absent.txt", "--plot", str(tmp_path / "absent" / "a.html")]) == 6
    capsys.readouterr()
    (tmp_path / "full.html").symlink_to("/dev/full")
    assert run(["audit", *lists(MS), "--plot", str(tmp_path / "full.html")]) == 6
    said = capsys.readouterr()
    assert said.out.startswith("ACCEPTED")
    assert "full.html cannot be written (No space left on device)" in said.err


def test_nothing_named(capsys):
    assert run(["audit"]) == 2
    assert "name a recording" in capsys.readouterr().err


def test_a_recording_that_is_none(tmp_path, capsys):
    (tmp_path / "x.mcap").write_bytes(b"not one")
    assert run(["audit", str(tmp_path / "x.mcap")]) == 3
    assert capsys.readouterr().err.count("\n") == 1


def test_help_names_every_option(capsys):
    assert run(["audit", "--help"]) == 0
    said = capsys.readouterr().out
    for option in ("--stream", "--reference", "--ceiling-ms", "--statistic", "--spec", "--stamps", "--json", "--plot"):
        assert option in said
