"""The words and options of the commands that say how full windows are and what was spent: context, stats."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

GROUPS = ("session", "day", "model", "harness", "workspace")
DAYS = range(1, 3_651)


def add_measuring(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    context = add(commands, "context", "commands_context", "say how full a session's window is, and what it spent")
    context.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="the one that asks, or the newest, by default"
    )
    stats = add(
        commands, "stats", "commands_context", "say what the requests of all sessions took, as providers counted"
    )
    stats.add_argument("--days", type=_days, default=7, metavar="N", help="of the last N days (7)")
    stats.add_argument("--by", choices=GROUPS, default="session", help="one line for each of these (session)")


def _days(text: str) -> int:
    if not text.isdigit() or int(text) not in DAYS:
        raise argparse.ArgumentTypeError(f"must be a number of days from {DAYS[0]} to {DAYS[-1]}, not {text!r}")
    return int(text)
