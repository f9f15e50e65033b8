"""OpenCode itself in hard conditions: typed by a person, ended or killed in a turn, undone, long before we came."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest

from obsmem.core.tokens import estimate
from obsmem.store.archive_schema import KIND_CODES, OBSERVABLE
from obsmem.system.launcher import launcher_path, write_launcher

from . import evidence, installed, programs, wire
from .opencode import OpenCode
from .terminal import Terminal, open_terminal
from .world import PROJECT_ROOT, RECORDER, SCRIPT, World

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tidy")]

PLUGIN = PROJECT_ROOT / "opencode-plugin" / "observational-memory.js"
BUDGET = 8_000  # tokens
TABS, PORT, NAME = (
    "Never use tabs in Python files.",
    "The server listens on port 8123.",
    "The project is called Nightjar.",
)


def start(world: World, *, with_plugin: bool = True, **settings: Any) -> OpenCode:
    """OpenCode with our plugin behind the recorder, under a config file of this world with these settings."""
    write_launcher(str(world.memory), str(SCRIPT))
    recorder = [sys.executable, str(RECORDER), str(world.folder / "calls"), "plugin"]
    entry = [PLUGIN.as_uri(), {"command": [*recorder, launcher_path(str(world.memory))]}]
    config = {"permission": {"*": "allow"}, "plugin": [entry] if with_plugin else []}
    harness = OpenCode(world, programs.require(programs.OPENCODE), config)
    file = world.home / ".config" / "memory.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in settings.items()), encoding="utf-8")
    # It unpacks libraries of its own there, and the plugin's payloads pass through there.
    temporary = world.folder / "temporary"
    temporary.mkdir(exist_ok=True)
    harness.environment |= {"OBSERVATIONAL_MEMORY_CONFIG": str(file), "TMPDIR": str(temporary)}
    return harness


def _events(world: World, event: str) -> list[str]:
    """The sessions of the recorded calls of our hook for an event, in their order."""
    hooks = [call for call in world.calls() if call.command[1] == "hook"]
    return [str(call.payload["sessionID"]) for call in hooks if call.command[3] == event]


def _say(terminal: Terminal, prompt: str) -> None:
    """Enter a prompt and wait until the session is idle again and our hook knows it."""
    before = len(_events(terminal.world, "session.idle"))
    terminal.enter(prompt)
    terminal.wait(lambda: len(_events(terminal.world, "session.idle")) > before, f"the end of {prompt!r}")


def _choose(terminal: Terminal, command: str, shown: str) -> None:
    """Type a slash command, and press Enter once the list of commands has come down to it."""
    terminal.press(*command)
    terminal.wait(lambda: f"{command} " in terminal.screen() and shown in terminal.screen(), f"{command} in the list")
    terminal.press("Enter")


def _compact(terminal: Terminal) -> None:
    before = len(_events(terminal.world, "session.idle"))
    _choose(terminal, "/compact", "Compact session")
    terminal.wait(lambda: len(_events(terminal.world, "session.idle")) > before, "the end of /compact")


def _leave(terminal: Terminal) -> None:
    _choose(terminal, "/exit", "Exit the app")
    _wait_for_end(terminal)


def _wait_for_end(terminal: Terminal) -> None:
    terminal.wait(lambda: not terminal.screen(), "its end")


def _last(world: World) -> dict[str, Any]:
    """The body of the last main request."""
    body: dict[str, Any] = world.requests("main")[-1]["body"]
    return body


def _block(body: dict[str, Any]) -> str:
    """Our block as it stands in a request, whole and within its budget."""
    block = "\n".join(part.text for part in evidence.whole_delivery(evidence.parts_in(body)))
    assert estimate(block) <= BUDGET
    return block


def _assert_kept(harness: OpenCode) -> None:
    """Each row is archived; each entry before the compaction that may be observed is covered, once; no note stands twice."""
    world = harness.world
    installed.wait_until_quiet(world)
    with closing(sqlite3.connect(f"{harness.database().as_uri()}?mode=ro", uri=True)) as connection:
        question = "SELECT id FROM {} WHERE session_id=?"
        written = {
            row
            for table in ("message", "part")
            for row in connection.execute(question.format(table), (harness.session,))
        }
    assert written and written <= set(installed.rows(world, "archive.db", "SELECT key FROM rows"))
    ((number, handle),) = installed.rows(
        world, "archive.db", "SELECT no, handle FROM sessions WHERE id=?", harness.session
    )
    covered = "SELECT first_seq, last_seq FROM coverage WHERE session=? ORDER BY first_seq"
    stretches = installed.rows(world, "memory.db", covered, handle)
    assert all(last < first for (_, last), (first, _) in pairwise(stretches)), stretches
    compacted = f"SELECT max(no) FROM entries WHERE no >> 32 = ?1 AND kind={KIND_CODES['boundary']}"
    due = f"SELECT no & 4294967295 FROM entries WHERE no >> 32 = ?1 AND active AND {OBSERVABLE} AND no < ({compacted})"
    seqs = [seq for (seq,) in installed.rows(world, "archive.db", due, number)]
    assert seqs and not [seq for seq in seqs if not any(first <= seq <= last for first, last in stretches)]
    assert installed.rows(world, "memory.db", "SELECT * FROM gaps") == []
    notes = [text for (text,) in installed.rows(world, "memory.db", "SELECT text FROM notes WHERE session=?", handle)]
    assert notes and len(notes) == len(set(notes))


def test_a_person_types_compact_and_later_new(world: World) -> None:
    """In a terminal: the block follows ``/compact`` in the same process; ``/new`` begins a session without it."""
    harness = start(world)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        _say(terminal, TABS)
        _say(terminal, PORT)
        _compact(terminal)
        _say(terminal, "What is next?")
        block = _block(_last(world))
        assert TABS in block and PORT in block
        assert block == _block(world.requests("summary")[0]["body"])
        _choose(terminal, "/new", "New session")
        terminal.wait(lambda: "Ask anything" in terminal.screen(), "the new session")
        _say(terminal, "Something else.")
        assert "8123" not in "\n".join(wire.texts(_last(world))) and not evidence.parts_in(_last(world))
        _leave(terminal)
    assert len(set(_events(world, "session.idle"))) == 2
    assert {call.status for call in world.calls()} == {0}


def test_compact_where_nothing_can_be_compacted_leaves_the_agent_at_work(world: World) -> None:
    """OpenCode sums up even a session without a word: no block is owed to it. One summed up twice at once has its block."""
    harness = start(world)
    harness.session = json.loads(harness.serve([("/session", {})]).stdout)["id"]
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        _compact(terminal)
        _say(terminal, TABS)
        assert [len(evidence.parts_in(request["body"])) for request in world.requests("summary")] == [0]
        assert not evidence.parts_in(_last(world))
        _compact(terminal)
        _compact(terminal)
        _say(terminal, "What is next?")
        assert len(world.requests("summary")) == 3
        assert TABS in _block(_last(world))
        _leave(terminal)
    assert {call.status for call in world.calls()} == {0}


def test_a_session_ended_in_the_middle_of_an_answer_goes_on_in_a_new_process(world: World) -> None:
    """Ctrl-C while the answer still comes: what was said is covered by then or later, and nothing is observed twice."""
    harness = start(world, observe_after_tokens=1)
    world.script({"text": "Understood.", "usage": {"input": 2_000, "output": 10}})
    world.script({"text": "I look into the sockets", "stalled": True})
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        _say(terminal, TABS)
        terminal.enter(PORT)
        terminal.wait(lambda: "I look into the sockets" in terminal.screen(), "the beginning of an answer")
        terminal.press("C-c")
        _wait_for_end(terminal)
    (harness.session,) = set(_events(world, "session.idle"))
    installed.wait_until_quiet(world)
    assert installed.rows(world, "memory.db", "SELECT text FROM notes")
    world.script({"text": "I begin again.", "usage": {"input": 9_000, "output": 10}})
    assert harness.turn("What happened?").status == 0
    assert harness.compact().status == 0
    assert harness.turn("Go on.").status == 0
    block = _block(_last(world))
    for expected in (TABS, PORT, "What happened?"):
        assert expected in block, block
    _assert_kept(harness)


def test_a_harness_killed_in_the_middle_of_a_turn_loses_nothing(world: World) -> None:
    """The agent's own command kills the harness, so no hook tells of an end. The resumed session has its whole block."""
    harness = start(world)
    assert harness.turn(TABS).status == 0
    kill = {"command": "kill -9 $PPID; sleep 30", "description": "Run it"}
    world.script({"text": "I run the check now.", "tools": [{"name": "bash", "input": kill}]})
    ends = len(_events(world, "session.idle"))
    assert harness.turn(PORT).status not in (0, None)
    assert len(_events(world, "session.idle")) == ends
    for ended in (harness.turn("What happened?"), harness.compact(), harness.turn("Go on.")):
        assert ended.status == 0
    block = _block(_last(world))
    for expected in (TABS, PORT, "What happened?"):
        assert expected in block, block
    _assert_kept(harness)


