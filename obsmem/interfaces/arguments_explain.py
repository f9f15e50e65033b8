"""The words and options of explain, and those of replay that run a stored session under other settings."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_explaining(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    explain = add(commands, "explain", "commands_explain", "print what was decided about a session, with the numbers")
    explain.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="the one that asks, or the newest, by default"
    )
    explain.add_argument(
        "when",
        nargs="*",
        metavar="WHEN",
        help='a day (2026-03-01, yesterday), since when (14:05, "3 hours ago"), the id of a note, or: last block',
    )
    explain.add_argument(
        "--last-block", action="store_true", help="what was injected, why each line is there, and what was left out"
    )


def add_policy(replay: argparse.ArgumentParser) -> None:
    """Add the options."""
    replay.add_argument(
        "--policy",
        nargs="*",
        metavar="KEY=VALUE",
        help="run sessions of the store again under these settings (none: as it was), and compare what is decided",
    )
    replay.add_argument(
        "--workers", action="store_true", help="with --policy: let the configured workers be asked, which may cost"
    )
