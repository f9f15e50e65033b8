"""What Codex's agent gets: the server of our tools, and skills. Tools that only read need no approval there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from obsmem.harnesses.skills import Skill, front_matter

_META = "x-codex-turn-metadata"


def _folder(home: str, project: str) -> str:
    if project:
        return os.path.join(project, ".codex")
    return os.environ.get("CODEX_HOME") or os.path.join(home, ".codex")


def mcp_config(home: str, project: str, name: str, command: str) -> tuple[str, dict[str, Any]]:
    """A table of ``config.toml``."""
    server = {"command": command, "args": [], "startup_timeout_sec": 30}
    return os.path.join(_folder(home, project), "config.toml"), {"mcp_servers": {name: server}}


def mcp_rule(home: str, project: str, name: str, tools: list[str]) -> tuple[str, dict[str, Any]]:
    """None: a tool that says that it only reads runs without approval."""
    return "", {}


def session_of_call(meta: Mapping[str, object]) -> str:
    """The thread that makes a call; a server's environment names none."""
    found = meta.get(_META)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return ""
    if not isinstance(found, Mapping):
        return ""
    return next((value for key in ("thread_id", "session_id") if isinstance(value := found.get(key), str)), "")


def folder_of_server(environment: Mapping[str, str]) -> str:
    """'': servers start in the project."""
    return ""


def skill_file(home: str, project: str, skill: Skill) -> tuple[str, str]:
    """A skill of the user's or a project's Codex folder."""
    head = front_matter(name=skill.name, description=json.dumps(skill.description))
    path = os.path.join(_folder(home, project), "skills", skill.name, "SKILL.md")
    return path, head + skill.text("what the user named" if skill.hint else "")
