"""``index.db``: full text of entries and the cards, both derived from the archive and rebuilt from it when lost.

Invariant: nothing here is needed to find an entry's bytes. ``reach`` says how far each derived table has come, so
that building it can stop at any instant and go on later. What the full text answers stands in ``store.search``.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from obsmem.core.model import Card, Fact
from obsmem.store.schema import Damaged, Migration, move_aside, open_database, transaction
from obsmem.store.search import Search, WordRow, create_search_tables
from obsmem.store.vectors import Vectors, create_vectors

LEVEL = 3  # of compression: a card is small, and is packed on the way of every turn


LATER = "later"  # names the row of a session that keeps which of a human's words are not the last on their matter


def _create(connection: sqlite3.Connection) -> None:
    for statement in (
        "CREATE TABLE reach(session INTEGER NOT NULL, what TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL DEFAULT '',"
        " PRIMARY KEY(session, what)) WITHOUT ROWID",
        "CREATE TABLE cards(session INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,"
        " turn INTEGER NOT NULL, facts TEXT NOT NULL, PRIMARY KEY(session, first_seq)) WITHOUT ROWID",
        # Contentless: the words stand in the archive already. detail=column keeps phrases out and the file small.
        "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=column, tokenize='porter unicode61')",
    ):
        connection.execute(statement)


def _pack_cards(connection: sqlite3.Connection) -> None:
    """Cards are kept compressed, and tell of names: those that are there are made anew when they are next asked for."""
    connection.execute("DELETE FROM cards")
    connection.execute("DELETE FROM reach WHERE what='cards'")


MIGRATIONS: tuple[Migration, ...] = (
    ("m001_create", _create),
    ("m002_search", create_search_tables),
    ("m003_vectors", create_vectors),
    ("m004_pack_cards", _pack_cards),
)


class Index(Vectors):
    """The derived tables of one store."""

    def __init__(self, path: str, *, readonly: bool = False) -> None:
        self.path = path
        self.readonly = readonly
        try:
            self.connection = open_database(path, MIGRATIONS, journal="WAL", readonly=readonly)
        except Damaged:
            if readonly:
                raise
            move_aside(path)
            self.connection = open_database(path, MIGRATIONS, journal="WAL")
        self.search = Search(self.connection)

    @property
    def searchable(self) -> bool:
        """False where an earlier version made the file and nobody could bring it up to date (it is only read)."""
        return self.connection.execute("SELECT 1 FROM sqlite_master WHERE name='facets'").fetchone() is not None

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def reach(self, session: int, what: str) -> tuple[int, dict[str, Any]]:
        """(seq, state) that a derived table has come to for a session; (-1, {}) at the beginning."""
        row = self.connection.execute(
            "SELECT seq, state FROM reach WHERE session=? AND what=?", (session, what)
        ).fetchone()
        return (-1, {}) if row is None else (int(row[0]), json.loads(row[1] or "{}"))

    def add_cards(
        self, session: int, cards: Sequence[Card], up_to: int, state: dict[str, Any], expected: int, rewinds: int = 0
    ) -> bool:
        """Add cards and move their reach to ``up_to`` in one transaction; False if the reach was not ``expected``.
        ``rewinds`` says for which state of the live path they were made."""
        with transaction(self.connection):
            if self.reach(session, "cards")[0] != expected:
                return False
            self.connection.executemany(
                "INSERT OR REPLACE INTO cards VALUES(?,?,?,?,?)",
                [(session, c.first_seq, c.last_seq, c.turn, _packed(c.facts)) for c in cards],
            )
            self.connection.execute(
                "INSERT OR REPLACE INTO reach VALUES(?,?,?,?)", (session, "cards", up_to, json.dumps(state))
            )
            self.connection.execute("INSERT OR REPLACE INTO reach VALUES(?,?,?,'')", (session, "rewinds", rewinds))
        return True

    def move_reach(self, session: int, what: str, seq: int, state: Mapping[str, Any] = {}) -> None:
        """Note how far something that leaves nothing in these tables, or only its ``state``, has come for a session."""
        kept = json.dumps(state) if state else ""
        with transaction(self.connection):
            self.connection.execute("INSERT OR REPLACE INTO reach VALUES(?,?,?,?)", (session, what, seq, kept))

    def cards(self, session: int, handle: str, up_to: int | None = None) -> list[Card]:
        """The cards of a session, in order."""
        rows = self.connection.execute(
            "SELECT turn, first_seq, last_seq, facts FROM cards WHERE session=? AND first_seq<=? ORDER BY first_seq",
            (session, up_to if up_to is not None else 1 << 62),
        )
        return [Card(handle, turn, first, last, _unpacked(facts)) for turn, first, last, facts in rows]

    def facts_of_kind(self, session: int, kind: str) -> list[Fact]:
        """The facts of one kind in a session's cards, in order; the others are not taken apart."""
        begin = json.dumps([kind])[:-1]  # inside of a text its quotation marks would be escaped
        read, found = json.JSONDecoder().raw_decode, []
        for (packed,) in self.connection.execute(
            "SELECT facts FROM cards WHERE session=? ORDER BY first_seq", (session,)
        ):
            facts = _text(packed)
            place = facts.find(begin)
            while place >= 0:
                plain, place = read(facts, place)
                found.append(_fact(plain))
                place = facts.find(begin, place)
        return found

    def reset(self, session: int, what: str) -> None:
        """Begin a derived table of a session anew."""
        with transaction(self.connection):
            if what == "cards":
                self.connection.execute("DELETE FROM cards WHERE session=?", (session,))
            self.connection.execute(
                "DELETE FROM reach WHERE session=? AND what IN (?, 'rewinds', ?)", (session, what, LATER)
            )

    def add_words(
        self, session: int, rows: Iterable[WordRow], up_to: int, expected: int, state: Mapping[str, Any] = {}
    ) -> bool:
        """Index rows and move the reach to ``up_to``; False if the reach was not ``expected``. ``state`` is what the next
        batch has to know of this one."""
        with transaction(self.connection):
            if self.reach(session, "words")[0] != expected:
                return False
            self.search.add(rows)
            self.connection.execute(
                "INSERT OR REPLACE INTO reach VALUES(?,?,?,?)", (session, "words", up_to, json.dumps(state))
            )
        return True

    def hide(self, numbers: Sequence[int]) -> None:
        """Take rows (by number) out of every answer."""
        with transaction(self.connection):
            self.search.hide(numbers)

    def forget(self, session: int) -> None:
        """Remove everything derived from a session. The full text goes as a whole: a contentless table cannot
        delete single rows without their words; it is rebuilt in the background."""
        with transaction(self.connection):
            self.connection.execute("DELETE FROM cards WHERE session=?", (session,))
            self.connection.execute("DELETE FROM reach WHERE session=?", (session,))
            self.connection.execute("DELETE FROM reach WHERE what='words'")
            self.search.clear()
            self.forget_vectors(session)

    def vacuum(self) -> None:
        """Give back free pages, and leave nothing of what they held in the file or its write-ahead log."""
        self.connection.execute("VACUUM")
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> str:
        """'' if the database is sound, else what SQLite says is wrong."""
        try:
            (answer,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
            if not self.readonly:
                self.connection.execute("INSERT INTO words(words) VALUES('integrity-check')")
        except sqlite3.DatabaseError as error:
            return str(error)
        return "" if answer == "ok" else str(answer)


def _packed(facts: Iterable[Fact]) -> bytes:
    return zlib.compress(json.dumps([_plain(fact) for fact in facts]).encode("utf-8"), LEVEL)


def _unpacked(facts: bytes | str) -> tuple[Fact, ...]:
    return tuple(_fact(plain) for plain in json.loads(_text(facts)))


def _text(facts: bytes | str) -> str:
    """Facts as they were kept; as text by an earlier version, in a file that is only read."""
    return facts if isinstance(facts, str) else zlib.decompress(facts).decode("utf-8")


def _plain(fact: Fact) -> list[Any]:
    return [fact.kind, list(fact.seqs), fact.at, fact.subject, fact.text, fact.ok, dict(fact.detail)]


def _fact(plain: list[Any]) -> Fact:
    kind, seqs, at, subject, text, ok, detail = plain
    return Fact(kind, tuple(seqs), at, subject, text, ok, detail)
