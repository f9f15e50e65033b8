"""The real programs as workers: what the model is sent, and that nothing of the user's ran, was read, or was left."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from obsmem.core.answers import SCHEMAS
from obsmem.core.errors import WorkerError
from obsmem.core.model import Memory, Request
from obsmem.workers import command
from obsmem.workers.base import SYSTEM

from . import installed, lockdown, programs, wire
from .world import World

pytestmark = pytest.mark.e2e

PROMPT = "Take notes.\nPROMPT-WORDS with ümlauts.\nTake them now."
ANSWER = {"ids": ["abc1234"]}
ITEMS = [{"note_id": "abc1234"}]
ASK = Request("drop", "abcd", Memory(), prompt=PROMPT, schema=SCHEMAS["drop"])
USAGE = {"input": 321, "output": 45}
PRESETS: list[tuple[programs.Program, str, Callable[[World, Path], lockdown.Program]]] = [
    (programs.CLAUDE_CODE, "claude", lockdown.claude_code),
    (programs.CLAUDE_CODE_NEWER, "claude", lockdown.claude_code),
    (programs.CODEX, "codex", lockdown.codex),
    (programs.OPENCODE, "opencode", lockdown.opencode),
]
_HEAD = ("program", "requests", "tools", "hooks run", "MCP started", "sessions left", "new files", "bytes")
rows: list[tuple[str, ...]] = []


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """Print at the end what was measured, each worker beside an unlocked turn of the same program."""
    yield
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    if not rows or reporter is None or capture is None:
        return
    widths = [max(len(row[column]) for row in [_HEAD, *rows]) for column in range(len(_HEAD))]
    with capture.global_and_fixture_disabled():
        reporter.section("lock-down")
        for row in [_HEAD, *rows]:
            reporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def measure(world: World, name: str, requests: list[dict[str, Any]], kept: int, new: set[str]) -> None:
    hooks, server = lockdown.caught(world)
    offered = max((lockdown.tools(request["body"]) for request in requests), key=len)
    said = f"{len(offered)} {','.join(offered)}" if len(offered) < 3 else str(len(offered))
    size = max(len(json.dumps(request["body"])) for request in requests)
    rows.append((name, str(len(requests)), said, str(hooks), str(server), str(kept), str(len(new)), str(size)))


def enter(world: World, monkeypatch: pytest.MonkeyPatch, found: lockdown.Program) -> None:
    """Make this process a maintainer in the world's project, inside a session of a harness."""
    for name, value in {**world.environment(), **found.environment, "CLAUDECODE": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.project)
    monkeypatch.setattr(tempfile, "tempdir", str(world.folder / "temporary"))


def make(world: World, word: str, path: Path, found: lockdown.Program, **more: Any) -> Any:
    options = {"kind": "command", "preset": word, "program": str(lockdown.wrapper(world, path)), **more}
    return command.make({**options, "model": found.model} if found.model else options)


@pytest.mark.parametrize(("program", "word", "trap"), PRESETS, ids=[row[0].folder_name for row in PRESETS])
def test_a_worker_is_locked_down(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    program: programs.Program,
    word: str,
    trap: Callable[[World, Path], lockdown.Program],
) -> None:
    path = programs.require(program)
    lockdown.set_traps(world)
    found = trap(world, path)
    control(world, found, str(program))
    asked, kept, before = len(world.requests()), lockdown.sessions(world), lockdown.files(world)
    structured = {"tools": [{"name": "StructuredOutput", "input": ANSWER}], "usage": USAGE}
    world.script(structured if word == "claude" else {"text": json.dumps(ANSWER), "usage": USAGE})
    enter(world, monkeypatch, found)
    worker = make(world, word, path, found)
    reply = worker.ask(ASK)
    assert [dict(item) for item in reply.items] == ITEMS
    assert (reply.worker, reply.tokens_in, reply.tokens_out) == (f"command:{word}", 321, 45)
    requests = world.requests()[asked:]
    new = lockdown.files(world) - before
    measure(world, f"{program} as a worker", requests, lockdown.sessions(world) - kept, new)
    bodies = [request["body"] for request in requests]
    texts = "\n".join(wire.texts(bodies))
    assert {name for body in bodies for name in lockdown.tools(body)} <= lockdown.HARMLESS
    assert PROMPT in texts and SYSTEM in texts
    assert lockdown.MARK not in texts
    assert (json.dumps(ASK.schema) in json.dumps(bodies)) == (word != "opencode")
    assert lockdown.caught(world) == (0, False)
    assert lockdown.sessions(world) == kept
    assert new == set()
    assert lockdown.keeping(world, "PROMPT-WORDS") == []
    assert not [item for item in (world.folder / "temporary").iterdir() if item.is_dir()]
    installed.wait_until_quiet(world)


