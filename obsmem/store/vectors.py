"""The vectors of ``index.db``: what entries and notes say, as numbers of one model.

Invariants: a vector names the model that made it, and only those of one model are ever compared; a vector of a text that is
gone goes with its session; nothing here is needed to find a text by its words.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from obsmem.core.tuples import NamedTuple
from obsmem.store.schema import transaction


class VectorRow(NamedTuple):
    """One vector: the id of the entry or note, its session's number, its kind (``note`` or an entry's), its time (ms)."""

    id: str
    session: int
    seq: int
    kind: str
    at: int
    data: bytes


def create_vectors(connection: sqlite3.Connection) -> None:
    """Make the table."""
    connection.execute(
        "CREATE TABLE vectors(model TEXT NOT NULL, id TEXT NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL,"
        " kind TEXT NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(model, id)) WITHOUT ROWID"
    )


class Vectors:
    """Part of ``Index``, over its connection."""

    connection: sqlite3.Connection

    def add_vectors(self, model: str, rows: Iterable[VectorRow]) -> None:
        """Keep vectors; those of other models go, since nothing compares with them any more."""
        with transaction(self.connection):
            self.connection.execute("DELETE FROM vectors WHERE model<>?", (model,))
            self.connection.execute("DELETE FROM reach WHERE what LIKE 'vectors %' AND what<>?", (f"vectors {model}",))
            self.connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES(?,?,?,?,?,?,?)", [(model, *row) for row in rows]
            )

    def without_vectors(self, model: str, ids: Sequence[str]) -> list[str]:
        """Those of these ids that have no vector of a model yet, in order."""
        known = {
            id_
            for start in range(0, len(ids), 500)
            for (id_,) in self.connection.execute(
                f"SELECT id FROM vectors WHERE model=? AND id IN ({','.join('?' * len(ids[start : start + 500]))})",
                (model, *ids[start : start + 500]),
            )
        }
        return [id_ for id_ in ids if id_ not in known]

    def vectors(self, model: str, most: int, sessions: frozenset[int] | None = None) -> Iterator[VectorRow]:
        """The newest vectors of a model, of some sessions (None: all)."""
        where = "" if sessions is None else f" AND session IN ({','.join(map(str, sorted(sessions)))})"
        try:
            cursor = self.connection.execute(
                f"SELECT id, session, seq, kind, at, data FROM vectors WHERE model=?{where} ORDER BY at DESC, id LIMIT ?",
                (model, most),
            )
        except sqlite3.OperationalError:  # an index that an older version made, and that is only read
            return
        for row in cursor:
            yield VectorRow(*row)

    def forget_vectors(self, session: int) -> None:
        """Remove those of a session, inside a transaction."""
        self.connection.execute("DELETE FROM vectors WHERE session=?", (session,))
