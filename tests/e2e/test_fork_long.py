"""The demo's sessions, ten turns across a compaction, go on in the other programs: what their models are then sent."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from obsmem.tasks.canonical import conversation
from obsmem.tasks.store import open_store

from . import evidence, programs, read_back, story, story_tools
from .conversation import Held, held, kept
from .story_play import DEMO
from .test_fork import COMMANDS, NAMES, SHELLS, _ours, _start
from .world import PROJECT_ROOT, SCRIPT, World

pytestmark = pytest.mark.e2e

TURNS = (*story.BEFORE, *story.AFTER)
ASKED = "Where did we stop?"
TOOLS: dict[str, Callable[[Path], story_tools.Tools]] = {
    "claude-code": story_tools.claude_code,
    "codex": lambda project: story_tools.codex,
    "opencode": story_tools.opencode,
}

CHECKED = {
    "claude-code": ["claude --resume"],
    "codex": ["codex app-server"],
    "opencode": ["opencode session list", "opencode export"],
}
# Settings of a call that the target's own tool has no word for, and the lines of a patch that only say where it goes.
SETTING = re.compile(r"description: |replace_all: false$|merge: false$|todos\[\d\]\.(id|priority): ")
FRAME = re.compile(r"\*\*\* (Begin|End) Patch$|@@| |[+-]$")


def _take_in(world: World, name: str) -> str:
    """Read the demo's session of a program as one of the world's project; returns its handle."""
    (recorded,) = (DEMO / name).iterdir()
    path = world.folder / recorded.name
    text = recorded.read_text(encoding="utf-8").replace("/home/user/project", str(world.project))
    path.write_text(text, encoding="utf-8")
    _ours(world, "ingest", str(path))
    (stored,) = json.loads(_ours(world, "sessions", "--json"))
    return str(stored["handle"])


def _recall(target: str, note: str) -> dict[str, object]:
    """The call of the target's shell that prints a note's words."""
    line = shlex.join([sys.executable, str(SCRIPT), "recall", note])
    return {
        "name": SHELLS[target],
        "input": {"cmd": line} if target == "codex" else {"command": line, "description": "Recall"},
    }


@pytest.mark.parametrize("source", [*NAMES, "cursor"])
@pytest.mark.parametrize("target", NAMES)
def test_ten_turns_go_on_in_the_target(world: World, source: str, target: str) -> None:
    """All directions, the same harness too, and from the one that has no program here; what the parent's note says is
    recalled by the model of the fork."""
    handle = _take_in(world, source)
    note = json.loads(_ours(world, "notes", handle, "--json"))["notes"][0]["id"]
    recalled = _ours(world, "recall", note)
    program = _start(world, target)
    done = json.loads(_ours(world, "fork", handle, "--to", target, "--folder", str(world.project), "--json"))
    assert done["troubles"] == done["unchecked"] == []
    assert done["checked"][1:] == CHECKED[target]
    assert done["kept"] == done["whole"]
    program.session = done["session"]
    world.script({"tools": [_recall(target, note)]}, {"text": "With the limit."})
    ended = program.turn(ASKED)
    assert ended.status == 0, ended.stdout + ended.stderr
    first, second = (request["body"] for request in world.requests("main")[:2])
    request = held(first)
    with open_store(str(world.memory), readonly=True) as store:
        turns = conversation(store, store.archive.by_handle(handle))
    whole = done["whole"]
    assert request.prompts[-1] == ASKED
    if source in TOOLS:
        _assert_the_story(request, TOOLS[source](world.project), whole["calls"])
    found = kept(turns, request)
    assert found.lost == []
    assert (found.turns, found.calls) == (whole["turns"], whole["calls"])
    left = [line for line in found.arguments if not SETTING.match(line)]
    assert [line for line in left if source != "codex" or not FRAME.match(line)] == []
    parts = evidence.parts_in(first)
    assert any(note[:7] in part.text for part in parts), "the fork begins with the block of its parent's notes"
    assert recalled.strip() in evidence.last_tool_result(second), "the fork's model recalls what its parent noted"
    assert _ours(world, "recall", note) == recalled
    print(
        f"{source} → {target}: turns {found.turns} of {whole['turns']}, tool calls {found.calls} of {whole['calls']}, "
        f"characters {found.characters:,} of {whole['characters']:,}, recall works"
    )


def _assert_the_story(request: Held, tools: story_tools.Tools, calls: int) -> None:
    """The request holds every prompt and answer of the story, in order, and as many calls as were scripted."""
    prompts = [turn.prompt for turn in TURNS]
    assert [text for text in request.prompts if text in prompts] == prompts
    answers = [answer.text for turn in TURNS for answer in turn.answers if answer.text]
    assert [text for text in request.answers if text in answers] == answers
    scripted = [use for turn in TURNS for answer in story.answers(turn, tools) for use in answer.get("tools", ())]
    assert len(request.calls) == len(scripted) == calls


@pytest.mark.parametrize("target", NAMES)
def test_the_targets_own_program_says_what_it_does_not_have(world: World, target: str) -> None:
    """A session that is there is shown; one that is not, or where words are missing, is not taken for it."""
    _start(world, target)
    assert _looked(world, target) == [(name, "") for name in CHECKED[target]]
    for name, wrong in _looked(world, target, "gone"):
        assert wrong, name
    if target == "codex":  # the one that can be asked for its words
        ((_, wrong),) = _looked(world, target, "cut")
        assert "abcd.21" in wrong


def _looked(world: World, target: str, *damage: str) -> list[tuple[str, str]]:
    path = os.pathsep.join([str(programs.require(COMMANDS[target]).parent), os.environ.get("PATH", os.defpath)])
    arguments = [sys.executable, "-m", read_back.__name__, target, str(world.home), *damage]
    ended = world.run(arguments, {"PATH": path, "PYTHONPATH": str(PROJECT_ROOT), "OPENCODE_DISABLE_MODELS_FETCH": "1"})
    assert ended.status == 0, ended.stderr
    return [(name, wrong) for name, wrong in json.loads(ended.stdout)]
