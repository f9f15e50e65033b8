"""What a run leaves behind it: processes of ours, and files in places that are not ours.

Owns the search for both. Invariant: only this world is looked at, so that other tests may run at the same time.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from .world import SCRIPT, World

QUIET_SECONDS = 30.0
# Written by the harness, or by the world itself.
_WORLD = {"home", "project", "memory", "calls", "temporary", "port", "requests.jsonl", "script.jsonl"}
_HOME = {".claude", ".claude.json", ".cache", ".local", ".npm", ".config"}


def running(world: World) -> list[str]:
    """The command lines of processes of this world that name our script."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            if os.fsencode(SCRIPT) in command and os.fsencode(world.folder) in (entry / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found


def settle(world: World) -> None:
    """Wait until nothing of ours runs in this world any more; fail with what still does."""
    limit = time.monotonic() + QUIET_SECONDS
    while left := running(world):
        assert time.monotonic() < limit, left
        time.sleep(0.1)


def strange_files(world: World) -> list[str]:
    """What lies in the world outside the data folder, the project, and the harness's own places."""
    found = [path for path in world.folder.iterdir() if path.name not in _WORLD]
    found += [
        path for path in world.home.iterdir() if path.name not in _HOME and not path.name.startswith(".claude.json")
    ]
    inside = (path.relative_to(world.home) for path in world.home.rglob("*"))
    found += [world.home / path for path in inside if path.name.startswith(("observational", "obsmem"))]
    temporary = world.folder / "temporary"
    if temporary.exists():
        found += [path for path in temporary.iterdir() if not path.name.startswith(("claude", "node", "."))]
    return sorted(str(path.relative_to(world.folder)) for path in found)
