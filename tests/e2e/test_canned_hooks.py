"""What the harness programs do with a hook's answer, shown with canned answers and none of our code.

These tests hold the ground that the others stand on: where they fail after an upgrade of a program, its contract has
changed; where only the others fail, we have.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from . import evidence, programs, wire
from .claude_code import ClaudeCode
from .codex import Codex
from .world import World

pytestmark = pytest.mark.e2e

PARTS = 4
CLAUDE_VERSIONS = (programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER)


def _part(number: int) -> str:
    opening = f'<observational-memory delivery="k3f9" part="{number}/{PARTS}" session="7c2e">\n'
    closing = "\n</observational-memory>"
    return opening + str(number) * (evidence.PART_BYTES - len(opening) - len(closing)) + closing


def _say(world: World, event: str, stdout: str, **handler: Any) -> dict[str, Any]:
    path = world.folder / f"say-{len(list(world.folder.glob('say-*')))}"
    path.write_text(stdout, encoding="utf-8")
    return {"type": "command", "command": world.recorder(event, "cat", str(path)), "timeout": 30, **handler}


def _config(world: World, matcher: str) -> dict[str, Any]:
    handlers = []
    for number in range(1, PARTS + 1):
        output = {"hookEventName": "SessionStart", "additionalContext": _part(number)}
        handlers.append(_say(world, "SessionStart", json.dumps({"hookSpecificOutput": output})))
    return {"hooks": {"SessionStart": [{"matcher": matcher, "hooks": handlers}]}}


def _assert_whole(body: dict[str, Any]) -> None:
    parts = evidence.whole_delivery(evidence.parts_in(body))
    assert [part.text for part in parts] == [_part(number) for number in range(1, PARTS + 1)]


@pytest.mark.parametrize("program", CLAUDE_VERSIONS, ids=lambda program: program.version)
def test_claude_code_delivers_four_parts_after_a_manual_compaction(world: World, program: programs.Program) -> None:
    """Four handlers of 9,500 bytes each arrive whole, in the first request of the next process."""
    harness = ClaudeCode(world, programs.require(program), _config(world, "compact"))
    for prompt in ("One.", "Two.", "/compact", "Three."):
        assert harness.turn(prompt).status == 0
    _assert_whole(evidence.first_main_request_after_summary(world))


@pytest.mark.parametrize("program", CLAUDE_VERSIONS, ids=lambda program: program.version)
def test_claude_code_delivers_four_parts_in_the_turn_that_compacted(world: World, program: programs.Program) -> None:
    """After an automatic compaction they are in the next request, in which the user's own prompt is no more."""
    command = programs.require(program)
    harness = ClaudeCode(world, command, _config(world, "compact"), CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000")
    shell = {"name": "Bash", "input": {"command": "ls", "description": "Look"}}
    world.script({"text": "One."}, {"tools": [shell], "usage": {"input": 150_000, "output": 50}})
    harness.turn("Say one.")
    assert harness.turn("Look around in this place.").status == 0
    body = evidence.first_main_request_after_summary(world)
    _assert_whole(body)
    assert "Look around in this place." not in "\n".join(wire.texts(body))
    names = evidence.order(world)
    start = names.index("PreCompact(auto)")
    following = ["SubagentStop", "SessionStart(compact)", "PostCompact(auto)", "Stop", "SessionEnd"]
    assert names[start + 1 :] == following


def test_claude_code_gives_the_output_of_precompact_to_the_summariser(world: World) -> None:
    """Even ``{}`` would be an instruction, which is why our PreCompact prints nothing."""
    config = {"hooks": {"PreCompact": [{"hooks": [_say(world, "PreCompact", "{}")]}]}}
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), config)
    for prompt in ("One.", "Two.", "/compact"):
        assert harness.turn(prompt).status == 0
    (request,) = world.requests("summary")
    instructions = list(wire.texts(request["body"]["messages"][-1]["content"]))[-1]
    assert "Additional Instructions:\n{}" in instructions


def test_codex_delivers_four_parts_as_developer_messages(world: World) -> None:
    """On a resumed session with a compaction due, ``resume`` and ``compact`` both start before the first request."""
    harness = Codex(world, programs.require(programs.CODEX), _config(world, "compact"))
    world.script({"text": "One."}, {"text": "Full.", "usage": {"input": 500_000, "output": 20}})
    for prompt in ("Say one.", "Fill up.", "Go on."):
        assert harness.turn(prompt).status == 0
    body = evidence.first_main_request_after_summary(world)
    _assert_whole(body)
    _assert_whole({"input": [item for item in body["input"] if item.get("role") == "developer"]})


def test_codex_fires_resume_after_the_compaction_and_before_compact(world: World) -> None:
    """The order that a hook must reckon with: the compaction is over when SessionStart(resume) comes."""
    harness = Codex(world, programs.require(programs.CODEX), {})
    world.script({"text": "One."}, {"text": "Full.", "usage": {"input": 500_000, "output": 20}})
    for prompt in ("Say one.", "Fill up.", "Go on."):
        assert harness.turn(prompt).status == 0
    names = evidence.order(world)
    expected = ["PreCompact(auto)", "PostCompact(auto)", "SessionStart(resume)", "SessionStart(compact)"]
    assert names[-7:] == [*expected, "UserPromptSubmit", "Stop", "SessionEnd"]
