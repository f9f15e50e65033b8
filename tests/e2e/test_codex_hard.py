"""The Codex CLI itself in hard times: approval and upgrade, forks, crashes, long sessions, and a store that is broken."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from obsmem.harnesses import codex

from . import evidence, installed, programs, wire
from .codex import NAME, Codex
from .terminal import Terminal, open_terminal
from .world import World

pytestmark = pytest.mark.e2e

FULL = {"input": 500_000, "output": 20}


def _approve(harness: Codex) -> None:
    """Start Codex in a terminal and trust the hooks that it asks about, as its user does once."""
    with open_terminal(harness.world) as terminal:
        harness.open_in(terminal)
        terminal.wait(lambda: "Hooks need review" in terminal.screen(), "the question about hooks")
        terminal.wait(lambda: _points_at(terminal, 2), "the choice")
        terminal.press("Enter")
        terminal.wait(lambda: "trusted_hash" in _config(harness.world), "the approval in config.toml")
        terminal.wait(lambda: "Hooks need review" not in terminal.screen(), "the prompt")


def _points_at(terminal: Terminal, wanted: int) -> bool:
    """True once the cursor of a list stands there; keys that come before the list listens are lost, so press again."""
    at = re.search(r"› (\d)\. ", terminal.screen())
    if at and int(at.group(1)) != wanted:
        terminal.press("Down" if int(at.group(1)) < wanted else "Up")
    return bool(at) and "› 2. Trust all" in terminal.screen()


def _config(world: World) -> str:
    return (world.home / ".codex" / "config.toml").read_text(encoding="utf-8")


def _trusted(world: World) -> list[str]:
    return [line for line in _config(world).split("\n") if line.startswith(("[hooks.state.", "trusted_hash"))]


def _block(harness: Codex) -> str:
    body = evidence.first_main_request_after_summary(harness.world)
    return "\n".join(part.text for part in evidence.whole_delivery(evidence.parts_in(body)))


def _start(world: World, *, with_hooks: bool = True) -> Codex:
    config = codex.hook_config(world.hook_command) if with_hooks else {}
    return Codex(world, programs.require(programs.CODEX), config, ())


def _shell(command: str) -> dict[str, Any]:
    return {"name": "exec_command", "input": {"cmd": command}}


def _assert_observed_once(world: World) -> None:
    """No two stretches of a session overlap, and no copied entry is behind a note."""
    stretches = installed.rows(world, "memory.db", "SELECT session, first_seq, last_seq FROM coverage ORDER BY 1, 2")
    assert stretches
    for (session, _, last), (following, first, _) in pairwise(stretches):
        assert session != following or last < first, stretches
    cited = installed.rows(world, "memory.db", "SELECT DISTINCT session, seq FROM note_entries")
    question = "SELECT handle, e.no & 4294967295 FROM entries e JOIN sessions s ON s.no = e.no >> 32 WHERE copied = 1"
    assert set(cited).isdisjoint(installed.rows(world, "archive.db", question))


def _assert_archived(world: World, harness: Codex) -> None:
    """The store has read the whole rollout: what it kept of it has the file's size."""
    (path,) = (world.home / ".codex" / "sessions").rglob(f"*{harness.session}.jsonl")
    done = installed.command(world, "ingest", str(path))
    assert done.returncode == 0, done.stderr
    question = "SELECT sum(segments.size) FROM segments JOIN sources ON sources.no = source WHERE path = ?"
    assert installed.rows(world, "archive.db", question, str(path)) == [(path.stat().st_size,)]


def test_hooks_run_once_they_are_approved_and_an_upgrade_keeps_the_approval(world: World) -> None:
    """Without any flag: silent before the approval, at work after it, and after an upgrade from another folder."""
    command = programs.require(programs.CODEX)
    harness = Codex(world, command, None)
    installed.install(world, NAME)
    installed.wait_until_quiet(world)
    before_turn = installed.log(world)  # an installation tries its hooks
    assert harness.turn("Say something.").status == 0
    assert installed.log(world) == before_turn, "nothing runs that nobody approved"
    _approve(harness)
    assert len(_trusted(world)) == 10, "a section and a hash for each of five handlers"
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("The server listens on port 8123.", "Go on."):
        assert harness.turn(prompt).status == 0
    assert "port 8123" in _block(harness)

    before, hooks = _trusted(world), (world.home / ".codex" / "hooks.json").read_bytes()
    launcher = (world.memory / "launch").read_bytes()
    elsewhere = world.folder / "newer"
    elsewhere.mkdir()
    installed.install(world, NAME, script=installed.copy_of_checkout(elsewhere))
    assert (world.memory / "launch").read_bytes() != launcher
    assert str(elsewhere) in (world.memory / "launch").read_text(encoding="utf-8")
    assert (world.home / ".codex" / "hooks.json").read_bytes() == hooks
    assert _trusted(world) == before
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("The client listens on port 9234.", "Go on."):
        assert harness.turn(prompt).status == 0
    assert "port 9234" in _block(harness)
    assert _trusted(world) == before


