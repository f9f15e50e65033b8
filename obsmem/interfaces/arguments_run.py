"""The words and options of the command that runs a harness in a loop: run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from obsmem.interfaces.arguments_windows import STYLES


def add_run(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command."""
    run = add(
        commands, "run", "commands_run", "run a harness for one prompt after another, in fresh windows as they fill"
    )
    run.add_argument("harness", metavar="HARNESS", help="the harness, by its name or its program's")
    source = run.add_mutually_exclusive_group()
    source.add_argument(
        "--prompts",
        default="-",
        metavar="FILE",
        help="prompts, one a line, or apart by lines of '---' where there are any ('-', the default: standard input)",
    )
    source.add_argument(
        "--each", default="", metavar="COMMAND", help="a command that prints the next prompt, or nothing"
    )
    run.add_argument("--session", default="", metavar="SESSION", help="go on with this session")
    run.add_argument("--rotate-at", type=_part, default=None, metavar="PART", help="part of the window (0.8)")
    run.add_argument("--stop-at", type=_part, default=None, metavar="PART", help="leave whatever its turns (0.97)")
    run.add_argument("--least-turns", type=_count, default=None, metavar="N", help="turns before a window is left (5)")
    run.add_argument(
        "--turn-seconds", type=_seconds, default=None, metavar="S", help="most that one turn may take (7200)"
    )
    run.add_argument("--style", choices=STYLES, default=STYLES[0], help="of the handoff")
    run.add_argument("--log", default="", metavar="FILE", help="append each decision there, as a line of JSON")
    run.epilog = "What stands behind -- is given to the program: run HARNESS --prompts FILE -- ARGS"


def split_run(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of ours, and those behind ``--``, which are the program's own; only where the command is this one."""
    if words[:1] != ["run"] or "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _part(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be a part of the window between 0 and 1, not {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of turns from 1 on, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}")
    return value
