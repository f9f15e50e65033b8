"""What ``explain`` says of a delivery is what the model of the real program was sent."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from . import evidence, programs, work
from .test_claude_code import _start, _work
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e


def _command(world: World, *words: str) -> Any:
    """What one of our commands gives to a program, in this world."""
    ended = world.run([sys.executable, str(SCRIPT), *words, "--json"], {})
    assert ended.status == 0, ended
    return json.loads(ended.stdout)


def test_the_last_block_is_told_as_the_model_was_sent_it_and_the_session_decides_the_same_again(world: World) -> None:
    """A compaction in Claude Code, a resumed turn; then explain and replay look at what is kept of it."""
    harness = _start(world, programs.CLAUDE_CODE)
    _work(harness)
    assert harness.turn("/compact").status == 0
    assert harness.turn(work.LAST_PROMPT).status == 0
    sent = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    (session,) = {one["handle"] for one in _command(world, "sessions")}
    _command(world, "sync", "--yes")
    given = _command(world, "explain", session, "--last-block")
    assert given["source"] == "transcript"
    assert sorted(given["parts"].values()) == sorted(part.text for part in sent)
    assert given["reasons_kept"]
    body = "\n".join(part.text for part in sent).split("\n")
    assert given["lines"] and all(line["text"] in body for line in given["lines"])
    hooks = [one["why"] for one in _command(world, "explain", session) if one["what"] == "log"]
    assert {"hook claude-code PreCompact", "hook claude-code SessionStart"} <= set(hooks)
    (compared,) = _command(world, "replay", "--policy", session)
    assert compared["different"] == 0 < compared["equal"], compared["pairs"]
