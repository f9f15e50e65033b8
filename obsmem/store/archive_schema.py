"""The tables of ``archive.db`` and the small codes that they use. Sessions stand here, not beside the notes: an entry
id must resolve with nothing but the archive at hand.

An entry's row number is ``session << 32 | seq``: one session's entries lie together, in order, without an index.
Text, tool and call id are not columns: they are read again from the record's bytes, which are always there.
"""

from __future__ import annotations

import sqlite3

from obsmem.core.model import EntryKind, Speaker
from obsmem.store.schema import Migration

KINDS: tuple[EntryKind, ...] = (
    "user",
    "assistant",
    "thinking",
    "tool_call",
    "tool_result",
    "summary",
    "boundary",
    "notice",
)
SPEAKERS: tuple[Speaker, ...] = ("human", "agent", "tool", "harness", "subagent")
KIND_CODES = {name: code for code, name in enumerate(KINDS)}
SPEAKER_CODES = {name: code for code, name in enumerate(SPEAKERS)}
SEQ_BITS = 32

# Codes of what an observer may read (core.model.OBSERVABLE_*), for SQL.
OBSERVABLE = (
    f"kind IN ({','.join(str(KIND_CODES[k]) for k in ('user', 'assistant', 'tool_call', 'tool_result'))})"
    f" AND speaker IN ({','.join(str(SPEAKER_CODES[s]) for s in ('human', 'agent', 'tool'))})"
    " AND copied=0 AND replaced_by IS NULL"
)


def row_number(session: int, seq: int) -> int:
    """The row number of a session's entry."""
    return session << SEQ_BITS | seq


def seq_of(number: int) -> tuple[int, int]:
    """Split a row number into (session, seq)."""
    return number >> SEQ_BITS, number & ((1 << SEQ_BITS) - 1)