def test_a_session_that_was_long_before_memory_was_installed_gets_its_block(world: World) -> None:
    """About 150,000 tokens, none of them seen by the plugin; then it is there, and the session is compacted."""
    bare = start(world, with_plugin=False)
    said = (
        "".join(f"Row {turn}.{row} of the table is sound and needs no change.\n" for row in range(2400))
        for turn in range(5)
    )
    for turn, text in enumerate(said):
        world.script({"text": text})
        assert bare.turn("Never touch the archive of 1987." if turn == 0 else f"Look at table {turn}.").status == 0
    assert not world.calls()
    harness = start(world)
    harness.session = bare.session
    assert harness.compact().status == 0
    assert harness.turn("Go on.").status == 0
    block = _block(_last(world))
    assert "Never touch the archive of 1987." in block and "Look at table 4." in block
    ((tokens,),) = installed.rows(world, "archive.db", "SELECT sum(tokens) FROM entries")
    assert tokens > 140_000
    _assert_kept(harness)


def test_what_was_undone_is_not_in_the_block(world: World) -> None:
    """``/undo`` takes the last prompt back; the block of the next compaction has what stands before it and after it."""
    harness = start(world)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        for prompt in (TABS, PORT, NAME):
            _say(terminal, prompt)
        _undo(terminal, NAME)
        _say(terminal, "Everything else stays.")
        _compact(terminal)
        _say(terminal, "What is next?")
        _leave(terminal)
    block = _block(_last(world))
    assert TABS in block and PORT in block and "Everything else stays." in block
    assert "Nightjar" not in block