def test_a_resumed_process_gets_the_block_that_its_context_lacks_and_once(world: World) -> None:
    """The start after the compaction is not ours to answer here; the one of the next process is."""
    config = codex.hook_config(world.hook_command)
    for group in config["hooks"]["SessionStart"]:
        group["matcher"] = "resume"
    harness = Codex(world, programs.require(programs.CODEX), config, ())
    world.script({"text": "One."}, {"text": "I look.", "tools": [_shell("ls")], "usage": FULL})
    _say(harness, "Never use tabs in Python files.", "The server listens on port 8123.")
    assert evidence.parts_in(evidence.first_main_request_after_summary(world)) == []
    installed.wait_for(lambda: list(world.memory.glob("sessions/*/*/block.resume")), "a block for the next process")
    _say(harness, "Go on.")
    body = world.requests("main")[-1]["body"]
    parts = evidence.whole_delivery(evidence.parts_in(body))
    assert "Never use tabs" in parts[0].text and "port 8123" in parts[0].text
    _say(harness, "And on.")
    assert evidence.parts_in(world.requests("main")[-1]["body"]) == evidence.parts_in(body), "the context holds it now"
    evidence.assert_all_succeeded(world)


def test_a_fork_has_what_the_parent_held_until_then_and_observes_nothing_twice(world: World) -> None:
    """The child's block: the parent's words before the fork, its own after it. The store: each entry observed once."""
    harness = _start(world)
    _say(harness, "Write the parser first. Never use tabs in Python files.", "The server listens on port 8123.")
    _compact(harness)
    of_fork, of_parent, fork, parent = _blocks_of_fork_and_parent(harness)
    for block in (of_fork, of_parent):
        assert "Never use tabs" in block and "port 8123" in block
    assert "Nightjar" in of_fork and "Nightjar" not in of_parent
    assert "teal" not in of_fork and "teal" in of_parent
    _assert_observed_once(world)
    question = "SELECT id, handle, no, parent FROM sessions"
    sessions = {row[0]: row[1:] for row in installed.rows(world, "archive.db", question)}
    assert sessions[fork][2] == sessions[parent][1]
    notes = installed.rows(world, "memory.db", "SELECT text FROM notes WHERE session=?", sessions[fork][0])
    assert "tabs" not in str(notes) and "8123" not in str(notes), notes


def test_a_fork_has_what_nobody_had_observed_of_the_parent_yet(world: World) -> None:
    """The parent is too short for the observer, and was never compacted."""
    harness = _start(world)
    _say(harness, "Write the parser first. Never use tabs in Python files.", "The server listens on port 8123.")
    of_fork, of_parent, _, _ = _blocks_of_fork_and_parent(harness)
    assert "Never use tabs" in of_parent
    assert "Never use tabs" in of_fork and "port 8123" in of_fork


def _blocks_of_fork_and_parent(harness: Codex) -> tuple[str, str, str, str]:
    """Fork, go on in both, and compact both: (block of the fork, block of the parent, their thread ids)."""
    parent = harness.session
    assert harness.fork("In this attempt the project is called Nightjar.").status == 0
    fork, harness.session = harness.session, parent
    assert fork not in ("", parent)
    _say(harness, "Everything is teal from now on.")
    blocks = []
    for session in (fork, parent):
        harness.session = session
        _compact(harness)
        blocks.append(_block(harness))
    installed.wait_until_quiet(harness.world)
    return blocks[0], blocks[1], fork, parent


def _say(harness: Codex, *prompts: str) -> None:
    for prompt in prompts:
        assert harness.turn(prompt).status == 0


def _compact(harness: Codex) -> None:
    """A turn that fills the window, and one that begins with the compaction."""
    harness.world.script({"text": "Full.", "usage": FULL})
    _say(harness, "Fill up.", "What is next?")


