"""The words and options of the status line, and of ``status --watch``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

SHORTEST_SECONDS, LONGEST_SECONDS = 0.5, 3600.0
EVERY_SECONDS = 2.0


def add_status_line(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    command = add(
        commands,
        "statusline",
        "commands_watch",
        "print in one line how full a session's window is, and what is kept of it",
    )
    command.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="the one that asks, or the newest here, by default"
    )


def add_watching(status: argparse.ArgumentParser) -> None:
    """Add what ``status`` takes."""
    status.add_argument(
        "--watch", action="store_true", help="show the sessions here until Ctrl-C, as a status line would"
    )
    status.add_argument(
        "--every", type=_seconds, metavar="SECONDS", default=EVERY_SECONDS, help="how often, with --watch (2)"
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not SHORTEST_SECONDS <= value <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"must be a number of seconds from {SHORTEST_SECONDS} to {LONGEST_SECONDS:.0f}, not {text!r}"
        )
    return value
