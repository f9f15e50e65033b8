"""What ``explain`` says of a delivery is what the model of the real program was sent; the session decides the same again."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from . import evidence, programs, test_claude_code, test_codex, work
from .evidence import Part
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e


def _command(world: World, *words: str) -> Any:
    """What one of our commands gives to a program, in this world."""
    ended = world.run([sys.executable, str(SCRIPT), *words, "--json"], {})
    assert ended.status == 0, ended
    return json.loads(ended.stdout)


def _assert_explained(world: World, harness: str, sent: Sequence[Part]) -> None:
    """The delivery is told byte for byte, with hooks and reasons, and every decision is taken again."""
    _command(world, "sync", "--yes")
    (session,) = {one["handle"] for one in _command(world, "sessions")}
    given = _command(world, "explain", session, "--last-block")
    assert given["source"] == "transcript"
    assert sorted(given["parts"].values()) == sorted(part.text for part in sent)
    assert given["reasons_kept"]
    body = "\n".join(part.text for part in sent).split("\n")
    assert given["lines"] and all(line["text"] in body for line in given["lines"])
    hooks = [one["why"] for one in _command(world, "explain", session) if one["what"] == "log"]
    assert {f"hook {harness} PreCompact", f"hook {harness} SessionStart"} <= set(hooks)
    (compared,) = _command(world, "replay", "--policy", session)
    assert compared["different"] == 0 < compared["equal"], compared["pairs"]


def test_in_claude_code_after_a_manual_compaction(world: World) -> None:
    """A compaction, then a resumed turn."""
    harness = test_claude_code._start(world, programs.CLAUDE_CODE)
    test_claude_code._work(harness)
    assert harness.turn("/compact").status == 0
    assert harness.turn(work.LAST_PROMPT).status == 0
    sent = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    _assert_explained(world, "claude-code", sent)


def test_in_codex_after_an_automatic_compaction(world: World) -> None:
    """A full window before a resumed turn."""
    harness = test_codex._start(world)
    turns = list(work.answers(test_codex._write, test_codex._shell))
    turns[-1][-1] = {**turns[-1][-1], "usage": {"input": 500_000, "output": 20}}
    for prompt, turn in zip((work.FIRST_PROMPT, work.SECOND_PROMPT, work.THIRD_PROMPT), turns, strict=True):
        world.script(*turn)
        assert harness.turn(prompt).status == 0
    assert harness.turn(work.LAST_PROMPT).status == 0
    sent = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    _assert_explained(world, "codex", sent)
