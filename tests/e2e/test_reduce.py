"""Outputs that are shortened before the model sees them: what the real programs then send, and the whole that comes back."""

from __future__ import annotations

import importlib
import json
import re
import sqlite3
from typing import Any

import pytest

from obsmem.system.launcher import launcher_path, quoted, recall_path, write_launcher, write_recall
from obsmem.system.shortening import Settings, write_settings

from . import installed, programs
from .claude_code import ClaudeCode
from .opencode import OpenCode
from .world import PROJECT_ROOT, SCRIPT, World

pytestmark = pytest.mark.e2e

VERSIONS = (programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER)
PLUGIN = PROJECT_ROOT / "opencode-plugin" / "observational-memory.js"
# A program that prints what a test runner prints, as long as it is told.
PRINTING = """\
import sys
count = int(sys.argv[1])
print("=" * 20, "test session starts", "=" * 20)
print(f"collected {count} items\\n")
for n in range(count):
    print(f"tests/test_{n}.py::test_that_{n}_is_as_it_should_be PASSED [{100 * n // count:3d}%]")
print()
print("=" * 20, f"{count} passed in 1.23s", "=" * 20)
"""
SHORTENED = re.compile(r"\[observational-memory: shortened [^\]]*; id (raw_[0-9a-f]{10})\.")


def _prepare(world: World, **settings: Any) -> None:
    """A program that prints, and what an installation and a maintainer leave behind."""
    folder = world.project / "bin"
    folder.mkdir()
    (folder / "printing.py").write_text(PRINTING, encoding="utf-8")
    pytest_ = folder / "pytest"
    pytest_.write_text('#!/bin/sh\nexec python3 "$(dirname "$0")/printing.py" "$1"\n', encoding="utf-8")
    pytest_.chmod(0o755)
    write_launcher(str(world.memory), str(SCRIPT))
    write_recall(str(world.memory), str(SCRIPT))
    write_settings(str(world.memory), Settings(reduce=True, **settings))
    _configure(world)


def _configure(world: World, line: str = "reduce: on") -> None:
    """The user's own configuration, which each maintainer compiles anew."""
    config = world.home / ".config" / "observational-memory" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"{line}\n", encoding="utf-8")


def _whole(count: int) -> str:
    """What the program prints."""
    lines = [
        f"tests/test_{n}.py::test_that_{n}_is_as_it_should_be PASSED [{100 * n // count:3d}%]" for n in range(count)
    ]
    head = [f"{'=' * 20} test session starts {'=' * 20}", f"collected {count} items", "", *lines, ""]
    return "\n".join([*head, f"{'=' * 20} {count} passed in 1.23s {'=' * 20}"])


def _start_claude_code(world: World, program: programs.Program) -> ClaudeCode:
    command = programs.require(program)
    module = importlib.import_module("obsmem.harnesses.claude_code")
    config = module.hook_config(world.hook_command)
    config["hooks"].update(module.reduce_config(world.hook_command)["hooks"])
    return ClaudeCode(world, command, config, ("SubagentStop", "PostCompact"))


def _shell(name: str, command: str) -> dict[str, Any]:
    return {"name": name, "input": {"command": command, "description": "Run it"}}


def _result(world: World) -> str:
    """The words of the tool's result in the last request to the model."""
    messages = world.requests("main")[-1]["body"]["messages"]
    if messages[-1]["role"] == "tool":
        return str(messages[-1]["content"])
    blocks = [one for message in messages if isinstance(message["content"], list) for one in message["content"]]
    content = [one for one in blocks if one["type"] == "tool_result"][-1]["content"]
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


def _run(world: World, harness: ClaudeCode | OpenCode, tool: str, command: str) -> str:
    """Let the model run a command; what it is given."""
    world.script({"tools": [_shell(tool, command)]}, {"text": "I see."})
    ended = harness.turn("Go on.")
    assert ended.status == 0, ended
    return _result(world)


def _check(world: World, harness: ClaudeCode | OpenCode, tool: str, count: int) -> None:
    """A long output arrives shortened; the model that recalls it gets every byte; it is archived whole."""
    whole = _whole(count)
    shown = _run(world, harness, tool, f"bin/pytest {count}")
    assert len(shown) < len(whole) / 2
    assert f"{count} passed" in shown
    (id_,) = SHORTENED.findall(shown)
    recall = quoted(recall_path(str(world.memory)))
    assert f"{recall} {id_}" in shown, "the words that get the whole"
    _run(world, harness, tool, f"{recall} {id_} --raw > copy.txt; wc -c copy.txt")
    assert (world.project / "copy.txt").read_text(encoding="utf-8").rstrip("\n") == whole
    if len(whole) < 25_000:
        assert whole in _run(world, harness, tool, f"{recall} {id_} --raw")
    _archive(world, harness)
    (raw,) = installed.rows(world, "archive.db", "SELECT no FROM sources WHERE path LIKE ?", f"raw/{id_}/%")
    assert raw
    _run(world, harness, tool, f"{recall} {id_} --raw > again.txt")
    assert (world.project / "again.txt").read_bytes() == (world.project / "copy.txt").read_bytes()


