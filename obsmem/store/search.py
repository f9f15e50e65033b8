"""The full-text tables of ``index.db`` and the questions that they answer.

Each entry has its words in the column of whoever said them (``words``, FTS5, contentless: the text stands in the archive)
and a row of ``facets`` by which it is filtered, so that every filter holds while candidates are chosen. Invariants: what a
person types reaches FTS5 only as quoted strings; no question ranks more than COMMON rows, the newest taken in first.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from obsmem.core.identifiers import Term
from obsmem.core.model import EntryKind
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive_schema import KIND_CODES, KINDS, SEQ_BITS, row_number

COLUMNS = ("human", "agent", "call", "output", "other", "names")
# What a word is worth in each column: said by a human, by an agent, in a tool call, in its output, elsewhere, in a name.
BM25_WEIGHTS = (4.0, 2.0, 2.0, 1.0, 0.5, 1.0)
COMMON = 20_000  # rows that hold a word beyond which it alone chooses no candidates while others do
OWN, PARTIAL = 1, 2  # flags of a row: our own voice; its text holds more than what was indexed
OPEN_CALLS = 64  # tool calls whose result is still to come, remembered between two batches

COPIES = 3  # rows that are looked at for each text that is wanted, before rows of equal texts are counted out
LOOK_UP = 200  # rows of a term that are read in the time in which one row is looked up

_WEIGHTS = ", ".join(map(str, BM25_WEIGHTS))
_RANK = f"bm25({_WEIGHTS})"


class WordRow(NamedTuple):
    """One entry as it is indexed. ``column`` is one of COLUMNS; ``hash`` that of its text; ``paths`` what it names."""

    no: int
    column: str
    text: str
    names: str
    at: int
    kind: EntryKind
    tool: str
    flags: int
    hash: int
    paths: tuple[str, ...] = ()


class Filter(NamedTuple):
    """What rows a question is held to. ``sessions`` None: all. ``hidden`` are row numbers from..to (inclusive) that are
    left out; ``below`` only takes rows under a number."""

    sessions: frozenset[int] | None = None
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    since: int = 0
    until: int = 0
    hidden: tuple[int, int] | None = None
    own: bool = False
    below: int = 0


class Match(NamedTuple):
    """A row that holds words of a question. ``bm25`` is better when larger; ``copies`` are rows of the same text."""

    no: int
    bm25: float
    copies: int


class Facet(NamedTuple):
    """What is known of a row without its text."""

    at: int
    kind: EntryKind
    flags: int
    hash: int
    tool: str
    paths: tuple[str, ...]


def create_search_tables(connection: sqlite3.Connection) -> None:
    """Make the full-text tables; what an earlier version had of them goes, and is filled anew in the background."""
    for statement in (
        "DROP TABLE IF EXISTS words",
        f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, content='', tokenize='porter unicode61')",
        "CREATE TABLE facets(no INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind INTEGER NOT NULL, tool INTEGER NOT NULL,"
        " flags INTEGER NOT NULL, hash INTEGER NOT NULL)",
        "CREATE TABLE tools(no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        "CREATE TABLE paths(no INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE)",
        "CREATE TABLE entry_paths(entry INTEGER NOT NULL, path INTEGER NOT NULL, PRIMARY KEY(entry, path)) WITHOUT ROWID",
        "DELETE FROM reach WHERE what='words'",
    ):
        connection.execute(statement)


def word_expression(term: Term) -> str:
    """A term as FTS5 reads it: its parts next to each other, or as one name."""
    phrase = '"' + " ".join(term.parts) + '"'
    if len(term.parts) == 1 or term.quoted:
        return phrase
    return f'({phrase} OR names : "{"".join(term.parts)}")'


class Search:
    """Questions to the full-text tables of one connection, and filling them. Transactions are the caller's."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._numbers: dict[tuple[str, str], int] = {}

    @classmethod
    def in_memory(cls) -> Search:
        """Empty tables that nothing else sees: what is not indexed yet is ranked in them."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("CREATE TABLE reach(what TEXT)")
        create_search_tables(connection)
        return cls(connection)

    def add(self, rows: Iterable[WordRow]) -> None:
        """Index rows that are not there yet."""
        self._numbers.clear()  # another process may have begun the tables anew
        words, facets, paths = [], [], []
        for row in rows:
            said = [row.text if column == row.column else None for column in COLUMNS[:-1]]
            words.append((row.no, *said, row.names))
            tool = self._number("tools", "name", row.tool) if row.tool else 0
            facets.append((row.no, row.at, KIND_CODES[row.kind], tool, row.flags, row.hash))
            paths += [(row.no, self._number("paths", "path", path)) for path in row.paths]
        run = self.connection.executemany
        # In the order of their numbers: FTS5 writes out what it holds whenever a smaller one comes.
        run(f"INSERT INTO words(rowid, {', '.join(COLUMNS)}) VALUES(?{',?' * len(COLUMNS)})", words)
        run("INSERT OR REPLACE INTO facets VALUES(?,?,?,?,?,?)", facets)
        run("INSERT OR IGNORE INTO entry_paths VALUES(?,?)", paths)

    def _number(self, table: str, column: str, value: str) -> int:
        known = self._numbers.get((table, value))
        if known is None:
            self.connection.execute(f"INSERT OR IGNORE INTO {table}({column}) VALUES(?)", (value,))
            (known,) = self.connection.execute(f"SELECT no FROM {table} WHERE {column}=?", (value,)).fetchone()
            self._numbers[table, value] = known
        return int(known)

    def hide(self, numbers: Sequence[int]) -> None:
        """Take rows out of every answer: newer versions stand in their place."""
        self.connection.executemany("DELETE FROM facets WHERE no=?", ((number,) for number in numbers))

    def clear(self) -> None:
        """Take everything out. A contentless table cannot give up single rows without their words."""
        self._numbers.clear()
        self.connection.execute("INSERT INTO words(words) VALUES('delete-all')")
        for table in ("facets", "tools", "paths", "entry_paths"):
            self.connection.execute(f"DELETE FROM {table}")

    # --- questions

    def count(self, term: Term) -> int:
        """How many rows hold a term, counted up to COMMON + 1."""
        sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(self.connection.execute(sql, (word_expression(term), COMMON + 1)).fetchone()[0])

    def matches(self, terms: Sequence[Term], filter_: Filter, limit: int, *, every: bool = False) -> list[Match]:
        """The best rows that hold one of the terms (``every``: all of them) and pass the filter; equal texts are one.
        For terms that no more than COMMON rows hold."""
        expression = (" AND " if every else " OR ").join(map(word_expression, terms))
        where, values = self._condition(filter_)
        most = limit * COPIES
        rows = self.connection.execute(
            "SELECT words.rowid, rank, f.hash FROM words CROSS JOIN facets f ON f.no=words.rowid"
            f" WHERE words MATCH ? AND rank MATCH '{_RANK}'{where} ORDER BY rank LIMIT {most}",
            (expression, *values),
        ).fetchall()
        found = _distinct(rows)
        if len(rows) == most and len(found) < limit:  # many copies of few texts: look behind them
            return self.newest_matches(expression, filter_, limit)
        return found[:limit]

    def frequent(self, terms: Sequence[Term], filter_: Filter, limit: int) -> list[Match]:
        """The same for terms that more rows hold: the best of the last COMMON of them."""
        return self.newest_matches(" OR ".join(map(word_expression, terms)), filter_, limit)

    def starting(self, start: str, filter_: Filter, limit: int) -> list[Match]:
        """Rows that hold a word which begins so; the best of the last ones."""
        return self.newest_matches(f'"{start}" *', filter_, limit, limit * 10)

    def newest_matches(self, expression: str, filter_: Filter, limit: int, most: int = COMMON) -> list[Match]:
        """The best of the ``most`` last rows that match an expression and pass the filter; equal texts are one."""
        where, values = self._condition(filter_)
        rows = self.connection.execute(
            "SELECT max(no), min(score), count(*) FROM ("
            f"SELECT words.rowid AS no, bm25(words, {_WEIGHTS}) AS score, f.hash AS hash"
            " FROM words CROSS JOIN facets f ON f.no=words.rowid"
            f" WHERE words MATCH ?{where} ORDER BY words.rowid DESC LIMIT {most}"
            ") GROUP BY hash ORDER BY 2, 1 DESC LIMIT ?",
            (expression, *values, limit),
        )
        return [Match(no, -score, copies) for no, score, copies in rows]

    def among(self, term: Term, numbers: Sequence[int], count: int) -> set[int]:
        """Those of these rows that hold a term, which ``count`` rows hold in all (more than COMMON: nobody counted)."""
        if not numbers:
            return set()
        if count <= COMMON and count < len(numbers) * LOOK_UP:
            rows = self.connection.execute(
                "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?",
                (word_expression(term), min(numbers), max(numbers)),
            )
            return {row[0] for row in rows}.intersection(numbers)
        rows = self.connection.execute(
            "SELECT words.rowid FROM json_each(?) j CROSS JOIN words WHERE words MATCH ? AND words.rowid=j.value",
            (json.dumps(list(numbers)), word_expression(term)),
        )
        return {row[0] for row in rows}

    def facets(self, numbers: Sequence[int]) -> dict[int, Facet]:
        """Row number -> what is known of it, for those that are indexed."""
        wanted = json.dumps(list(numbers))
        paths: dict[int, list[str]] = {}
        for number, path in self.connection.execute(
            "SELECT e.entry, p.path FROM json_each(?) j CROSS JOIN entry_paths e ON e.entry=j.value"
            " JOIN paths p ON p.no=e.path",
            (wanted,),
        ):
            paths.setdefault(number, []).append(path)
        rows = self.connection.execute(
            "SELECT f.no, f.at, f.kind, f.flags, f.hash, coalesce(t.name, '') FROM json_each(?) j"
            " CROSS JOIN facets f ON f.no=j.value LEFT JOIN tools t ON t.no=f.tool",
            (wanted,),
        )
        return {
            no: Facet(at, KINDS[kind], flags, hash_, tool, tuple(paths.get(no, ())))
            for no, at, kind, flags, hash_, tool in rows
        }

    def newest(self, filter_: Filter, limit: int) -> list[Match]:
        """The newest rows that pass the filter."""
        where, values = self._condition(filter_, "f.no")
        rows = self.connection.execute(
            f"SELECT f.no FROM facets f WHERE 1{where} ORDER BY f.at DESC, f.no DESC LIMIT ?", (*values, limit)
        )
        return [Match(row[0], 0.0, 1) for row in rows]

    def holding(self, words: Sequence[str], filter_: Filter) -> Iterator[int]:
        """Row numbers, the last first, of rows that hold all of these words, or of which not everything is indexed."""
        where, values = self._condition(filter_)
        bare, more = self._condition(filter_, "f.no")
        expression = " AND ".join(f'"{word}"' for word in words)
        cursor = self.connection.execute(
            "SELECT no FROM (SELECT words.rowid AS no FROM words JOIN facets f ON f.no=words.rowid"
            f" WHERE words MATCH ?{where} UNION SELECT f.no FROM facets f WHERE f.flags & {PARTIAL}{bare})"
            " ORDER BY no DESC",
            (expression, *values, *more),
        )
        for row in cursor:
            yield row[0]

    def rows_holding(self, expression: str, filter_: Filter) -> Iterator[tuple[int, int]]:
        """(number, hash of its text) of all rows that match an expression ('' for any) and pass the filter, the last first,
        as they are found: whoever stops early has not paid for the rest."""
        if expression:
            where, values = self._condition(filter_)
            source = "words CROSS JOIN facets f ON f.no=words.rowid WHERE words MATCH ?"
            sql = f"SELECT words.rowid, f.hash FROM {source}{where} ORDER BY words.rowid DESC"
            values = [expression, *values]
        else:
            where, values = self._condition(filter_, "f.no")
            sql = f"SELECT f.no, f.hash FROM facets f WHERE 1{where} ORDER BY f.no DESC"
        yield from self.connection.execute(sql, values)

    def total(self) -> int:
        """About how many rows there are."""
        row = self.connection.execute("SELECT coalesce(sum(seq+1), 0) FROM reach WHERE what='words'").fetchone()
        return int(row[0])

    def reaches(self) -> Mapping[int, int]:
        """Session number -> the last seq that is indexed."""
        return dict(self.connection.execute("SELECT session, seq FROM reach WHERE what='words'"))

    def _condition(self, filter_: Filter, no: str = "words.rowid") -> tuple[str, list[Any]]:
        """A filter as SQL over a row number and ``f``, its facets."""
        pieces: list[str] = []
        values: list[Any] = []
        if filter_.sessions is not None:
            pieces.append(_sessions(filter_.sessions, no))
        if filter_.kinds:
            codes = ",".join(str(KIND_CODES[kind]) for kind in filter_.kinds if kind in KIND_CODES)
            pieces.append(f"f.kind IN ({codes})")
        if filter_.tools:
            pieces.append("f.tool IN (SELECT no FROM tools WHERE lower(name) IN (SELECT value FROM json_each(?)))")
            values.append(json.dumps([name.lower() for name in filter_.tools]))
        if filter_.paths:
            pieces.append(
                f"EXISTS(SELECT 1 FROM entry_paths e WHERE e.entry={no} AND e.path IN"
                " (SELECT p.no FROM paths p, json_each(?) j WHERE instr(lower(p.path), j.value)))"
            )
            values.append(json.dumps([path.lower() for path in filter_.paths]))
        if filter_.since:
            pieces.append(f"f.at>={int(filter_.since)}")
        if filter_.until:
            pieces.append(f"f.at<{int(filter_.until)}")
        if filter_.hidden is not None:
            pieces.append(f"{no} NOT BETWEEN {filter_.hidden[0]} AND {filter_.hidden[1]}")
        if not filter_.own:
            pieces.append(f"NOT f.flags & {OWN}")
        if filter_.below:
            pieces.append(f"{no}<{filter_.below}")
        return "".join(f" AND {piece}" for piece in pieces), values


def _distinct(rows: Iterable[tuple[int, float, int]]) -> list[Match]:
    """Rows (number, score, hash), best first, as matches: of equal texts the last, with the number of all."""
    found: dict[int, Match] = {}
    for no, score, hash_ in rows:
        known = found.get(hash_)
        found[hash_] = Match(max(no, known.no), known.bm25, known.copies + 1) if known else Match(no, -score, 1)
    return list(found.values())


def _sessions(numbers: frozenset[int], no: str) -> str:
    if len(numbers) == 1:
        (only,) = numbers
        return f"{no} BETWEEN {row_number(only, 0)} AND {row_number(only + 1, 0) - 1}"
    return f"({no} >> {SEQ_BITS}) IN ({','.join(map(str, sorted(numbers)))})"
