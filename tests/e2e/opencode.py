"""Drives the real OpenCode in a world: its config, its turns, its compaction through ``opencode serve``.

Owns what this one program needs to run offline. Invariant: each turn is one ``opencode run`` process that ends; the
server that a compaction needs lives no longer than that compaction.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import programs
from .terminal import Terminal
from .world import Ended, World

NAME = "opencode"
MODEL = "scripted/m1"

# Runs inside the world: starts the server, waits until it says where it listens, makes requests, ends the server.
# The requests of one group are made at the same time.
_SERVE = """\
import concurrent.futures, json, os, re, signal, subprocess, sys, urllib.request
def post(request):
    path, body = request
    wanted = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    return urllib.request.urlopen(wanted, timeout=60).read().decode()
server = subprocess.Popen([sys.argv[1], "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, encoding="utf-8", start_new_session=True)
try:
    for line in server.stdout:
        found = re.search(r"listening on (http://\\S+)", line)
        if found:
            break
    url = found.group(1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for group in json.loads(sys.argv[2]):
            print(*pool.map(post, group), sep="\\n")
finally:
    os.killpg(server.pid, signal.SIGKILL)
"""


class OpenCode:
    """One installed version in one world. ``session`` is the id of the conversation, '' before its first turn. A ``title``
    keeps it from asking for one."""

    def __init__(self, world: World, command: Path, config: Mapping[str, Any], title: str = "Scripted") -> None:
        self.world = world
        self._title = title
        self.session = ""
        self._command = command
        model = {"name": "m1", "tool_call": True, "limit": {"context": 100_000, "output": 8_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"http://127.0.0.1:{world.port}/v1", "apiKey": "scripted"},
            "models": {"m1": model},
        }
        whole = {"provider": {"scripted": provider}, "model": MODEL, "autoupdate": False, "share": "disabled", **config}
        folder = world.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        # With these in place it does not look for its plugin package on the network, which takes it over a minute.
        shutil.copytree(programs.require_folder(programs.OPENCODE_PLUGIN), folder, dirs_exist_ok=True)
        (folder / "opencode.json").write_text(json.dumps(whole, indent=2), encoding="utf-8")
        self.environment = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def turn(self, prompt: str, *options: str) -> Ended:
        """Send one prompt in the same session, on stdin (an argument with a space would arrive quoted)."""
        arguments = [str(self._command), "run", "--format", "json", "--model", MODEL, "--title", self._title, *options]
        ended = self.world.run([*arguments, *(["-s", self.session] if self.session else [])], self.environment, prompt)
        if not self.session:
            for line in ended.stdout.split("\n"):
                if '"sessionID"' in line:
                    self.session = str(json.loads(line)["sessionID"])
                    break
        return ended

    def open_in(self, terminal: Terminal) -> None:
        """Start it as a person would, in the session where there is one, and wait for its prompt."""
        session = ["-s", self.session] if self.session else []
        terminal.start([str(self._command), "--model", MODEL, *session], self.environment)
        terminal.wait(lambda: "m1 scripted" in terminal.screen(), "its prompt")

    def database(self) -> Path:
        """Where it keeps its sessions."""
        return self.world.home / ".local" / "share" / "opencode" / "opencode.db"

    def compact(self) -> Ended:
        """Ask for a compaction of the session, as ``/compact`` does."""
        return self.serve([summarize(self.session)])

    def serve(self, *groups: list[tuple[str, dict[str, Any]]]) -> Ended:
        """Make groups of requests of one server, those of a group at the same time."""
        arguments = [sys.executable, "-c", _SERVE, str(self._command), json.dumps(groups)]
        return self.world.run(arguments, self.environment)


def summarize(session: str) -> tuple[str, dict[str, Any]]:
    """The request that compacts a session."""
    return f"/session/{session}/summarize", {"providerID": "scripted", "modelID": "m1"}


def say(session: str, text: str) -> tuple[str, dict[str, Any]]:
    """The request that sends a prompt in a session."""
    model = {"providerID": "scripted", "modelID": "m1"}
    return f"/session/{session}/message", {"model": model, "parts": [{"type": "text", "text": text}]}
