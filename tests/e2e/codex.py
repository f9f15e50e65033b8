"""Drives the real Codex CLI in a world: its config, its hooks file, its turns.

Owns what this one program needs to run offline. Invariant: each turn is one ``codex exec`` process that ends, which
starts no daemon and runs hooks with the environment given here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .terminal import Terminal
from .world import Ended, World

NAME = "codex"

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
)

_CONFIG = """\
model = "gpt-5-codex"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{project}"]
trust_level = "trusted"
"""

BYPASS = "--dangerously-bypass-hook-trust"
UNCONFINED = "--dangerously-bypass-approvals-and-sandbox"


class Codex:
    """One installed version in one world. ``session`` is the thread's id, '' before its first turn.

    Without a ``config`` the hooks file is left as it is, and Codex runs what its user has approved of it.
    """

    def __init__(
        self, world: World, command: Path, config: Mapping[str, Any] | None, events: Sequence[str] = EVENTS
    ) -> None:
        self.world = world
        self.session = ""
        self._command = command
        self.trust = [] if config is None else [BYPASS]
        home = world.home / ".codex"
        home.mkdir(exist_ok=True)
        file = home / "config.toml"
        known = file.read_text(encoding="utf-8") if file.exists() else ""
        if "model_provider" not in known:  # an installation may have written its server there
            file.write_text(_CONFIG.format(port=world.port, project=world.project) + known, encoding="utf-8")
        if config is not None:
            text = json.dumps(with_recorders(world, config, events), indent=2)
            (home / "hooks.json").write_text(text, encoding="utf-8")
        self.environment = {"CODEX_HOME": str(home), "SCRIPTED_KEY": "scripted"}

    def turn(self, prompt: str, sandbox: str = "") -> Ended:
        """Send one prompt in the same thread, and wait for its end. ``sandbox`` ('' for none) holds for its commands."""
        return self._say(["resume", self.session] if self.session else [], prompt, sandbox)

    def fork(self, prompt: str) -> Ended:
        """Send one prompt in a fork of the thread, which is the thread from then on."""
        parent, self.session = self.session, ""
        return self._say(["fork", parent], prompt)

    def open_in(self, terminal: Terminal, *more: str) -> None:
        """Start the program in a terminal, as a person does, but without the daemon that would outlive it. ``more`` are
        arguments. It may have a question before its prompt comes, see ``listens``."""
        command = [str(self._command), *more, "--no-daemon", *self.trust, UNCONFINED]
        terminal.start(command, self.environment)

    def listens(self, terminal: Terminal) -> bool:
        """True once its prompt takes keys."""
        return "? for shortcuts" in terminal.screen()

    def _say(self, how: Sequence[str], prompt: str, sandbox: str = "") -> Ended:
        arguments = [str(self._command), "exec", *how, "--json", "--skip-git-repo-check", *self.trust]
        confined = ["-c", f'sandbox_mode="{sandbox}"']
        arguments += confined if sandbox else [UNCONFINED]
        arguments.append(prompt)
        ended = self.world.run(arguments, self.environment)
        if not self.session:
            for line in ended.stdout.split("\n"):
                if '"thread.started"' in line:
                    self.session = str(json.loads(line)["thread_id"])
        return ended


def with_recorders(world: World, config: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    """The config with a bare recorder for each of the events that it does not register."""
    hooks = dict(config.get("hooks", {}))
    for event in events:
        if event not in hooks:
            # Three seconds is the most that Codex gives to a SessionEnd hook; it warns about more.
            recorder = {"type": "command", "command": world.recorder(event), "timeout": 3}
            hooks[event] = [{"hooks": [recorder]}]
    return {**config, "hooks": hooks}
