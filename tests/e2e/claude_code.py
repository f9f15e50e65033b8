"""Drives the real Claude Code in a world: its settings, its environment, its turns.

Owns what this one program needs to run offline. Invariant: each turn is one ``claude -p`` process that ends; only
``open_in`` leaves one running, for its terminal to end.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .terminal import Terminal
from .world import Ended, World

NAME = "claude-code"

# Every event of a plain session. Those that a config leaves out get a recorder alone.
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)


class ClaudeCode:
    """One installed version in one world. ``session`` is the id of the conversation, '' before its first turn."""

    def __init__(
        self,
        world: World,
        command: Path,
        config: Mapping[str, Any],
        events: Sequence[str] = EVENTS,
        **environment: str,
    ) -> None:
        self.world = world
        self.session = ""
        self._command = command
        self._environment = {
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{world.port}",
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            **environment,
        }
        settings = world.home / ".claude" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps(with_recorders(world, config, events), indent=2), encoding="utf-8")

    def turn(self, prompt: str, *more: str) -> Ended:
        """Send one prompt (or a slash command) in the same session, and wait for the end of the turn.

        ``more`` are further arguments; with ``--fork-session`` the session is the fork from then on.
        """
        arguments = [str(self._command), "-p", prompt, "--output-format", "json", "--model", "haiku"]
        arguments += ["--dangerously-skip-permissions", *(["--resume", self.session] if self.session else []), *more]
        ended = self.world.run(arguments, self._environment)
        if ended.status == 0:
            self.session = str(json.loads(ended.stdout)["session_id"])
        return ended

    def transcript(self) -> Path:
        """The file of the session."""
        (found,) = (self.world.home / ".claude" / "projects").glob(f"*/{self.session}.jsonl")
        return found

    def other_session(self) -> ClaudeCode:
        """The same program with the same settings, about to begin a session of its own."""
        other = copy.copy(self)
        other.session = ""
        return other

    def open_in(self, terminal: Terminal, *more: str) -> None:
        """Start it as a person would, past every first-start dialog, and wait for its prompt; ``more`` are arguments."""
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [self._environment["ANTHROPIC_API_KEY"]], "rejected": []},
            "projects": {str(self.world.project): trusted},
        }
        (self.world.home / ".claude.json").write_text(json.dumps(state), encoding="utf-8")
        command = [str(self._command), "--model", "haiku", "--dangerously-skip-permissions", *more]
        terminal.start(command, {**self.world.environment(), **self._environment})
        terminal.wait(lambda: "bypass permissions on" in terminal.screen(), "its prompt")


def with_recorders(world: World, config: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    """The config with a bare recorder for each of the events that it does not register."""
    hooks = dict(config.get("hooks", {}))
    for event in events:
        if event not in hooks:
            recorder = {"type": "command", "command": world.recorder(event), "timeout": 30}
            hooks[event] = [{"hooks": [recorder]}]
    return {**config, "hooks": hooks}
