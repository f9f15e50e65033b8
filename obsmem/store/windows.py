"""What was learned of the windows of models: two tables of ``memory.db``, by harness and model.

Invariants: of sizes the last told is kept; a mark moves down at once and up slowly, so that no single compaction makes us
late; nothing here holds a word of anybody.
"""

from __future__ import annotations

import sqlite3
import time
from typing import NamedTuple

from obsmem.store.schema import transaction

UPWARDS = 0.2  # of the way to a higher mark that one compaction moves the one that is known
RATIOS = (0.5, 3.0)  # between these a provider's own count is believed; so it is with the workers'


class KnownWindow(NamedTuple):
    """What was learned of a model's window, in tokens; ``ratio`` of what the provider counts to our estimate. 0 and '' where
    nothing was."""

    size: int = 0
    source: str = ""
    ratio: float = 0.0


def known_window(connection: sqlite3.Connection, harness: str, model: str) -> KnownWindow:
    """What was learned of a model's window."""
    if not _exists(connection):
        return KnownWindow()
    row = connection.execute(
        "SELECT size, size_source, ratio FROM windows WHERE harness=? AND model=?", (harness, model)
    ).fetchone()
    return KnownWindow(*row) if row else KnownWindow()


def save_size(connection: sqlite3.Connection, harness: str, model: str, size: int, source: str) -> None:
    """Keep the size of a model's window."""
    _learn(connection, harness, model, "size=?4, size_source=?5, at=?3", size, source)


def save_ratio(connection: sqlite3.Connection, harness: str, model: str, ratio: float) -> None:
    """Keep how a model's provider counts, as a share of our estimate."""
    low, high = RATIOS
    _learn(connection, harness, model, "ratio=?4, at=?3", min(high, max(low, ratio)))


def known_mark(connection: sqlite3.Connection, harness: str, model: str, size: int) -> tuple[int, str]:
    """The mark at which a harness compacts a window of this size, and where it came from; (0, '') where none was seen."""
    if not _exists(connection):
        return 0, ""
    row = connection.execute(
        "SELECT mark, source FROM marks WHERE harness=? AND model=? AND size=?", (harness, model, size)
    ).fetchone()
    return (int(row[0]), str(row[1])) if row else (0, "")


def save_mark(connection: sqlite3.Connection, harness: str, model: str, size: int, mark: int, source: str) -> None:
    """Keep the mark at which a window of this size was compacted: a lower one at once, a higher one by a fifth of the way."""
    known, _ = known_mark(connection, harness, model, size)
    if 0 < known < mark:
        mark = known + int((mark - known) * UPWARDS)
    with transaction(connection):
        connection.execute(
            "INSERT OR REPLACE INTO marks VALUES(?,?,?,?,?,?)",
            (harness, model, size, mark, source, int(time.time() * 1000)),
        )


def _learn(connection: sqlite3.Connection, harness: str, model: str, change: str, *values: object) -> None:
    now = int(time.time() * 1000)
    with transaction(connection):
        connection.execute("INSERT OR IGNORE INTO windows(harness, model, at) VALUES(?,?,?)", (harness, model, now))
        connection.execute(f"UPDATE windows SET {change} WHERE harness=?1 AND model=?2", (harness, model, now, *values))


def _exists(connection: sqlite3.Connection) -> bool:
    """False for a store of an earlier version that is only read."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name='marks'").fetchone() is not None
