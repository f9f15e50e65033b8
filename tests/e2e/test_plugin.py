"""The plugin of Claude Code brings what ``install`` brings: the hooks, the server of the agent's tools, the slash commands."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import pytest

from obsmem.harnesses.skills import skills
from obsmem.interfaces.mcp_tools import NAMES
from obsmem.system.paths import APP

from . import evidence, installed, programs, wire
from .claude_code import ClaudeCode
from .test_mcp import _WAIT, ARGUMENTS, _each_tool, _expected, _fill, _pin_and_unpin
from .world import PROJECT_ROOT, SCRIPT, World

pytestmark = pytest.mark.e2e

SERVER = f"mcp__plugin_{APP}_{APP}__"  # as Claude Code calls the tools of a plugin's server
PLUGIN = ("--plugin-dir", str(PROJECT_ROOT))


def _start(world: World, program: programs.Program) -> ClaudeCode:
    """The program where nothing was installed, with a ``python3`` on PATH that has the packages."""
    python = world.folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    path = f"{python.parent}{os.pathsep}{world.environment()['PATH']}"
    return ClaudeCode(world, programs.require(program), {}, (), PATH=path)


def _said(world: World) -> str:
    return "\n".join(wire.texts(world.requests("main")[-1]["body"]))


def test_the_agent_is_given_the_tools_and_what_they_say(world: World) -> None:
    harness = _start(world, programs.CLAUDE_CODE)
    _fill(world)
    how = (lambda name: {"name": f"{SERVER}{name}"}, partial(harness.turn, "Look it up.", *PLUGIN), _WAIT)
    _each_tool(world, *how)
    offered = {str(tool.get("name")) for tool in world.requests("main")[-1]["body"]["tools"]}
    assert {f"{SERVER}{name}" for name in NAMES} <= offered
    _pin_and_unpin(world, *how)


def test_the_newer_program_finds_the_tools_and_calls_one(world: World) -> None:
    """It offers the tools of servers only to a model that looks for them."""
    harness = _start(world, programs.CLAUDE_CODE_NEWER)
    _fill(world)
    name = f"{SERVER}recall"
    look: dict[str, Any] = {"name": "ToolSearch", "input": {"query": f"select:{name}", "max_results": 5}}
    world.script({"tools": [look]}, {"tools": [{"name": name, "input": ARGUMENTS["recall"]}]}, {"text": "Read."})
    assert harness.turn("Look it up.", *PLUGIN).status == 0
    assert _expected(world, "recall") in evidence.last_tool_result(world.requests("main")[-1]["body"])


@pytest.mark.parametrize("program", [programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER], ids=str)
def test_the_commands_are_there_and_what_they_run_runs(world: World, program: programs.Program) -> None:
    harness = _start(world, program)
    world.script({"text": "Noted."})
    assert harness.turn("Use port 8123.", *PLUGIN).status == 0
    for skill in skills("", ""):
        listed = f"{APP}:{skill.name}: {skill.description}"[:60]
        assert (listed in _said(world)) is not skill.for_user, "only what the model may start is offered to it"
    installed.wait_until_quiet(world)
    for skill in skills("", ""):
        world.script({"text": "Done."})
        assert harness.turn(f"/{APP}:{skill.name} some words", *PLUGIN).status == 0
        own = skill.text("some words", "").replace("{command}", "").split("\n")[0]
        assert own.split("`")[0] in _said(world)
    assert f'`python3 "{SCRIPT}" status`' in _said(world)
    command = {"command": f'python3 "{SCRIPT}" status', "description": "Say what is kept"}
    world.script({"tools": [{"name": "Bash", "input": command}]}, {"text": "Done."})
    assert harness.turn(f"/{APP}:memory-status", *PLUGIN).status == 0
    assert "claude-code" in evidence.last_tool_result(world.requests("main")[-1]["body"])
