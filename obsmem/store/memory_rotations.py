"""The part of ``memory.db`` about changing windows: which sessions were marked, which handoffs were left for their
successors, and who took one.

Invariant: a mark is taken once, by one session; what was taken, cancelled or too old is never waiting again.
"""

from __future__ import annotations

import json
import sqlite3
import time

from obsmem.core.tuples import NamedTuple
from obsmem.store.schema import transaction

WAITING, TAKEN, CANCELLED, EXPIRED = "waiting", "taken", "cancelled", "expired"


class Rotation(NamedTuple):
    """A session that hands over. ``deliveries`` are the marks of all renderings that were left; ``state`` is waiting |
    taken | cancelled | expired; ``successor`` the handle of the session that took it, '' while nobody knows. Times in
    milliseconds."""

    no: int
    session: str
    style: str
    at: int
    state: str
    deliveries: tuple[str, ...]
    successor: str
    ended_at: int


class Rotations:
    """Part of ``MemoryStore``, over its connection."""

    connection: sqlite3.Connection

    def begin_rotation(self, session: str, style: str) -> Rotation:
        """Mark a session; the mark that waits already is the one."""
        with transaction(self.connection):
            found = self.waiting_rotation(session)
            if found is None:
                self.connection.execute(
                    "INSERT INTO rotations(session, style, at, state) VALUES(?,?,?,?)",
                    (session, style, int(time.time() * 1000), WAITING),
                )
            elif found.style != style:
                self.connection.execute("UPDATE rotations SET style=? WHERE no=?", (style, found.no))
        begun = self.waiting_rotation(session)
        assert begun is not None
        return begun

    def waiting_rotation(self, session: str) -> Rotation | None:
        """The mark of a session that waits."""
        return next(iter(self._rotations("WHERE session=? AND state='waiting' ORDER BY no DESC", session)), None)

    def add_delivery(self, number: int, delivery: str) -> None:
        """Note a rendering before it is left, so that whoever takes it can be known by it."""
        with transaction(self.connection):
            row = self.connection.execute("SELECT deliveries FROM rotations WHERE no=?", (number,)).fetchone()
            known = json.loads(row[0]) if row else []
            if row and delivery not in known:
                self.connection.execute(
                    "UPDATE rotations SET deliveries=? WHERE no=?", (json.dumps([*known, delivery]), number)
                )

    def end_rotation(self, number: int, state: str, successor: str = "") -> None:
        """Say how a mark ended; who took it may be known only later."""
        with transaction(self.connection):
            self.connection.execute(
                "UPDATE rotations SET state=?, successor=CASE WHEN ?='' THEN successor ELSE ? END,"
                " ended_at=CASE WHEN ended_at=0 THEN ? ELSE ended_at END WHERE no=?",
                (state, successor, successor, int(time.time() * 1000), number),
            )

    def rotation_of_delivery(self, delivery: str) -> Rotation | None:
        """The mark for which a handoff was rendered."""
        return next(
            iter(
                self._rotations(
                    "WHERE EXISTS (SELECT 1 FROM json_each(deliveries) j WHERE j.value=?) ORDER BY no DESC", delivery
                )
            ),
            None,
        )

    def predecessor(self, session: str) -> str:
        """The handle of the session that a session took over from; '' for none."""
        row = self.connection.execute(
            "SELECT session FROM rotations WHERE successor=? ORDER BY no DESC LIMIT 1", (session,)
        ).fetchone()
        return "" if row is None else str(row[0])

    def handed_over(self, session: str) -> int:
        """When a session's handoff was last taken (milliseconds); 0 where it never was."""
        row = self.connection.execute(
            "SELECT coalesce(max(ended_at), 0) FROM rotations WHERE session=? AND state=?", (session, TAKEN)
        ).fetchone()
        return int(row[0])

    def successors(self) -> list[tuple[str, str]]:
        """(session, the one that took over from it) of every handoff whose taker is known, the last first."""
        rows = self.connection.execute("SELECT session, successor FROM rotations WHERE successor<>'' ORDER BY no DESC")
        return [(row[0], row[1]) for row in rows]

    def waiting_sessions(self) -> list[str]:
        """The sessions whose marks wait, the last marked first."""
        rows = self.connection.execute("SELECT session FROM rotations WHERE state=? ORDER BY no DESC", (WAITING,))
        return [row[0] for row in rows]

    def has_rotations(self) -> bool:
        """True if any session was ever marked."""
        return self.connection.execute("SELECT 1 FROM rotations LIMIT 1").fetchone() is not None

    def _rotations(self, where: str, value: str) -> list[Rotation]:
        rows = self.connection.execute(
            f"SELECT no, session, style, at, state, deliveries, successor, ended_at FROM rotations {where}", (value,)
        )
        return [
            Rotation(no, session, style, at, state, tuple(json.loads(given)), successor, ended_at)
            for no, session, style, at, state, given, successor, ended_at in rows.fetchall()
        ]
