"""Where the records of a fork were copied from, so that each copied entry names the one that it repeats.

Two ways lead there: the ids of records, which a harness's own forks share with their parents; and the marks of the forks
that this program wrote, which name entries by their content. Invariant: an entry that repeats a copy is an alias of the
first original.
"""

from __future__ import annotations

import os

from obsmem.core.turns import Parentage
from obsmem.harnesses.base import Raw
from obsmem.harnesses.forks import Repeats, mark_of
from obsmem.store.archive import StoredSession
from obsmem.store.archive_known import positions
from obsmem.store.archive_write import Pending, SourceWriter
from obsmem.tasks.store import Store


class Origin:
    """Where copied records come from: for each, the source and line of the session that had it first."""

    def __init__(self, store: Store, writer: SourceWriter) -> None:
        self.store = store
        self.places: dict[int, tuple[int, int]] = {}  # our line -> (source, its line)
        self.rows: dict[int, dict[tuple[int, int], int]] = {}  # source -> (line, block) -> row number
        self.parentage: Parentage | None = None  # of a fork that we wrote
        self.parent: StoredSession | None = None
        self.marks: dict[str, int] = {}  # mark of an entry of the parent -> row number
        self.marked: dict[tuple[int, str], tuple[str, ...]] = {}  # our (line, key) -> marks of its entries
        writer.alias_of = self._alias

    def note(self, line: int, source: int, theirs: int) -> None:
        """Our ``line`` repeats line ``theirs`` of a source."""
        self.places[line] = source, theirs
        if source not in self.rows:
            self.rows[source] = positions(self.store.archive, source)

    def is_repeated(self, raw: Raw, repeats: Repeats) -> bool:
        """True if a marked record is the copy that it says: its parent is known, or can be read now."""
        if self.parentage is None:
            self.parentage = repeats.of
            self.parent = _parent(self.store, repeats.of)
            if self.parent is not None:
                self.marks = _marks(self.store, self.parent)
        if self.parent is None:
            return False  # nobody else observed these words, and nobody else can
        self.marked[raw.line, raw.key] = repeats.entries
        return True

    def point(self) -> tuple[int, int] | None:
        """(session, seq) where a fork that we wrote begins; None for any other session."""
        if self.parent is None or self.parentage is None:
            return None
        return self.parent.no, min(self.parentage.seq, self.parent.last_seq)

    def _alias(self, pending: Pending, block: int) -> int | None:
        marks = self.marked.get((pending.line, pending.key))
        if marks is not None:
            return self.marks.get(marks[block]) if block < len(marks) else None
        if pending.line not in self.places:
            return None
        source, line = self.places[pending.line]
        return self.rows[source].get((line, block))


def _parent(store: Store, of: Parentage) -> StoredSession | None:
    """The session that a fork names; read from its transcript where the store was made anew and does not know it yet."""
    found = store.archive.by_id(of.harness, of.session)
    if found is not None or not os.path.exists(of.transcript):
        return found
    from obsmem.harnesses import REGISTRY, load
    from obsmem.harnesses.base import Source
    from obsmem.tasks.identify import identify
    from obsmem.tasks.ingest import ingest, is_database

    if of.harness not in REGISTRY:
        return None
    source = Source(of.transcript, of.session if is_database(of.transcript) else "")
    try:
        if identify(load(of.harness), of.harness, source)[0].id != of.session:
            return None
        ingest(store, of.harness, source)
    except OSError:
        return None
    return store.archive.by_id(of.harness, of.session)


def _marks(store: Store, parent: StoredSession) -> dict[str, int]:
    """The marks of a session's entries; where two records are alike, the first."""
    found: dict[str, int] = {}
    for row in store.archive.entries(parent.no):
        found.setdefault(mark_of(row.sha256, row.block), row.no if row.alias is None else row.alias)
    return found
