"""The part of ``memory.db`` about coverage: what of each session was observed, and what could not be.

Invariants: stretches and gaps of a session never overlap; a gap is written only where coverage still ends where the pass
began (compare-and-swap).
"""

from __future__ import annotations

import sqlite3
import time

from obsmem.core.tuples import NamedTuple
from obsmem.store.schema import transaction


class Stretch(NamedTuple):
    """A covered stretch of a session: which entries (by seq), by which call, and the hash of what was shown."""

    first_seq: int
    last_seq: int
    call: int
    shown: str


class Gap(NamedTuple):
    """A stretch that could not be observed, and why."""

    first_seq: int
    last_seq: int
    reason: str


class Coverage:
    """Part of ``MemoryStore``, over its connection."""

    connection: sqlite3.Connection

    def covered_to(self, session: str) -> int:
        """The seq up to which everything is covered or a gap; -1 where nothing is."""
        row = self.connection.execute(
            "SELECT max(last_seq) FROM (SELECT last_seq FROM coverage WHERE session=?1"
            " UNION ALL SELECT last_seq FROM gaps WHERE session=?1)",
            (session,),
        ).fetchone()
        return -1 if row[0] is None else int(row[0])

    def covered_sessions(self) -> list[str]:
        """The handles of all sessions that have coverage or a gap."""
        rows = self.connection.execute("SELECT session FROM coverage UNION SELECT session FROM gaps")
        return [row[0] for row in rows]

    def stretches(self, session: str) -> list[Stretch]:
        """All covered stretches of a session, in order."""
        rows = self.connection.execute(
            "SELECT first_seq, last_seq, call, shown FROM coverage WHERE session=? ORDER BY first_seq", (session,)
        )
        return [Stretch(*row) for row in rows]

    def gaps(self, session: str) -> list[Gap]:
        """All gaps of a session, in order."""
        rows = self.connection.execute(
            "SELECT first_seq, last_seq, reason FROM gaps WHERE session=? ORDER BY first_seq", (session,)
        )
        return [Gap(*row) for row in rows]

    def workers_of(self, session: str) -> dict[int, str]:
        """Call -> worker, of every call that covered something of a session."""
        rows = self.connection.execute(
            "SELECT w.no, w.worker FROM worker_calls w JOIN coverage c ON c.call=w.no WHERE c.session=?", (session,)
        )
        return {int(number): str(worker) for number, worker in rows}

    def commit_gap(self, session: str, covered_to: int, first: int, last: int, reason: str) -> bool:
        """Mark a stretch as not observable now, so that work goes on behind it. False if coverage moved meanwhile."""
        with transaction(self.connection):
            if self.covered_to(session) != covered_to:
                return False
            self.connection.execute(
                "INSERT OR REPLACE INTO gaps VALUES(?,?,?,?,?)", (session, first, last, reason, int(time.time() * 1000))
            )
        return True

    def roll_back_coverage(self, session: str, last_seq: int) -> int:
        """Take back coverage beyond the archive's last seq (after the archive was lost or restored). Returns how many
        stretches were cut; notes stay, as they stand on what was once shown."""
        with transaction(self.connection):
            cut = self.connection.execute(
                "DELETE FROM coverage WHERE session=? AND first_seq>?", (session, last_seq)
            ).rowcount
            # What was shown then can no longer be selected again: the hash of it says nothing any more.
            cut += self.connection.execute(
                "UPDATE coverage SET last_seq=?, shown='' WHERE session=? AND last_seq>?", (last_seq, session, last_seq)
            ).rowcount
            self.connection.execute("DELETE FROM gaps WHERE session=? AND first_seq>?", (session, last_seq))
            self.connection.execute(
                "UPDATE gaps SET last_seq=? WHERE session=? AND last_seq>?", (last_seq, session, last_seq)
            )
            self.connection.execute("UPDATE progress SET seq=min(seq, ?) WHERE session=?", (last_seq, session))
        return cut
