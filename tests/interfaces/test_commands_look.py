"""get, around, tool, timeline and file as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.conftest import Run


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
