"""OpenCode itself, offline: what a plugin's words become, first with a canned plugin, then with ours."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.tokens import estimate
from obsmem.system.launcher import launcher_path, write_launcher

from . import evidence, payloads, programs, wire, work
from .opencode import NAME, OpenCode, say, summarize
from .world import PROJECT_ROOT, RECORDER, SCRIPT, Call, World

pytestmark = pytest.mark.e2e

PLUGIN = PROJECT_ROOT / "opencode-plugin" / "observational-memory.js"
BUDGET = 8_000  # tokens
PROMPTS = (work.FIRST_PROMPT, work.SECOND_PROMPT, work.THIRD_PROMPT)

_PLUGIN = """\
export const Canned = async () => ({
  "experimental.chat.system.transform": async (input, output) => { output.system.push("CANNED NOTES " + input.sessionID) },
  "experimental.session.compacting": async (input, output) => { output.context.push("CANNED CONTEXT") },
})
"""


def test_a_plugin_speaks_to_the_summariser_and_in_every_request_after_it(world: World) -> None:
    """Notes in the system prompt are there before and after a compaction; context reaches the summariser alone."""
    plugin = world.home / "canned.js"
    plugin.write_text(_PLUGIN, encoding="utf-8")
    config = {"permission": {"*": "allow"}, "plugin": [plugin.as_uri()]}
    harness = OpenCode(world, programs.require(programs.OPENCODE), config)
    shell = {"name": "bash", "input": {"command": "echo hi; exit 3", "description": "Fail"}}
    world.script({"tools": [shell]}, {"text": "It failed."})
    assert harness.turn("Run it and see.").status == 0
    assert harness.turn("Go on with it.").status == 0
    assert harness.compact().status == 0
    assert harness.turn("And now the rest.").status == 0
    (summary,) = world.requests("summary")
    assert "CANNED CONTEXT" in "\n".join(wire.texts(summary["body"]))
    notes = f"CANNED NOTES {harness.session}"
    assert all(notes in "\n".join(wire.texts(request["body"])) for request in world.requests("main"))
    after = "\n".join(wire.texts(evidence.first_main_request_after_summary(world)))
    assert "SCRIPTED-SUMMARY" in after
    assert "Run it and see." not in after


def _start(world: World, **options: Any) -> OpenCode:
    """OpenCode with our plugin, as an installation leaves it; the calls of our script go through the recorder."""
    write_launcher(str(world.memory), str(SCRIPT))
    recorder = [sys.executable, str(RECORDER), str(world.folder / "calls"), "plugin"]
    entry = [PLUGIN.as_uri(), {"command": [*recorder, launcher_path(str(world.memory))], **options}]
    config = {"permission": {"*": "allow"}, "plugin": [entry]}
    return OpenCode(world, programs.require(programs.OPENCODE), config)


def test_the_config_that_is_printed_works_as_it_stands(world: World) -> None:
    """``hooks opencode`` prints what goes into opencode.json; nothing else is needed for the block to arrive."""
    printed = world.run([sys.executable, str(SCRIPT), "hooks", "opencode"], {})
    config = {"permission": {"*": "allow"}, **json.loads(printed.stdout)}
    assert config["plugin"][0][0] == PLUGIN.as_uri()
    harness = OpenCode(world, programs.require(programs.OPENCODE), config)
    world.script({"tools": [_shell("echo hi; exit 3")]}, {"text": "It failed."})
    assert harness.turn("Run it and see. Never touch legacy/config.yaml.").status == 0
    assert harness.compact().status == 0
    assert harness.turn("Go on.").status == 0
    block = _block(world.requests("summary")[0]["body"])
    assert "Never touch legacy/config.yaml." in block
    assert _block(evidence.first_main_request_after_summary(world)) == block


def _calls(world: World, event: str = "") -> list[Call]:
    """The recorded calls, each named by its event, or by its command where it is none."""
    named = [
        call._replace(event=call.command[3] if call.command[1] == "hook" else call.command[1]) for call in world.calls()
    ]
    return [call for call in named if event in ("", call.event)]


def _work(harness: OpenCode, world: World) -> None:
    """Three turns of work, each in a process of its own, and the maintainers that follow them."""
    for prompt, turn in zip(PROMPTS, work.answers(_write, _shell), strict=True):
        world.script(*turn)
        assert harness.turn(prompt).status == 0
    _wait_for_notes(world)


def _shell(command: str) -> dict[str, Any]:
    return {"name": "bash", "input": {"command": command, "description": "Run it"}}


def _write(name: str, content: str) -> dict[str, Any]:
    return {"name": "write", "input": {"filePath": name, "content": content}}


def _memory(world: World, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"{(world.memory / 'memory.db').as_uri()}?mode=ro", uri=True) as connection:
        return connection.execute(sql).fetchall()


def _wait_for_notes(world: World) -> None:
    """Wait until the detached maintainers of the turns so far have written notes."""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        try:
            if _memory(world, "SELECT 1 FROM notes"):
                return
        except sqlite3.Error:
            pass
        time.sleep(0.2)
    pytest.fail(f"no notes; calls: {[call.event for call in _calls(world)]}")


def _block(body: Any) -> str:
    """Our block as it stands in a request, after checking that it is there once, whole, and within its budget."""
    parts = evidence.whole_delivery(evidence.parts_in(body))
    block = "\n".join(part.text for part in parts)
    assert estimate(block) <= BUDGET
    assert sum(block in text for text in wire.texts(body)) == 1, "the parts do not stand together in one text"
    return block


def _requests_after(world: World, number: int) -> list[dict[str, Any]]:
    return [request["body"] for request in world.requests("main") if request["number"] > number]


def _assert_observed_once(world: World) -> None:
    covered: list[tuple[int, int]] = []
    for first, last in _memory(world, "SELECT first_seq, last_seq FROM coverage ORDER BY session, first_seq"):
        assert not covered or first > covered[-1][1]
        covered.append((first, last))
    texts = [text for (text,) in _memory(world, "SELECT text FROM notes")]
    assert texts and len(texts) == len(set(texts))
    assert not [text for text in texts if "observational-memory" in text or "SCRIPTED-SUMMARY" in text]


def test_the_block_reaches_the_summariser_and_every_request_after_two_compactions(world: World) -> None:
    """Asked for and automatic: whole, once, the same bytes in each request and in a new process, until the next one."""
    harness = _start(world)
    _work(harness, world)
    assert not any(evidence.parts_in(request["body"]) for request in world.requests())
    assert harness.compact().status == 0
    (summary,) = world.requests("summary")
    first = _block(summary["body"])
    for expected in (work.STANDING_ORDER, work.FAILING_COMMAND, work.FAILURE, work.THIRD_PROMPT):
        assert expected in first, expected
    world.script({"tools": [_shell("echo going on")]}, {"text": "It goes on."})
    for prompt in (work.LAST_PROMPT, "Say it again."):
        assert harness.turn(prompt).status == 0
    later = _requests_after(world, summary["number"])
    assert len(later) == 3
    assert [_block(body) for body in later] == [first] * 3
    assert all("SCRIPTED-SUMMARY" in "\n".join(wire.texts(body)) for body in later)

    full = {"input": 99_000, "output": 500}
    world.script({"text": "I rename it.", "tools": [_shell("echo renamed to Nightjar")], "usage": full})
    assert harness.turn("Rename the project to Nightjar.").status == 0
    assert harness.turn("What is next?").status == 0
    _, summary = world.requests("summary")
    second = _block(summary["body"])
    assert second != first
    for expected in ("Nightjar", work.STANDING_ORDER):
        assert expected in second, expected
    later = _requests_after(world, summary["number"])
    assert len(later) >= 2
    assert [_block(body) for body in later] == [second] * len(later)
    _assert_observed_once(world)
    assert {call.status for call in _calls(world)} == {0}
    assert payloads.compare(NAME, world, [call for call in _calls(world) if call.command[1] == "hook"]) == []


def test_the_agent_recalls_the_exact_words_with_the_tool(world: World) -> None:
    """The tool gives what the block's ids stand for, and says so in words where an id stands for nothing."""
    harness = _start(world)
    _work(harness, world)
    assert harness.compact().status == 0
    block = _block(world.requests("summary")[0]["body"])
    entry = evidence.recall_command(block, work.FIRST_PROMPT).split()[-1]
    world.script({"tools": [{"name": "recall", "input": {"id": entry, "range": ""}}]})
    world.script({"tools": [{"name": "recall", "input": {"id": "zzzz.99", "range": ""}}]})
    assert harness.turn("Recall it.").status == 0
    *_, found, missing = [request["body"] for request in world.requests("main")]
    printed = evidence.last_tool_result(found)
    assert work.FIRST_PROMPT in printed, printed
    assert estimate(printed) <= 2_100
    assert "zzzz" in evidence.last_tool_result(missing)