def _create(connection: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE sessions(
            no INTEGER PRIMARY KEY, harness TEXT NOT NULL, id TEXT NOT NULL, handle TEXT NOT NULL UNIQUE,
            role TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL DEFAULT '', cwd TEXT NOT NULL DEFAULT '',
            workspace TEXT NOT NULL DEFAULT '', transcript TEXT NOT NULL DEFAULT '',
            parent INTEGER REFERENCES sessions(no), parent_seq INTEGER, parent_id TEXT NOT NULL DEFAULT '',
            started_at INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0,
            model TEXT NOT NULL DEFAULT '', window INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT -1,
            UNIQUE(harness, id))""",
        """CREATE TABLE sources(
            no INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions(no), path TEXT NOT NULL,
            generation INTEGER NOT NULL DEFAULT 0, kind TEXT NOT NULL, offset INTEGER NOT NULL DEFAULT 0,
            line INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT '', tail BLOB, tail_size INTEGER NOT NULL DEFAULT 0,
            torn INTEGER NOT NULL DEFAULT 0, skipped TEXT NOT NULL DEFAULT '{}', read_at INTEGER NOT NULL DEFAULT 0,
            UNIQUE(path, session, generation))""",
        """CREATE TABLE segments(
            no INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources(no), line INTEGER NOT NULL,
            offset INTEGER NOT NULL, size INTEGER NOT NULL, data BLOB NOT NULL)""",
        "CREATE INDEX segments_by_source ON segments(source)",
        """CREATE TABLE entries(
            no INTEGER PRIMARY KEY, source INTEGER NOT NULL, segment INTEGER NOT NULL, start INTEGER NOT NULL,
            size INTEGER NOT NULL, sha256 BLOB NOT NULL, block INTEGER NOT NULL, line INTEGER NOT NULL,
            kind INTEGER NOT NULL, speaker INTEGER NOT NULL, at INTEGER NOT NULL, tokens INTEGER NOT NULL,
            active INTEGER NOT NULL DEFAULT 1, copied INTEGER NOT NULL DEFAULT 0, alias INTEGER, replaced_by INTEGER)""",
        """CREATE TABLE links(
            source INTEGER NOT NULL, line INTEGER NOT NULL, id INTEGER NOT NULL, parent INTEGER NOT NULL,
            prompt INTEGER NOT NULL, PRIMARY KEY(source, line)) WITHOUT ROWID""",
        "CREATE INDEX links_by_id ON links(id)",
        """CREATE TABLE rows(
            source INTEGER NOT NULL, key TEXT NOT NULL, sha256 BLOB NOT NULL, first_seq INTEGER NOT NULL,
            last_seq INTEGER NOT NULL, PRIMARY KEY(source, key)) WITHOUT ROWID""",
        """CREATE TABLE measures(
            session INTEGER NOT NULL, seq INTEGER NOT NULL, context INTEGER NOT NULL,
            PRIMARY KEY(session, seq)) WITHOUT ROWID""",
        "CREATE TABLE sides(entry INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources(no))",
        "CREATE TABLE tombstones(hash TEXT PRIMARY KEY, at INTEGER NOT NULL)",
    ):
        connection.execute(statement)


def _count_rewinds(connection: sqlite3.Connection) -> None:
    # How often the live path changed: what is derived from it names the count that it was made for.
    connection.execute("ALTER TABLE sessions ADD COLUMN rewinds INTEGER NOT NULL DEFAULT 0")


def _keep_originals(connection: sqlite3.Connection) -> None:
    # What another store sent masked: the hash that the record has where it was read, by which it is known again.
    connection.execute("CREATE TABLE originals(entry INTEGER PRIMARY KEY, sha256 BLOB NOT NULL)")


def _count_requests(connection: sqlite3.Connection) -> None:
    # What a provider reported of one request, beside the context: 0 and '' where it, or an earlier version of ours, did not say.
    for column in ("at INTEGER", "window INTEGER", "output INTEGER", "cached INTEGER", "written INTEGER"):
        connection.execute(f"ALTER TABLE measures ADD COLUMN {column} NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE measures ADD COLUMN model TEXT NOT NULL DEFAULT ''")


def _name_requests(connection: sqlite3.Connection) -> None:
    # A request's numbers may come in several records; several may stand at one entry, not all of them the session's own.
    # ``kind`` is the place in core.pressure.MEASURE_KINDS; -1 marks the rows of earlier versions, of which only the context
    # is known (until they are read again from the archived bytes), -2 those whose bytes are gone.
    connection.execute(
        """CREATE TABLE named_measures(
            session INTEGER NOT NULL, seq INTEGER NOT NULL, request INTEGER NOT NULL DEFAULT 0, kind INTEGER NOT NULL,
            context INTEGER NOT NULL, at INTEGER NOT NULL DEFAULT 0, window INTEGER NOT NULL DEFAULT 0,
            output INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0, written INTEGER NOT NULL DEFAULT 0,
            model TEXT NOT NULL DEFAULT '', how TEXT NOT NULL DEFAULT '', copied INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY(session, seq, request)) WITHOUT ROWID"""
    )
    connection.execute(
        "INSERT INTO named_measures(session, seq, kind, context) SELECT session, seq, -1, context FROM measures"
    )
    connection.execute("DROP TABLE measures")
    connection.execute("ALTER TABLE named_measures RENAME TO measures")
    connection.execute("CREATE INDEX measures_by_request ON measures(session, request)")


def _log_rewinds(connection: sqlite3.Connection) -> None:
    # Whether an entry ``was`` on the live path until it went off or on it, when that had changed ``rewinds`` times: so it can be
    # known what the path was when something was decided.
    connection.execute(
        """CREATE TABLE rewound(
            entry INTEGER NOT NULL, rewinds INTEGER NOT NULL, was INTEGER NOT NULL, PRIMARY KEY(entry, rewinds)) WITHOUT ROWID"""
    )
    connection.execute(
        f"""CREATE TRIGGER log_rewinds AFTER UPDATE OF active ON entries WHEN old.active<>new.active BEGIN
            INSERT OR IGNORE INTO rewound(entry, rewinds, was)
            SELECT new.no, rewinds, old.active FROM sessions WHERE no=new.no >> {SEQ_BITS}; END"""
    )


MIGRATIONS: tuple[Migration, ...] = (
    ("m001_create", _create),
    ("m002_count_rewinds", _count_rewinds),
    ("m003_keep_originals", _keep_originals),
    ("m004_count_requests", _count_requests),
    ("m005_name_requests", _name_requests),
    ("m006_log_rewinds", _log_rewinds),
)
