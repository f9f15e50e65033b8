"""A copy of what sessions remember, and of what users fixed, for looking at decisions under other settings.

Invariant: the source is only read; what is copied stands in the copy as it did in the source.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.store.memory import MemoryStore
from obsmem.store.schema import copy_rows, transaction

_BY_SESSION = ("worker_calls", "coverage", "gaps", "progress", "notes", "reflections", "drops")


def copy_sessions(source: MemoryStore, target: MemoryStore, handles: Iterable[str]) -> None:
    """Copy everything that some sessions remember, and what is known of models and of today's spending."""
    target.connection.execute("PRAGMA synchronous=OFF")  # nobody needs it after a crash
    with transaction(target.connection):
        for handle in handles:
            for table in _BY_SESSION:
                copy_rows(source.connection, target.connection, table, "session=?", (handle,))
            ids = "IN (SELECT id FROM notes WHERE session=?)"
            copy_rows(source.connection, target.connection, "note_entries", f"note {ids}", (handle,))
            ids = "IN (SELECT id FROM reflections WHERE session=?)"
            copy_rows(source.connection, target.connection, "reflection_notes", f"reflection {ids}", (handle,))
        for table in ("workers", "spending", "rotations"):
            copy_rows(source.connection, target.connection, table, "1", ())


def copy_fixed(source: MemoryStore, target: MemoryStore, handle: str, by: str, until: int) -> None:
    """Copy the pins that there were at a time (milliseconds), as far as they are still there, and the notes of a session
    that ``by``, which is no observer, had brought by then."""
    of_hand = "session=? AND recorded_at<=? AND call IN (SELECT no FROM worker_calls WHERE session=? AND worker=?)"
    values = (handle, until, handle, by)
    with transaction(target.connection):
        copy_rows(source.connection, target.connection, "pins", "at<=?", (until,))
        copy_rows(source.connection, target.connection, "notes", of_hand, values, without=("no",))
        copy_rows(
            source.connection, target.connection, "note_entries", f"note IN (SELECT id FROM notes WHERE {of_hand})", values
        )  # fmt: skip
