"""What models may cost, and what is known of each: two tables of ``memory.db`` that all processes share.

Invariants: nobody spends what it has not reserved before, and of two that reserve at the same time both count; what was
reserved by somebody who died stays spent for the day; nothing here holds a word of anybody.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from obsmem.store.schema import transaction

RATIOS = (0.5, 3.0)  # between these a model's own count is believed; seed-features B1
SHARE = 0.3  # of a new measurement in the ratio


class Knowledge(NamedTuple):
    """What was learned of a worker. ``window`` in tokens, 0 where no refusal told it; ``ratio`` of its own count to our
    estimate; ``until`` (milliseconds) it is left alone, and ``why``."""

    window: int = 0
    ratio: float = 1.0
    until: int = 0
    why: str = ""


class Calls(NamedTuple):
    """Calls of a day that are alike: how many, the tokens that the other side counted, and milliseconds in all."""

    day: str
    worker: str
    session: str
    task: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    ms: int


class Spending:
    """The two tables, over the connection of ``memory.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # A store that an older version wrote, and that is only read, has none of this.
        found = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('workers', 'spending')"
        ).fetchone()
        self._exists = found[0] == 2

    def reserve(self, worker: str, at: int, tokens: int, since: int, most_calls: int | None, most: int | None) -> int:
        """Reserve a call of so many tokens at ``at`` (milliseconds), unless with it more than ``most_calls`` calls or
        ``most`` tokens would be spent since ``since`` (None: no limit). Returns the reservation, 0 where it is refused."""
        with transaction(self._connection):
            calls, spent = self.spent(since)
            if (most_calls is not None and calls >= most_calls) or (most is not None and spent + tokens > most):
                return 0
            cursor = self._connection.execute(
                "INSERT INTO spending(worker, at, tokens) VALUES(?,?,?)", (worker, at, tokens)
            )
        return int(cursor.lastrowid or 0)

    def settle(self, reservation: int, tokens: int) -> None:
        """Replace what was reserved by what the call really took."""
        self._connection.execute("UPDATE spending SET tokens=? WHERE no=?", (tokens, reservation))

    def spent(self, since: int) -> tuple[int, int]:
        """(calls, tokens) reserved or spent since a time in milliseconds."""
        if not self._exists:
            return 0, 0
        row = self._connection.execute(
            "SELECT count(*), coalesce(sum(tokens), 0) FROM spending WHERE at>=?", (since,)
        ).fetchone()
        return int(row[0]), int(row[1])

    def known(self, worker: str) -> Knowledge:
        """What was learned of a worker so far."""
        if not self._exists:
            return Knowledge()
        row = self._connection.execute(
            "SELECT window, ratio, until, why FROM workers WHERE name=?", (worker,)
        ).fetchone()
        return Knowledge(*row) if row else Knowledge()

    def leave_alone(self, worker: str, until: int, why: str) -> None:
        """Ask a worker nothing before a time in milliseconds."""
        self._learn(worker, "until=max(until, ?2), why=?3", until, why)

    def trust_again(self, worker: str) -> None:
        """It answered: whatever kept others from asking it is over."""
        if self.known(worker).until:
            self._learn(worker, "until=0, why=''")

    def learn_window(self, worker: str, window: int) -> None:
        """A refusal named the window."""
        self._learn(worker, "window=?2", window)

    def measure(self, worker: str, estimated: int, counted: int) -> None:
        """The other side counted a prompt that we had estimated."""
        if estimated > 0 and counted > 0:
            low, high = RATIOS
            ratio = min(high, max(low, counted / estimated))
            self._learn(worker, "ratio=ratio * (1 - ?2) + ?3 * ?2", SHARE, ratio)

    def calls(self, since: int) -> list[Calls]:
        """What workers were asked since a time in milliseconds, the newest day first, the busiest worker first."""
        rows = self._connection.execute(
            "SELECT date(at / 1000, 'unixepoch', 'localtime') AS day, worker, session, task, outcome, count(*), sum(tokens_in),"
            " sum(tokens_out), sum(ms) FROM worker_calls WHERE at>=? GROUP BY day, worker, session, task, outcome"
            " ORDER BY day DESC, count(*) DESC",
            (since,),
        )
        return [Calls(*row) for row in rows]

    def _learn(self, worker: str, change: str, *values: object) -> None:
        with transaction(self._connection):
            self._connection.execute("INSERT OR IGNORE INTO workers(name) VALUES(?)", (worker,))
            self._connection.execute(f"UPDATE workers SET {change} WHERE name=?1", (worker, *values))
