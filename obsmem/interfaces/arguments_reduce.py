"""The words and options of ``reduce``: what shortening saved, and what a rule would do."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

DAYS = 30


def add_reducing(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    reduce = add(commands, "reduce", "commands_reduce", "show how an output would be shortened, or what that has saved")
    reduce.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="what a command printed; - is standard input"
    )
    reduce.add_argument("--command", dest="line", default="", metavar="LINE", help="the command that printed it")
    reduce.add_argument("--exit", type=int, metavar="STATUS", help="how it ended; by default nobody knows")
    reduce.add_argument("--stats", action="store_true", help="what was saved, by rule and by command")
    reduce.add_argument("--days", type=_days, default=DAYS, metavar="N", help="of the last N days (30)")
    reduce.add_argument("--rules", action="store_true", help="list the rules")


def _days(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 3650:
        raise argparse.ArgumentTypeError(f"must be a number of days from 1 to 3650, not {text!r}")
    return int(text)
