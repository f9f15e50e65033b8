"""Opening the three databases and bringing them up to date.

Invariants: migrations are append-only lists of named functions; each runs in one transaction together with its
record; a database written by a newer version is refused in one sentence. Files are private (0600 in a 0700 folder).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from obsmem.core.errors import StoreError, StoreTooNew
from obsmem.system.files import PRIVATE_FILE, make_folder


class Damaged(StoreError):
    """A database file is not what SQLite wrote: broken, not merely busy or out of reach."""


Migration = tuple[str, Callable[[sqlite3.Connection], None]]
BUSY_SECONDS = 10.0


def open_database(
    path: str, migrations: Sequence[Migration], *, journal: str, readonly: bool = False
) -> sqlite3.Connection:
    """Open a database, migrated. ``journal`` is TRUNCATE for what is precious (readable in a read-only sandbox, safe
    on network homes) and WAL for what can be rebuilt. ``readonly`` opens without any write and without migrations.

    Raises StoreError where the file is missing (readonly) or cannot be written, Damaged where it is broken,
    StoreTooNew for a newer one.
    """
    try:
        if readonly:
            connection = _connect_readonly(path)
        else:
            make_folder(os.path.dirname(path))
            if not os.path.exists(path):
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, PRIVATE_FILE))
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            _set_journal(connection, journal)
            connection.execute("PRAGMA synchronous=" + ("NORMAL" if journal == "WAL" else "FULL"))
        connection.execute("PRAGMA foreign_keys=ON")
        _migrate(connection, path, migrations, readonly)
    except sqlite3.Error as error:
        kind = Damaged if is_damage(error) else StoreError
        raise kind(
            f"{path} cannot be used ({error}). Run 'observational-memory fsck' to see what is damaged and repair it."
        ) from error
    return connection


def _set_journal(connection: sqlite3.Connection, journal: str) -> None:
    """Choose the journal; SQLite does not always wait by itself where another process chooses it at the same time."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode={journal}")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() >= deadline:
                raise
            time.sleep(0.02)


def is_damage(error: sqlite3.Error) -> bool:
    """True for an error that says a file is broken; a locked or full disk is an OperationalError."""
    return type(error) is sqlite3.DatabaseError


def damage(path: str) -> str:
    """What SQLite says is wrong with a database file, which is not changed by it; '' if it is sound."""
    try:
        connection = _connect_readonly(path)
        try:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else str(answer)


def move_aside(path: str) -> None:
    """Rename a damaged database and its journals, so that another can take its place and none is played into it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + ending):
            os.replace(path + ending, f"{path}.damaged{ending}")


def _connect_readonly(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise StoreError(f"There is no store at {path} yet. Run 'observational-memory ingest PATH' to make one.")
    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        # A WAL database in a read-only place cannot be opened otherwise; nobody can be writing it there.
        connection = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)
        connection.execute("SELECT count(*) FROM sqlite_master")
    return connection


def _migrate(connection: sqlite3.Connection, path: str, migrations: Sequence[Migration], readonly: bool) -> None:
    exists = connection.execute("SELECT 1 FROM sqlite_master WHERE name='migrations'").fetchone()
    done = [row[0] for row in connection.execute("SELECT name FROM migrations ORDER BY rowid")] if exists else []
    known = [name for name, _ in migrations]
    unknown = [name for name in done if name not in known]
    if unknown:
        raise StoreTooNew(
            f"{path} was written by a newer version of observational-memory (it has {unknown[0]!r}). Install that version."
        )
    if readonly or len(done) == len(known):
        return
    for name, migrate in migrations:
        if name in done:
            continue
        with transaction(connection):
            # Another process may have done it while this one waited for the lock.
            connection.execute("CREATE TABLE IF NOT EXISTS migrations(name TEXT PRIMARY KEY, at INTEGER)")
            if connection.execute("SELECT 1 FROM migrations WHERE name=?", (name,)).fetchone():
                continue
            migrate(connection)
            connection.execute("INSERT INTO migrations VALUES(?, ?)", (name, int(time.time() * 1000)))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A write transaction that takes its lock at once, so that it never fails half-way for want of it. Within another one
    it is a part of that."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def copy_rows(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    table: str,
    where: str,
    values: Sequence[object],
    *,
    without: Sequence[str] = (),
) -> None:
    """Copy the rows of a table that the target does not have, in the columns that both know, but for those of ``without``."""
    names = [row[1] for row in source.execute(f"PRAGMA table_info({table})")]
    known = {row[1] for row in target.execute(f"PRAGMA table_info({table})")}
    columns = ", ".join(name for name in names if name in known and name not in without)
    if columns:
        marks = ", ".join("?" * (columns.count(",") + 1))
        rows = source.execute(f"SELECT {columns} FROM {table} WHERE {where}", tuple(values))
        target.executemany(f"INSERT OR IGNORE INTO {table}({columns}) VALUES({marks})", rows)