def _archive(world: World, harness: ClaudeCode | OpenCode) -> None:
    path = harness.transcript() if isinstance(harness, ClaudeCode) else harness.database()
    done = installed.command(world, "ingest", str(path))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", [200, 1200], ids=["seen-whole-by-the-hook", "over-30000-characters"])
@pytest.mark.parametrize("program", VERSIONS, ids=lambda program: program.version)
def test_claude_code_shows_it_shortened_and_recalls_it_whole(
    world: World, program: programs.Program, count: int
) -> None:
    _prepare(world)
    _check(world, _start_claude_code(world, program), "Bash", count)
    ours = [call for call in world.calls("PostToolUse") if call.status]
    assert ours == []


def _start_opencode(world: World) -> OpenCode:
    entry = [PLUGIN.as_uri(), {"command": [launcher_path(str(world.memory))]}]
    config = {"permission": {"*": "allow"}, "plugin": [entry]}
    return OpenCode(world, programs.require(programs.OPENCODE), config)


@pytest.mark.parametrize("count", [200, 1200], ids=["short-of-its-limit", "cut-by-the-program"])
def test_opencode_shows_it_shortened_and_recalls_it_whole(world: World, count: int) -> None:
    _prepare(world)
    harness = _start_opencode(world)
    _check(world, harness, "bash", count)
    with sqlite3.connect(f"{harness.database().as_uri()}?mode=ro", uri=True) as connection:
        parts = [json.loads(data) for (data,) in connection.execute("SELECT data FROM part")]
    outputs = [part["state"]["output"] for part in parts if part.get("type") == "tool"]
    assert SHORTENED.search(outputs[0]), "the program's own record has it shortened, too"


def test_a_marker_in_the_command_keeps_it_whole_and_so_does_a_store_that_cannot_be_written(world: World) -> None:
    _prepare(world)
    harness = _start_claude_code(world, programs.CLAUDE_CODE)
    assert _run(world, harness, "Bash", "bin/pytest 200  # whole output") == _whole(200)
    sessions = world.memory / "sessions"
    if sessions.exists():
        sessions.rename(world.memory / "sessions.away")
    sessions.write_text("no folder can be made here", encoding="utf-8")
    assert _run(world, harness, "Bash", "bin/pytest 201") == _whole(201)
    assert not list(world.memory.glob("**/raw/*"))


def test_what_fails_stays_whole_in_claude_code(world: World) -> None:
    """It fires no event there that could change it."""
    _prepare(world)
    harness = _start_claude_code(world, programs.CLAUDE_CODE)
    shown = _run(world, harness, "Bash", "bin/pytest 50; exit 3")
    assert _whole(50) in shown


def _contents(body: dict[str, Any]) -> list[str]:
    """What stands in the tools' results of a request, in order."""
    return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def test_the_thin_view_masks_old_results_and_the_next_request_begins_alike(world: World) -> None:
    """OpenCode: when it would not fit, the oldest results are masked; after a restart the same ones are; recall gives one back."""
    write_launcher(str(world.memory), str(SCRIPT))
    write_settings(str(world.memory), Settings(view="thin"))
    _configure(world, "view: thin")
    harness = _start_opencode(world)
    script = "print('word ' * 1200, {})"
    for number in range(12):
        world.script({"tools": [_shell("bash", f'python3 -c "{script.format(number)}"')]})
    world.script({"text": "There they are."})
    assert harness.turn("Show me words.").status == 0
    whole = _contents(world.requests("main")[-1]["body"])
    assert not any(text.startswith("[observational-memory:") for text in whole)
    world.script({"tools": [_shell("bash", "echo more")], "usage": {"input": 80_000, "output": 10}}, {"text": "Done."})
    assert harness.turn("Go on.").status == 0
    masked = _contents(world.requests("main")[-1]["body"])
    count = sum(text.startswith("[observational-memory:") for text in masked)
    assert 0 < count <= 5, "never the newest eight"
    assert masked[count:12] == whole[count:], "what is not masked stays as it was"
    call_id = re.findall(r'id "([^"]+)"', masked[0])[0]
    recall = {"name": "recall", "input": {"id": call_id, "range": "0:6000"}}
    world.script({"tools": [recall]}, {"text": "I see."})
    assert harness.turn("What was the first?").status == 0
    after = _contents(world.requests("main")[-1]["body"])
    assert after[: len(masked)] == masked, "the beginning of the request is the same"
    assert after[-1].strip().startswith(whole[0].strip()[:2000])
