"""The sessions of a headless loop: how a turn of one is run, and which one a first turn began.

Invariant: a session is taken for that of a turn only if it came into being during it, in its folder, and holds its words; what
the program printed is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.errors import UsageError
from obsmem.harnesses import REGISTRY, load
from obsmem.harnesses.base import Source
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import KIND_CODES
from obsmem.tasks.discover import find_on_machine
from obsmem.tasks.entries import read_entries
from obsmem.tasks.ingest import is_database
from obsmem.tasks.maintain import read
from obsmem.tasks.store import Store

MOST_LOOKED_AT = 20  # sessions that came into being during one turn, the newest first


class Begun(NamedTuple):
    """What is known of a session that a turn began: its harness and folder, the words that it was given, and the delivery
    of the handoff before them ('' for none)."""

    harness: str
    folder: str
    words: str
    delivery: str = ""


def harness_of(name: str) -> str:
    """The harness that a person means by its name or its program's. Raises UsageError."""
    for harness in REGISTRY:
        module = load(harness)
        if name in (harness, *module.PROGRAMS):
            if module.headless([], "") is None:
                raise UsageError(f"Nobody has tried to run {name} for one prompt after another, so 'run' does not.")
            return harness
    raise UsageError(f"There is no harness named {name!r}. Known are: {', '.join(REGISTRY)}.")


def turn_line(harness: str, program: str, arguments: Sequence[str], session: str) -> list[str]:
    """The words that run one prompt from standard input, in a session where one is named."""
    words = load(harness).headless(list(arguments), session)
    assert words is not None
    return [program, *words]


def known_sources(harness: str) -> frozenset[Source]:
    """Every session that a harness keeps on this machine now."""
    return frozenset(found.source for found in find_on_machine(os.path.expanduser("~"), harness))


def find_begun(store: Store, begun: Begun, before: frozenset[Source]) -> StoredSession | None:
    """The session that a turn began; None where none came into being that holds what it was given."""
    fresh = [found for found in find_on_machine(os.path.expanduser("~"), begun.harness) if found.source not in before]
    folder = os.path.realpath(begun.folder)
    for found in sorted(fresh, key=lambda one: one.changed, reverse=True)[:MOST_LOOKED_AT]:
        stored = read(store, begun.harness, found.source)
        if stored is None or stored.session.role != "main" or os.path.realpath(stored.session.cwd) != folder:
            continue
        if _holds(store, stored, begun):
            return stored
    return None


def bring_up_to_date(store: Store, stored: StoredSession) -> StoredSession:
    """Read on what a turn added to a session."""
    path = stored.session.transcript
    source = Source(path, stored.session.id if is_database(path) else "")
    return read(store, stored.session.harness, source) or stored


def _holds(store: Store, stored: StoredSession, begun: Begun) -> bool:
    if begun.delivery and any(one == begun.delivery for one, *_ in store.memory.receipts(stored.session.handle)):
        return True
    wanted = begun.words.strip()
    rows = store.archive.entries(stored.no, 0, where=f"kind={KIND_CODES['user']}")
    return bool(wanted) and any(entry.text.strip() == wanted for entry in read_entries(store, stored, rows))
