"""The words and options of ``search``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

DEFAULT_HITS = 10
MOST_HITS = 100


def add_search(commands: Any, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command ``search``."""
    search = add(commands, "search", "commands_search", "find entries and notes by words, best first")
    search.add_argument(
        "words",
        nargs="*",
        metavar="WORDS",
        help='what to look for; "a phrase" in quotation marks, a date ("last Tuesday"); after -- anything is a word',
    )
    search.add_argument("--session", action="append", default=[], help="only this session (may be given again)")
    search.add_argument("--harness", default="", help="only sessions of this harness")
    search.add_argument("--kind", action="append", default=[], help="only these: user, assistant, tool_call, note …")
    search.add_argument("--tool", action="append", default=[], help="only calls of this tool and what they gave")
    search.add_argument("--path", default="", help="only calls that name a file whose path holds this")
    search.add_argument("--since", default="", metavar="DATE", help='not before: 2026-03-01, yesterday, "3 days ago"')
    search.add_argument("--until", default="", metavar="DATE", help="not after that day or moment")
    how = search.add_mutually_exclusive_group()
    how.add_argument("--exact", action="store_true", help="the text as it stands, wherever it is; newest first")
    how.add_argument("--regex", action="store_true", help="a regular expression; newest first")
    where = search.add_mutually_exclusive_group()
    where.add_argument("--here", action="store_true", help="only the workspace of this folder (the default)")
    where.add_argument("--everywhere", action="store_true", help="all workspaces")
    search.add_argument("--own", action="store_true", help="also our own commands and what they printed")
    search.add_argument("--limit", type=_limit, default=DEFAULT_HITS, metavar="N", help="hits to print (10)")
    search.add_argument("--after", default="", metavar="TOKEN", help="the next page, as the page before names it")


def _limit(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_HITS:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MOST_HITS}, not {text!r}")
    return int(text)
