"""Occupancy, spend and what a compaction teaches, from what the real programs write down.

Owns the usage that the scripted model claims; everything compared with it was written by the program, and read by the hooks
that it called.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from . import evidence, installed, programs, work
from .claude_code import ClaudeCode
from .codex import Codex
from .world import World

pytestmark = pytest.mark.e2e


def context(world: World) -> dict[str, Any]:
    """What our command says of the newest session, once nothing of ours runs any more."""
    installed.wait_until_quiet(world)
    done = installed.command(world, "context", "--json")
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def compactions(world: World) -> list[dict[str, Any]]:
    """What was written down of compactions, in order."""
    found = installed.rows(world, "memory.db", "SELECT why, numbers FROM decisions WHERE what='compact' ORDER BY no")
    return [{"why": why, **json.loads(numbers)} for why, numbers in found]


def test_claude_codes_own_count_and_the_mark_of_its_automatic_compaction_are_known(world: World) -> None:
    config = importlib.import_module("obsmem.harnesses.claude_code").hook_config(world.hook_command)
    harness = ClaudeCode(
        world,
        programs.require(programs.CLAUDE_CODE),
        config,
        ("PostCompact",),
        CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000",
    )
    world.script({"text": "Understood.", "usage": {"input": 31_000, "output": 40}})
    assert harness.turn(work.FIRST_PROMPT).status == 0
    before = context(world)
    assert before["counted"] == 31_040
    assert before["spend"]["requests"] == 1
    world.script(
        {"text": "I look around.", "tools": [{"name": "Bash", "input": {"command": "ls", "description": "list"}}],
         "usage": {"input": 150_000, "output": 50}},
    )  # fmt: skip
    assert harness.turn("Look around.").status == 0
    world.script({"text": "Going on.", "usage": {"input": 22_000, "output": 10}})
    assert harness.turn("Go on.").status == 0
    after = context(world)
    assert after["compactions"] == 1
    assert after["counted"] == 22_010
    assert after["window"]["mark"] < 160_000 and after["window"]["mark_source"] == "learned from compactions"
    (one,) = compactions(world)
    assert (one["why"], one["trigger"]) == ("cleared the mark", "auto")
    assert 150_000 <= one["before"] < 151_000
    evidence.assert_all_succeeded(world)


def test_codexs_own_count_holds_the_cached_part_and_its_hook_says_who_compacts(world: World) -> None:
    config = importlib.import_module("obsmem.harnesses.codex").hook_config(world.hook_command)
    harness = Codex(world, programs.require(programs.CODEX), config, ("PostCompact",))
    world.script({"text": "Understood.", "usage": {"input": 31_000, "output": 40}})
    assert harness.turn("Keep the names.").status == 0
    before = context(world)
    assert before["counted"] == 31_040
    world.script({"text": "Full.", "usage": {"input": 500_000, "output": 50}})
    assert harness.turn("Read everything.").status == 0
    world.script({"text": "Going on.", "usage": {"input": 22_000, "output": 10}})
    assert harness.turn("Go on.").status == 0
    after = context(world)
    assert after["compactions"] == 1
    (one,) = compactions(world)
    assert one["trigger"] == "auto"
    assert one["before"] >= 500_000 > one["after"]
    evidence.assert_all_succeeded(world)
