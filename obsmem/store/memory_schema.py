"""The tables of ``memory.db``. Sessions are named by handle, entries by (handle, seq): as people see them."""

from __future__ import annotations

import sqlite3

from obsmem.store.schema import Migration


def _create(connection: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE worker_calls(
            no INTEGER PRIMARY KEY, session TEXT NOT NULL, task TEXT NOT NULL, worker TEXT NOT NULL, at INTEGER NOT NULL,
            first_seq INTEGER, last_seq INTEGER, outcome TEXT NOT NULL, items INTEGER NOT NULL DEFAULT 0,
            rejected INTEGER NOT NULL DEFAULT 0, tokens_in INTEGER NOT NULL DEFAULT 0, tokens_out INTEGER NOT NULL DEFAULT 0,
            ms INTEGER NOT NULL DEFAULT 0)""",
        "CREATE INDEX worker_calls_by_session ON worker_calls(session, task)",
        """CREATE TABLE coverage(
            session TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
            call INTEGER NOT NULL REFERENCES worker_calls(no), shown TEXT NOT NULL,
            PRIMARY KEY(session, first_seq)) WITHOUT ROWID""",
        """CREATE TABLE gaps(
            session TEXT NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, reason TEXT NOT NULL,
            at INTEGER NOT NULL, PRIMARY KEY(session, first_seq)) WITHOUT ROWID""",
        """CREATE TABLE progress(
            session TEXT NOT NULL, task TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(session, task)) WITHOUT ROWID""",
        """CREATE TABLE notes(
            no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, text TEXT NOT NULL, at INTEGER NOT NULL,
            relevance TEXT NOT NULL, evidence TEXT NOT NULL, grounding TEXT NOT NULL, missing TEXT NOT NULL,
            tokens INTEGER NOT NULL, recorded_at INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
            call INTEGER NOT NULL)""",
        "CREATE INDEX notes_by_session ON notes(session, last_seq)",
        """CREATE TABLE note_entries(
            note TEXT NOT NULL REFERENCES notes(id) ON DELETE CASCADE, position INTEGER NOT NULL, session TEXT NOT NULL,
            seq INTEGER NOT NULL, PRIMARY KEY(note, position)) WITHOUT ROWID""",
        "CREATE INDEX note_entries_by_entry ON note_entries(session, seq)",
        """CREATE TABLE reflections(
            no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL, text TEXT NOT NULL,
            tokens INTEGER NOT NULL, recorded_at INTEGER NOT NULL, up_to INTEGER NOT NULL, call INTEGER NOT NULL)""",
        "CREATE INDEX reflections_by_session ON reflections(session)",
        """CREATE TABLE reflection_notes(
            reflection TEXT NOT NULL REFERENCES reflections(id) ON DELETE CASCADE, position INTEGER NOT NULL,
            note TEXT NOT NULL, PRIMARY KEY(reflection, position)) WITHOUT ROWID""",
        """CREATE TABLE drops(
            no INTEGER PRIMARY KEY, session TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL, why TEXT NOT NULL,
            up_to INTEGER NOT NULL, call INTEGER NOT NULL)""",
        "CREATE INDEX drops_by_session ON drops(session)",
        """CREATE TABLE pins(
            id TEXT PRIMARY KEY, session TEXT NOT NULL, workspace TEXT NOT NULL, text TEXT NOT NULL, scope TEXT NOT NULL,
            at INTEGER NOT NULL)""",
        """CREATE TABLE blocks(
            delivery TEXT NOT NULL, session TEXT NOT NULL, nonce TEXT NOT NULL, at INTEGER NOT NULL, parts INTEGER NOT NULL,
            tokens INTEGER NOT NULL, source TEXT NOT NULL, PRIMARY KEY(session, delivery)) WITHOUT ROWID""",
        """CREATE TABLE receipts(
            session TEXT NOT NULL, delivery TEXT NOT NULL, part TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY(session, delivery, part, seq)) WITHOUT ROWID""",
        """CREATE TABLE decisions(
            no INTEGER PRIMARY KEY, session TEXT NOT NULL, at INTEGER NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL)""",
    ):
        connection.execute(statement)


def _spend(connection: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE workers(
            name TEXT PRIMARY KEY, window INTEGER NOT NULL DEFAULT 0, ratio REAL NOT NULL DEFAULT 1, until INTEGER NOT NULL DEFAULT 0,
            why TEXT NOT NULL DEFAULT '') WITHOUT ROWID""",
        """CREATE TABLE spending(
            no INTEGER PRIMARY KEY, worker TEXT NOT NULL, at INTEGER NOT NULL, tokens INTEGER NOT NULL)""",
        "CREATE INDEX spending_by_time ON spending(at)",
        "ALTER TABLE worker_calls ADD COLUMN prompt INTEGER NOT NULL DEFAULT 0",
    ):
        connection.execute(statement)


