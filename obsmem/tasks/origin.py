"""Where the records of a fork were copied from, so that each copied entry names the one that it repeats."""

from __future__ import annotations

from obsmem.store.archive_write import Pending, SourceWriter, positions
from obsmem.tasks.store import Store


class Origin:
    """Where copied records come from: for each, the source and line of the session that had it first."""

    def __init__(self, store: Store, writer: SourceWriter) -> None:
        self.store = store
        self.places: dict[int, tuple[int, int]] = {}  # our line -> (source, its line)
        self.rows: dict[int, dict[tuple[int, int], int]] = {}  # source -> (line, block) -> row number
        writer.alias_of = self._alias

    def note(self, line: int, source: int, theirs: int) -> None:
        """Our ``line`` repeats line ``theirs`` of a source."""
        self.places[line] = source, theirs
        if source not in self.rows:
            self.rows[source] = positions(self.store.archive, source)

    def _alias(self, pending: Pending, block: int) -> int | None:
        if pending.line not in self.places:
            return None
        source, line = self.places[pending.line]
        return self.rows[source].get((line, block))
