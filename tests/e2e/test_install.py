"""What `install` writes, in the real programs: handlers run, the user is told, recall needs no approval, trust is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from obsmem.harnesses.codex_trust import states
from obsmem.system.launcher import quoted, recall_path
from obsmem.system.notice import WELCOME_TEXT

from . import evidence, programs
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .world import PROJECT_ROOT, SCRIPT, World

pytestmark = pytest.mark.e2e


def _install(world: World, harness: str, data: str) -> dict[str, Any]:
    """Install into the home of a world, as a person would."""
    environment = {**world.environment(), "OBSERVATIONAL_MEMORY_HOME": data}
    command = [sys.executable, str(SCRIPT), "install", "--yes", "--allow-recall", "--json", harness]
    done = subprocess.run(command, env=environment, cwd=world.project, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)["harnesses"][0]
    return value


def _claude(world: World) -> ClaudeCode:
    command = programs.require(programs.CLAUDE_CODE)
    settings = world.home / ".claude" / "settings.json"
    kept = settings.read_bytes()
    harness = ClaudeCode(world, command, {}, ())
    settings.write_bytes(kept)  # the driver writes settings of its own
    return harness


def test_claude_code_takes_the_plugin_and_its_marketplace(world: World) -> None:
    command = programs.require(programs.CLAUDE_CODE)
    for path in (PROJECT_ROOT, PROJECT_ROOT / ".claude-plugin" / "plugin.json"):
        ended = world.run([str(command), "plugin", "validate", str(path)], {})
        assert ended.status == 0 and "Validation passed" in ended.stdout, ended


@pytest.mark.parametrize("name", ["data", "data with blanks"])
def test_recall_needs_no_approval_in_claude_code_and_the_user_is_told_that_memory_is_on(
    world: World, name: str
) -> None:
    data = str(world.folder / name)
    _install(world, "claude-code", data)
    harness = _claude(world)
    recall = {"command": f"{quoted(recall_path(data))} abc", "description": "Recall"}
    world.script({"tools": [{"name": "Bash", "input": recall}]})
    arguments = [
        str(programs.require(programs.CLAUDE_CODE)),
        "-p",
        "Recall it.",
        "--output-format",
        "json",
        "--model",
        "haiku",
    ]
    ended = world.run(arguments, harness._environment)
    assert ended.status == 0, ended
    assert json.loads(ended.stdout)["permission_denials"] == []
    assert "'abc' is no id" in evidence.last_tool_result(world.requests("main")[-1]["body"])
    (transcript,) = (world.home / ".claude" / "projects").glob("*/*.jsonl")
    assert WELCOME_TEXT in transcript.read_text(encoding="utf-8")


def test_codex_knows_our_handlers_by_the_hashes_that_we_compute(world: World) -> None:
    """Asked by its own protocol, Codex gives the hash of each handler; written down as trusted, we say so too."""
    command = programs.require(programs.CODEX)
    _install(world, "codex", str(world.memory))
    home = world.home / ".codex"
    hooks = _ask_for_hooks(world, command)
    assert len(hooks) == 5 and {hook["trustStatus"] for hook in hooks} == {"untrusted"}
    sections = (f'[hooks.state.{json.dumps(hook["key"])}]\ntrusted_hash = "{hook["currentHash"]}"\n' for hook in hooks)
    with open(home / "config.toml", "a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(sections))
    found = states(str(home / "hooks.json"), str(home / "config.toml"))
    assert [state for _, state in found] == ["trusted"] * 5
    assert {hook["trustStatus"] for hook in _ask_for_hooks(world, command)} == {"trusted"}


def _ask_for_hooks(world: World, command: Path) -> list[dict[str, Any]]:
    process = subprocess.Popen(
        [str(command), "app-server"],
        env={**world.environment(), "CODEX_HOME": str(world.home / ".codex")},
        cwd=world.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert process.stdin is not None and process.stdout is not None
    about = {"clientInfo": {"name": "test", "title": "test", "version": "1"}}
    try:
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(world.project)]}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 2:
                hooks: list[dict[str, Any]] = answer["result"]["data"][0]["hooks"]
                return hooks
    finally:
        process.kill()
        process.wait()
    raise AssertionError("codex ended without an answer")


def test_codex_runs_what_was_installed_and_tells_the_user_that_memory_is_on(world: World) -> None:
    data = str(world.folder / "data with blanks")
    _install(world, "codex", data)
    hooks = world.home / ".codex" / "hooks.json"
    kept = hooks.read_bytes()
    harness = Codex(world, programs.require(programs.CODEX), {}, ())
    hooks.write_bytes(kept)
    assert harness.turn("Say something.").status == 0
    assert not os.path.exists(os.path.join(data, "welcome", "codex"))


def test_the_plugin_runs_where_nothing_was_installed_and_says_what_is_missing(world: World) -> None:
    """From the checkout, under the ``python3`` on PATH; one that lacks the packages tells the user at the next start."""
    command = programs.require(programs.CLAUDE_CODE)
    python = world.folder / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    harness = ClaudeCode(world, command, {}, ())
    environment = {**harness._environment, "PATH": f"{python.parent}{os.pathsep}{world.environment()['PATH']}"}
    arguments = [str(command), "-p", "Say something.", "--model", "haiku", "--plugin-dir", str(PROJECT_ROOT)]
    for _ in range(2):
        assert world.run(arguments, environment).status == 0
        deadline = time.monotonic() + 20
        while not (world.memory / "lacks-packages").exists() and time.monotonic() < deadline:
            time.sleep(0.1)  # the session's end starts a background run, which finds them missing
    transcripts = (world.home / ".claude" / "projects").glob("*/*.jsonl")
    told = [path for path in transcripts if "observational-memory keeps nothing" in path.read_text(encoding="utf-8")]
    assert len(told) == 1, (world.memory / "log.txt").read_text(encoding="utf-8")


def test_opencode_loads_the_plugin_and_recalls_although_other_commands_are_denied(world: World) -> None:
    data = str(world.folder / "data with blanks")
    harness = OpenCode(world, programs.require(programs.OPENCODE), {"permission": {"bash": {"*": "deny"}}})
    _install(world, "opencode", data)
    recall = {"command": f"{quoted(recall_path(data))} abc", "description": "Recall"}
    world.script({"tools": [{"name": "bash", "input": recall}]})
    assert harness.turn("Recall it.").status == 0
    assert "There is no store at" in json.dumps(world.requests("main")[-1]["body"])  # recall's own words: it was run
    deadline = time.monotonic() + 20
    log = Path(data) / "log.txt"
    while not (log.exists() and "hook name=opencode" in log.read_text("utf-8")) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "hook name=opencode" in log.read_text(encoding="utf-8")
