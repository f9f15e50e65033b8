"""The words and options of the commands that change windows: handoff, rotate, resume."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

STYLES = ("notes", "anchor", "pointer", "cards")
LEAST_TOKENS, MOST_TOKENS = 600, 12_000


def add_windows(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    handoff = add(commands, "handoff", "commands_windows", "print the text that lets a fresh window go on")
    _session(handoff)
    _style(handoff)
    handoff.add_argument("--budget", type=_budget, metavar="TOKENS", help="most tokens of it (8,000, or the block's)")
    handoff.add_argument("--folder", default="", metavar="DIR", help="write the record there as files, and point to it")
    rotate = add(commands, "rotate", "commands_windows", "give the next fresh session here the handoff of this one")
    _session(rotate)
    _style(rotate)
    rotate.add_argument("--force", action="store_true", help="however few turns it has")
    rotate.add_argument("--cancel", action="store_true", help="take the mark back")
    resume = add(commands, "resume", "commands_windows", "go on with an earlier session")
    resume.add_argument("session", nargs="?", default="", metavar="NAME", help="handle, id, name, or part of one")
    _style(resume)
    resume.add_argument("--start", action="store_true", help="start its harness with it, in its folder")


def _session(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="the one that asks, or the newest here, by default"
    )


def _style(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--style",
        choices=STYLES,
        default=STYLES[0],
        help="notes: with the block; anchor: the last instruction and what is open; pointer: that, and where the record "
        "lies; cards: what was done, turn by turn",
    )


def _budget(text: str) -> int:
    if not text.isdigit() or not LEAST_TOKENS <= int(text) <= MOST_TOKENS:
        raise argparse.ArgumentTypeError(
            f"must be a number of tokens from {LEAST_TOKENS} to {MOST_TOKENS}, not {text!r}"
        )
    return int(text)
