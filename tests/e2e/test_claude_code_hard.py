"""Claude Code itself in hard conditions: resumed, killed, doubled, rewound, very long, in another language."""

from __future__ import annotations

import importlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from obsmem.core.tokens import estimate

from . import evidence, installed, long_session, programs, wire
from .claude_code import ClaudeCode
from .terminal import open_terminal
from .world import World

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tidy")]

OTHERS = ("SubagentStop", "PostCompact")
PRECOMPACT_LIMIT = 50  # seconds, of our own hook; the harness would wait 60


def _start(world: World, **settings: Any) -> ClaudeCode:
    """Our hooks in Claude Code, under a config file of this world with these settings."""
    command = programs.require(programs.CLAUDE_CODE)
    file = world.home / ".config" / "memory.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()), encoding="utf-8")
    config = importlib.import_module("obsmem.harnesses.claude_code").hook_config(world.hook_command)
    temporary = world.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = {"OBSERVATIONAL_MEMORY_CONFIG": str(file), "TMPDIR": str(temporary)}
    return ClaudeCode(world, command, config, OTHERS, **environment)


def _block_with(world: World, prompt: str) -> str:
    """The whole block in the last main request that ends with this prompt."""
    bodies = [request["body"] for request in world.requests("main")]
    body = [one for one in bodies if prompt in "\n".join(wire.texts(wire.messages(one)[-1]))][-1]
    return "\n".join(part.text for part in evidence.whole_delivery(evidence.parts_in(body)))


def test_a_new_process_of_a_session_keeps_its_notes_and_adds_none_twice(world: World) -> None:
    harness = _start(world, observe_after_tokens=1)
    for used in (2_000, 9_000):  # what the provider says was used is what tells when to observe
        world.script({"text": "Understood.", "usage": {"input": used, "output": 10}})
    found = []
    for prompt in ("Never use tabs in Python files.", "Always write the log to /var/log/teal.log."):
        assert harness.turn(prompt).status == 0
        installed.wait_until_quiet(world)
        found.append(installed.rows(world, "memory.db", "SELECT id, text FROM notes ORDER BY no"))
    before, after = found
    assert 0 < len(before) < len(after) and after[: len(before)] == before
    assert len({text for _, text in after}) == len(after)
    covered = "SELECT session, first_seq, last_seq FROM coverage ORDER BY session, first_seq"
    stretches = installed.rows(world, "memory.db", covered)
    assert len({session for session, _, _ in stretches}) == 1
    for (_, _, last), (_, first, _) in itertools.pairwise(stretches):
        assert first > last, stretches
    evidence.assert_all_succeeded(world)


def test_two_sessions_at_once_in_one_folder_do_not_mix(world: World) -> None:
    first = _start(world)
    second = first.other_session()
    red_prompts = ("The project of red is called Nightjar.", "Is it?", "/compact", "Go on with red.")
    blue_prompts = ("The project of blue is called Kestrel.", "Is it?", "/compact", "Go on with blue.")
    with ThreadPoolExecutor() as pool:
        for pair in zip(red_prompts, blue_prompts, strict=True):
            done = [pool.submit(one.turn, said) for one, said in zip((first, second), pair, strict=True)]
            assert [each.result().status for each in done] == [0, 0]
    assert first.session != second.session
    red, blue = _block_with(world, "Go on with red."), _block_with(world, "Go on with blue.")
    assert "Nightjar" in red and "Kestrel" not in red
    assert "Kestrel" in blue and "Nightjar" not in blue
    evidence.assert_all_succeeded(world)


def test_a_harness_killed_in_the_middle_of_a_turn_loses_nothing(world: World) -> None:
    """The agent's own command kills the harness: no Stop, no SessionEnd. Resumed and compacted, the block is whole."""
    harness = _start(world)
    assert harness.turn("Never use tabs in Python files.").status == 0
    kill = {"command": "kill -9 $PPID; sleep 30", "description": "Run it"}
    world.script({"text": "I run the check now.", "tools": [{"name": "Bash", "input": kill}]})
    ends = len(world.calls("Stop")), len(world.calls("SessionEnd"))
    ended = harness.turn("The server listens on port 8123.")
    assert ended.status not in (0, None), ended
    assert (len(world.calls("Stop")), len(world.calls("SessionEnd"))) == ends
    for prompt in ("/compact", "Go on."):
        assert harness.turn(prompt).status == 0
    block = _block_with(world, "Go on.")
    assert "Never use tabs" in block and "port 8123" in block
    evidence.assert_all_succeeded(world)


