"""The words and options of ``export``, ``import`` and ``remote``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_export(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    export = add(
        commands, "export", "commands_export", "write sessions as plain files, or as a bundle for another store"
    )
    export.add_argument("session", nargs="+", metavar="SESSION", help="handle, id, name, or part of one")
    way = export.add_mutually_exclusive_group(required=True)
    way.add_argument(
        "--folder", metavar="DIR", help="plain files: an empty or new folder, or that of an earlier export"
    )
    way.add_argument("--bundle", metavar="FILE", help="one file that 'import' takes in elsewhere")
    export.add_argument("--raw", action="store_true", help="leave secrets in a bundle")
    export.add_argument("--yes", action="store_true", help="do not ask before secrets are left in")
    taking = add(commands, "import", "commands_bundle", "take in sessions that another store exported")
    taking.add_argument("path", metavar="FILE|FOLDER", help="a bundle, or a folder of them")
    taking.add_argument("--workspace", default="", metavar="DIR", help="the folder here that the sessions belong to")
    remote = add(commands, "remote", "commands_bundle", "exchange sessions through a git repository of yours")
    remote.add_argument("action", choices=("add", "status", "push", "pull", "remove"), help="what to do")
    remote.add_argument("value", nargs="*", metavar="URL|SESSION", help="add: the address; push: only these sessions")
    remote.add_argument(
        "--workspace", default="", metavar="DIR", help="pull: the folder here that the sessions belong to"
    )
