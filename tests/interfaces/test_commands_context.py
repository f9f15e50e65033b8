"""How full windows are and what was spent, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harnesses.cases import FIXTURES
from tests.interfaces.conftest import Run
from tests.interfaces.place import DEMO
from tests.tasks.talk import SESSION, Talk
from tests.tasks.test_occupancy import WORDS, call, reply, result, text


@pytest.fixture
def filled(run: Run, tmp_path: Path) -> Path:
    talk = Talk()
    talk.user("List the files.")
    reply(talk, "msg_1", text("I will list them."), 50_000, 2)
    reply(talk, "msg_1", call("t1"), 50_000, 120)
    result(talk, "t1", WORDS * 50)
    assert run("ingest", str(talk.write(tmp_path))).status == 0
    return tmp_path


def test_context_says_each_number_with_where_it_came_from(run: Run, filled: Path) -> None:
    shown = run("context", SESSION).out
    assert "50,120 counted by the provider" in shown
    assert "window: 200,000 tokens (the usual window there)" in shown
    assert "180,000 of them usable (20,000: kept by the harness for a summary)" in shown
    assert "mark: 167,000 tokens (where the harness compacts on its own)" in shown
    assert "spend: 1 request, 50,120 tokens as the provider counted: 10 fresh, 49,790 read from a cache" in shown
    value = json.loads(run("context", SESSION, "--json").out)
    assert value["counted"] == 50_120 and value["tokens"] == 50_120 + value["estimated"]
    assert value["window"]["usable"] == 180_000 and value["trouble"] is None
    assert value["spend"]["requests"] == 1


def test_the_session_that_asks_is_meant_where_none_is_named(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("ingest", str(DEMO / "cursor" / "session.jsonl")).status == 0
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    assert json.loads(run("context", "--json").out)["counted"] == 50_120


def test_a_session_without_a_count_is_estimated_and_says_so(run: Run) -> None:
    assert run("ingest", str(DEMO / "cursor" / "session.jsonl")).status == 0
    shown = run("context").out
    assert "all of them estimated" in shown
    assert "mark: unknown" in shown


@pytest.mark.parametrize("by", ["session", "day", "model", "harness", "workspace"])
def test_stats_add_up_to_the_same_however_they_are_grouped(run: Run, filled: Path, by: str) -> None:
    path = FIXTURES / "claude-code" / "sidechain-inline" / "transcript.jsonl"
    assert run("ingest", str(path)).status == 0
    value = json.loads(run("stats", "--days", "3650", "--by", by, "--json").out)
    assert value["all"]["spend"]["requests"] == sum(row["spend"]["requests"] for row in value["rows"])
    assert value["all"]["spend"]["tokens"] == sum(row["spend"]["tokens"] for row in value["rows"])
    assert value["all"]["sessions"] == 2
    shown = run("stats", "--days", "3650", "--by", by).out
    assert by in shown.split("\n")[0] and "from cache" in shown


def test_what_a_sub_agent_took_counts_for_the_session_it_worked_for(run: Run, filled: Path) -> None:
    helper = Talk()
    helper.user("Look at the tests.")
    reply(helper, "msg_side", text("There are none."), 9_000, 30)
    folder = filled / SESSION / "subagents"
    folder.mkdir(parents=True)
    for record in helper.records:
        record.update(isSidechain=True, agentId="a1b2c3d", uuid="5" + record["uuid"][1:])
    (folder / "agent-a1b2c3d.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in helper.records), encoding="utf-8"
    )
    assert run("ingest", str(folder / "agent-a1b2c3d.jsonl")).status == 0
    value = json.loads(run("context", SESSION, "--json").out)
    assert value["spend"]["requests"] == 1
    assert value["spend_with_agents"]["requests"] == 2
    assert value["spend_with_agents"]["tokens"] == value["spend"]["tokens"] + 9_030
    (row,) = json.loads(run("stats", "--days", "3650", "--json").out)["rows"]
    assert row["spend"]["tokens"] == value["spend_with_agents"]["tokens"]


def test_nothing_counted_lately_is_said(run: Run, filled: Path) -> None:
    assert run("stats", "--days", "1").out == "No request was counted in the last 1 day.\n"
    assert run("stats", "--days", "0").status == 2
