"""The part of ``memory.db`` about pins: what the user fixed, for whom, and whose words they are.

Invariants: a pin is visible by its scope alone (its session and those forked from it since, its workspace, or
everywhere); it is never edited, only removed; its text was masked before it came here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from obsmem.core.model import Pin
from obsmem.core.tuples import NamedTuple
from obsmem.store.schema import transaction

_COLUMNS = "id, text, scope, at, source, evidence, session, workspace"


class StoredPin(NamedTuple):
    """A pin with where it was made: the asking session's handle ('' for none) and its workspace."""

    pin: Pin
    session: str
    workspace: str


class Pins:
    """Part of ``MemoryStore``, over its connection."""

    connection: sqlite3.Connection

    def add_pin(self, pin: Pin, session: str, workspace: str) -> bool:
        """Keep a pin; False where it is there already."""
        with transaction(self.connection):
            added = self.connection.execute(
                f"INSERT OR IGNORE INTO pins({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?)", (*pin, session, workspace)
            ).rowcount
        return added > 0

    def remove_pins(self, ids: Iterable[str]) -> int:
        """Remove pins for good; returns how many there were."""
        with transaction(self.connection):
            return sum(self.connection.execute("DELETE FROM pins WHERE id=?", (id_,)).rowcount for id_ in ids)

    def pins(self, session: str, workspace: str, ancestors: Sequence[tuple[str, int]] = ()) -> list[Pin]:
        """What the user fixed for this session, its workspace, or everywhere; oldest first. ``ancestors`` are the
        sessions that it was forked from, each with the time (ms) up to which what was fixed for it came along."""
        bounds = {session: 1 << 62, **dict(ancestors)} if session else dict(ancestors)
        return [
            one.pin
            for one in self.all_pins()
            if one.pin.scope == "everywhere"
            or (one.pin.scope == "session" and one.pin.at <= bounds.get(one.session, -1))
            or (one.pin.scope == "workspace" and one.workspace == workspace)
        ]

    def all_pins(self) -> list[StoredPin]:
        """Every pin of the store, oldest first."""
        # All columns there are: a store that may not be written is read as it is, with or without the newest two.
        rows = self.connection.execute("SELECT * FROM pins ORDER BY at, id")
        return [
            StoredPin(Pin(id_, text, scope, at, *more), session, workspace)
            for id_, session, workspace, text, scope, at, *more in rows
        ]