def english(number: int) -> tuple[str, str]:
    asked = (
        f"Use the value {number * 37} for the setting limit_{number:03d} and never write it into build_{number:03d}.py."
    )
    told = f"I set limit_{number:03d} to {number * 37} in settings/part_{number:03d}.toml; the check of step {number} passes."
    return asked, told


def japanese(number: int) -> tuple[str, str]:
    asked = f"設定項目 limit_{number:03d} の値は必ず {number * 37} にしてください。build_{number:03d}.py には絶対に書かないでください。"
    told = f"settings/part_{number:03d}.toml の limit_{number:03d} を {number * 37} に変更しました。手順 {number} の検査は成功しました。"
    return asked, told


@pytest.mark.parametrize("budget", [8000, 2000])
@pytest.mark.parametrize("exchange", [english, japanese], ids=["english", "japanese"])
def test_the_bytes_of_the_block_that_arrive_are_those_that_were_rendered(
    world: World, exchange: Any, budget: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """However large the block, in whatever script: the request holds each part once, byte for byte."""
    harness = _start(world, budget_tokens=budget)
    assert harness.turn("Say something.").status == 0
    installed.wait_until_quiet(world)
    long_session.append(harness.transcript(), (exchange(number) for number in range(150)))
    for prompt in ("/compact", "Go on."):
        assert harness.turn(prompt).status == 0
    evidence.assert_all_succeeded(world)
    parts = evidence.whole_delivery(evidence.parts_in(evidence.first_main_request_after_summary(world)))
    (frozen,) = (path.read_bytes() for path in world.memory.glob("sessions/*/*/block.current"))
    for part in parts:
        assert frozen.count(part.text.encode()) == 1
    given = [text.strip() for text in evidence.contexts(evidence.our_calls(world, "SessionStart"))]
    assert sorted(part.text for part in parts) == sorted(given)
    found = sum(len(part.text.encode()) for part in parts)
    with capsys.disabled():
        print(f" {budget} tokens: {sum(len(text.encode()) for text in given)} bytes rendered, {found} found")
    used = sum(estimate(part.text) for part in parts)
    assert budget / 2 < used <= budget, used


def test_a_session_that_was_long_before_memory_was_installed_gets_its_block(world: World) -> None:
    """About 150,000 tokens, none of them seen by a hook; then our hooks are there, and the session is compacted."""
    bare = ClaudeCode(world, programs.require(programs.CLAUDE_CODE), {}, ())
    assert bare.turn("Never touch the archive of the year 1987.").status == 0
    filler = "The importer reads the next table, checks each of its columns, and writes down what differs. " * 15
    said = [(f"Now import table_{number:03d}.", f"I begin. {filler} That was {number}.") for number in range(400)]
    size = sum(estimate(text) for pair in said for text in pair)
    assert 130_000 < size < 170_000, size
    long_session.append(bare.transcript(), said)
    harness = _start(world)
    harness.session = bare.session
    for prompt in ("/compact", "Go on."):
        assert harness.turn(prompt).status == 0
    block = _block_with(world, "Go on.")
    assert "table_399" in block and "1987" in block
    (call,) = evidence.our_calls(world, "PreCompact")
    assert (call.ended - call.started) / 1e9 < PRECOMPACT_LIMIT
    assert "outcome=exit-0" in (world.memory / "log.txt").read_text(encoding="utf-8")
    evidence.assert_all_succeeded(world)


def test_what_a_rewind_took_back_is_not_in_the_block(world: World) -> None:
    """Esc, Esc, up, Enter: the last prompt is off the live path, and a compaction brings back what stands before it."""
    harness = _start(world)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        say = terminal.say
        say("Never use tabs in Python files.")
        say("The server listens on port 8123.")
        say("The project is called Nightjar.")
        terminal.press("Escape", "Escape")
        terminal.wait(lambda: "Enter to continue" in terminal.screen(), "the list of prompts")
        terminal.press("Up")
        terminal.wait(lambda: "❯ (current)" not in terminal.screen(), "the last prompt, chosen")
        terminal.press("Enter")
        terminal.wait(lambda: "Restore conversation" in terminal.screen(), "what to restore")
        terminal.press("Enter")
        terminal.wait(lambda: "Restore conversation" not in terminal.screen(), "the conversation before it")
        terminal.press("C-u")
        terminal.wait(lambda: "Nightjar" not in terminal.screen(), "an empty line")
        say("Everything else stays.")
        say("/compact", "PostCompact")
        say("What is next?")
        say("/exit", "SessionEnd")
    block = _block_with(world, "What is next?")
    assert "Never use tabs" in block and "port 8123" in block and "Everything else stays" in block
    assert "Nightjar" not in block
    evidence.assert_all_succeeded(world)
