"""What a run of Claude Code may leave in its world, and what it may not.

Owns the list of places. Invariant: only this world is looked at, so that other tests may run at the same time.
"""

from __future__ import annotations

from pathlib import Path

from .model_server import LOG, PORT, SCRIPTS
from .world import World

# Written by the world itself, by us (``memory``), by the harness, or for it.
_WORLD = {"home", "project", "memory", "calls", "temporary", LOG, PORT, *SCRIPTS.values()}
_HOME = (".claude", ".cache", ".local", ".npm", ".config")
_TEMPORARY = ("claude", "opencode", "node", ".")
_OURS = ("observational", "obsmem")


def strange_files(world: World) -> list[str]:
    """What lies in the world outside the data folder, the project, and the harness's own places."""
    found = [path for path in world.folder.iterdir() if path.name not in _WORLD]
    found += [path for path in world.home.iterdir() if not path.name.startswith(_HOME)]
    found += [path for path in world.home.rglob("*") if path.name.startswith(_OURS)]
    found += [path for path in _below(world.folder / "temporary") if not path.name.startswith(_TEMPORARY)]
    return sorted(str(path.relative_to(world.folder)) for path in found)


def _below(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []
