"""The words and options of the commands that look at the record: get, around, tool, timeline, file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

COUNT = 20


def add_looking(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands."""
    get = add(commands, "get", "commands_look", "print one entry, or some characters of it")
    get.add_argument("id", metavar="ENTRY", help="an entry id (7c2e.812)")
    get.add_argument("--range", default="", metavar="A:B", help="characters A up to B (the first 6,000 by default)")
    get.add_argument("--raw", action="store_true", help="the original record, byte for byte, nothing masked")
    around = add(commands, "around", "commands_look", "print an entry with what stands before and after it")
    around.add_argument("id", metavar="ENTRY", help="an entry id (7c2e.812)")
    around.add_argument("--count", type=_count, default=3, metavar="N", help="entries on each side (3)")
    tool = add(commands, "tool", "commands_look", "print a tool's call and what it gave, by the harness's call id")
    tool.add_argument("id", metavar="CALL_ID", help="the call id, or part of it")
    tool.add_argument("--range", default="", metavar="A:B", help="characters A up to B of what it gave")
    timeline = add(commands, "timeline", "commands_look", "list what happened, a line each")
    timeline.add_argument(
        "session", nargs="?", default="", metavar="SESSION", help="all of this workspace by default, the newest first"
    )
    timeline.add_argument("--after", default="", metavar="TOKEN", help="the next page, as the page before names it")
    timeline.add_argument("--count", type=_count, default=COUNT, metavar="N", help="lines (20)")
    file = add(commands, "file", "commands_look", "tell what is known of a file, and whether it still is what it was")
    file.add_argument("path", metavar="PATH", help="a path, or the end of one")


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 500, not {text!r}")
    return int(text)
