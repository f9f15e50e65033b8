"""Where the pinned harness programs come from.

Owns the versions that the end-to-end tests run, and the cache folder that holds them: ``OBSMEM_E2E_CACHE``, or a
folder ``e2e`` below the user's cache folder. Invariants: nothing is installed inside the project; a version, once
there, is used without asking the network; what cannot be had is said loudly at the end of a run, and fails it where
``CI`` is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, NoReturn

import platformdirs
import pytest

INSTALL_SECONDS = 300
VERSION_SECONDS = 60


class Program(NamedTuple):
    """An npm package at one version, and the command that it brings ('' for a library)."""

    package: str
    version: str
    command: str = ""

    @property
    def folder_name(self) -> str:
        """The cache folder's name for this version."""
        return f"{self.package.lstrip('@').replace('/', '-')}-{self.version}"

    def __str__(self) -> str:
        """As npm writes it."""
        return f"{self.package}@{self.version}"


CLAUDE_CODE = Program("@anthropic-ai/claude-code", "2.1.197", "claude")
CLAUDE_CODE_NEWER = Program("@anthropic-ai/claude-code", "2.1.332", "claude")
CODEX = Program("@openai/codex", "0.171.0", "codex")
OPENCODE = Program("opencode-ai", "1.18.33", "opencode")
# Where a plugin is configured, OpenCode wants this package too, and asks the network for it for over a minute.
OPENCODE_PLUGIN = Program("@opencode-ai/plugin", "1.18.33")


not_run: dict[str, str] = {}
"""Program -> why it could not be had, for the end of the run."""


def give_up(program: Program, why: str) -> NoReturn:
    """End a test whose program cannot be had: a failure in CI, where nobody reads what was skipped, else a skip."""
    not_run[str(program)] = why
    said = f"NOT RUN: {program}: {why}"
    if os.environ.get("CI"):
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


def cache_folder() -> Path:
    """The folder that holds installed programs and the folders of running tests."""
    named = os.environ.get("OBSMEM_E2E_CACHE")
    return Path(named) if named else Path(platformdirs.user_cache_dir("observational-memory")) / "e2e"


def require(program: Program) -> Path:
    """The path of the program's command, installed if need be. See ``give_up`` where it cannot be had."""
    folder = require_folder(program)
    command = folder / "node_modules" / ".bin" / program.command
    if not command.exists():
        give_up(program, f"brings no command {program.command!r}")
    said = _run([str(command), "--version"], folder, VERSION_SECONDS)
    if said is None or program.version not in said.stdout:
        give_up(program, f"does not run on this machine: {_reason(said)}")
    return command


def require_folder(program: Program) -> Path:
    """The folder that a package is installed in, with what it depends on. See ``give_up`` where it cannot be had."""
    folder = cache_folder() / program.folder_name
    if not (folder / "node_modules").exists():
        _install(program, folder)
    return folder


def _install(program: Program, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        give_up(program, "npm, which would install it, is not on this machine")
    # Installed beside its place and moved there, so that a cut-off download is never taken for an installation.
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    unfinished.mkdir(parents=True)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    arguments = [npm, "install", "--prefix", str(unfinished), "--save-exact", *quiet, str(program)]
    done = _run(arguments, unfinished, INSTALL_SECONDS)
    if done is None or done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        give_up(program, f"npm could not install it: {_reason(done)}")
    if folder.exists():
        shutil.rmtree(unfinished, ignore_errors=True)
    else:
        unfinished.rename(folder)


def _run(arguments: list[str], folder: Path, seconds: int) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _reason(done: subprocess.CompletedProcess[str] | None) -> str:
    if done is None:
        return "it did not end in time"
    lines = [line for line in done.stderr.split("\n") if line.strip()]
    return lines[-1] if lines else f"exit status {done.returncode}"
