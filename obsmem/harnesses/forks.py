"""The mark by which a session that ``fork`` wrote is known again, and what every writer of sessions needs.

Each written record carries, under ``KEY``, which session it copies and which entries: an entry by the hash of its record
and its number in it, so that a store made anew from the files finds it. Invariants: a mark counts only in the session
that it names; no file is ever written over; nothing half-written lies where a harness looks.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from obsmem.core.model import Action
from obsmem.core.tuples import NamedTuple
from obsmem.core.turns import Parentage, ToolUse

KEY = "observationalMemoryFork"
LAST_ARGUMENTS = 4  # lines at the end of a call's words among which one argument is looked for
MARK_DIGITS = 24  # of the SHA-256 of a record: 96 bits


class Repeats(NamedTuple):
    """What a record of session ``session`` repeats: of which session, and for each of its entries the mark of the entry
    there ('' for this program's own words)."""

    session: str
    of: Parentage
    entries: tuple[str, ...]


def mark_of(sha256: bytes, block: int) -> str:
    """An entry by its content: the hash of its record, and its number among the record's entries."""
    return f"{sha256.hex()[:MARK_DIGITS]}.{block}"


def make_mark(session: str, of: Parentage, entries: Sequence[str], *, first: bool = False) -> dict[str, Any]:
    """What stands under ``KEY`` in a record; the first of a session also says where the parent's transcript lay."""
    mark: dict[str, Any] = {"session": session, "of": [of.harness, of.session, of.handle, of.seq]}
    if first:
        mark["transcript"] = of.transcript
    return {**mark, "entries": list(entries)}


def read_mark(value: Any) -> Repeats | None:
    """What a mark says; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    session, of, entries, transcript = (value.get(key) for key in ("session", "of", "entries", "transcript"))
    if not isinstance(session, str) or not isinstance(entries, list) or not isinstance(of, list) or len(of) != 4:
        return None
    if not all(isinstance(one, str) for one in [*of[:3], *entries]) or type(of[3]) is not int:
        return None
    where = transcript if isinstance(transcript, str) else ""
    return Repeats(session, Parentage(of[0], of[1], of[2], of[3], where), tuple(entries))


def shell_line(folder: str, *arguments: str) -> str:
    """The line that runs a program in a folder."""
    return f"cd {shlex.quote(folder)} && {shlex.join(arguments)}"


def iso(at: int) -> str:
    """Milliseconds as ``2026-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(at / 1000, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


def time_id(now: int) -> str:
    """A fresh version 7 UUID of this time (milliseconds)."""
    number = uuid.uuid4().int & ~(0xFFFFFFFFFFFF << 80) & ~(0xF << 76)
    return str(uuid.UUID(int=number | (now << 80) | (0x7 << 76)))


class Times:
    """Times of records that never go back; one that is not known is that of the record before."""

    def __init__(self, start: int) -> None:
        self.last = start

    def after(self, at: int) -> int:
        """The time of the next record, which says that it is of ``at``."""
        self.last = max(self.last, at)
        return self.last


def only_action(use: ToolUse, *kinds: str) -> Action | None:
    """What a call does, where it is one thing of these kinds."""
    if len(use.actions) == 1 and use.actions[0].kind in kinds:
        return use.actions[0]
    return None


def same_edits(use: ToolUse) -> tuple[Action, ...]:
    """The edits of a call that does nothing else, to one file; empty else."""
    if use.actions and all(one.kind == "edit" and one.path == use.actions[0].path for one in use.actions):
        return use.actions
    return ()


def plain_name(use: ToolUse) -> str:
    """The name of a tool as providers take it: letters, digits, ``_`` and ``-``, at most 64 of them."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", use.name)[:64] or "tool"


def call_text(use: ToolUse) -> str:
    """The arguments of a call that the target has no words of its own for."""
    return use.input or use.name


def argument(use: ToolUse, *names: str) -> str:
    """An argument that no action has, by any of its names, as it stands behind the others; '' where the call has none."""
    for line in reversed(use.input.split("\n")[-LAST_ARGUMENTS:]):
        name, _, value = line.partition(": ")
        if name in names and not any(line in (one.command, one.new, one.old) for one in use.actions):
            return value
    return ""


def outcome(use: ToolUse) -> str:
    """What a call gave back; something is always said."""
    return use.output if use.output.strip() else "(no output)"
