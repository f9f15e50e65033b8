"""What Cursor's agent gets: the server of our tools, and commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from obsmem.harnesses.skills import Skill


def mcp_config(home: str, project: str, name: str, command: str) -> tuple[str, dict[str, Any]]:
    """``mcp.json`` of the user or of a project."""
    server = {"command": command, "args": []}
    return os.path.join(project or home, ".cursor", "mcp.json"), {"mcpServers": {name: server}}


def mcp_rule(home: str, project: str, name: str, tools: list[str]) -> tuple[str, dict[str, Any]]:
    """A rule of the command line's permissions for each tool that only reads."""
    allowed = {"permissions": {"allow": [f"Mcp({name}:{tool})" for tool in tools], "deny": []}}
    if project:
        return os.path.join(project, ".cursor", "cli.json"), allowed
    return os.path.join(home, ".cursor", "cli-config.json"), {"version": 1, "editor": {"vimMode": False}, **allowed}


def status_config(home: str, command: str) -> tuple[str, dict[str, Any]]:
    """The command line's own config. It must have what stands beside ours here, which is its default."""
    needed = {"version": 1, "editor": {"vimMode": False}, "permissions": {"allow": [], "deny": []}}
    ours = {"statusLine": {"type": "command", "command": command}}
    return os.path.join(home, ".cursor", "cli-config.json"), {**needed, **ours}


def session_of_call(meta: Mapping[str, object]) -> str:
    """'': nothing with a call names its conversation."""
    return ""


def folder_of_server(environment: Mapping[str, str]) -> str:
    """The first folder of the window: servers of the user's own file start in the home folder."""
    given = environment.get("WORKSPACE_FOLDER_PATHS", "")
    try:
        found = json.loads(given)
    except ValueError:
        found = given
    names = found if isinstance(found, list) else [given, *given.split(","), *given.split(os.pathsep)]
    return next((name for name in names if isinstance(name, str) and name and os.path.isdir(name)), "")


def skill_file(home: str, project: str, skill: Skill) -> tuple[str, str]:
    """A command: plain Markdown, and what the user types behind its name follows it."""
    path = os.path.join(project or home, ".cursor", "commands", f"{skill.name}.md")
    return path, skill.text("what stands at the end of this message" if skill.hint else "")
