"""What is looked for in the record, and what is found: the values that search, its commands and its tools share.

Invariant: an id in a hit is one that ``recall`` takes; a snippet is masked, and is the stored words, never an
interpretation of them: what is said of them stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from obsmem.core.tuples import NamedTuple

SearchMode = Literal["words", "exact", "regex"]


class Query(NamedTuple):
    """What is looked for. ``text`` may be anything. Empty filters do not filter: ``sessions`` and ``harness`` name where,
    ``workspace`` holds it to one (''; everywhere), ``kinds`` are entry kinds or ``note``, ``tools`` tool names, ``path`` a
    part of a path. ``since`` and ``until`` are milliseconds since 1970 (0: no bound). ``live`` is (handle, seq): entries of
    that session from seq on stand in the asker's own context and are left out. ``own`` also shows what our own commands
    printed. ``after`` is the ``more`` of the page before."""

    text: str
    mode: SearchMode = "words"
    sessions: tuple[str, ...] = ()
    harness: str = ""
    workspace: str = ""
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    path: str = ""
    since: int = 0
    until: int = 0
    live: tuple[str, int] | None = None
    own: bool = False
    limit: int = 10
    after: str = ""


class Hit(NamedTuple):
    """One entry or note that was found. ``kind`` is an entry kind or ``note``; ``at`` in milliseconds; ``score`` has no unit
    and compares only within one answer; ``signals`` says what it is made of. ``also`` counts equal texts that are not shown;
    ``later`` names a human's later words on the same matter, where there are any."""

    id: str
    session: str
    harness: str
    kind: str
    speaker: str
    at: int
    tool: str
    snippet: str
    score: float
    signals: Mapping[str, float] = {}
    also: int = 0
    later: str = ""


class Hits(NamedTuple):
    """The answer to a query: best first. ``complete`` is False while the index is still being built, and ``message`` then
    says what was not looked at. ``more`` fetches the next page (stable while entries arrive), '' for none."""

    hits: tuple[Hit, ...]
    complete: bool = True
    message: str = ""
    more: str = ""