def _source_pins(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE pins ADD COLUMN source TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE pins ADD COLUMN evidence TEXT NOT NULL DEFAULT 'user'")


def _rotate(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE rotations(
            no INTEGER PRIMARY KEY, session TEXT NOT NULL, style TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL,
            deliveries TEXT NOT NULL DEFAULT '[]', successor TEXT NOT NULL DEFAULT '', ended_at INTEGER NOT NULL DEFAULT 0)"""
    )
    connection.execute("CREATE INDEX rotations_by_session ON rotations(session)")
    connection.execute("CREATE INDEX rotations_by_successor ON rotations(successor)")


def _explain(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE decisions ADD COLUMN numbers TEXT NOT NULL DEFAULT '{}'")
    connection.execute("CREATE INDEX decisions_by_session ON decisions(session, at)")
    # What the harnesses' windows and marks are, as far as reports, refusals and compactions have shown.
    connection.execute(
        """CREATE TABLE windows(
            harness TEXT NOT NULL, model TEXT NOT NULL, size INTEGER NOT NULL DEFAULT 0, size_source TEXT NOT NULL DEFAULT '',
            mark INTEGER NOT NULL DEFAULT 0, mark_source TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL,
            PRIMARY KEY(harness, model)) WITHOUT ROWID"""
    )


def _reduce(connection: sqlite3.Connection) -> None:
    # What tools printed and models were given shortened: sizes, and the id that recalls the whole.
    connection.execute(
        """CREATE TABLE reductions(
            id TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL, call_id TEXT NOT NULL, at INTEGER NOT NULL,
            rule TEXT NOT NULL, head TEXT NOT NULL, whole_bytes INTEGER NOT NULL, kept_bytes INTEGER NOT NULL,
            whole_tokens INTEGER NOT NULL, kept_tokens INTEGER NOT NULL, folded_lines INTEGER NOT NULL,
            PRIMARY KEY(session, id)) WITHOUT ROWID"""
    )


def _mark(connection: sqlite3.Connection) -> None:
    # A model comes in windows of several sizes, each of which the harness compacts at a mark of its own.
    connection.execute(
        """CREATE TABLE marks(
            harness TEXT NOT NULL, model TEXT NOT NULL, size INTEGER NOT NULL, mark INTEGER NOT NULL, source TEXT NOT NULL,
            at INTEGER NOT NULL, PRIMARY KEY(harness, model, size)) WITHOUT ROWID"""
    )
    # Of what providers counted to our estimate.
    connection.execute("ALTER TABLE windows ADD COLUMN ratio REAL NOT NULL DEFAULT 0")


MIGRATIONS: tuple[Migration, ...] = (
    ("m001_create", _create),
    ("m002_spend", _spend),
    ("m003_source_pins", _source_pins),
    ("m004_rotate", _rotate),
    ("m005_explain", _explain),
    ("m006_reduce", _reduce),
    ("m007_mark", _mark),
)
