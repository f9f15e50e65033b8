"""The Codex CLI itself where our side is broken: the agent goes on, its conversation holds nothing of it, `status` tells."""

from __future__ import annotations

import os
import sys
import venv
from collections.abc import Callable

import pytest

from . import damage_store, evidence, installed, programs, wire
from .codex import BYPASS, NAME, Codex
from .world import World

pytestmark = pytest.mark.e2e

HOOKS_ALONE = "--no-mcp"  # what the agent's tools say of themselves would hide what a hook says

FULL = {"input": 500_000, "output": 20}


def _start(world: World) -> Codex:
    """Codex with what ``install`` wrote, every handler trusted, and a turn behind it."""
    installed.install(world, NAME, HOOKS_ALONE)
    harness = Codex(world, programs.require(programs.CODEX), None)
    harness.trust = [BYPASS]
    assert harness.turn("The server listens on port 8123.").status == 0
    installed.wait_until_quiet(world)
    return harness


def _compact(harness: Codex) -> None:
    """Two more turns with a compaction between them: both end well, and the model reads nothing of us."""
    harness.world.script({"text": "Full.", "usage": FULL})
    for prompt in ("Fill up.", "What is next?"):
        ended = harness.turn(prompt)
        assert ended.status == 0, ended
    assert len(harness.world.requests("summary")) == 1
    body = evidence.first_main_request_after_summary(harness.world)
    assert "observational" not in "\n".join(wire.texts(body["input"])).replace(str(harness.world.folder), "")
    installed.wait_until_quiet(harness.world)


@pytest.mark.parametrize("damage", [damage_store.scribble, damage_store.make_newer], ids=["broken", "newer"])
def test_a_store_that_cannot_be_used_leaves_the_agent_alone(world: World, damage: Callable[[World], str]) -> None:
    harness = _start(world)
    expected = damage(world)
    before = {name: (world.memory / name).read_bytes() for name in damage_store.STORE}
    _compact(harness)
    if damage is damage_store.make_newer:
        assert (world.memory / "archive.db").read_bytes() == before["archive.db"], "what is newer stays as it is"
    assert "hook name=codex_PreCompact outcome=exit-1" in installed.log(world), "it was tried"
    done = installed.command(world, "status")
    assert expected in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("is_there", [True, False], ids=["bare", "deleted"])
def test_an_interpreter_without_our_packages_is_told_of_and_leaves_the_agent_alone(
    world: World, is_there: bool
) -> None:
    """The recorded interpreter lost its packages, or is gone with its environment and the one of the hooks has none."""
    harness = _start(world)
    venv.create(world.folder / "bare")
    bare = world.folder / "bare" / "bin" / "python"
    launcher = world.memory / "launch"
    text = launcher.read_text(encoding="utf-8")
    launcher.write_text(text.replace(os.path.realpath(sys.executable), str(bare)), encoding="utf-8")
    recorded = bare if is_there else world.folder / "deleted" / "bin" / "python"
    (world.memory / "interpreter").write_text(str(recorded), encoding="utf-8")
    _compact(harness)
    logged, *causes = [
        line for line in installed.command(world, "status").stdout.split("\n") if line.startswith("trouble: ")
    ]
    assert "PreCompact outcome=exit-1" in logged
    # One that is gone is replaced by the interpreter that runs this command.
    assert [str(bare) in cause and "setup" in cause for cause in causes] == [True] * is_there
    lack = (world.memory / "lacks-packages").read_text(encoding="utf-8")
    assert "lacks" in lack and "yaml" in lack
    assert harness.turn("And on.").status == 0, "the user is told at this start, the model is not"
    told = "\n".join(wire.texts(world.requests("main")[-1]["body"]["input"]))
    assert "keeps nothing" not in told and "lacks" not in told


def test_an_interpreter_that_is_gone_leaves_the_agent_alone(world: World) -> None:
    """No Python is found, neither the one that was written down nor another one."""
    harness = _start(world)
    launcher = world.memory / "launch"
    gone = str(world.folder / "gone" / "python")
    text = launcher.read_text(encoding="utf-8")
    text = text.replace(os.path.realpath(sys.executable), gone).replace("python3 python;", "no-python3 no-python;")
    assert gone in text
    launcher.write_text(text, encoding="utf-8")
    before = installed.log(world)
    _compact(harness)
    assert installed.log(world) == before, "nothing of ours could run"
    assert installed.status(world)["sessions"] == 1, "what was kept is there"


@pytest.mark.parametrize("what", ["launcher", "data folder", "checkout"])
def test_what_was_deleted_leaves_the_agent_alone(world: World, what: str) -> None:
    harness = _start(world)
    launcher = world.memory / "launch"
    if what == "launcher":
        launcher.unlink()
    elif what == "checkout":
        text = launcher.read_text(encoding="utf-8")
        launcher.write_text(text.replace("observational_memory.py", "gone.py"), encoding="utf-8")
    else:
        world.memory.rename(world.folder / "moved")
    _compact(harness)
    if what == "data folder":
        assert not world.memory.exists()
    else:
        assert installed.status(world)["sessions"] == 1, "what was kept is there"


def test_nothing_of_ours_is_left_running_or_written_elsewhere(world: World) -> None:
    """After a session with a compaction: no process, and no file but in the data folder, Codex's, and the project."""
    checkout = world.folder / "checkout"
    checkout.mkdir()
    script = installed.copy_of_checkout(checkout)
    installed.install(world, NAME, HOOKS_ALONE, script=script)
    command = programs.require(programs.CODEX)
    harness = Codex(world, command, None)
    harness.trust = [BYPASS]
    (world.folder / "temporary").mkdir()
    harness.environment["TMPDIR"] = str(world.folder / "temporary")
    before = _elsewhere(world)
    assert harness.turn("The server listens on port 8123.").status == 0
    world.script({"text": "Full.", "usage": FULL})
    for prompt in ("Fill up.", "What is next?"):
        assert harness.turn(prompt).status == 0
    assert "port 8123" in "".join(part.text for part in evidence.parts_in(world.requests("main")[-1]["body"]))
    installed.wait_until_quiet(world)
    assert _elsewhere(world) == before
    assert installed.files(world.project) == set()
    owned = {path for path in installed.files(world.home / ".codex") if "observational" in path or "obsmem" in path}
    assert owned == set()


def _elsewhere(world: World) -> set[str]:
    """What lies in the world's folder and home beside the places that are ours or Codex's, bytecode left out."""
    ours = ("memory", "home/.codex", "project", "requests.jsonl", "script.jsonl")
    return {path for path in installed.files(world.folder) if not path.startswith(ours) and "__pycache__" not in path}
