"""A marked session goes on in a fresh window of the real programs: the model's next request holds the handoff, whole.

Invariant: what is compared is the request that the model was sent, with the delivery that our store says was taken.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from obsmem.system import blockfile

from . import evidence, installed, programs, wire
from .terminal import open_terminal
from .test_opencode import _start
from .test_terminal import PORT, PROGRAMS, TABS, Person
from .world import SCRIPT, World

pytestmark = pytest.mark.e2e

NEXT = "Rename the column to tracking_ref, and only that."


def _mark(world: World) -> dict[str, Any]:
    """What ``rotate`` says of the newest session here, as a user would run it in the project."""
    done = world.run([sys.executable, str(SCRIPT), "rotate", "--force", "--json"], {})
    assert done.status == 0, done.stderr
    mark: dict[str, Any] = json.loads(done.stdout)
    return mark


def _check(world: World, body: dict[str, Any], mark: dict[str, Any], name: str) -> None:
    """The request holds the handoff that was taken, byte for byte, and nothing of the old conversation itself."""
    parts = evidence.whole_delivery(evidence.parts_in(body))
    taken = dict(blockfile.read(str(path)) for path in world.memory.glob(f"sessions/*/*/{name}"))
    assert parts[0].delivery == mark["deliveries"][-1]
    expected = taken[parts[0].delivery]
    assert [part.text for part in parts] == expected
    text = "\n".join(expected)
    assert "WORK IS IN PROGRESS" in text and NEXT in text and "tabs" in text and "8123" in text
    said = "\n".join(wire.texts(body)).replace(text, "")
    for part in expected:
        said = said.replace(part, "")
    assert PORT not in said, "the window is a fresh one"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.command}-{program.version}")
def test_clear_goes_on_where_the_marked_session_stopped(world: World, program: programs.Program) -> None:
    with open_terminal(world) as terminal:
        person = Person(terminal, program)
        person.begin()
        person.say(TABS, PORT)
        person.compact()
        person.say(NEXT)
        installed.wait_until_quiet(world)
        mark = _mark(world)
        terminal.enter("/clear")
        terminal.wait(lambda: NEXT not in terminal.screen(), "the fresh window")
        terminal.wait(person.listens, "its prompt")
        person.say_patiently("Go on.")
        _check(world, world.requests("main")[-1]["body"], mark, blockfile.CURRENT)
        person.say("And on.")
        assert len({part[:3] for part in evidence.parts_in(world.requests("main")[-1]["body"])}) == len(
            evidence.parts_in(world.requests("main")[-1]["body"])
        ), "each part is given once"
        terminal.leave()
    installed.wait_until_quiet(world)
    ((successor,),) = installed.rows(world, "memory.db", "SELECT successor FROM rotations")
    ((session,),) = installed.rows(world, "memory.db", "SELECT session FROM rotations")
    assert successor and successor != session
    evidence.assert_all_succeeded(world)


def test_opencode_keeps_the_handoff_in_every_request_of_the_fresh_session(world: World) -> None:
    harness = _start(world)
    for prompt in (TABS, PORT, NEXT):
        world.script({"text": "Understood."})
        assert harness.turn(prompt).status == 0
    installed.wait_until_quiet(world)
    mark = _mark(world)
    harness.session = ""
    for prompt in ("Go on.", "And on."):  # each in a process of its own
        world.script({"text": "Understood."})
        assert harness.turn(prompt).status == 0
        _check(world, world.requests("main")[-1]["body"], mark, "handoff.kept")
    harness.session = ""
    world.script({"text": "Understood."})
    assert harness.turn("Hello.").status == 0
    assert "WORK IS IN PROGRESS" not in "\n".join(wire.texts(world.requests("main")[-1]["body"]))
