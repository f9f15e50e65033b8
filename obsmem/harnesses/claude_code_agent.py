"""What Claude Code's agent gets: the server of our tools, the rule that allows those that read, and slash commands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from obsmem.harnesses.skills import MARK, Skill, front_matter


def mcp_config(home: str, project: str, name: str, command: str) -> tuple[str, dict[str, Any]]:
    """The user's ``.claude.json``; in a project ``.mcp.json``."""
    server = {"type": "stdio", "command": command, "args": [], "env": {}}
    folder = project or os.environ.get("CLAUDE_CONFIG_DIR") or home
    return os.path.join(folder, ".mcp.json" if project else ".claude.json"), {"mcpServers": {name: server}}


def mcp_rule(home: str, project: str, name: str, tools: list[str]) -> tuple[str, dict[str, Any]]:
    """Rules of the settings: each tool that only reads, by its whole name."""
    from obsmem.harnesses.claude_code import config_file

    return config_file(home, project), {"permissions": {"allow": [f"mcp__{name}__{tool}" for tool in tools]}}


def session_of_call(meta: Mapping[str, object]) -> str:
    """'': a server knows its session from its environment."""
    return ""


def folder_of_server(environment: Mapping[str, str]) -> str:
    """The project, wherever the session has gone since."""
    return environment.get("CLAUDE_PROJECT_DIR", "")


def skill_file(home: str, project: str, skill: Skill) -> tuple[str, str]:
    """A slash command. What only a user should start, the model is not offered."""
    folder = os.path.join(project, ".claude") if project else _user_folder(home)
    return os.path.join(folder, "commands", f"{skill.name}.md"), command_text(skill)


def command_text(skill: Skill, mark: str = MARK) -> str:
    """A slash command's file; the plugin has it without the mark of those that `install` makes."""
    head = front_matter(
        description=json.dumps(skill.description),
        argument_hint=json.dumps(f"[{skill.hint}]") if skill.hint else "",
        disable_model_invocation="true" if skill.for_user else "",
    )
    return head + skill.text("$ARGUMENTS", mark)


def _user_folder(home: str) -> str:
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
