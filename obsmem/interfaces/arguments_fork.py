"""The words and options of the command that goes on with a session in another harness: fork."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def add_forking(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    fork = add(
        commands, "fork", "commands_fork", "go on with a session in another harness, or from an earlier point of it"
    )
    fork.add_argument("session", metavar="SESSION", help="handle, id, name, or part of one")
    fork.add_argument("--to", required=True, metavar="HARNESS", help="the harness to go on in")
    fork.add_argument("--at", default="", metavar="ENTRY", help="the last entry to take along (the newest by default)")
    fork.add_argument(
        "--folder", default="", metavar="DIR", help="where to go on (the session's own folder by default)"
    )
    fork.add_argument(
        "--budget",
        type=_tokens,
        default=0,
        metavar="TOKENS",
        help="most tokens (half of the target's window by default)",
    )
    fork.add_argument("--dry-run", action="store_true", help="only say what would be taken along")


def _tokens(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a number of tokens from 1 up, not {text!r}")
    return int(text)