def test_two_sessions_at_once_in_one_folder_keep_apart(world: World) -> None:
    """Each block has the words of its own session alone, and one store holds both."""
    harnesses = {"Nightjar": _start(world), "Kestrel": _start(world)}

    def say(prompt: str) -> None:
        with ThreadPoolExecutor() as pool:
            turns = [pool.submit(one.turn, prompt.format(name)) for name, one in harnesses.items()]
            assert [turn.result().status for turn in turns] == [0, 0]

    say("The project is called {}.")
    world.script(*[{"text": "Full.", "usage": FULL}] * 2)
    say("Fill {} up.")
    say("Go on with {}.")
    evidence.assert_all_succeeded(world)
    for name, other in (("Nightjar", "Kestrel"), ("Kestrel", "Nightjar")):
        bodies = [request["body"] for request in world.requests("main")]
        (body,) = [body for body in bodies if f"Go on with {name}." in "\n".join(wire.texts(body))]
        block = "\n".join(part.text for part in evidence.whole_delivery(evidence.parts_in(body)))
        assert f"called {name}" in block and other not in block
    installed.wait_until_quiet(world)
    _assert_observed_once(world)
    assert installed.rows(world, "archive.db", "SELECT count(*) FROM sessions") == [(2,)]


def test_a_session_that_was_killed_goes_on_with_all_that_was_written(world: World) -> None:
    """SIGKILL in the middle of a turn, by a command of that turn; the resumed session compacts and has its block."""
    harness = _start(world)
    assert harness.turn("Never use tabs in Python files.").status == 0
    world.script({"text": "I try.", "tools": [_shell("kill -9 $PPID; sleep 20")]})
    assert harness.turn("The server listens on port 8123.").status != 0
    assert len(evidence.our_calls(world, "Stop")) == 1, "the turn has no end"
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("What happened?", "Go on."):
        assert harness.turn(prompt).status == 0
    evidence.assert_all_succeeded(world)
    block = _block(harness)
    for expected in ("Never use tabs", "port 8123", "What happened?"):
        assert expected in block, block
    installed.wait_until_quiet(world)
    _assert_observed_once(world)
    _assert_archived(world, harness)


def test_memory_that_is_installed_late_covers_a_long_session(world: World) -> None:
    """About 150,000 tokens were said before; the first compaction after it has a block, and every entry is covered."""
    harness = _start(world, with_hooks=False)
    said = (
        "".join(f"Row {turn}.{row} of the table is sound and needs no change.\n" for row in range(2400))
        for turn in range(5)
    )
    for turn, text in enumerate(said):
        world.script({"text": text})
        prompt = "Never touch the file legacy/config.yaml." if turn == 0 else f"Look at table {turn}."
        assert harness.turn(prompt).status == 0
    late = _start(world)
    late.session = harness.session
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("The server listens on port 8123.", "Go on."):
        assert late.turn(prompt).status == 0
    evidence.assert_all_succeeded(world)
    block = _block(late)
    assert "legacy/config.yaml" in block and "port 8123" in block
    installed.wait_until_quiet(world)
    (tokens,) = installed.rows(world, "archive.db", "SELECT sum(tokens) FROM entries")[0]
    assert tokens > 140_000
    _assert_observed_once(world)
    _assert_archived(world, late)
    assert installed.rows(world, "memory.db", "SELECT count(*) FROM gaps") == [(0,)]


@pytest.mark.parametrize("limit", [None, 0, 100_000])
def test_the_cut_of_a_hook_context_follows_its_own_limit(world: World, limit: int | None) -> None:
    """What Codex itself does with 20,000 characters from one handler, by the handler's ``additionalContextLimit``."""
    words = "".join(f"word {number:05d} stands here. " for number in range(20_000 // 23))
    output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": words}}
    path = world.folder / "answer.json"
    path.write_text(json.dumps(output), encoding="utf-8")
    handler = {"type": "command", "command": world.recorder("SessionStart", "cat", str(path)), "timeout": 30}
    if limit is not None:
        handler["additionalContextLimit"] = limit
    config = {"hooks": {"SessionStart": [{"hooks": [handler]}]}}
    harness = Codex(world, programs.require(programs.CODEX), config, ())
    assert harness.turn("Say something.").status == 0
    developer = [item for item in world.requests("main")[0]["body"]["input"] if item.get("role") == "developer"]
    (text,) = [text for text in wire.texts(developer) if "word 00000" in text]
    if limit is None:
        assert len(text) < 10_500 and "Full hook output saved to" in text and "word 00868" in text
    else:
        assert text == words