def _undo(terminal: Terminal, prompt: str, number: int = 1) -> None:
    """Take one more prompt back, ``number`` in all. It then stands on the input line, which is emptied; '' names a
    compaction, which has no words."""
    _choose(terminal, "/undo", "Undo previous message")
    terminal.wait(lambda: f"{number} message reverted" in terminal.screen(), "the undoing")
    if prompt:
        terminal.wait(lambda: prompt in terminal.screen(), "the prompt to change")
        terminal.press("C-u")
        terminal.wait(lambda: prompt not in terminal.screen(), "an empty line")


def test_a_block_goes_with_the_compaction_that_was_undone(world: World) -> None:
    """The words are before the model again, but for those that were taken back: a block would bring these back, too."""
    harness = start(world)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        for prompt in (TABS, NAME):
            _say(terminal, prompt)
        _compact(terminal)
        _say(terminal, "What is next?")
        assert NAME in _block(_last(world))
        for number, prompt in enumerate(("What is next?", "", NAME), 1):
            _undo(terminal, prompt, number)
        _say(terminal, "Everything else stays.")
        said = "\n".join(wire.texts(_last(world)))
        assert TABS in said and "Nightjar" not in said
        _leave(terminal)


def test_the_block_before_counts_again_where_a_second_compaction_was_undone(world: World) -> None:
    """Without what was taken back, and the same in a new process."""
    harness = start(world)
    with open_terminal(world) as terminal:
        harness.open_in(terminal)
        _say(terminal, TABS)
        _compact(terminal)
        _say(terminal, NAME)
        _compact(terminal)
        _say(terminal, "What is next?")
        assert NAME in _block(_last(world))
        for number, prompt in enumerate(("What is next?", "", NAME), 1):
            _undo(terminal, prompt, number)
        _say(terminal, "Everything else stays.")
        _leave(terminal)
    block = _block(_last(world))
    assert TABS in block and "Nightjar" not in block
    (harness.session,) = set(_events(world, "session.idle"))
    assert harness.turn("Go on.").status == 0
    assert _block(_last(world)) == block
