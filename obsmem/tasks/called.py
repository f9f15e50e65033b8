"""How this program is called on this machine, by people, hooks and agents."""

from __future__ import annotations

import os
import sys

from obsmem.system.launcher import quoted, recall_path
from obsmem.system.paths import data_home


def installed_script() -> str:
    """The script in front of this package: beside it in a checkout, and beside it in an installed package."""
    return os.path.join(
        os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "observational_memory.py"
    )


def command() -> str:
    """How this program is called on this machine."""
    if _is_on_path("observational-memory"):
        return "observational-memory"
    return f"{_quoted(sys.executable)} {_quoted(installed_script())}"


def recall_command() -> str:
    """How ``recall`` is called on this machine: by its launcher where one was installed, since rules allow that path."""
    launcher = recall_path(data_home())
    if os.path.isfile(launcher):
        return quoted(launcher)
    return "recall" if _is_on_path("recall") else f"{command()} recall"


def _is_on_path(name: str) -> bool:
    if sys.platform == "win32":
        from shutil import which  # slow to load, and knows which endings programs have there

        return which(name) is not None
    paths = (os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep))
    return any(os.access(path, os.X_OK) and os.path.isfile(path) for path in paths)


def _quoted(path: str) -> str:
    return f'"{path}"' if " " in path else path
