"""The part of ``memory.db`` about blocks: which were left for delivery, which parts a transcript shows, what was decided.

Invariant: a row says what happened once, and is not changed afterwards; but of routine decisions that were taken again and
again with no other in between only the newest stands, with how often and since when.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from typing import Any

from obsmem.core.decisions import REPLAYED, Decision
from obsmem.store.schema import transaction

ROUTINES = 12  # the newest decisions of a session among which one like it is looked for


class Deliveries:
    """Part of ``MemoryStore``, over its connection."""

    connection: sqlite3.Connection

    def record_block(self, session: str, delivery: str, nonce: str, parts: int, tokens: int, source: str) -> None:
        """Note that a block was frozen for delivery."""
        with transaction(self.connection):
            self.connection.execute(
                "INSERT OR IGNORE INTO blocks VALUES(?,?,?,?,?,?,?)",
                (delivery, session, nonce, int(time.time() * 1000), parts, tokens, source),
            )

    def had_block(self, session: str) -> bool:
        """True if a block was ever made for a session's hooks, here or, as its transcript shows, elsewhere."""
        sql = "SELECT 1 FROM blocks WHERE session=?1 UNION ALL SELECT 1 FROM receipts WHERE session=?1 LIMIT 1"
        return self.connection.execute(sql, (session,)).fetchone() is not None

    def record_receipt(self, session: str, delivery: str, part: str, seq: int, at: int) -> None:
        """Note that a part of a block was found in the transcript."""
        with transaction(self.connection):
            self.connection.execute(
                "INSERT OR IGNORE INTO receipts VALUES(?,?,?,?,?)", (session, delivery, part, seq, at)
            )

    def receipts(self, session: str) -> list[tuple[str, str, int, int]]:
        """(delivery, part, seq, at) of every part found in the transcript, in order."""
        rows = self.connection.execute(
            "SELECT delivery, part, seq, at FROM receipts WHERE session=? ORDER BY seq, part", (session,)
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def record_decision(
        self, session: str, what: str, why: str, numbers: Mapping[str, Any] | None = None, *, routine: bool = False
    ) -> None:
        """Note what was decided about a session (a key of ``core.decisions.DECISIONS``), and the numbers it turned on.

        A ``routine`` decision takes the place of the one like it (same ``what`` and ``why``) that was taken since the last one
        of the passes or of a block that was not routine, and keeps its count (``times``) and where that began (``first_at``, ``first_seq``)."""
        now, said = int(time.time() * 1000), dict(numbers or {})
        with transaction(self.connection):
            if routine:
                said["routine"] = True
                before = self._routine(session, what, why)
                if before is not None:
                    number, at, old = before
                    if said.items() <= old.items():  # nothing changed, not even the place in the record
                        return
                    said["times"] = old.get("times", 1) + 1
                    said["first_at"] = old.get("first_at", at)
                    said["first_seq"] = old.get("first_seq", old.get("seq", -1))
                    self.connection.execute("DELETE FROM decisions WHERE no=?", (number,))
            self.connection.execute(
                "INSERT INTO decisions(session, at, what, why, numbers) VALUES(?,?,?,?,?)",
                (session, now, what, why, json.dumps(said)),
            )

    def _routine(self, session: str, what: str, why: str) -> tuple[int, int, dict[str, Any]] | None:
        """(no, at, numbers) of the routine decision of this kind after the last one of the passes and blocks that was none."""
        rows = self.connection.execute(
            f"SELECT no, at, what, why, numbers FROM decisions WHERE session=? AND what IN ({','.join('?' * len(REPLAYED))})"
            " ORDER BY no DESC LIMIT ?",
            (session, *REPLAYED, ROUTINES),
        )
        for number, at, found, reason, text in rows:
            numbers = json.loads(text)
            if not numbers.get("routine"):
                return None
            if (found, reason) == (what, why):
                return number, at, numbers
        return None

    def prune_decisions(self, before: int, kinds: Iterable[str]) -> int:
        """Remove the decisions of these kinds that were taken before a time (milliseconds); returns how many."""
        wanted = list(kinds)
        where = f"at<? AND what IN ({','.join('?' * len(wanted))})"
        if not self.connection.execute(f"SELECT 1 FROM decisions WHERE {where} LIMIT 1", (before, *wanted)).fetchone():
            return 0
        with transaction(self.connection):
            return self.connection.execute(f"DELETE FROM decisions WHERE {where}", (before, *wanted)).rowcount

    def decisions(self, session: str, since: int = 0, until: int = 1 << 62) -> list[Decision]:
        """What was decided about a session between two times (milliseconds, inclusive), in order."""
        # All columns there are: a store of an earlier version that is only read has no numbers.
        rows = self.connection.execute(
            "SELECT * FROM decisions WHERE session=? AND at BETWEEN ? AND ? ORDER BY no", (session, since, until)
        )
        return [Decision(row[1], row[2], row[3], row[4], json.loads(row[5]) if row[5:] else {}) for row in rows]

    def last_decision(self, session: str, what: str) -> Decision | None:
        """The newest decision of a kind about a session; None where there is none."""
        row = self.connection.execute(
            "SELECT * FROM decisions WHERE session=? AND what=? ORDER BY no DESC LIMIT 1", (session, what)
        ).fetchone()
        if row is None:
            return None
        return Decision(row[1], row[2], row[3], row[4], json.loads(row[5]) if row[5:] else {})

    def decided(self, session: str, what: str, why: str) -> int:
        """When something was decided (ms); 0 where it was not."""
        row = self.connection.execute(
            "SELECT max(at) FROM decisions WHERE session=? AND what=? AND why=?", (session, what, why)
        ).fetchone()
        return int(row[0] or 0)
