"""The arguments of the commands by which a user fixes something: pin, unpin, pins, note."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Add = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]", str, str, str], argparse.ArgumentParser]


def add_fixing(commands: argparse._SubParsersAction[argparse.ArgumentParser], add: Add) -> None:
    """Add the parsers of these commands."""
    pin = add(commands, "pin", "commands_fix", "keep words in every block, whatever is compacted")
    pin.add_argument(
        "what", nargs="+", metavar="TEXT|ENTRY|NOTE", help="words, or the id of an entry, note or reflection"
    )
    pin.add_argument(
        "--scope",
        default="",
        metavar="SCOPE",
        help="session, workspace or everywhere (the session that asks; outside of one, the workspace)",
    )
    pin.add_argument("--text", action="store_true", help="take what looks like an id as words")
    _add_session(pin)
    unpin = add(commands, "unpin", "commands_fix", "take a pin away")
    unpin.add_argument("id", metavar="ID", help="a pin's id, or an unambiguous beginning of one")
    pins = add(commands, "pins", "commands_fix", "list what is pinned here, and what it costs")
    pins.add_argument("--all", action="store_true", help="those of every session and workspace")
    _add_session(pins)
    note = add(commands, "note", "commands_fix", "write a note by hand")
    note.add_argument("text", nargs="+", metavar="TEXT", help="what to note; one line is kept")
    note.add_argument(
        "--cite",
        nargs="+",
        action="extend",
        default=[],
        metavar="ENTRY",
        help="the entries that it stands on (the newest words of the user)",
    )
    note.add_argument("--relevance", default="high", metavar="LEVEL", help="low, medium, high or critical (high)")
    _add_session(note)


def _add_session(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--session", default="", metavar="SESSION", help="of this session: handle, id, name, or part of one"
    )
