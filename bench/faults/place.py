"""A place for faults: a data folder, a project, a transcript that grows in steps, in memory where the machine has such a disk.

Invariant: a place can be put back as it was, at the same path, since the store knows transcripts by their path.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from bench.corpus import PROJECT
from bench.faults import process
from bench.faults.process import Arm, Ended
from obsmem.system.paths import HOME_VARIABLE, session_folder

HARNESS = "claude-code"
SESSION = "5d0c7f6e-3a41-4b8e-9c1d-72e5a90b4f16"
# Harness -> the session of its demo, and the name of that session's transcript.
DEMOS = {
    HARNESS: (SESSION, f"{SESSION}.jsonl"),
    "codex": ("019d6c41-7f02-7a53-b1de-5c90e2f4a816", "rollout-2026-04-08T13-20-06-019d6c41-7f02-7a53-b1de-5c90e2f4a816.jsonl"),
    "cursor": ("c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000001.jsonl"),
    "opencode": ("ses_6a1e03f2cffe7QdKpTz4mWbXya", "export.json"),
}  # fmt: skip
SETTINGS = {
    "OBSERVE_AFTER_TOKENS": "1",
    "CHUNK_MAX_TOKENS": "500",
    "REFLECT_AFTER_TOKENS": "1200",
    "POOL_TARGET_TOKENS": "500",
}  # the clocks of a twentieth of a day's session


Self = TypeVar("Self", bound="Place")


class Place:
    """One session on one machine. Close it: everything in it goes."""

    def __init__(self, name: str = "home", under: str = "", harness: str = HARNESS) -> None:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self.root = tempfile.mkdtemp(prefix="faults-", dir=under or memory)
        self.folder = os.path.join(self.root, name)
        self.home = os.path.join(self.folder, "data")
        self.project = os.path.join(self.folder, "project")
        self.harness = harness
        self.session, file = DEMOS[harness]
        self.transcript = os.path.join(self.folder, "transcripts", file)
        os.makedirs(self.project)
        os.makedirs(os.path.dirname(self.transcript))
        (demo,) = (PROJECT / "fixtures" / "demo" / harness).iterdir()
        self.lines = [line + b"\n" for line in demo.read_bytes().split(b"\n") if line]
        self.settings = dict(SETTINGS)

    @property
    def environment(self) -> dict[str, str]:
        """What its processes see."""
        kept = {key: os.environ[key] for key in ("PATH", "LD_PRELOAD", "LANG") if key in os.environ}
        values = {f"OBSERVATIONAL_MEMORY_SET_{key}": value for key, value in self.settings.items()}
        config = os.path.join(self.folder, "config.yaml")
        return {**kept, **values, HOME_VARIABLE: self.home, "HOME": self.folder, "OBSERVATIONAL_MEMORY_CONFIG": config,
                "TZ": "UTC"}  # fmt: skip

    @property
    def small(self) -> str:
        """The session's folder of small files."""
        return session_folder(self.home, self.harness, self.transcript, self.session)

    def grow(self, lines: int) -> None:
        """Let the transcript have so many lines."""
        Path(self.transcript).write_bytes(b"".join(self.lines[:lines]))

    def keep(self, name: str) -> None:
        """Remember how everything is now."""
        shutil.copytree(self.folder, os.path.join(self.root, f".{name}"), dirs_exist_ok=True, symlinks=True)

    def restore(self, name: str) -> None:
        """Make everything as it was."""
        shutil.rmtree(self.folder)
        shutil.copytree(os.path.join(self.root, f".{name}"), self.folder, symlinks=True)

    def payload(self, name: str, **changes: Any) -> bytes:
        """A recorded payload about the session of this place."""
        path = PROJECT / "fixtures" / "harnesses" / HARNESS / "payloads" / f"{name}.json"
        known = {"session_id": SESSION, "transcript_path": self.transcript, "cwd": self.project}
        return json.dumps({**json.loads(path.read_text(encoding="utf-8")), **known, **changes}).encode()

    def _maintaining(self) -> tuple[str, ...]:
        return (
            "maintain", self.harness, "--transcript", self.transcript, "--session", self.session, "--cwd", self.project,
        )  # fmt: skip

    def maintain(self, *more: str, **how: Any) -> Ended:
        """Run the maintainer to its end. ``how`` is for ``process.run``: arm, kill_after, meanwhile."""
        return process.run(process.command(*self._maintaining(), *more), self.environment, **how)

    def maintain_to_the_last_byte(self, *more: str) -> Ended:
        """Run the maintainer where it does not look how much space is left before it begins."""
        words = self._maintaining()

        def work() -> int | None:
            from obsmem.tasks import maintain

            maintain.LOWEST_DISK = 0
            return process.command(*words, *more)()

        return process.run(work, self.environment)

    def hook(self, event: str, payload: bytes, *more: str, arm: Arm | None = None) -> Ended:
        """Run a hook to its end."""
        return process.run(process.hook(self.harness, event, *more), self.environment, given=payload, arm=arm)

    def command(self, *words: str, arm: Arm | None = None) -> Ended:
        """Run a command to its end."""
        return process.run(process.command(*words), self.environment, arm=arm)

    def ask(self, work: Callable[[], Any]) -> Any:
        """What ``work`` gives back where the product's environment is that of this place."""
        return process.ask(work, self.environment)

    def hook_command(self, event: str, *more: str) -> list[str]:
        """How a harness calls a hook."""
        return [sys.executable, "-I", "-S", process.SCRIPT, "hook", self.harness, event, *more]

    def close(self) -> None:
        """Remove everything."""
        process.until_quiet(self.home)
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
