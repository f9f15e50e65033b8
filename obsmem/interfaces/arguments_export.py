"""The words and options of ``export``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_export(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    export = add(commands, "export", "commands_export", "write a session as plain files that grep and ls read")
    export.add_argument("session", metavar="SESSION", help="handle, id, name, or part of one")
    export.add_argument(
        "--folder", required=True, metavar="DIR", help="an empty or new folder, or that of an earlier export"
    )
