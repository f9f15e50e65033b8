"""A place to run hooks and commands in: a transcript, its project folder, a data folder, and ways to call the script.

Hooks run as harnesses run them (``python -I -S``), commands under the interpreter of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from obsmem.system.paths import session_folder

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "observational_memory.py"
DEMO = ROOT / "fixtures" / "demo"
SESSION = "5d0c7f6e-3a41-4b8e-9c1d-72e5a90b4f16"
# What the demo's session of Claude Code holds; a new recording may change it.
RECORDS, ENTRIES, ENTRIES_BEFORE_COMPACTION = 171, 139, 108
LIMIT, LIMIT_LINE = 127, 159  # the entry, and its line, that says: 30 per minute per address
PORT = 62  # the entry that says: use port 8091
CONVERSATION = "c0ffee00-0000-4000-8000-000000000001"
DEADLINE = 60.0  # seconds until something started in the background must have shown


def payload(harness: str, name: str, **changes: Any) -> dict[str, Any]:
    """A payload that the real program gave to a hook, with some of its values changed."""
    path = ROOT / "fixtures" / "harnesses" / harness / "payloads" / f"{name}.json"
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {**value, **changes}


def until(done: Callable[[], bool]) -> bool:
    """Wait for something that happens in the background; False where it did not before the deadline."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.05)
    return done()


def heed_interrupts() -> None:
    """In a child before it begins: Ctrl-C ends it, also where whoever runs the tests was started to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def alive(pid: int) -> bool:
    """True while a process runs; one that has ended and waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def sleeps(pid: int) -> bool:
    """True while a process waits in the kernel for something; always where nobody can tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return not os.path.isdir("/proc/self")
    return stat.rpartition(")")[2].split()[0] == "S"


class Place:
    """One Claude Code session on one machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "data"
        self.project = folder / "project"
        self.transcript = folder / f"{SESSION}.jsonl"
        self.project.mkdir(parents=True)
        self.transcript.write_bytes((DEMO / "claude-code" / "session.jsonl").read_bytes())
        self.environment = {**os.environ, "OBSERVATIONAL_MEMORY_HOME": str(self.home)}

    @property
    def notes_folder(self) -> Path:
        """The session's folder of small files."""
        return Path(session_folder(str(self.home), "claude-code", str(self.transcript), SESSION))

    @property
    def log(self) -> str:
        """What the log says so far."""
        path = self.home / "log.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def payload(self, name: str, **changes: Any) -> bytes:
        """A recorded payload of Claude Code about the session of this place."""
        known = {"session_id": SESSION, "transcript_path": str(self.transcript), "cwd": str(self.project)}
        return json.dumps(payload("claude-code", name, **{**known, **changes})).encode()

    def hook_command(self, *arguments: str) -> list[str]:
        """How a harness calls a hook."""
        return [sys.executable, "-I", "-S", str(SCRIPT), "hook", *arguments]

    def hook(self, *arguments: str, given: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a hook to its end."""
        environment = {**self.environment, **options.pop("env", {})}
        return subprocess.run(
            self.hook_command(*arguments), input=given, capture_output=True, env=environment, timeout=120, **options
        )

    def command(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the script to its end."""
        environment = {**self.environment, **options.pop("env", {})}
        return subprocess.run(
            [sys.executable, str(SCRIPT), *arguments], capture_output=True, env=environment, timeout=120, **options
        )

    def remember(self) -> None:
        """Take the transcript in and leave a block, as before a compaction."""
        done = self.hook("claude-code", "PreCompact", given=self.payload("PreCompact-auto"))
        assert done.returncode == 0 and (self.notes_folder / "block.next").exists(), self.log

    def start(self, part: int, source: str = "compact", **options: Any) -> bytes:
        """What one SessionStart handler prints."""
        given = self.payload("SessionStart-compact", source=source)
        done = self.hook("claude-code", "SessionStart", "--part", f"{part}/4", given=given, **options)
        assert done.returncode == 0 and done.stderr == b""
        return done.stdout


class Cursor(Place):
    """A conversation in Cursor."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.transcript = folder / f"{CONVERSATION}.jsonl"
        shutil.copy(DEMO / "cursor" / "session.jsonl", self.transcript)

    def call(self, event: str, **more: Any) -> dict[str, Any]:
        """What a hook answers."""
        value = {"conversation_id": CONVERSATION, "hook_event_name": event, "cursor_version": "3.1",
                 "workspace_roots": [str(self.project)], "transcript_path": str(self.transcript), **more}  # fmt: skip
        done = self.hook("cursor", event, given=json.dumps(value).encode(), env={"CURSOR_VERSION": "3.1"})
        assert (done.returncode, done.stderr) == (0, b"")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def context(output: bytes) -> str:
    """The text that a SessionStart answer gives to the model; '' where nothing was printed."""
    if not output:
        return ""
    value = json.loads(output)
    assert set(value) == {"hookSpecificOutput"}
    assert value["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    return str(value["hookSpecificOutput"]["additionalContext"])
