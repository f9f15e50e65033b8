"""Claude Code itself, offline: what the model is sent after a compaction, and what our hooks did on the way."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from . import evidence, payloads, programs, transcripts, wire, work
from .claude_code import NAME, ClaudeCode
from .terminal import open_terminal
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e

VERSIONS = (programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER)


def _start(world: World, program: programs.Program, without: Sequence[str] = (), **environment: str) -> ClaudeCode:
    """Our own hook config in this world; ``without`` names events whose hooks are left out."""
    command = programs.require(program)
    module = importlib.import_module("obsmem.harnesses.claude_code")
    assert SCRIPT.exists()
    hooks = module.hook_config(world.hook_command)["hooks"]
    config = {"hooks": {event: groups for event, groups in hooks.items() if event not in without}}
    return ClaudeCode(world, command, config, ("SubagentStop", "PostCompact"), **environment)


def _tools(world: World) -> tuple[Any, Any]:
    def write(name: str, content: str) -> dict[str, Any]:
        return {"name": "Write", "input": {"file_path": str(world.project / name), "content": content}}

    def shell(command: str) -> dict[str, Any]:
        return {"name": "Bash", "input": {"command": command, "description": "Run it"}}

    return write, shell


def _work(harness: ClaudeCode) -> None:
    prompts = (work.FIRST_PROMPT, work.SECOND_PROMPT, work.THIRD_PROMPT)
    for prompt, turn in zip(prompts, work.answers(*_tools(harness.world)), strict=True):
        harness.world.script(*turn)
        ended = harness.turn(prompt)
        assert ended.status == 0, ended


def _assert_block(world: World, body: dict[str, Any]) -> None:
    parts = evidence.whole_delivery(evidence.parts_in(body))
    block = "\n".join(part.text for part in parts)
    assert "## Now" in parts[0].text
    for expected in (work.STANDING_ORDER, work.FAILING_COMMAND, work.FAILURE, work.THIRD_PROMPT):
        assert expected in block, expected
    compact = [call for call in evidence.our_calls(world, "SessionStart") if call.payload["source"] == "compact"]
    assert sorted(part.text for part in parts) == sorted(text.strip() for text in evidence.contexts(compact))


def _assert_silent(world: World) -> None:
    """Nothing but SessionStart says anything, and the summariser's instructions are Claude Code's own."""
    for event in ("Stop", "PreCompact"):
        calls = evidence.our_calls(world, event)
        assert calls, event
        assert [call.stdout for call in calls] == [""] * len(calls)
    for request in world.requests("summary"):
        # Under this heading it would put whatever a PreCompact hook printed.
        assert "Additional Instructions:" not in "\n".join(wire.texts(request["body"]["messages"][-1]))


@pytest.mark.parametrize("program", VERSIONS, ids=lambda program: program.version)
def test_the_block_is_in_the_first_request_after_a_manual_compaction(world: World, program: programs.Program) -> None:
    """``/compact`` in a process of its own, then a resumed turn: the whole block is there, and there once."""
    harness = _start(world, program)
    _work(harness)
    assert harness.turn("/compact").status == 0
    assert harness.turn(work.LAST_PROMPT).status == 0
    evidence.assert_all_succeeded(world)
    _assert_silent(world)
    _assert_block(world, evidence.first_main_request_after_summary(world))
    names = evidence.order(world)
    start = names.index("PreCompact(manual)")
    assert names[start : start + 4] == [
        "PreCompact(manual)",
        "SubagentStop",
        "SessionStart(compact)",
        "PostCompact(manual)",
    ]


def test_the_block_is_in_the_same_turn_after_an_automatic_compaction(world: World) -> None:
    """A full window in the middle of a turn: the very next request of that turn carries the block."""
    harness = _start(world, programs.CLAUDE_CODE, CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000")
    _work(harness)
    _, shell = _tools(world)
    world.script({"text": "I look around.", "tools": [shell("ls")], "usage": {"input": 150_000, "output": 50}})
    assert harness.turn(work.LAST_PROMPT).status == 0
    evidence.assert_all_succeeded(world)
    _assert_silent(world)
    body = evidence.first_main_request_after_summary(world)
    _assert_block(world, body)
    block = "\n".join(part.text for part in evidence.parts_in(body))
    assert work.LAST_PROMPT in block, "the prompt is not in the window any more, so the block must hold it"


def test_a_second_compaction_brings_what_was_said_in_between(world: World) -> None:
    """Two compactions within a minute: the second block is a new one, and holds nothing of the first or of a summary."""
    harness = _start(world, programs.CLAUDE_CODE)
    write, shell = _tools(world)
    world.script({"tools": [write("a.py", "print(1)\n")]}, {"tools": [shell("python3 a.py")]}, {"text": "It prints 1."})
    harness.turn("Write a.py that prints 1. Never use tabs in Python files.")
    harness.turn("/compact")
    world.script({"tools": [write("b.py", "print(2)\n")]}, {"text": "The file b.py is there and prints 2."})
    harness.turn("Rename the project to Nightjar and add b.py.")
    first = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    harness.turn("/compact")
    harness.turn("What is next?")
    second = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    evidence.assert_all_succeeded(world)
    assert first[0].delivery != second[0].delivery
    block = "\n".join(part.text for part in second)
    for expected in ("Nightjar", "b.py", "Never use tabs in Python files"):
        assert expected in block
    for foreign in ("SCRIPTED-SUMMARY", "Continue from where you left off", first[0].delivery, "/compact"):
        assert foreign not in block
    about = "Claude Code 2.1.197 itself: tool calls, /compact twice in processes of their own, our block after each."
    path = Path(world.calls("Stop")[0].payload["transcript_path"])
    transcripts.keep(NAME, world, path, "recorded-two-compactions", about)


def test_the_whole_block_comes_even_if_nothing_was_rendered_before(world: World) -> None:
    """Some releases fire no PreCompact. Then the start after the compaction renders, and every part is delivered."""
    harness = _start(world, programs.CLAUDE_CODE, without=("PreCompact", "Stop", "SessionEnd"))
    _work(harness)
    harness.turn("/compact")
    harness.turn(work.LAST_PROMPT)
    evidence.assert_all_succeeded(world)
    _assert_block(world, evidence.first_main_request_after_summary(world))


def _settled(world: World, name: str) -> None:
    """Wait until the maintainer that the last hooks started has left a file for the next ones."""
    end = time.monotonic() + 60
    while not list(world.memory.glob(f"sessions/*/*/{name}")):
        assert time.monotonic() < end, name
        time.sleep(0.1)


def test_what_no_start_brought_comes_with_the_next_prompt_and_once(world: World) -> None:
    """As if the harness dropped it: no SessionStart hook. The turn after the compaction goes without; the next has it."""
    harness = _start(world, programs.CLAUDE_CODE, without=("SessionStart",))
    _work(harness)
    for prompt in ("/compact", "Go on."):
        assert harness.turn(prompt).status == 0
    assert evidence.parts_in(evidence.first_main_request_after_summary(world)) == []
    _settled(world, "block.retry")
    assert harness.turn(work.LAST_PROMPT).status == 0
    (part,) = evidence.parts_in(world.requests("main")[-1]["body"])
    assert part.number == 1 and "## Now" in part.text and len(part.text.encode()) <= evidence.PART_BYTES
    (text,) = evidence.contexts(evidence.our_calls(world, "UserPromptSubmit"))
    assert part.text == text.strip()
    assert harness.turn("And on.").status == 0
    assert len(evidence.contexts(evidence.our_calls(world, "UserPromptSubmit"))) == 1
    evidence.assert_all_succeeded(world)


def test_a_resumed_process_gets_the_block_that_its_context_lacks_and_once(world: World) -> None:
    """The start after the compaction is not ours to answer here; the one of the next process is."""
    command = programs.require(programs.CLAUDE_CODE)
    config = importlib.import_module("obsmem.harnesses.claude_code").hook_config(world.hook_command)
    for group in config["hooks"]["SessionStart"]:
        group["matcher"] = "resume"
    harness = ClaudeCode(world, command, config, ("SubagentStop", "PostCompact"))
    _work(harness)
    assert harness.turn("/compact").status == 0
    _settled(world, "block.resume")
    assert harness.turn(work.LAST_PROMPT).status == 0
    parts = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    given = evidence.contexts(evidence.our_calls(world, "SessionStart"))
    assert sorted(part.text for part in parts) == sorted(text.strip() for text in given)
    assert harness.turn("And on.").status == 0
    assert len(evidence.contexts(evidence.our_calls(world, "SessionStart"))) == len(parts), "the context holds it now"
    assert evidence.contexts(evidence.our_calls(world, "UserPromptSubmit")) == []
    evidence.assert_all_succeeded(world)


def test_a_fork_and_its_parent_each_get_their_own_block(world: World) -> None:
    """The fork's block has what was said before the fork and in it; the parent's has nothing of the fork."""
    harness = _start(world, programs.CLAUDE_CODE)
    harness.turn("Write the parser first. Never use tabs in Python files.")
    harness.turn("The server listens on port 8123.")
    parent = harness.session
    harness.turn("In this attempt the project is called Nightjar.", "--fork-session")
    fork, harness.session = harness.session, parent
    assert fork != parent
    harness.turn("Everything is teal from now on.")
    blocks = []
    for session in (fork, parent):
        harness.session = session
        harness.turn("/compact")
        harness.turn("What is next?")
        parts = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
        blocks.append("\n".join(part.text for part in parts))
    of_fork, of_parent = blocks
    assert "Never use tabs" in of_fork and "Never use tabs" in of_parent
    assert "port 8123" in of_fork and "port 8123" in of_parent
    assert "Nightjar" in of_fork and "Nightjar" not in of_parent
    assert "teal" not in of_fork and "teal" in of_parent


def test_the_agent_recalls_the_exact_words_behind_a_line(world: World) -> None:
    """The command that the block names, run by the agent's own shell tool, prints the user's words."""
    harness = _start(world, programs.CLAUDE_CODE)
    _, shell = _tools(world)
    for prompt in (work.FIRST_PROMPT, "Go on.", "/compact", "Say something."):
        assert harness.turn(prompt).status == 0
    (part,) = evidence.parts_in(evidence.first_main_request_after_summary(world))
    world.script({"tools": [shell(evidence.recall_command(part.text, work.FIRST_PROMPT))]})
    harness.turn("Recall it.")
    assert work.FIRST_PROMPT in evidence.last_tool_result(world.requests("main")[-1]["body"])


def test_a_person_types_compact_and_later_clear(world: World) -> None:
    """In a terminal: the block follows ``/compact`` in the same process; ``/clear`` begins a session without it."""
    harness = _start(world, programs.CLAUDE_CODE)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        say = terminal.say
        say("Never use tabs in Python files.")
        say("The server listens on port 8123.")
        say("/compact", "PostCompact")
        say("What is next?")
        parts = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
        assert "port 8123" in parts[0].text
        say("/clear", "SessionEnd")
        say("Something else.")
        assert "port 8123" not in "\n".join(wire.texts(world.requests("main")[-1]["body"]))
        say("/exit", "SessionEnd")
    evidence.assert_all_succeeded(world)
    starts = [call for call in world.calls("SessionStart") if call.payload["source"] == "clear"]
    assert {call.payload["session_id"] for call in starts}.isdisjoint({world.calls()[0].payload["session_id"]})
    assert payloads.compare(NAME, world, starts) == []


def test_payloads_have_the_recorded_shape(world: World) -> None:
    """Payloads of a run with recorders alone have the keys that the fixtures have."""
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {})
    write, shell = _tools(world)
    world.script({"tools": [write("a.py", "print(1)\n")]}, {"tools": [shell("python3 a.py")]})
    world.script({"tools": [shell("exit 3")]}, {"text": "It failed."})
    harness.turn("Write a.py and run it.")
    harness.turn("/compact keep the names")
    harness.turn("Go on.")
    assert payloads.compare(NAME, world, world.calls()) == []


def test_automatic_payloads_have_the_recorded_shape(world: World) -> None:
    """The payloads that only an automatic compaction sends."""
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {}, CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000")
    _, shell = _tools(world)
    world.script({"text": "One."}, {"tools": [shell("ls")], "usage": {"input": 150_000, "output": 50}})
    harness.turn("Say one.")
    harness.turn("Look around.")
    compactions = [call for call in world.calls() if call.event in ("PreCompact", "PostCompact")]
    assert [call.event for call in compactions] == ["PreCompact", "PostCompact"]
    assert payloads.compare(NAME, world, compactions) == []
