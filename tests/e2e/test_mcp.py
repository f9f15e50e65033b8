"""The real programs call each of our tools through the scripted model, and get the bytes that our command prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsmem.interfaces.mcp_tools import TOOLS
from obsmem.system.paths import APP

from . import evidence, installed, programs, wire
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .world import PROJECT_ROOT, SCRIPT, World

pytestmark = pytest.mark.e2e
DEMO = PROJECT_ROOT / "fixtures" / "demo"
_WAIT = {"tools": [{"name": "WaitForMcpServers", "input": {}}]}  # a server may still be starting at the first request
TRIES = 4
READING = [tool.name for tool in TOOLS if not tool.writes]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "recall": {}, "search": {"query": "rate limit per minute"}, "file": {"path": "lantern/limits.py"}, "timeline": {"count": 8},
    "get": {"count": 300}, "around": {"count": 1}, "tool": {}, "notes": {"max_tokens": 500}, "status": {},
}  # fmt: skip


FOUND = "30 per minute per address"
PIN = {"what": "Never touch \"migrations/\": it's the data team's.", "scope": "workspace"}


def _fill(world: World) -> None:
    """Take in the demo's session as one of the world's project."""
    path = world.folder / "demo.jsonl"
    text = (DEMO / "claude-code" / "session.jsonl").read_text(encoding="utf-8")
    path.write_text(text.replace("/home/user/project", str(world.project)), encoding="utf-8")
    for words in (["ingest", str(path)], ["index"]):
        done = installed.command(world, *words)
        assert done.returncode == 0, done.stderr
    handle = str(installed.rows(world, "archive.db", "SELECT handle FROM sessions")[0][0])
    found = re.search(r'"id":\s?"(toolu_[^"]+|call_[^"]+)"', text)
    assert found
    ARGUMENTS["tool"]["call_id"] = found.group(1)
    for name in ("recall", "get", "around"):
        ARGUMENTS[name]["id"] = f"{handle}.1"
    for name in ("timeline", "notes"):
        ARGUMENTS[name]["session"] = handle


def _expected(world: World, name: str, given: dict[str, Any] | None = None) -> str:
    """What our command prints for the same call, without a server."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "mcp", "--call", name],
        env=world.environment(), cwd=world.project, input=json.dumps(given or ARGUMENTS[name]), capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.rstrip("\n")


def _page(world: World, name: str) -> str:
    """The same without the token of the page that follows, which may hold this very turn."""
    return _expected(world, name).partition("\nmore: ")[0]


def _install(world: World, harness: str, config: Path) -> None:
    """Install, and leave what the driver needs of the program's config in place."""
    done = installed.command(world, "install", harness, "--yes", "--allow-recall")
    assert done.returncode == 0, done.stderr + done.stdout
    assert APP in config.read_text(encoding="utf-8")


def _called(world: World, call: dict[str, Any], turn: Callable[[], Any], first: tuple[Any, ...]) -> dict[str, Any]:
    """The request that follows one call, made in a turn of its own. A server may start slowly on a busy machine: then the
    call is made again."""
    for _ in range(TRIES):
        world.script(*first, {"tools": [call]}, {"text": "Done."})
        ended = turn()
        assert ended.status == 0, ended
        body: dict[str, Any] = world.requests("main")[-1]["body"]
        if not evidence.last_tool_result(body).startswith("unsupported call"):
            break
    return body


def _each_tool(world: World, name_of: Callable[[str], dict[str, str]], turn: Callable[[], Any], *first: Any) -> None:
    """Let the model call every tool that reads, each in a turn of its own; ``first`` are answers before the call."""
    for name in READING:
        expected = _page(world, name)
        body = _called(world, {**name_of(name), "input": ARGUMENTS[name]}, turn, first)
        if name == "status":  # a session of this very program may be in the record by now
            assert "entries, observed up to" in json.dumps(body)
        elif name == "search":  # what the session itself has said by now is left out for it, and not for the command
            assert any("From the record: data" in text and FOUND in text for text in wire.texts(body)), expected
            assert FOUND in expected
        else:
            assert any(expected in text for text in wire.texts(body)), (
                name,
                expected,
                evidence.last_tool_result(body),
                [one.get("name") for one in body.get("tools", [])],
            )


