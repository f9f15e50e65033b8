"""The part of ``memory.db`` about shortened outputs: what each was before and after. Numbers and names, nothing of what was
printed: the whole output stands in the archive.

Invariant: one row for each call whose result was shortened, however often its record is read.
"""

from __future__ import annotations

import sqlite3

from obsmem.core.tuples import NamedTuple
from obsmem.store.schema import transaction


class Reduction(NamedTuple):
    """A result that the model was given shortened. ``id`` recalls the whole; ``head`` is the program that ran, with its first
    word; sizes in bytes and estimated tokens, the footer included in what was kept; ``at`` in milliseconds."""

    id: str
    session: str
    seq: int
    call_id: str
    at: int
    rule: str
    head: str
    whole_bytes: int
    kept_bytes: int
    whole_tokens: int
    kept_tokens: int
    folded_lines: int


class Reductions:
    """Part of ``MemoryStore``, over its connection."""

    connection: sqlite3.Connection

    def add_reduction(self, one: Reduction) -> bool:
        """Note a shortened result; False where it was noted already."""
        with transaction(self.connection):
            return (
                self.connection.execute(
                    "INSERT OR IGNORE INTO reductions VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", tuple(one)
                ).rowcount
                > 0
            )

    def reductions(self, since: int = 0) -> list[Reduction]:
        """All shortened results from a time (milliseconds) on, oldest first."""
        # A store of an earlier version that is only read has no such table.
        if not self.connection.execute("SELECT 1 FROM sqlite_master WHERE name='reductions'").fetchone():
            return []
        rows = self.connection.execute("SELECT * FROM reductions WHERE at>=? ORDER BY at, id", (since,))
        return [Reduction(*row) for row in rows]

    def remove_reduction(self, session: str, seq: int) -> None:
        """Forget what was shortened of an entry."""
        with transaction(self.connection):
            self.connection.execute("DELETE FROM reductions WHERE session=? AND seq=?", (session, seq))

    def move_reduction(self, session: str, id_: str, seq: int) -> None:
        """The result stands in another entry now: its row changed."""
        with transaction(self.connection):
            self.connection.execute("UPDATE reductions SET seq=? WHERE session=? AND id=?", (seq, session, id_))
