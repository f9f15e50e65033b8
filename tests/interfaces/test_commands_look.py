"""get, around, tool, timeline and file as a user runs them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.conftest import Run
from tests.interfaces.place import SCRIPT


def test_every_line_of_a_timeline_leads_to_its_entry(run: Run, stored: Path) -> None:
    value = json.loads(run("timeline", "g3vo", "--count", "100", "--json").out)
    assert len(value["lines"]) > 20 and value["more"] == ""
    for line in value["lines"]:
        assert run("get", line["id"]).status == 0
    page = run("timeline", "g3vo", "--count", "2")
    after = page.err.strip().rpartition(" ")[2]
    assert f"[{after}]" in page.out
    assert f"[{after}]" not in run("timeline", "g3vo", "--after", after).out


def test_get_tells_how_to_get_the_rest(run: Run, stored: Path) -> None:
    output = run("get", "g3vo.5", "--range", "0:20")
    assert "get g3vo.5 --range 20:" in output.err
    rest = run("get", "g3vo.5", "--range", "20:", "--json")
    whole = json.loads(run("get", "g3vo.5", "--json").out)
    assert json.loads(rest.out)["text"] == whole["text"][20:]
    raw = run("get", "g3vo.5", "--raw")
    assert raw.out.endswith("\n") and json.loads(raw.out)["type"] == "user"
    assert run("get", "g3vo.5", "--range", "9:3").status == 2


def test_raw_bytes_are_base64_for_a_program(run: Run, stored: Path) -> None:
    for name in ("g3vo.5", "hufq.9"):  # a line of a file, rows of a database
        value = json.loads(run("get", name, "--raw", "--json").out)
        data = base64.b64decode(value["base64"])
        command = [sys.executable, str(SCRIPT), "get", name, "--raw"]
        assert data == subprocess.run(command, capture_output=True, env=os.environ, timeout=60).stdout
        assert (value["id"], value["bytes"], value["sha256"]) == (name, len(data), hashlib.sha256(data).hexdigest())
        (record,) = json.loads(run("recall", name, "--raw", "--json").out)["records"]
        assert record == value
    piece = json.loads(run("recall", "g3vo.5", "--range", "2:9", "--json").out)
    assert run("recall", "g3vo.5", "--range", "2:9").out == piece["text"] + "\n" and piece["end"] == 9


def test_raw_bytes_and_a_range_of_characters_are_not_both_given(run: Run, stored: Path) -> None:
    for words in (("get", "--range", "0:9"), ("recall", "--range", "0:9"), ("recall", "--context", "2")):
        output = run(words[0], "g3vo.5", "--raw", *words[1:])
        assert output.status == 2 and output.out == "" and "--raw" in output.err


def test_tool_prints_the_call_and_what_it_gave(run: Run, stored: Path) -> None:
    (call, result) = json.loads(run("tool", "toolu_000100", "--json").out)
    assert (call["kind"], result["kind"]) == ("tool_call", "tool_result")
    assert result["text"][:15] in run("tool", "toolu_000100").out
    assert run("tool", "toolu_none").status == 3


def test_around_prints_its_neighbours(run: Run, stored: Path) -> None:
    value = json.loads(run("around", "g3vo.33", "--count", "1", "--json").out)
    assert [one["around"] for one in value] == [True, False, True]
    assert "[g3vo.33]" in run("around", "g3vo.33").out


def test_file_tells_a_story(run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = json.loads(run("sessions", "--json").out)
    folder = next(one["workspace"] for one in workspace if one["handle"] == "g3vo")
    monkeypatch.setattr("obsmem.tasks.here.workspace_of", lambda cwd: folder)
    output = run("file", "lantern/limits.py")
    assert output.status == 0 and "limits.py is gone" in output.out and "wrote in g3vo" in output.out
    value = json.loads(run("file", "lantern/limits.py", "--json").out)
    assert len(value["sha256"]) == 64 and value["disk"] == "gone"
    assert run("file", "no/such.py").status == 3
