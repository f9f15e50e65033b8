"""Opens the database of a program that may be writing to it: read only, and never as if nobody wrote.

Invariants: nothing is written, locked for longer than a statement, or created beside the database; what was not committed is
not seen. ``immutable`` would look past locks and journals, so it is asked for only where SQLite can open the file in no other
way: a write-ahead log in a place where nothing can be written, which no program can be writing to either.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3

BUSY_SECONDS = 2.0


def connect(path: str, text_factory: Callable[[bytes], Any]) -> sqlite3.Connection:
    """A connection outside of any transaction. Raises OSError where the file cannot be read as a database now."""
    try:
        address = Path(path).absolute().as_uri()
    except ValueError as error:  # half a character: a name that no file can have
        raise OSError(f"{path!a} is no path") from error
    import sqlite3  # costs a third of a bare interpreter's start, and most hooks never come here

    try:
        return _open(f"{address}?mode=ro", text_factory)
    except sqlite3.Error as error:
        if "unable to open" not in str(error) or not Path(path).is_file():
            raise OSError(f"{path} cannot be read as a database: {error}") from error
    try:
        return _open(f"{address}?mode=ro&immutable=1", text_factory)
    except sqlite3.Error as error:
        raise OSError(f"{path} cannot be read as a database: {error}") from error


def must_wait(error: Exception) -> bool:
    """True of an error of SQLite that says nothing of the rows: a program is writing, or was killed while it did."""
    return "locked" in str(error) or "readonly" in str(error)


def _open(address: str, text_factory: Callable[[bytes], Any]) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.text_factory = text_factory
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
