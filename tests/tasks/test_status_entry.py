"""The status line in the user's settings: in the place of their own, and everything as it was afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsmem.core import jsonc
from obsmem.core.errors import ConfigError
from obsmem.harnesses import REGISTRY, load
from obsmem.interfaces.hook_statusline import own_command
from obsmem.tasks import install
from obsmem.tasks.config_files import records
from tests.tasks.test_install import FOREIGN, data, installed, removed, snapshot
from tests.tasks.test_install import world as world

OWN = {
    "none": b'{\n  "model": "x"\n}\n',
    "object": b'{\n  // mine\n  "statusLine": {"type": "command", "command": "printf \'\\u00fc %s\' \\"$HOME\\"", "padding": 0},\n}\n',
    "on lines": b'{\r\n\t"statusLine": {\r\n\t\t"command": "~/.claude/line.sh", // why\r\n\t\t"type": "command"\r\n\t}\r\n}\r\n',
    "without a command": b'{"statusLine": {"padding": 2}}',
}
LINES = tuple(name for name in REGISTRY if load(name).STATUS_SECONDS)


def settings(harness: str) -> Path:
    return Path(load(harness).status_config(install.user_home(), "")[0])


def value(harness: str) -> Any:
    return jsonc.load(settings(harness).read_text(encoding="utf-8"))


def write(harness: str, content: bytes) -> None:
    settings(harness).parent.mkdir(parents=True, exist_ok=True)
    settings(harness).write_bytes(content)


def command(content: bytes) -> str:
    return str(jsonc.load(content.decode()).get("statusLine", {}).get("command", ""))


@pytest.mark.parametrize("harness", LINES)
@pytest.mark.parametrize("content", [*OWN.values(), *filter(None, FOREIGN.values())])
def test_ours_stands_in_the_place_of_the_users_and_goes_without_a_trace(
    world: Path, harness: str, content: bytes
) -> None:
    write(harness, content)
    before = snapshot(world)
    installed(world, harness, status_line=True)
    line = value(harness)["statusLine"]
    assert line["command"].endswith(f" hook {harness} statusLine")
    if content in OWN.values():
        known = jsonc.load(content.decode()).get("statusLine", {})
        assert {**line, "command": ""} == {**({"type": "command"} | known), "command": ""}
        assert own_command(data(world), harness) == command(content)
    assert not installed(world, harness).is_needed, "it stays without being asked for again"
    assert value(harness)["statusLine"] == line
    removed(world)
    assert snapshot(world) == before


@pytest.mark.parametrize("harness", LINES)
@pytest.mark.parametrize("content", OWN.values(), ids=OWN.keys())
def test_the_users_command_comes_back_into_a_file_that_was_edited_since(
    world: Path, harness: str, content: bytes
) -> None:
    write(harness, content)
    installed(world, harness, status_line=True)
    text = settings(harness).read_text(encoding="utf-8")
    settings(harness).write_text(jsonc.merge(text, {"mine": [1]}), encoding="utf-8")
    installed(world, harness, allow_recall=True)
    assert own_command(data(world), harness) == command(content)
    text = settings(harness).read_text(encoding="utf-8")
    settings(harness).write_text(jsonc.merge(text, {"too": [1]}), encoding="utf-8")
    removed(world)
    after = settings(harness).read_text(encoding="utf-8")
    left = jsonc.load(after)
    assert (left.pop("mine"), left.pop("too")) == ([1], [1])
    assert left.get("statusLine", {}).get("command", "") == command(content)
    assert jsonc.string_at(after, ("statusLine", "command")) == jsonc.string_at(
        content.decode(), ("statusLine", "command")
    )


@pytest.mark.parametrize("harness", LINES)
@pytest.mark.parametrize("content", OWN.values(), ids=OWN.keys())
def test_it_can_be_taken_out_alone(world: Path, harness: str, content: bytes) -> None:
    write(harness, content)
    installed(world, harness, status_line=True)
    installed(world, harness, status_line=False)
    assert jsonc.string_at(settings(harness).read_text("utf-8"), ("statusLine", "command")) == jsonc.string_at(
        content.decode(), ("statusLine", "command")
    )
    assert own_command(data(world), harness) == ""
    assert not installed(world, harness).is_needed
    assert jsonc.load(Path(load(harness).config_file(install.user_home(), "")).read_text("utf-8"))["hooks"]


@pytest.mark.parametrize("harness", LINES)
def test_a_command_that_the_user_sets_later_is_theirs(world: Path, harness: str) -> None:
    write(harness, OWN["object"])
    installed(world, harness, status_line=True)
    text = settings(harness).read_text(encoding="utf-8")
    settings(harness).write_text(jsonc.with_string(text, ("statusLine", "command"), '"mine"'), encoding="utf-8")
    installed(world, harness)
    assert value(harness)["statusLine"]["command"] == "mine"
    removed(world)
    assert value(harness)["statusLine"]["command"] == "mine"


def test_a_harness_without_a_place_for_it_gets_none(world: Path) -> None:
    for harness in set(REGISTRY) - set(LINES):
        assert not installed(world, harness, status_line=True).status_line
        assert "statusLine" not in "".join(str(one) for one in records(data(world), harness))


def test_a_project_gets_none(world: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    installed(world, "claude-code", project=str(project), status_line=True)
    assert "statusLine" not in json.loads((project / ".claude" / "settings.local.json").read_text("utf-8"))
    assert not settings("claude-code").exists()


def test_a_status_line_that_is_no_object_is_refused(world: Path) -> None:
    write("claude-code", b'{"statusLine": "say"}')
    before = snapshot(world)
    with pytest.raises(ConfigError):
        installed(world, "claude-code", status_line=True)
    assert snapshot(world) == before
