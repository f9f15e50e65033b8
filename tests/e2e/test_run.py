"""``run`` drives the real programs through several windows: every prompt is given once, and no instruction is lost.

Invariant: what a window knew is judged by the requests that the model was sent; what ``run`` decided, by its log.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from . import evidence, installed, programs, wire
from .claude_code import ClaudeCode
from .codex import BYPASS, UNCONFINED, Codex
from .opencode import MODEL, OpenCode
from .world import SCRIPT, Ended, World

pytestmark = pytest.mark.e2e

INSTRUCTIONS = (
    "Always indent with tabs, in every file of this project.",
    "The service listens on port 8123 from now on.",
    "Never touch the folder vendor/legacy.",
    "Name the new column tracking_ref.",
    "Use the date format 2006-01-02 in every log line.",
    "Do not add any dependency to go.mod.",
    "The limit per customer is 47 orders.",
    "Finish by listing what is open.",
)
SMALL = {"input": 4_000, "output": 20}


class Driven(NamedTuple):
    """A program in a world: how ``run`` names it, its own arguments, its environment, and a usage that fills its window."""

    name: str
    arguments: list[str]
    environment: Mapping[str, str]
    full: int
    shell: dict[str, Any]


def _claude(world: World) -> Driven:
    harness = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {}, ())
    more = ["--model", "haiku", "--dangerously-skip-permissions", "--output-format", "json"]
    shell = {"name": "Bash", "input": {"command": "echo counted >> ran.txt", "description": "Count"}}
    return Driven("claude", more, _reached(world, harness._command, "claude", harness._environment), 150_000, shell)


def _codex(world: World) -> Driven:
    harness = Codex(world, programs.require(programs.CODEX), {}, ())
    more = ["--json", "--skip-git-repo-check", BYPASS, UNCONFINED]
    shell = {"name": "exec_command", "input": {"cmd": "echo counted >> ran.txt"}}
    return Driven("codex", more, _reached(world, harness._command, "codex", harness.environment), 215_000, shell)


def _opencode(world: World) -> Driven:
    harness = OpenCode(world, programs.require(programs.OPENCODE), {"permission": {"*": "allow"}})
    more = ["--format", "json", "--model", MODEL, "--title", "Scripted"]
    shell = {"name": "bash", "input": {"command": "echo counted >> ran.txt", "description": "Count"}}
    return Driven("opencode", more, _reached(world, harness._command, "opencode", harness.environment), 78_000, shell)


DRIVERS = {"claude-code": _claude, "codex": _codex, "opencode": _opencode}


def _reached(world: World, program: Path, name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in whose PATH the program stands under its own name."""
    folder = world.folder / "bin"
    folder.mkdir()
    (folder / name).symlink_to(program)
    return {**environment, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def _run(world: World, driven: Driven, prompts: tuple[str, ...], *more: str) -> tuple[Ended, list[dict[str, Any]]]:
    log = world.folder / "run.jsonl"
    words = ["run", driven.name, "--least-turns", "2", "--log", str(log), *more, "--", *driven.arguments]
    ended = world.run([sys.executable, str(SCRIPT), *words], driven.environment, "\n".join(prompts), 300.0)
    assert log.exists(), (ended.status, ended.stderr[-3000:], ended.stdout[-1000:])
    return ended, [json.loads(line) for line in log.read_text(encoding="utf-8").split("\n") if line]


def _said(body: Mapping[str, Any]) -> str:
    return "\n".join(wire.texts(body))


@pytest.mark.parametrize("harness", DRIVERS)
def test_a_loop_over_three_rotations_loses_no_instruction(world: World, harness: str) -> None:
    driven = DRIVERS[harness](world)
    for number in range(len(INSTRUCTIONS)):
        usage = {"input": driven.full, "output": 20} if number % 2 else SMALL
        world.script({"text": f"Understood, {number}.", "usage": usage})
    ended, log = _run(world, driven, INSTRUCTIONS)
    assert ended.status == 0, (ended.stderr[-3000:], ended.stdout[-2000:])
    what = [line["what"] for line in log]
    assert what.count("rotate") == 3 and what.count("leave") == 4 and what[-1] == "ended"
    requests = world.requests("main")
    assert len(requests) == len(INSTRUCTIONS)
    for number, request in enumerate(requests):
        said = _said(request["body"])
        missing = [words for words in INSTRUCTIONS[: number + 1] if words not in said]
        assert missing == [], f"request {number + 1} does not hold what was said before"
    fresh = [requests[number]["body"] for number in (2, 4, 6)]
    assert all(evidence.parts_in(body) for body in fresh)
    sessions = installed.rows(world, "memory.db", "SELECT session, successor FROM rotations ORDER BY no")
    assert len(sessions) == 3
    assert [one[1] for one in sessions[:2]] == [one[0] for one in sessions[1:]], "a chain of windows"
    print(f"\n{harness}: {len(requests)} prompts, 4 windows, every instruction in every later request")


@pytest.mark.parametrize("harness", ["claude-code", "codex"])
@pytest.mark.parametrize("worked", [False, True], ids=["before any tool", "after a tool"])
def test_a_refused_prompt_is_repeated_only_if_no_tool_ran(world: World, harness: str, worked: bool) -> None:
    driven = DRIVERS[harness](world)
    # Claude Code answers such a refusal with a compaction of its own where there is something to compact.
    driven = driven._replace(environment={**driven.environment, "DISABLE_COMPACT": "1"})
    message = "prompt is too long: 210000 tokens > 200000 maximum"
    error = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": message}
    refused = {"status": 400, "error": error}
    tools = ({"tools": [driven.shell], "usage": SMALL},) if worked else ()
    world.script({"text": "Understood.", "usage": SMALL}, *tools, refused, {"text": "Going on.", "usage": SMALL})
    ended, log = _run(world, driven, (INSTRUCTIONS[0], "Count once, and only once."))
    what = [line["what"] for line in log]
    assert "refused" in what, (what, ended.stderr[-2000:], ended.stdout[-2000:])
    refusal = next(line for line in log if line["what"] == "refused")
    assert refusal["numbers"]["tools_ran"] is worked and refusal["numbers"]["window"] in (0, 200_000)
    assert ended.status == 0, ended.stderr[-3000:]
    last = world.requests("main")[-1]["body"]
    block = "\n".join(part.text for part in evidence.parts_in(last))
    assert INSTRUCTIONS[0] in block and "Count once, and only once." in block
    outside = _said(last)
    for part in evidence.parts_in(last):
        outside = outside.replace(part.text, "")
    assert ("Count once, and only once." in outside) is not worked
    ran = world.project / "ran.txt"
    assert (ran.read_text(encoding="utf-8") if ran.exists() else "") == ("counted\n" if worked else "")


def test_a_program_that_fails_ends_the_loop_and_nothing_is_given_again(world: World) -> None:
    driven = _claude(world)
    world.script(
        {"text": "Understood.", "usage": SMALL},
        {"status": 400, "error": {"type": "invalid_request_error", "message": "no such thing"}},
    )
    ended, log = _run(world, driven, INSTRUCTIONS[:3])
    assert ended.status == 3
    assert log[-1]["what"] == "stopped" and log[-1]["numbers"]["prompt"] == 2
    assert INSTRUCTIONS[2] not in json.dumps([request["body"] for request in world.requests()])
