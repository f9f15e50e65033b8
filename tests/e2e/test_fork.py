"""Forks between the real programs: the target goes on with the written session, and its model is sent what was said."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from . import evidence, installed, programs, wire
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e

NAMES = ("claude-code", "codex", "opencode")
COMMANDS = {"claude-code": programs.CLAUDE_CODE, "codex": programs.CODEX, "opencode": programs.OPENCODE}
SHELLS = {"claude-code": "Bash", "codex": "exec_command", "opencode": "bash"}
PROMPT = "Count the lines of notes.txt. Never touch src/api.py."
ANSWER = "notes.txt has three lines, and src/api.py is as it was."
OUTPUT = "third line of forty-two"
COMMAND = "cat notes.txt"

Program = ClaudeCode | Codex | OpenCode


def _start(world: World, name: str) -> Program:
    command = programs.require(COMMANDS[name])
    config: Mapping[str, Any] = importlib.import_module(f"obsmem.harnesses.{name.replace('-', '_')}").hook_config(
        world.hook_command if name != "opencode" else lambda words: f"{sys.executable} {SCRIPT} {words}"
    )
    if name == "claude-code":
        return ClaudeCode(world, command, config)
    return Codex(world, command, config) if name == "codex" else OpenCode(world, command, config)


def _call(name: str) -> dict[str, Any]:
    given = {"codex": {"cmd": COMMAND}}.get(name, {"command": COMMAND, "description": "Show the notes"})
    return {"name": SHELLS[name], "input": given}


def _ours(world: World, *words: str) -> str:
    """One of our commands, with the programs of all harnesses on its path."""
    folders = [str(programs.require(program).parent) for program in COMMANDS.values()]
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    environment = {"PATH": path, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    done = world.run([sys.executable, str(SCRIPT), *words], environment)
    assert done.status == 0, done.stdout + done.stderr
    return done.stdout


def _source(world: World, name: str) -> tuple[str, str]:
    """(handle, note id) of a session that the program itself had: a prompt, a tool call, an answer."""
    (world.project / "notes.txt").write_text(f"one\ntwo\n{OUTPUT}\n", encoding="utf-8")
    program = _start(world, name)
    world.script({"text": "I look.", "tools": [_call(name)]}, {"text": ANSWER})
    ended = program.turn(PROMPT)
    assert ended.status == 0, ended.stderr
    installed.wait_until_quiet(world)
    transcript = program.database() if isinstance(program, OpenCode) else _transcript(world, program)
    _ours(world, "maintain", name, "--transcript", str(transcript), "--session", program.session, "--before-compact")
    (stored,) = [one for one in json.loads(_ours(world, "sessions", "--json")) if one["harness"] == name]
    notes = json.loads(_ours(world, "notes", stored["handle"], "--json"))
    return stored["handle"], (notes["notes"] if isinstance(notes, dict) else notes)[0]["id"]


def _transcript(world: World, program: ClaudeCode | Codex) -> Path:
    if isinstance(program, ClaudeCode):
        return program.transcript()
    (found,) = (world.home / ".codex" / "sessions").rglob(f"*{program.session}.jsonl")
    return found


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_the_target_goes_on_with_what_was_said_and_done(world: World, source: str, target: str) -> None:
    """All directions, the same harness too: prompt, call, output and answer are in the next request of the target."""
    handle, note = _source(world, source)
    recalled = _ours(world, "recall", note)
    program = _start(world, target)
    done = json.loads(_ours(world, "fork", handle, "--to", target, "--folder", str(world.project), "--json"))
    assert done["troubles"] == []
    assert done["kept"] == done["whole"]
    assert done["kept"]["calls"] == 1
    parent = json.loads(_ours(world, "show", handle, "--json"))
    count = len(world.requests("main"))
    program.session = done["session"]
    world.script({"text": "I go on."})
    ended = program.turn("What did we find?")
    assert ended.status == 0, ended.stdout + ended.stderr
    body = world.requests("main")[count]["body"]
    said = "\n".join(wire.texts(body))
    for expected in (PROMPT, ANSWER, OUTPUT, "What did we find?", "observational-memory fork="):
        assert expected in said, expected
    calls = json.dumps(wire.messages(body))
    assert SHELLS[target] in calls
    assert COMMAND in calls
    assert OUTPUT in evidence.last_tool_result(body)
    parts = evidence.parts_in(body)
    assert parts, "the fork begins with the block of its parent's notes"
    assert any(note[:7] in part.text for part in parts)
    assert _ours(world, "recall", note) == recalled
    installed.wait_until_quiet(world)
    assert json.loads(_ours(world, "show", handle, "--json")) == parent
    row = f"{source} → {target}: turns 1 of 1, tool calls 1 of 1, characters {done['kept']['characters']}, recall works"
    print(row)
