"""search: what it prints, where it looks by default, and how it ends."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from obsmem.interfaces.mcp_scope import Asker
from obsmem.interfaces.mcp_tools import call_tool
from tests.interfaces.conftest import Run

PLACE = "--everywhere"


def found(run: Run, *words: str) -> dict[str, Any]:
    """What the command gives to a program."""
    output = run("search", *words, "--json")
    value = json.loads(output.out)
    assert output.status == (0 if value["hits"] else 3)
    assert isinstance(value, dict)
    return value


def test_a_hit_says_who_spoke_and_how_to_see_it_whole(run: Run, stored: Path) -> None:
    output = run("search", PLACE, "port", "8091")
    assert output.status == 0
    heading, snippet, command = output.out.split("\n")[:3]
    assert heading.startswith("[") and any(who in heading for who in ("user", "agent", "tool", "note"))
    assert "8091" in snippet
    name = heading[1 : heading.index("]")]
    assert command.strip().endswith(f"recall {name}")
    assert run("recall", name).status == 0


def test_nothing_found_has_a_status_of_its_own_and_says_what_to_try(run: Run, stored: Path) -> None:
    output = run("search", PLACE, "qqqzzzxxy")
    assert output.status == 3 and output.out == "" and "--exact" in output.err


@pytest.mark.parametrize("words", [('"',), ("c++",), ("--", "-x"), ("(*)",), ("",), ("a" * 3000,), ("NEAR(",), ()])
def test_any_words_are_a_question(run: Run, stored: Path, words: tuple[str, ...]) -> None:
    for option in ("--own", "--exact", "--regex"):
        output = run("search", PLACE, option, *words)
        assert output.status in (0, 3) and "Traceback" not in output.err


def test_the_folder_of_the_caller_is_searched_unless_it_has_no_session(
    run: Run, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = run("search", "8091")
    assert output.status == 0 and "all of them were searched" in output.err
    assert found(run, "8091", "--here")["hits"] == []
    first = found(run, "8091", PLACE)["hits"][0]["session"]
    with sqlite3.connect(stored / "archive.db") as connection:
        connection.execute("UPDATE sessions SET workspace=? WHERE handle=?", (str(tmp_path), first))
    assert {hit["session"] for hit in found(run, "8091")["hits"]} == {first}
    assert len({hit["session"] for hit in found(run, "8091", PLACE, "--limit", "50")["hits"]}) > 1


def test_options_are_filters(run: Run, stored: Path) -> None:
    every = found(run, "8091", PLACE, "--limit", "100")["hits"]
    kinds = {hit["kind"] for hit in every}
    assert "note" in kinds and len(kinds) > 2
    for kind in kinds:
        assert {hit["kind"] for hit in found(run, "8091", PLACE, "--kind", kind)["hits"]} == {kind}
    session = every[0]["session"]
    assert {hit["session"] for hit in found(run, "8091", "--session", session)["hits"]} == {session}
    assert found(run, "8091", PLACE, "--until", "1999-01-01")["hits"] == []
    assert found(run, "8091", PLACE, "--since", "1999-01-01", "--limit", "100")["hits"] == every


def test_what_no_option_can_be_is_said(run: Run, stored: Path) -> None:
    for option, wrong in (("--since", "the day"), ("--harness", "nosuch"), ("--kind", "nosuch"), ("--after", "nosuch")):
        output = run("search", PLACE, "8091", option, wrong)
        assert output.status == 2 and wrong in output.err, option
    assert run("search", "8091", "--session", "nosuch").status == 3


def test_a_date_that_is_none_is_refused_in_the_same_words_at_the_command_line_and_to_an_agent(
    run: Run, stored: Path, tmp_path: Path
) -> None:
    for name in ("since", "until"):
        said = run("search", PLACE, "8091", f"--{name}", "the day")
        answer = call_tool("search", {"query": "8091", name: "the day"}, Asker(str(tmp_path)))
        assert (said.status, said.err.strip()) == (2, answer.text) and answer.failed
        assert said.err.startswith(f"'{name}' takes a date") and "'the day'" in said.err


def test_pages_follow_each_other(run: Run, stored: Path) -> None:
    whole = [hit["id"] for hit in found(run, "8091", PLACE, "--limit", "9")["hits"]]
    first = found(run, "8091", PLACE, "--limit", "4")
    second = found(run, "8091", PLACE, "--limit", "4", "--after", first["more"])
    assert [hit["id"] for hit in first["hits"] + second["hits"]] == whole[:8]
    assert "--after" in run("search", PLACE, "8091", "--limit", "4").err
