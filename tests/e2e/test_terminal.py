"""A person at a terminal, before Claude Code itself and before Codex itself: who leaves in a turn, and comes back.

Owns what only a terminal can do to a session. Invariant: what a test proves stands in the requests to the model and in our
store; the screen only tells when the program is ready for the next key.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import Any

import pytest

from obsmem.harnesses import claude_code, codex
from obsmem.store.archive_schema import KIND_CODES, OBSERVABLE, SEQ_BITS
from obsmem.system.blockfile import DUE_SECONDS

from . import evidence, installed, programs, wire
from .claude_code import ClaudeCode
from .codex import Codex
from .terminal import Terminal, open_terminal
from .world import World

pytestmark = pytest.mark.e2e

PROGRAMS = (programs.CLAUDE_CODE, programs.CLAUDE_CODE_NEWER, programs.CODEX)
TABS, PORT = "Never use tabs in Python files.", "The server listens on port 8123."
BETWEEN_KEYS = 1.5  # seconds; Codex takes keys that follow each other at once for pasted text, an Enter among them
BEGUN = "I begin to look at the server."


class Person:
    """Somebody before one program. Each turn is observed when it ends, except those of the very first visit, which are
    observed at its end: a hook that knows nothing of a session yet waits until it is long."""

    def __init__(self, terminal: Terminal, program: programs.Program) -> None:
        self.terminal = terminal
        self.world = terminal.world
        self.harness = _harness(self.world, program)
        self.used = 0

    def begin(self) -> None:
        """Start the program with a session of its own."""
        self._open()

    def begin_and_come_back(self, prompt: str) -> None:
        """A first visit for one prompt, and the beginning of a second one."""
        self.begin()
        self.say(prompt)
        self.exit()
        installed.wait_until_quiet(self.world)
        self.come_back()

    def come_back(self) -> None:
        """Start the program once more, in the session that was the last."""
        self._open(*(["--continue"] if isinstance(self.harness, ClaudeCode) else ["resume", "--last"]))

    def _open(self, *more: str) -> None:
        self.harness.open_in(self.terminal, *more)
        self.terminal.wait(self.listens, "its prompt")

    def listens(self) -> bool:
        """True once the program takes keys; Claude Code does so as soon as it is open."""
        return not isinstance(self.harness, Codex) or self.harness.listens(self.terminal)

    def exit(self) -> None:
        """Enter ``/exit``, which waits for the end of a turn, and wait until the program has ended."""
        self.terminal.enter("/exit")
        self.terminal.wait(lambda: not self.terminal.is_open(), "the end of the program")

    def say(self, *prompts: str) -> None:
        """Enter prompts, each after the end of the turn before it."""
        for prompt in prompts:
            self._script(text="Understood.")
            self.terminal.say(prompt)

    def say_patiently(self, prompt: str) -> None:
        """The same where a session is new: Codex shows its prompt before it takes an Enter, so press it again."""
        heard, ended = (len(self.world.calls(event)) for event in ("UserPromptSubmit", "Stop"))
        self._script(text="Understood.")
        self.terminal.enter(prompt)
        calls, pressed = self.world.calls, time.monotonic()

        def is_heard() -> bool:
            nonlocal pressed
            if time.monotonic() - pressed > BETWEEN_KEYS:
                self.terminal.press("Enter")
                pressed = time.monotonic()
            return len(calls("UserPromptSubmit")) > heard

        self.terminal.wait(is_heard, "the prompt")
        self.terminal.wait(lambda: len(calls("Stop")) > ended, "the end of its turn")

    def _script(self, **answer: Any) -> None:
        # What the provider says was used is what tells the maintainer when to observe.
        self.used += 1_000
        self.world.script({**answer, "usage": {"input": self.used, "output": 10}})

    def compact(self) -> None:
        """Enter ``/compact`` and wait until it is done."""
        self.terminal.say("/compact", "PostCompact")

    def say_and_wait_inside(self, prompt: str, inside: str) -> None:
        """Enter a prompt and wait until its answer has begun (``stream``), or its command runs (``tool``)."""
        if inside == "stream":
            # The rest of a line is not shown before its end.
            self._script(text=f"{BEGUN}\n\nIt", stalled=True)
            self.terminal.enter(prompt)
            self.terminal.wait(lambda: BEGUN in self.terminal.screen(), "the beginning of the answer")
        else:
            self._script(text=BEGUN, tools=[self._shell("touch begun; sleep 300")])
            self.terminal.enter(prompt)
            self.terminal.wait((self.world.project / "begun").exists, "the command of the turn")

    def _shell(self, command: str) -> dict[str, Any]:
        if isinstance(self.harness, Codex):
            return {"name": "exec_command", "input": {"cmd": command}}
        return {"name": "Bash", "input": {"command": command, "description": "Run it"}}


def _harness(world: World, program: programs.Program) -> ClaudeCode | Codex:
    file = world.home / ".config" / "memory.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("observe_after_tokens: 1\n", encoding="utf-8")
    command = programs.require(program)
    if program == programs.CODEX:
        harness = Codex(world, command, codex.hook_config(world.hook_command), ("PostCompact", "Interrupt"))
        harness.environment["OBSERVATIONAL_MEMORY_CONFIG"] = str(file)
        return harness
    config = claude_code.hook_config(world.hook_command)
    others = ("SubagentStop", "PostCompact")
    return ClaudeCode(world, command, config, others, OBSERVATIONAL_MEMORY_CONFIG=str(file))


def _block(world: World) -> str:
    """The whole block in the first request after the last compaction, where it must stand once."""
    parts = evidence.parts_in(evidence.first_main_request_after_summary(world))
    return "\n".join(part.text for part in evidence.whole_delivery(parts))


def _assert_observed_once(world: World) -> None:
    """No stretch overlaps the next, no entry between them is left out, and none before the last compaction is."""
    stretches = installed.rows(world, "memory.db", "SELECT first_seq, last_seq FROM coverage ORDER BY 1")
    assert stretches
    assert all(last < first for (_, last), (first, _) in pairwise(stretches)), stretches
    ((session,),) = installed.rows(world, "archive.db", "SELECT no FROM sessions WHERE role = 'main'")
    of_session = f"SELECT no & {(1 << SEQ_BITS) - 1} FROM entries WHERE no >> {SEQ_BITS} = {session} AND"
    boundaries = installed.rows(world, "archive.db", f"{of_session} kind = {KIND_CODES['boundary']}")
    due = max(stretches[-1][1], *(seq for (seq,) in boundaries), 0)
    seqs = [seq for (seq,) in installed.rows(world, "archive.db", f"{of_session} {OBSERVABLE}") if seq <= due]
    assert [seq for seq in seqs if not any(first <= seq <= last for first, last in stretches)] == [], stretches
    assert len(set(_notes(world))) == len(_notes(world)), _notes(world)


def _notes(world: World) -> list[str]:
    return [str(text) for (text,) in installed.rows(world, "memory.db", "SELECT text FROM notes ORDER BY no")]


@pytest.mark.parametrize("inside", ["stream", "tool"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.command}-{program.version}")
def test_who_leaves_in_a_turn_finds_everything_again(world: World, program: programs.Program, inside: str) -> None:
    """By Ctrl-C while the answer streams, by closing the window while a command runs."""
    with open_terminal(world) as terminal:
        person = Person(terminal, program)
        person.begin_and_come_back(TABS)
        person.say_and_wait_inside(PORT, inside)
        if inside == "stream":
            terminal.leave()
        else:
            terminal.hang_up()
        installed.wait_until_quiet(world)
        _assert_observed_once(world)
        assert "tabs" in "\n".join(_notes(world))
        person.come_back()
        person.say("Go on.")
        person.compact()
        person.say("What is next?")
        block = _block(world)
        assert "Never use tabs" in block and "port 8123" in block
        terminal.leave()
    installed.wait_until_quiet(world)
    _assert_observed_once(world)
    assert "\n".join(_notes(world)).count("8123") == 1
    evidence.assert_all_succeeded(world)


@pytest.mark.parametrize("inside", ["stream", "tool"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.command}-{program.version}")
def test_what_was_said_before_an_interruption_is_kept_once(
    world: World, program: programs.Program, inside: str
) -> None:
    """Esc in a turn, and the session goes on in the same process."""
    with open_terminal(world) as terminal:
        person = Person(terminal, program)
        person.begin_and_come_back(TABS)
        person.say_and_wait_inside(PORT, inside)
        terminal.press("Escape")
        terminal.wait(lambda: "nterrupted" in terminal.screen(), "the interruption")
        person.say("Go on.")
        assert len(world.calls("Stop")) == 2, "an interrupted turn has no end"
        installed.wait_until_quiet(world)
        _assert_observed_once(world)
        before = _notes(world)
        assert "\n".join(before).count("8123") == 1
        person.compact()
        person.say("What is next?")
        block = _block(world)
        assert "Never use tabs" in block and "port 8123" in block and "Go on." in block
        terminal.leave()
    installed.wait_until_quiet(world)
    _assert_observed_once(world)
    assert _notes(world)[: len(before)] == before
    evidence.assert_all_succeeded(world)


def _refuse(person: Person) -> None:
    """Enter a ``/compact`` for which there is too little, and wait until the program has said so."""
    person.terminal.enter("/compact")
    person.terminal.wait(lambda: "messages to compact" in _after_compact(person.terminal), "the refusal")


def _after_compact(terminal: Terminal) -> str:
    """What the screen shows below the last ``/compact``."""
    return terminal.screen().rpartition("❯ /compact")[2]


def _cancel(person: Person) -> None:
    """Enter ``/compact`` and press Esc while the summary is written."""
    person.world.script({"text": "I begin.", "stalled": True}, kind="summary")
    person.terminal.enter("/compact")
    person.terminal.wait(lambda: person.world.requests("summary") != [], "the request for a summary")
    person.terminal.wait(lambda: "ompacting con" in person.terminal.screen(), "the compaction")
    person.terminal.press("Escape")
    person.terminal.wait(lambda: "ompacting con" not in person.terminal.screen(), "the end of the compaction")
    person.terminal.press("C-u")  # Claude Code gives the command back
    person.terminal.wait(lambda: "❯ /compact  <" not in person.terminal.screen(), "an empty line")
    assert len(person.world.calls("PreCompact")) == 1 and person.world.calls("PostCompact") == []


def _assert_nothing_owed(world: World) -> None:
    """No prompt brought anything, and ``status`` knows of no block that did not arrive, and of no trouble."""
    assert evidence.contexts(evidence.our_calls(world, "UserPromptSubmit")) == []
    told = installed.status(world)
    assert [block for block in told["blocks"] if block["state"] != "whole"] == []
    assert (told["trouble"], told["failed_calls"], told["gaps"], told["behind"]) == ("", 0, 0, [])


def _grow_old(world: World) -> None:
    """As if half an hour had passed since the compaction that did not come."""
    (mark,) = world.memory.glob("sessions/*/*/block.open")
    for path in (mark, mark.with_name("block.due")):
        os.utime(path, (time.time() - DUE_SECONDS - 1,) * 2)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.command}-{program.version}")
def test_after_a_compaction_that_was_cancelled_no_block_is_owed(world: World, program: programs.Program) -> None:
    """The block was ready. It is given with no prompt, neither soon nor later, and the next compaction brings one."""
    with open_terminal(world) as terminal:
        person = Person(terminal, program)
        person.begin()
        person.say(TABS, PORT)
        _cancel(person)
        person.say("Go on.")
        assert evidence.parts_in(world.requests("main")[-1]["body"]) == []
        _grow_old(world)
        person.say("And on.")
        installed.wait_until_quiet(world)
        assert not list(world.memory.glob("sessions/*/*/block.open"))
        person.say("Still on.")
        assert evidence.parts_in(world.requests("main")[-1]["body"]) == []
        _assert_nothing_owed(world)
        person.compact()
        person.say("What is next?")
        assert "port 8123" in _block(world) and "Still on." in _block(world)
        terminal.leave()
    installed.wait_until_quiet(world)
    _assert_observed_once(world)
    _assert_nothing_owed(world)
    evidence.assert_all_succeeded(world)


@pytest.mark.parametrize(
    ("program", "prompts"),
    # The newer one compacts a single turn, and once more what a compaction of two turns has kept.
    [(programs.CLAUDE_CODE, (TABS, PORT)), (programs.CLAUDE_CODE_NEWER, (PORT,))],
    ids=["claude-2.1.197", "claude-2.1.332"],
)
def test_claude_code_that_has_nothing_to_compact_is_owed_no_block(
    world: World, program: programs.Program, prompts: tuple[str, ...]
) -> None:
    """Before a word was said, and straight after a compaction, whose own block stays the only one. Codex never refuses."""
    with open_terminal(world) as terminal:
        person = Person(terminal, program)
        person.begin()
        _refuse(person)
        person.say(*prompts)
        assert evidence.parts_in([request["body"] for request in world.requests()]) == []
        _assert_nothing_owed(world)
        person.compact()
        before = len(world.calls("PreCompact"))
        _refuse(person)
        assert len(world.calls("PreCompact")) == before + 1, "our hook is told of this one, too"
        person.say("What is next?")
        assert "port 8123" in _block(world)
        person.say("And on.")
        _block(world)
        assert len(evidence.parts_in(world.requests("main")[-1]["body"])) == 1
        terminal.leave()
    installed.wait_until_quiet(world)
    _assert_nothing_owed(world)
    evidence.assert_all_succeeded(world)


def test_codex_begins_anew_without_the_block(world: World) -> None:
    """``/compact`` brings the whole block with the next request; ``/new`` begins a session that has none of it."""
    with open_terminal(world) as terminal:
        person = Person(terminal, programs.CODEX)
        person.begin()
        person.say(TABS, PORT)
        person.compact()
        person.say("What is next?")
        assert "Never use tabs" in _block(world) and "port 8123" in _block(world)
        terminal.enter("/new")
        terminal.wait(lambda: "What is next?" not in terminal.screen(), "the new session")
        terminal.wait(person.listens, "its prompt")
        person.say_patiently("The project is called Nightjar.")
        said = "\n".join(wire.texts(world.requests("main")[-1]["body"]))
        assert "Nightjar" in said and "port 8123" not in said
        assert evidence.parts_in(world.requests("main")[-1]["body"]) == []
        person.compact()
        person.say("Go on.")
        assert "Nightjar" in _block(world) and "port 8123" not in _block(world)
        terminal.leave()
    evidence.assert_all_succeeded(world)
    sessions = {call.payload["session_id"]: call.payload["source"] for call in world.calls("SessionStart")}
    assert list(sessions.values()) == ["compact", "compact"], "each was compacted, after its start"
