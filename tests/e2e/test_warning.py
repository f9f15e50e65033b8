"""Warnings before a compaction, in the real programs: in the request of the next prompt, once a window and mark.

Owns what fills a window here: the usage that the scripted model claims. Invariant: what a test proves stands in the requests
to the model, in the recorded hook calls, or on the screen.
"""

from __future__ import annotations

import importlib
import json
import shlex
import sys
import time
from collections.abc import Callable

import pytest

from obsmem.memory.warning import OPEN
from obsmem.system.factsfile import read_facts
from obsmem.system.launcher import launcher_path, write_launcher

from . import evidence, installed, payloads, programs, wire
from .claude_code import ClaudeCode
from .codex import Codex
from .opencode import OpenCode
from .terminal import open_terminal
from .test_opencode import PLUGIN
from .world import RECORDER, SCRIPT, Ended, World

pytestmark = pytest.mark.e2e

# Tokens that a window of each program holds on its way to the compaction: past no mark, the first, the second.
SHARES = (0.5, 0.76, 0.8, 0.93, 0.95)
MARKS = {"claude-code": 167_000, "codex": 0, "opencode": 92_000}
BEFORE_END = 33_000  # tokens of its window before which Claude Code compacts
SLACK = 20_000  # tokens that may be estimated on top: a newer Claude Code writes down its system prompt after the first answer
PIN = "Never touch legacy/config.yaml."

Turn = Callable[[str], Ended]


def claude_code(world: World) -> Turn:
    """Claude Code with our hooks, its turns being one process each."""
    config = importlib.import_module("obsmem.harnesses.claude_code").hook_config(world.hook_command)
    return ClaudeCode(world, programs.require(programs.CLAUDE_CODE), config, ("PostCompact",)).turn


def codex(world: World) -> Turn:
    """Codex with our hooks."""
    config = importlib.import_module("obsmem.harnesses.codex").hook_config(world.hook_command)
    return Codex(world, programs.require(programs.CODEX), config, ("PostCompact",)).turn


def opencode(world: World) -> Turn:
    """OpenCode with our plugin."""
    write_launcher(str(world.memory), str(SCRIPT))
    recorder = [sys.executable, str(RECORDER), str(world.folder / "calls"), "plugin"]
    entry = [PLUGIN.as_uri(), {"command": [*recorder, launcher_path(str(world.memory))]}]
    return OpenCode(world, programs.require(programs.OPENCODE), {"permission": {"*": "allow"}, "plugin": [entry]}).turn


PROGRAMS = {"claude-code": claude_code, "codex": codex, "opencode": opencode}


def warnings(world: World, request: int = -1) -> list[str]:
    """The texts of a main request, by default the newest, that hold a warning of ours."""
    return [text for text in wire.texts(world.requests("main")[request]["body"]) if OPEN in text]


def say(world: World, turn: Turn, prompt: str, tokens: int = 100) -> None:
    """One turn whose answer claims that its request held so many tokens, and what it starts in the background."""
    world.script({"text": f"Done: {prompt}", "usage": {"input": tokens, "output": 10}})
    ended = turn(prompt)
    assert ended.status == 0, ended
    installed.wait_for(lambda: tokens <= occupied(world) < tokens + SLACK, f"{tokens} tokens in the facts")
    installed.wait_until_quiet(world)


def occupied(world: World) -> int:
    """The occupancy that the background left last for a status line."""
    found = [read_facts(str(path.parent)) for path in world.memory.glob("sessions/*/*/facts")]
    return max((facts.tokens for facts in found if facts is not None), default=-1)