def control(world: World, found: lockdown.Program, name: str) -> None:
    """An unlocked turn falls into every trap, so that they are known to work; they are empty afterwards."""
    before = lockdown.files(world)
    world.script({"text": "OK."})
    ended = found.harness.turn("Say something.")
    assert ended.status == 0, ended.stderr
    measure(world, f"{name} unlocked", world.requests("main"), lockdown.sessions(world), lockdown.files(world) - before)
    hooks, server = lockdown.caught(world)
    assert hooks > 0 and server
    assert lockdown.sessions(world) == 1
    body = world.requests("main")[0]["body"]
    assert lockdown.MARK in "\n".join(wire.texts(body))
    assert lockdown.tools(body)
    lockdown.empty(world)


@pytest.mark.parametrize(("program", "word", "trap"), PRESETS, ids=[row[0].folder_name for row in PRESETS])
def test_a_prompt_that_is_too_long_is_an_overflow(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    program: programs.Program,
    word: str,
    trap: Callable[[World, Path], lockdown.Program],
) -> None:
    path = programs.require(program)
    lockdown.set_traps(world)
    found = trap(world, path)
    said = {
        "claude": "prompt is too long: 210000 tokens > 200000 maximum",
        "codex": "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "opencode": "This model's maximum context length is 8192 tokens, however you requested 9000 tokens",
    }[word]
    world.script({"status": 400, "error": said})
    enter(world, monkeypatch, found)
    with pytest.raises(WorkerError) as caught:
        make(world, word, path, found).ask(ASK)
    assert caught.value.fault == "overflow"
    if word != "codex":  # whose provider names no numbers
        assert (caught.value.window, caught.value.counted) == ((200_000, 210_000) if word == "claude" else (8192, 9000))


@pytest.mark.parametrize(("program", "word", "trap"), PRESETS, ids=[row[0].folder_name for row in PRESETS])
def test_a_refused_key_is_a_matter_of_settings(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    program: programs.Program,
    word: str,
    trap: Callable[[World, Path], lockdown.Program],
) -> None:
    path = programs.require(program)
    lockdown.set_traps(world)
    found = trap(world, path)
    world.script(*[{"status": 401, "error": "invalid x-api-key"}] * 30)
    enter(world, monkeypatch, found)
    with pytest.raises(WorkerError) as caught:
        make(world, word, path, found).ask(ASK)
    assert (caught.value.fault, caught.value.retry) == ("settings", False)


@pytest.mark.parametrize(("program", "word", "trap"), PRESETS, ids=[row[0].folder_name for row in PRESETS])
def test_a_model_that_stops_in_the_middle_is_not_waited_for_for_ever(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    program: programs.Program,
    word: str,
    trap: Callable[[World, Path], lockdown.Program],
) -> None:
    path = programs.require(program)
    lockdown.set_traps(world)
    found = trap(world, path)
    world.script({"text": "I begin.", "stalled": True})
    enter(world, monkeypatch, found)
    worker = make(world, word, path, found, timeout_seconds=20)
    seen: list[list[str]] = []
    waiting = threading.Timer(15, lambda: seen.append(lockdown.running(world)))
    waiting.start()
    with pytest.raises(WorkerError, match="did not end within 20 s") as caught:
        worker.ask(ASK)
    waiting.join()
    assert caught.value.fault == "unavailable"
    assert len(world.requests()) == 1
    assert seen[0] and lockdown.running(world) == []
    assert not [item for item in (world.folder / "temporary").iterdir() if item.is_dir()]
