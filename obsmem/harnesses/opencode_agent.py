"""What OpenCode's agent gets beside the plugin's own tools: the server of our tools, and commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from obsmem.harnesses.skills import Skill, front_matter


def mcp_config(home: str, project: str, name: str, command: str) -> tuple[str, dict[str, Any]]:
    """A server of ``opencode.json``, the file that loads the plugin too."""
    from obsmem.harnesses.opencode import config_file

    server = {"type": "local", "command": [command], "enabled": True}
    return config_file(home, project), {"mcp": {name: server}}


def mcp_rule(home: str, project: str, name: str, tools: list[str]) -> tuple[str, dict[str, Any]]:
    """None: tools of a server run unasked."""
    return "", {}


def session_of_call(meta: Mapping[str, object]) -> str:
    """'': nothing with a call names its session; the plugin's tools do."""
    return ""


def folder_of_server(environment: Mapping[str, str]) -> str:
    """'': servers start in the project."""
    return ""


def skill_file(home: str, project: str, skill: Skill) -> tuple[str, str]:
    """A command of the user's or a project's folder."""
    head = front_matter(description=json.dumps(skill.description))
    if project:
        folder = os.path.join(project, ".opencode")
    else:
        folder = os.environ.get("OPENCODE_CONFIG_DIR") or os.path.join(
            os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode"
        )
    return os.path.join(folder, "command", f"{skill.name}.md"), head + skill.text("$ARGUMENTS")
