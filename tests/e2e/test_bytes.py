"""However large the block and in whatever script: what was rendered arrives byte for byte, in Codex and in OpenCode too.

Claude Code's share of this stands in ``test_claude_code_hard``.
"""

from __future__ import annotations

from typing import Any

import pytest

from obsmem.core.tokens import estimate
from obsmem.harnesses import codex
from obsmem.system import blockfile

from . import evidence, installed, programs
from .codex import Codex
from .opencode import say, summarize
from .test_claude_code_hard import english, japanese
from .test_opencode_hard import start as start_opencode
from .world import World

pytestmark = pytest.mark.e2e

TURNS, PER_TURN = 12, 12
FULL = {"input": 500_000, "output": 20}


def _prompts(exchange: Any) -> list[str]:
    return [
        " ".join(exchange(number)[0] for number in range(turn * PER_TURN, (turn + 1) * PER_TURN))
        for turn in range(TURNS)
    ]


def _compare(world: World, body: Any, name: str, budget: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The parts in a request against the file that they were delivered from."""
    (frozen,) = world.memory.glob(f"sessions/*/*/{name}")
    rendered = "\n".join(blockfile.read(str(frozen))[1])
    found = "\n".join(part.text for part in evidence.whole_delivery(evidence.parts_in(body)))
    with capsys.disabled():
        print(f" {budget} tokens: {len(rendered.encode())} bytes rendered, {len(found.encode())} found")
    assert found.encode() == rendered.strip().encode()
    assert budget / 4 < estimate(found) <= budget


@pytest.mark.parametrize("budget", [8000, 2000])
@pytest.mark.parametrize("exchange", [english, japanese], ids=["english", "japanese"])
def test_codex_gives_the_model_every_byte_of_the_block(
    world: World, exchange: Any, budget: int, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = Codex(world, programs.require(programs.CODEX), codex.hook_config(world.hook_command), ())
    harness.environment["OBSERVATIONAL_MEMORY_SET_BUDGET_TOKENS"] = str(budget)
    for prompt in _prompts(exchange):
        assert harness.turn(prompt).status == 0
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("Say that you are full.", "Go on."):
        assert harness.turn(prompt).status == 0
    evidence.assert_all_succeeded(world)
    installed.wait_until_quiet(world)
    _compare(world, evidence.first_main_request_after_summary(world), blockfile.CURRENT, budget, capsys)


@pytest.mark.parametrize("budget", [8000, 2000])
@pytest.mark.parametrize("exchange", [english, japanese], ids=["english", "japanese"])
def test_opencode_gives_the_model_every_byte_of_the_block(
    world: World, exchange: Any, budget: int, capsys: pytest.CaptureFixture[str]
) -> None:
    harness = start_opencode(world, budget_tokens=budget)
    assert harness.turn("Say something.").status == 0
    groups = [[say(harness.session, prompt)] for prompt in _prompts(exchange)]
    assert harness.serve(*groups, [summarize(harness.session)], [say(harness.session, "Go on.")]).status == 0
    installed.wait_until_quiet(world)
    _compare(world, evidence.first_main_request_after_summary(world), blockfile.KEPT, budget, capsys)
