"""Our own commands in a world, and what they leave there: the store's rows, the log, the processes, the files.

Invariant: everything here looks from outside, as a person could: by a command, by SQL that only reads, by ``/proc``.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from .world import PROJECT_ROOT, SCRIPT, World

WAIT_SECONDS = 30.0


def command(
    world: World, *words: str, script: Path = SCRIPT, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run one of our commands with the environment of a world."""
    return subprocess.run(
        [python, str(script), *words],
        env=world.environment(),
        cwd=world.project,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def install(world: World, harness: str, *more: str, script: Path = SCRIPT, python: str = sys.executable) -> None:
    """Install for one harness, as a person would who asks no questions."""
    done = command(world, "install", harness, "--yes", *more, script=script, python=python)
    assert done.returncode == 0, done.stderr


def copy_of_checkout(folder: Path) -> Path:
    """Copy what runs of the project into another folder; returns the script there."""
    shutil.copytree(PROJECT_ROOT / "obsmem", folder / "obsmem", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SCRIPT, folder)
    return folder / SCRIPT.name


def rows(world: World, database: str, question: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask a database of the store, without writing to it."""
    with closing(sqlite3.connect(f"file:{world.memory / database}?mode=ro", uri=True)) as connection:
        return connection.execute(question, values).fetchall()


def log(world: World) -> str:
    """Our log, '' where there is none."""
    path = world.memory / "log.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def status(world: World) -> dict[str, Any]:
    """What ``status --json`` prints."""
    done = command(world, "status", "--json")
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def wait_for(happened: Callable[[], object], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Watch until something is so; fail where it does not come to be."""
    limit = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < limit, f"waited in vain: {what}"
        time.sleep(0.1)


def our_processes(world: World) -> list[str]:
    """The command lines of the processes that run our script for this world."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            is_ours = SCRIPT.name in line and os.fsencode(world.folder) in (entry / "environ").read_bytes()
        except OSError:
            continue
        if is_ours:
            found.append(line)
    return found


def wait_until_quiet(world: World) -> None:
    """Wait until no process of ours runs in this world any more."""
    wait_for(lambda: not our_processes(world), "the end of our processes")


def files(folder: Path) -> set[str]:
    """Every file and folder below a folder, by its path from there."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