def test_the_block_is_the_summary_where_that_is_asked_for(world: World) -> None:
    """With ``replace_summary`` the block stands in the summary's place, once, and in a new process too."""
    harness = _start(world, replace_summary=True)
    _work(harness, world)
    assert harness.compact().status == 0
    for prompt in (work.LAST_PROMPT, "Say it again."):
        assert harness.turn(prompt).status == 0
    (summary,) = world.requests("summary")
    assert not evidence.parts_in(summary["body"])
    later = _requests_after(world, summary["number"])
    blocks = [_block(body) for body in later]
    assert blocks[0] == blocks[1] and work.STANDING_ORDER in blocks[0]
    assert "SCRIPTED-SUMMARY" not in "\n".join(wire.texts(later))
    _wait_for_notes(world)
    _assert_observed_once(world)


@pytest.mark.parametrize("broken", ["launcher", "store"])
def test_the_agent_goes_on_where_the_memory_is_broken(world: World, broken: str) -> None:
    """Without a launcher, or with a store that is no database, every turn and the compaction end as ever."""
    harness = _start(world)
    if broken == "launcher":
        Path(launcher_path(str(world.memory))).unlink()
    else:
        (world.memory / "archive.db").write_bytes(b"no database at all")
    world.script({"tools": [_shell("echo hi")]}, {"text": "Said."})
    assert harness.turn("Say hi.").status == 0
    assert harness.compact().status == 0
    ended = harness.turn("Go on.")
    assert ended.status == 0 and "OK." in ended.stdout
    body = evidence.first_main_request_after_summary(world)
    assert "SCRIPTED-SUMMARY" in "\n".join(wire.texts(body)) and not evidence.parts_in(body)


