"""`firsthand-edge spec`: what each command says, and with which status it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from firsthand_edge.cli import run
from firsthand_edge.spec.document import load_spec
from firsthand_edge.spec.keys import KeyPair
from firsthand_edge.spec.signed import load_signatures, signatures_path
from tests.cli.test_bad_input import firsthand, says
from tests.spec.whole import WHOLE

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("spec.toml")
    path.write_text(WHOLE)
    return path


@pytest.fixture
def spec(capsys):
    """Runs a command in this process: status, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        status = run(["spec", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return call


def test_a_new_spec_is_written_once(path, spec):
    path.unlink()
    status, out, _ = spec("new")
    assert (status, out) == (
        0,
        "wrote spec.toml; fill in every <placeholder>, then: firsthand-edge spec check spec.toml\n",
    )
    text = path.read_text()
    path.write_text("mine")
    status, _, err = spec("new", path)
    assert (status, path.read_text()) == (2, "mine")
    assert "spec.toml is there already and is not replaced; name another file" in err
    assert spec("new", "other.toml")[0] == 0
    assert Path("other.toml").read_text() == text
    status, _, err = spec("new", "no/folder.toml")
    assert status == 6
    assert "no/folder.toml cannot be written" in err
    status, _, err = spec("new", "")
    assert status == 2
    assert "name the file to be written" in err


def test_check_says_that_nothing_is_wrong(path, spec):
    status, out, _ = spec("check", path)
    assert (status, out.splitlines()) == (
        0,
        [
            "spec.toml: nothing is missing, doubled or contradictory",
            "  spec whole version 3: Everything that can be said",
            "  2 tasks, 2 cells, 4 required streams",
            f"  digest {load_spec(path).digest}",
        ],
    )
    status, out, _ = spec("check", path, "--json")
    assert (status, json.loads(out)["mistakes"]) == (0, [])
    assert json.loads(out)["spec"] == {
        "id": "whole",
        "version": 3,
        "title": "Everything that can be said",
        "digest": load_spec(path).digest,
    }


def test_check_lists_everything_with_its_line(path, spec):
    path.write_text(WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = -1").replace('verb = "pour"', 'verb = "<verb>"'))
    status, out, err = spec("check", path)
    assert (status, out) == (4, "")
    assert "spec.toml has 2 mistakes; mend it and start again:" in err
    status, out, _ = spec("check", path, "--json")
    line = 1 + WHOLE[: WHOLE.index('verb = "pour"')].count("\n")
    found = json.loads(out)
    assert (status, found["spec"]) == (4, None)
    assert found["mistakes"][0] == {"line": line, "place": "tasks[1].verb", "sentence": "is not filled in yet: verb"}
    assert found["mistakes"][1]["place"] == "sync.ceiling_ms"


@pytest.mark.parametrize("command", ["check", "show", "verify", "sign", "diff"])
def test_a_file_that_is_not_there_is_one_sentence(path, spec, command):
    more = {"sign": ["--key", "k"], "diff": [path]}.get(command, [])
    status, _, err = spec(command, "absent.toml", *more)
    assert status == 4
    assert "absent.toml" in err
    assert "No such file or directory" in err
    status, out, _ = spec("check", "absent.toml", "--json")
    assert (status, json.loads(out)["mistakes"][0]["line"]) == (4, None)


def test_sign_and_verify(path, spec):
    digest = load_spec(path).digest
    status, out, _ = spec("verify", path)
    assert status == 4
    assert "- whole version 3 is not signed; sign it with `firsthand-edge spec sign`" in out
    status, _, err = spec("sign", path, "--key", "buyer")
    assert status == 4
    assert "holds no key" in err
    status, out, _ = spec("sign", path, "--key", "buyer", "--new-key")
    buyer = KeyPair.load(Path("buyer"))
    assert (status, out.splitlines()) == (
        0,
        [
            f"signed spec whole version 3 with key {buyer.key_id}; see spec.toml.sig",
            f"  digest {digest}",
            f"  key    {buyer.public.hex()}",
        ],
    )
    assert spec("sign", path, "--key", "buyer", "--new-key")[0] == 2  # a key is never replaced
    status, out, _ = spec("verify", path)
    assert (status, out.splitlines()) == (
        0,
        [
            "spec.toml: spec whole version 3",
            f"  digest {digest}",
            f"  signed by {buyer.key_id}",
            f"    {buyer.public.hex()}",
            "  Unchanged since it was signed.",
            "  Whose keys these are was not checked; name those that count with --signer.",
        ],
    )
    status, out, _ = spec("sign", path, "--key", "maker", "--new-key")
    assert f"  signed by {buyer.key_id} as well" in out
    named = ["--signer", "buyer", "--signer", KeyPair.load(Path("maker")).public.hex()]
    status, out, _ = spec("verify", path, *named)
    assert status == 0
    assert out.count(", asked for") == 2
    assert "was not checked" not in out


def test_a_signer_that_is_missing(path, spec):
    spec("sign", path, "--key", "buyer", "--new-key")
    stranger = KeyPair.generate()
    status, out, _ = spec("verify", path, "--signer", "buyer/signer.pub", "--signer", stranger.public.hex())
    assert status == 4
    assert f"- key {stranger.key_id} has not signed whole version 3; ask its owner to sign it" in " ".join(out.split())
    status, out, _ = spec("verify", path, "--signer", stranger.public.hex(), "--json")
    found = json.loads(out)
    assert (status, found["proved"], len(found["faults"])) == (4, False, 1)
    assert found["required"] == [{"key_id": stranger.key_id, "public_key": stranger.public.hex()}]
    assert spec("verify", path, "--signer", "nobody")[0] == 2


def test_a_spec_that_was_changed_since(path, spec):
    spec("sign", path, "--key", "buyer", "--new-key")
    spec("sign", path, "--key", "maker", "--new-key")
    path.write_text(WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = 1.6"))
    status, out, _ = spec("verify", path)
    assert status == 4
    assert out.count("NOT HELD BY") == 2
    assert "the document was changed after it was signed" in " ".join(out.split())
    status, out, _ = spec("sign", path, "--key", "buyer")
    assert status == 0
    assert f"dropped that of {KeyPair.load(Path('maker')).key_id}, over an older form of the document" in out
    assert [s.key_id for s in load_signatures(path)] == [KeyPair.load(Path("buyer")).key_id]
    found = json.loads(spec("verify", path, "--json")[1])
    assert (found["proved"], [s["holds"] for s in found["signatures"]]) == (True, [True])


def test_signatures_that_were_altered(path, spec):
    spec("sign", path, "--key", "buyer", "--new-key")
    sidecar = signatures_path(path)
    sidecar.write_bytes(sidecar.read_bytes().replace(b'"version":3', b'"version":4'))
    for command in (["verify", path], ["show", path], ["sign", path, "--key", "buyer"]):
        status, _, err = spec(*command)
        assert status == 4
        assert "spec.toml.sig" in err
        assert "it was altered; remove the file and have the spec signed again" in err


def test_an_invalid_spec_makes_no_key(path, spec):
    path.write_text(WHOLE.replace('reference = "head"', 'reference = "chest"'))
    assert spec("sign", path, "--key", "buyer", "--new-key")[0] == 4
    assert not Path("buyer").exists()


def test_show_is_the_briefing(path, spec):
    status, out, _ = spec("show", path)
    assert status == 0
    assert "Not signed: no take starts on it." in out
    assert "- Success: held" in out
    spec("sign", path, "--key", "buyer", "--new-key")
    assert f"Signed by {KeyPair.load(Path('buyer')).key_id}." in spec("show", path)[1]
    path.write_text(WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = 1.6"))
    assert "Its signatures do not hold: the signature of key" in spec("show", path)[1]


def test_show_as_a_page(path, spec):
    status, out, _ = spec("show", path, "--html", "briefing.html")
    assert (status, out) == (0, "wrote briefing.html\n")
    text = Path("briefing.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "Everything that can be said" in text
    status, _, err = spec("show", path, "--html", "briefing.pdf")
    assert status == 2
    assert "let the name end in .html" in err
    assert spec("show", path, "--html", "no/briefing.html")[0] == 6


def test_diff_of_one_document_formatted_otherwise(path, spec):
    Path("b.toml").write_text("# looked through\n" + WHOLE.replace("hours = 4\n", "hours = 4.0\n"))
    status, out, _ = spec("diff", path, "b.toml")
    assert status == 0
    assert out.splitlines()[-1] == "They measure the same thing: one digest, however they are formatted."
    assert json.loads(spec("diff", path, "b.toml", "--json")[1])["same"] is True


def test_diff_says_what_differs_and_that_it_is_another_collection(path, spec):
    stream = '\n[[streams]]\nname = "depth"\nkind = "event"\n'
    changed = WHOLE.replace("ceiling_ms = 1.5", "ceiling_ms = 2.0").replace("hours = 10.5", "hours = 12") + stream
    Path("b.toml").write_text(changed.replace('success = "full"', f'success = "{"full to the brim, " * 8}dry"'))
    status, out, _ = spec("diff", path, "b.toml")
    assert status == 1
    assert out.splitlines()[4:] == [
        "They do not measure the same thing: what is recorded against one is a",
        "different collection from what is recorded against the other.",
        "",
        "Criteria (3)",
        "  tasks[pour-water].success",
        "    - full",
        "    + full to the brim, full to the brim, full to the brim, full to the brim,",
        "      full to the brim, full to the brim, full to the brim, full to the brim,",
        "      dry",
        "      (What must be true at the end for the attempt to be a success)",
        "  streams[depth]",
        "      only in the second: name depth, kind event, decimate 1, required yes",
        "  sync.ceiling_ms: 1.5 -> 2",
        "      (`sync.ceiling`: the chosen statistic of the residual may reach this and",
        "      not exceed it)",
        "",
        "Cells and targets (1)",
        "  cells[daylight].hours: 10.5 -> 12",
        "      (Budget of validated hours)",
    ]
    found = json.loads(spec("diff", path, "b.toml", "--json")[1])
    assert (found["same"], len(found["differences"])) == (False, 4)
    assert found["first"]["digest"] != found["second"]["digest"]


def test_diff_of_names_only(path, spec):
    Path("b.toml").write_text(WHOLE.replace('title = "Daylight"', 'title = "Day"'))
    status, out, _ = spec("diff", path, "b.toml")
    assert status == 1
    assert "No criterion differs, only names; rigs and stores still take them for two" in out
    Path("b.toml").write_text("id = 3\n")
    assert spec("diff", path, "b.toml")[0] == 4


@pytest.mark.parametrize("name", ["sim-spec.toml", "replay-aria-spec.toml"])
def test_the_examples_of_the_project(name, spec):
    assert spec("check", CONFIGS / name)[0] == 0
    status, out, _ = spec("show", CONFIGS / name)
    assert status == 0
    assert all(len(line) <= 80 for line in out.splitlines())


def test_from_a_shell(path):
    done = firsthand("spec", "check", path)
    assert done.returncode == 0, done.stderr
    says(firsthand("spec", "check"), 2, "FILE")
    says(firsthand("spec", "sign", path), 2, "--key")
    for command in ("new", "check", "sign", "verify", "show", "diff"):
        done = firsthand("spec", command, "--help")
        assert done.returncode == 0
        assert re.search(r"FILE|FIRST", done.stdout)


def test_show_ends_well_when_nobody_reads_on(path):
    shown = subprocess.Popen(
        [sys.executable, "-m", "firsthand_edge.cli", "spec", "show", str(CONFIGS / "sim-spec.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert shown.stdout is not None
    shown.stdout.readline()
    shown.stdout.close()
    assert shown.wait(timeout=60) == 0
    assert shown.stderr is not None
    assert shown.stderr.read() == b""
    shown.stderr.close()


def test_the_commands_cost_little_to_name():
    """The module itself imports nothing heavy: help of other commands does not wait for it."""
    heavy = "('pydantic', 'cryptography', 'numpy')"
    code = f"import sys; import firsthand_edge.cli.spec; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
