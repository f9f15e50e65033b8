"""Claude Code itself where our side is broken: the agent goes on, the model reads nothing of it, ``status`` tells."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from . import damage_store, evidence, installed, programs, wire
from .claude_code import NAME, ClaudeCode
from .places import mounted
from .world import SCRIPT, World

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tidy")]

HOOKS_ALONE = "--no-mcp"  # what the agent's tools say of themselves would hide what a hook says

READ_ONLY = 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"'
FULL = """
mount -t tmpfs -o size=1m full /mnt
cp -a "$1"/. /mnt
dd if=/dev/zero of=/mnt/filling bs=4k 2>/dev/null || :
mount --bind /mnt "$1"
"""


def _start(world: World) -> ClaudeCode:
    """Claude Code with what ``install`` wrote, each handler behind a recorder, and two turns behind it."""
    command = programs.require(programs.CLAUDE_CODE)
    installed.install(world, NAME, HOOKS_ALONE)
    config: dict[str, Any] = json.loads((world.home / ".claude" / "settings.json").read_text(encoding="utf-8"))
    for event, groups in config["hooks"].items():
        for handler in (handler for group in groups for handler in group["hooks"]):
            handler["command"] = world.recorder(event, "sh", "-c", handler["command"])
    temporary = world.folder / "temporary"
    temporary.mkdir()
    harness = ClaudeCode(world, command, config, (), TMPDIR=str(temporary))
    for prompt in ("The server listens on port 8123.", "Never use tabs in Python files."):
        _say(harness, prompt)
    installed.wait_until_quiet(world)
    assert "trouble" not in _command(world, "status")
    for path in (world.folder / "calls").iterdir():
        path.unlink()  # what was recorded while all was well
    return harness


def _say(harness: ClaudeCode, prompt: str) -> None:
    ended = harness.turn(prompt)
    assert ended.status == 0, ended
    assert json.loads(ended.stdout)["result"] == ("" if prompt.startswith("/") else "OK."), ended


def _go_on(harness: ClaudeCode) -> None:
    """A turn, a compaction, a turn: all end well, no handler says anything, and the model reads nothing of us."""
    world = harness.world
    for prompt in ("Go on.", "/compact", "What is next?"):
        _say(harness, prompt)
    installed.wait_until_quiet(world)
    assert len(world.requests("summary")) == 1
    assert {call.event for call in world.calls()} >= {"SessionStart", "UserPromptSubmit", "PreCompact", "Stop"}
    for call in world.calls():  # at most a word to the user, which the model does not see
        assert not call.stdout or set(json.loads(call.stdout)) == {"systemMessage"}, call
    body = evidence.first_main_request_after_summary(world)
    text = "\n".join(wire.texts(body["messages"]))
    for own in (str(world.folder), re.sub(r"[^A-Za-z0-9]", "-", str(world.folder))):
        text = text.replace(own, "")  # the path of this world has our name in it
    assert "observational" not in text and "obsmem" not in text, text


def _command(world: World, name: str) -> str:
    """What one of our commands prints where the harness ran, which is one sentence if it cannot work."""
    ended = world.run([sys.executable, str(SCRIPT), name], {})
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("damage", [damage_store.scribble, damage_store.make_newer], ids=["broken", "newer"])
def test_a_store_that_cannot_be_used_leaves_the_agent_alone(world: World, damage: Callable[[World], str]) -> None:
    harness = _start(world)
    expected = damage(world)
    before = (world.memory / "archive.db").read_bytes()
    _go_on(harness)
    evidence.assert_all_succeeded(world)
    assert (world.memory / "archive.db").read_bytes() == before, "what we do not understand stays as it is"
    assert expected in _command(world, "status")


def test_a_full_disk_leaves_the_agent_alone(world: World) -> None:
    harness = _start(world)
    with mounted(world, FULL):
        _go_on(harness)
        evidence.assert_all_succeeded(world)
        assert "trouble: " in _command(world, "status")
        assert "maintain outcome=disk-full" in world.run(["cat", str(world.memory / "log.txt")], {}).stdout


def test_a_data_folder_that_is_read_only_leaves_the_agent_alone(world: World) -> None:
    """Nothing can be written down there, not even that; what was kept can be read."""
    harness = _start(world)
    before = {path: path.read_bytes() for path in world.memory.rglob("*") if path.is_file()}
    with mounted(world, READ_ONLY):
        assert world.run(["touch", str(world.memory / "probe")], {}).status != 0
        _go_on(harness)
        evidence.assert_all_succeeded(world)
        told = _command(world, "status")
        assert "1 session, " in told and f"trouble: {world.memory} cannot be written" in told
        assert f"✗ disk: {world.memory} cannot be written" in _command(world, "doctor")
    assert {path: path.read_bytes() for path in world.memory.rglob("*") if path.is_file()} == before


def test_missing_packages_leave_the_agent_alone_and_the_user_is_told(world: World) -> None:
    """The recorded interpreter is one that has nothing but the standard library."""
    harness = _start(world)
    bare = world.memory / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    (world.memory / "interpreter").write_text(str(bare), encoding="utf-8")
    _go_on(harness)
    evidence.assert_all_succeeded(world)
    assert any("lacks pyyaml" in call.stdout for call in world.calls("SessionStart"))
    assert "keeps nothing" not in "\n".join(wire.texts([request["body"] for request in world.requests()]))
    assert "trouble: " in _command(world, "status")


def test_an_interpreter_that_is_gone_leaves_the_agent_alone(world: World) -> None:
    """No Python is found, neither the one that was written down nor another one."""
    harness = _start(world)
    launcher = world.memory / "launch"
    text = launcher.read_text(encoding="utf-8").replace("python3 python;", "no-python3 no-python;")
    launcher.write_text(text.replace(os.path.realpath(sys.executable), "/gone/python"), encoding="utf-8")
    before = installed.log(world)
    _go_on(harness)
    evidence.assert_all_succeeded(world)
    assert installed.log(world) == before, "nothing of ours could run"
    assert installed.status(world)["sessions"] == 1, "what was kept is there"


def test_a_launcher_that_was_deleted_leaves_the_agent_alone(world: World) -> None:
    harness = _start(world)
    (world.memory / "launch").unlink()
    _go_on(harness)
    assert {call.status for call in world.calls()} == {127}, "which Claude Code shows to the user and goes on"
    assert f"trouble: {world.memory / 'launch'} is gone" in _command(world, "status")
    assert installed.status(world)["sessions"] == 1, "what was kept is there"