def test_nothing_is_called_inside_a_worker(world: World) -> None:
    """An OpenCode that a worker of ours started loads the plugin and is left alone."""
    harness = _start(world)
    harness.environment["OBSERVATIONAL_MEMORY_WORKER"] = "1"
    assert harness.turn("Say hi.").status == 0
    assert _calls(world) == []
    assert "recall" not in [tool["function"]["name"] for tool in world.requests("main")[0]["body"]["tools"]]


def test_a_sub_agent_gets_no_block_and_no_maintainer(world: World) -> None:
    """A task after a compaction: its requests are its own, its end is no turn's end; the session's requests go on."""
    harness = _start(world)
    _work(harness, world)
    assert harness.compact().status == 0
    number = world.requests()[-1]["number"]
    task = {"description": "Look", "prompt": "Look into check.sh and report.", "subagent_type": "general"}
    world.script({"tools": [{"name": "task", "input": task}]})
    world.script({"text": "check.sh exits with 7."}, {"text": "The sub-agent says so."})
    assert harness.turn("Let somebody look.").status == 0
    asks, child, goes_on = _requests_after(world, number)
    assert _block(asks) == _block(goes_on)
    assert "Look into check.sh" in "\n".join(wire.texts(child)) and not evidence.parts_in(child)
    assert {call.payload["sessionID"] for call in _calls(world)} == {harness.session}


def test_two_sessions_of_one_server_do_not_mix(world: World) -> None:
    """Compacted and continued at the same time, each has its own block in its own requests, more than once."""
    first, second = _start(world), _start(world)
    names = {"ALPHA": first, "BRAVO": second}
    for name, harness in names.items():
        assert harness.turn(f"The word of this session is {name}.").status == 0
    sessions = {name: harness.session for name, harness in names.items()}
    groups = [[say(session, f"Go on with {name}.") for name, session in sessions.items()] for _ in range(3)]
    number = len(world.requests())
    assert first.serve([summarize(session) for session in sessions.values()], *groups).status == 0
    blocks: dict[str, set[str]] = {name: set() for name in names}
    for request in world.requests()[number:]:
        block = _block(request["body"])
        (name,) = [name for name in names if f"The word of this session is {name}." in block]
        blocks[name].add(block)
        if request["kind"] == "main":
            assert f"Go on with {name}." in "\n".join(wire.texts(wire.messages(request["body"])[-1]))
    assert len(world.requests()) == number + 8
    assert [len(found) for found in blocks.values()] == [1, 1]


def test_a_fork_gets_a_block_of_its_own(world: World) -> None:
    """A copy of a compacted session under a new id: a block is made for it from the history that it copied."""
    harness = _start(world)
    assert harness.turn("Never touch legacy/config.yaml.").status == 0
    assert harness.compact().status == 0
    assert harness.turn("Go on.").status == 0
    before = _block(world.requests("main")[-1]["body"])
    assert harness.turn("Try it another way.", "--fork").status == 0
    block = _block(world.requests("main")[-1]["body"])
    assert "Never touch legacy/config.yaml." in block and block != before