def mark_of(world: World) -> int:
    """The occupancy at which the session's program compacts on its own, as we know it."""
    done = installed.command(world, "statusline", "--json")
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout)["mark"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_user_and_the_agent_are_warned_once_a_window_and_mark(world: World, name: str) -> None:
    turn = PROGRAMS[name](world)
    say(world, turn, f"Build the parser. {PIN}")
    say(world, turn, "Go on.")
    mark = mark_of(world)
    assert mark == (MARKS[name] or mark) and mark > 50_000
    assert installed.command(world, "pin", PIN, "--scope", "workspace").returncode == 0
    said = []
    for share in SHARES:
        say(world, turn, f"At {share}.", int(share * mark))
        said.append(len(warnings(world)))
    say(world, turn, "And the rest.", int(0.96 * mark))
    said.append(len(warnings(world)))
    # Each request holds what was said before: a warning is in it from the prompt on that brought it.
    assert said == [0, 0, 1, 1, 2, 2], said
    first, second = warnings(world)
    assert "76 % of the way" in first and "93 % of the way" in second
    assert f"{mark:,} tokens" in first and "1 pin (" in first and "recall" in first
    decisions = installed.rows(world, "memory.db", "SELECT why FROM decisions WHERE what='warn' ORDER BY no")
    assert [why for (why,) in decisions] == [
        text for mark in ("0.72", "0.9") for text in (f"past {mark} of the mark, after boundary -1",
                                                     f"told: past {mark} of the mark, after boundary -1")
    ]  # fmt: skip
    if name != "opencode":
        notices = [json.loads(call.stdout)["systemMessage"] for call in world.calls("UserPromptSubmit") if call.stdout]
        assert ["76 %" in notices[0], "93 %" in notices[1]] == [True, True] and len(notices) == 2
    evidence.assert_all_succeeded(world)


def test_a_window_after_a_compaction_is_warned_of_anew(world: World) -> None:
    """And nothing is left over of a warning that waited when the compaction came."""
    command = programs.require(programs.CLAUDE_CODE)
    config = importlib.import_module("obsmem.harnesses.claude_code").hook_config(world.hook_command)
    harness = ClaudeCode(world, command, config, ("PostCompact",))
    for prompt in ("Begin.", f"Build the parser. {PIN}", "Go on."):
        say(world, harness.turn, prompt, 20_000)
    say(world, harness.turn, "Fill up.", 130_000)
    assert list(world.memory.glob("sessions/*/*/warning"))
    assert harness.turn("/compact").status == 0
    assert world.calls("PostCompact")
    installed.wait_until_quiet(world)
    say(world, harness.turn, "Go on.", 30_000)
    assert warnings(world) == []
    say(world, harness.turn, "More.", 130_000)
    say(world, harness.turn, "And more.", 131_000)
    assert len(warnings(world)) == 1


@pytest.mark.parametrize("program", [programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER], ids=str)
def test_the_line_at_the_terminal_is_shown_within_its_time_and_the_user_is_warned(
    world: World, program: programs.Program
) -> None:
    """Claude Code runs a status line only at a terminal, and shows there what a hook has for the user."""
    command = programs.require(program)
    module = importlib.import_module("obsmem.harnesses.claude_code")
    record = world.memory / "install" / "claude-code" / "record.json"
    record.parent.mkdir(parents=True)
    own = (
        f"{shlex.quote(sys.executable)} -c \"import json,sys; print('MINE', json.load(sys.stdin)['model']['id'][:6])\""
    )
    record.write_text(json.dumps({"/settings.json": {"existed": True, "own": json.dumps(own)}}), encoding="utf-8")
    line = world.recorder("statusLine", sys.executable, "-I", "-S", str(SCRIPT), "hook", "claude-code", "statusLine")
    _, entry = module.status_config(str(world.home), line)
    config = {**module.hook_config(world.hook_command), **entry}
    soon = {"OBSERVATIONAL_MEMORY_SET_OBSERVE_AFTER_TOKENS": "1"}  # every turn's end starts the maintainer
    harness = ClaudeCode(world, command, config, ("PostCompact",), **soon)
    say(world, harness.turn, f"Build the parser. {PIN}", 20_000)
    with open_terminal(world) as terminal:
        harness.open_in(terminal, "--resume", harness.session)
        terminal.wait(lambda: "MINE claude" in terminal.screen() and "memory: " in terminal.screen(), "both lines")
        size = world.calls("statusLine")[-1].payload["context_window"]["context_window_size"]
        tokens = int(0.775 * (size - BEFORE_END))
        terminal.say("Look around.")
        installed.wait_for(lambda: mark_of(world) == size - BEFORE_END, "the mark of the window that was reported")
        # As a model's answer does, it takes longer than the program keeps lines back before it writes them: the hook at a
        # turn's end sees the transcript's size, and a turn of which nothing is written yet waits for the next one's end.
        world.script({"text": "Done.", "usage": {"input": tokens, "output": 10}, "seconds": 1})
        terminal.say("Look into it.")
        terminal.wait(lambda: f"77 % to compaction ({tokens // 1000}k of" in terminal.screen(), "the occupancy")
        installed.wait_for(lambda: list(world.memory.glob("sessions/*/*/warning")), "the warning")
        terminal.say("And on.")
        terminal.wait(lambda: "77 % of the way to its compaction" in terminal.screen(), "the line for the user")
        terminal.enter("/exit")
        terminal.wait(lambda: not terminal.is_open(), "the end of the program")
    lines = world.calls("statusLine")
    took = sorted(call.ended - call.started for call in lines)
    assert took and took[-1] < 5_000_000_000, took
    if program == programs.CLAUDE_CODE:  # a newer one may say more
        assert payloads.compare("claude-code", world, lines) == []
    installed.wait_until_quiet(world)
    (window,) = installed.rows(world, "archive.db", "SELECT window FROM sessions")
    assert window == (size,), "what the status line's payload says of the window"
    evidence.assert_all_succeeded(world)
    print(f"statusline: {len(took)} calls, median {took[len(took) // 2] / 1e6:.0f} ms, longest {took[-1] / 1e6:.0f} ms")


def test_a_person_at_the_terminal_of_opencode_sees_the_warning(world: World) -> None:
    """Its plugin shows the line for the user for a few seconds."""
    turn = opencode(world)
    say(world, turn, f"Build the parser. {PIN}", 75_000)
    harness = turn.__self__  # type: ignore[attr-defined]
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        time.sleep(1)
        terminal.enter("And on.")
        terminal.wait(lambda: "81 % of the way" in terminal.screen(), "the line for the user")