def _pin_and_unpin(
    world: World, name_of: Callable[[str], dict[str, str]], turn: Callable[[], Any], *first: Any
) -> None:
    """The tools that write: a pin is in the store, in the notes and in ``pins`` until it is taken away again."""

    def called(name: str, given: dict[str, Any]) -> str:
        return evidence.last_tool_result(_called(world, {**name_of(name), "input": given}, turn, first))

    def kept() -> list[tuple[Any, ...]]:
        return installed.rows(world, "memory.db", "SELECT id, text, scope, evidence FROM pins")

    assert kept() == []
    made = called("pin", PIN)
    ((id_, text, scope, voice),) = kept()
    assert (text, scope, voice) == (PIN["what"], "workspace", "agent"), "whose words they are stands with them"
    assert _expected(world, "pin", PIN) in made and f"[{id_}]" in made, "the same pin again is the one that is there"
    noted = called("notes", {"session": ARGUMENTS["notes"]["session"]})
    assert f"[{id_[:7]}] pin (workspace): {text}" in noted
    assert text in installed.command(world, "pins").stdout
    gone = called("unpin", {"id": id_[:7]})
    assert kept() == []
    assert _expected(world, "pin", PIN)
    assert _expected(world, "unpin", {"id": id_}) in gone


def test_claude_code_calls_each_tool_unasked(world: World) -> None:
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {}, ())
    _fill(world)
    _install(world, "claude-code", world.home / ".claude.json")
    how = (lambda name: {"name": f"mcp__{APP}__{name}"}, lambda: harness.turn("Look it up."), _WAIT)
    _each_tool(world, *how)
    _pin_and_unpin(world, *how)


def test_codex_calls_each_tool_without_approval(world: World) -> None:
    harness = Codex(world, programs.require(programs.CODEX), {}, ())
    _fill(world)
    _install(world, "codex", world.home / ".codex" / "config.toml")
    space = {"namespace": f"mcp__{APP.replace('-', '_')}"}
    wait = {"tools": [{"name": "exec_command", "input": {"cmd": "sleep 3"}}]}  # it does not wait for its servers
    _each_tool(world, lambda name: {"name": name, **space}, lambda: harness.turn("Look it up.", "read-only"), wait)
    _pin_and_unpin(world, lambda name: {"name": name, **space}, lambda: harness.turn("Keep it."), wait)


def test_opencode_calls_each_tool_of_the_server_and_of_the_plugin(world: World) -> None:
    harness = OpenCode(world, programs.require(programs.OPENCODE), {})
    _fill(world)
    _install(world, "opencode", world.home / ".config" / "opencode" / "opencode.json")
    how = (lambda name: {"name": f"{APP}_{name}"}, lambda: harness.turn("Look it up."))
    _each_tool(world, *how)
    _pin_and_unpin(world, *how)
    expected = _expected(world, "search").partition("\nmore: ")[0]
    given = {"query": ARGUMENTS["search"]["query"], "more": ""}
    pin = {"what": 'it\'s "$HOME" `ls` for ever', "scope": "workspace"}
    world.script(
        {"tools": [{"name": "memory_search", "input": given}]},
        {"tools": [{"name": "memory_pin", "input": pin}]},
        {"text": "Done."},
    )
    assert harness.turn("Look it up, and keep it.").status == 0
    texts = list(wire.texts(world.requests("main")[-1]["body"]))
    assert any(expected in text for text in texts)
    assert any("Pinned for the workspace" in text for text in texts)
    assert installed.rows(world, "memory.db", "SELECT text FROM pins") == [(pin["what"],)]
