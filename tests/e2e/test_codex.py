"""The Codex CLI itself, offline: what the model is sent after a compaction, and what our hooks did on the way."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

import pytest

from . import evidence, payloads, programs, transcripts, work
from .codex import NAME, Codex
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e


def _shell(command: str) -> dict[str, Any]:
    return {"name": "exec_command", "input": {"cmd": command}}


def _write(name: str, content: str) -> dict[str, Any]:
    added = "".join(f"+{line}\n" for line in content.split("\n")[:-1])
    patch = f"*** Begin Patch\n*** Add File: {name}\n{added}*** End Patch\n"
    return _shell(f"apply_patch <<'EOF'\n{patch}EOF")


def _start(world: World) -> Codex:
    command = programs.require(programs.CODEX)
    module = importlib.import_module("obsmem.harnesses.codex")
    assert SCRIPT.exists()
    return Codex(world, command, module.hook_config(world.hook_command), ("PostCompact",))


def test_the_block_is_a_developer_message_after_an_automatic_compaction(world: World) -> None:
    """A full window before a resumed turn: the block is in the first request, whole, once, and from the developer."""
    harness = _start(world)
    prompts = (work.FIRST_PROMPT, work.SECOND_PROMPT, work.THIRD_PROMPT)
    turns = list(work.answers(_write, _shell))
    turns[-1][-1] = {**turns[-1][-1], "usage": {"input": 500_000, "output": 20}}
    for prompt, turn in zip(prompts, turns, strict=True):
        world.script(*turn)
        assert harness.turn(prompt).status == 0
    assert harness.turn(work.LAST_PROMPT).status == 0
    evidence.assert_all_succeeded(world)
    for event in ("Stop", "PreCompact"):
        assert {call.stdout for call in evidence.our_calls(world, event)} == {""}
    body = evidence.first_main_request_after_summary(world)
    parts = evidence.whole_delivery(evidence.parts_in(body))
    developer = [item for item in body["input"] if item.get("role") == "developer"]
    assert sorted(evidence.parts_in(developer)) == sorted(parts)
    block = "\n".join(part.text for part in parts)
    for expected in (work.STANDING_ORDER, work.FAILING_COMMAND, work.FAILURE, work.THIRD_PROMPT):
        assert expected in block, expected
    names = evidence.order(world)
    start = names.index("PreCompact(auto)")
    assert names[start + 1] == "PostCompact(auto)"
    assert names.index("SessionStart(compact)") > start


def test_the_block_is_in_the_same_turn_after_a_compaction_between_two_tool_calls(world: World) -> None:
    """A full window in the middle of a turn: the next request of that turn carries the block."""
    harness = _start(world)
    world.script({"tools": [_write("a.py", "print(1)\n")]}, {"text": "The file a.py prints 1 and nothing else."})
    harness.turn("Write a.py. Never use tabs in Python files.")
    full = {"input": 500_000, "output": 20}
    world.script({"text": "I look.", "tools": [_shell("python3 a.py; ls missing-thing")], "usage": full})
    harness.turn("Run a.py on port 8123.")
    evidence.assert_all_succeeded(world)
    names = evidence.order(world)
    start = names.index("PreCompact(auto)")
    assert names[start:] == ["PreCompact(auto)", "PostCompact(auto)", "SessionStart(compact)", "Stop", "SessionEnd"]
    parts = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    block = "\n".join(part.text for part in parts)
    for expected in ("Run a.py on port 8123.", "Never use tabs in Python files", "a.py", "ls: cannot access"):
        assert expected in block, expected
    about = (
        "Codex 0.171.0 itself: a patch, a failing command, a compaction between two requests of one turn, our block."
    )
    path = Path(world.calls("Stop")[0].payload["transcript_path"])
    transcripts.keep(NAME, world, path, "recorded-compaction-in-a-turn", about)


def test_a_second_compaction_takes_nothing_from_the_first_summary(world: World) -> None:
    """The rollout holds the summariser's answer like one of the agent's: the next block must not repeat it."""
    harness = _start(world)
    full = {"input": 500_000, "output": 20}
    world.script({"text": "One."}, {"text": "Full.", "usage": full})
    for prompt in ("Write a.py. Never use tabs in Python files.", "Go on."):
        harness.turn(prompt)
    world.script({"text": "The name is Nightjar from now on, in every file.", "usage": full})
    harness.turn("Rename the project to Nightjar.")
    first = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    harness.turn("What is next?")
    assert len(world.requests("summary")) == 2
    body = evidence.first_main_request_after_summary(world)
    second = evidence.whole_delivery(evidence.parts_in(body))
    assert first[0].delivery != second[0].delivery
    block = "\n".join(part.text for part in second)
    for expected in ("Nightjar", "Never use tabs in Python files"):
        assert expected in block
    for foreign in ("SCRIPTED-SUMMARY", first[0].delivery):
        assert foreign not in block


def test_what_no_start_brought_comes_with_the_next_prompt_and_once(world: World) -> None:
    """As if the program dropped it: no SessionStart hook. The turn after the compaction goes without; the next has it."""
    config = importlib.import_module("obsmem.harnesses.codex").hook_config(world.hook_command)
    config["hooks"].pop("SessionStart")
    harness = Codex(world, programs.require(programs.CODEX), config, ("PostCompact",))
    world.script({"text": "One."}, {"text": "Full.", "usage": {"input": 500_000, "output": 20}})
    for prompt in (work.FIRST_PROMPT, "Fill up.", "Go on."):
        assert harness.turn(prompt).status == 0
    assert evidence.parts_in(evidence.first_main_request_after_summary(world)) == []
    end = time.monotonic() + 60
    while not list(world.memory.glob("sessions/*/*/block.retry")):
        assert time.monotonic() < end
        time.sleep(0.1)
    for _ in range(2):
        assert harness.turn(work.LAST_PROMPT).status == 0
    (part,) = evidence.parts_in(world.requests("main")[-1]["body"])
    assert part.number == 1 and work.FIRST_PROMPT in part.text
    assert len(evidence.contexts(evidence.our_calls(world, "UserPromptSubmit"))) == 1
    evidence.assert_all_succeeded(world)


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
def test_the_agent_recalls_the_exact_words_from_inside_the_sandbox(world: World, sandbox: str) -> None:
    """The command that the block names works where nothing but the workspace can be written."""
    harness = _start(world)
    world.script({"text": "I begin."}, {"text": "Full.", "usage": {"input": 500_000, "output": 20}})
    for prompt in (work.FIRST_PROMPT, "Fill up.", "Go on."):
        assert harness.turn(prompt).status == 0
    (part,) = evidence.parts_in(evidence.first_main_request_after_summary(world))
    command = evidence.recall_command(part.text, work.FIRST_PROMPT)
    probe = f"touch {world.memory}/written && echo WRITABLE; {command}"
    world.script({"tools": [_shell(probe)]})
    assert harness.turn("Recall it.", sandbox).status == 0
    printed = evidence.last_tool_result(world.requests("main")[-1]["body"])
    if "bwrap" in printed or "andlock" in printed:
        pytest.skip(f"no sandbox here: {printed[:200]}")
    assert "WRITABLE" not in printed
    assert work.FIRST_PROMPT in printed, printed


def test_payloads_have_the_recorded_shape(world: World) -> None:
    """Payloads of a run with recorders alone have the keys that the fixtures have."""
    harness = Codex(world, programs.require(programs.CODEX), {})
    world.script({"tools": [_write("a.py", "print(1)\n")]}, {"tools": [_shell("python3 a.py; exit 3")]})
    world.script({"text": "It failed."}, {"text": "Full.", "usage": {"input": 500_000, "output": 20}})
    for prompt in ("Write a.py and run it.", "Go on.", "And on."):
        assert harness.turn(prompt).status == 0
    assert payloads.compare(NAME, world, world.calls()) == []
