"""A copy of one session's archive that grows as the session did, for looking at what was decided on the way.

Invariants: the source is only read; the copy holds, up to a seq, what the source held when that was its last one: later
versions of an entry, later changes of the live path and later counts of the provider are not there yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from obsmem.core.pressure import Measure
from obsmem.store.archive import Archive, StoredSession
from obsmem.store.archive_schema import SEQ_BITS, row_number
from obsmem.store.measures import Placed, save_measures
from obsmem.store.schema import copy_rows, transaction

_LAST = (1 << SEQ_BITS) - 1


class SessionCopy:
    """Copies one session from ``source`` into ``target``, an archive that holds nothing yet, step by step; ``whole`` are other
    sessions (those that it goes on from), which are copied as they are."""

    def __init__(
        self, source: Archive, target: Archive, stored: StoredSession, whole: Iterable[StoredSession] = ()
    ) -> None:
        self.source, self.target, self.number = source, target, stored.no
        self.last = self.counted = -1
        self.rewinds: int | None = None
        target.connection.execute("PRAGMA foreign_keys=OFF")  # a parent may stay behind
        target.connection.execute("PRAGMA synchronous=OFF")  # nobody needs it after a crash
        with transaction(target.connection):
            for one in (*whole, stored):
                self._copy_frame(one.no)
                if one.no != stored.no:
                    self._copy_entries(one.no, 0, _LAST)
                    self._copy_measures(one.no, -1, _LAST)
        self._replaced = dict(_replaced(source, stored.no))

    def grow(
        self, last: int, rewinds: int | None = None, counts: Sequence[tuple[int, int]] | None = None
    ) -> StoredSession:
        """Let the copy reach up to seq ``last``, or stay where it is beyond that. ``rewinds`` is how often the live path had
        changed by then; ``counts`` are the provider's counts, (seq, tokens), the newest last, that were known then: records that
        came later may have moved or replaced them. None where nobody says so: as things are now."""
        with transaction(self.target.connection):
            first = self.last + 1
            if last >= first:
                self.last = last
                self._copy_entries(self.number, first, last)
                self._set_back_versions(first)
            if last >= first or rewinds != self.rewinds:
                self.rewinds = rewinds
                self._set_path(rewinds)
            self._copy_counts(counts)
        return self.target.by_number(self.number)

    def _copy_counts(self, counts: Sequence[tuple[int, int]] | None) -> None:
        """Copy what was counted since the last count that was known for certain; then make the ones known now certain."""
        run = self.target.connection.execute
        run("DELETE FROM measures WHERE session=? AND seq>?", (self.number, self.counted))
        self._copy_measures(self.number, self.counted + 1, self.last)
        if counts is None:
            return
        newest = max([-1, *(seq for seq, _ in counts)])
        run("DELETE FROM measures WHERE session=? AND seq>?", (self.number, newest))
        for seq, tokens in counts:
            run("DELETE FROM measures WHERE session=? AND seq=?", (self.number, seq))
            save_measures(self.target.connection, self.number, [Placed(seq, Measure(context=tokens))])
        self.counted = max(self.counted, newest)

    def _copy_frame(self, number: int) -> None:
        """The rows of a session that stand beside its entries, and the bytes that these point into."""
        source, target = self.source.connection, self.target.connection
        of_session = "source IN (SELECT no FROM sources WHERE session=?)"
        bounds = row_number(number, 0), row_number(number, _LAST)
        copy_rows(source, target, "sessions", "no=?", (number,))
        copy_rows(source, target, "sources", "session=?", (number,))
        copy_rows(source, target, "segments", of_session, (number,))
        copy_rows(source, target, "sides", "entry BETWEEN ? AND ?", bounds)
        if number == self.number:
            target.execute("UPDATE sessions SET last_seq=-1, rewinds=0 WHERE no=?", (number,))

    def _copy_entries(self, number: int, first: int, last: int) -> None:
        bounds = row_number(number, first), row_number(number, last)
        source, target = self.source.connection, self.target.connection
        copy_rows(source, target, "entries", "no BETWEEN ? AND ?", bounds)

    def _copy_measures(self, number: int, first: int, last: int) -> None:
        bounds = (number, first, last)
        copy_rows(
            self.source.connection, self.target.connection, "measures", "session=? AND seq BETWEEN ? AND ?", bounds
        )

    def _set_back_versions(self, first: int) -> None:
        """Let entries have the newer versions that had come by now; those before ``first`` had theirs set already."""
        self.target.connection.executemany(
            "UPDATE entries SET replaced_by=? WHERE no=?",
            [
                (by if by <= self.last else None, row_number(self.number, seq))
                for seq, by in self._replaced.items()
                if seq <= self.last and (seq >= first or by >= first)
            ],
        )

    def _set_path(self, rewinds: int | None) -> None:
        """Put entries on the live path, or off it, as they were before the change that was to come next."""
        bounds = row_number(self.number, 0), row_number(self.number, self.last)
        (now,) = self.source.connection.execute("SELECT rewinds FROM sessions WHERE no=?", (self.number,)).fetchone()
        path: dict[int, int] = {}
        if _knows_rewinds(self.source):
            changes = self.source.connection.execute(
                "SELECT entry, rewinds, was FROM rewound WHERE entry BETWEEN ? AND ? ORDER BY entry, rewinds", bounds
            ).fetchall()
            ends = self.source.connection.execute(
                "SELECT DISTINCT r.entry, e.active FROM rewound r JOIN entries e ON e.no=r.entry WHERE r.entry BETWEEN ? AND ?",
                bounds,
            )
            path = dict(ends)
            first = {
                entry: was for entry, change, was in reversed(changes) if rewinds is not None and change >= rewinds
            }
            path.update(first)
        run = self.target.connection
        run.executemany("UPDATE entries SET active=? WHERE no=?", [(active, entry) for entry, active in path.items()])
        run.execute("UPDATE sessions SET last_seq=?, rewinds=? WHERE no=?",
                    (self.last, now if rewinds is None else rewinds, self.number))  # fmt: skip


def _knows_rewinds(source: Archive) -> bool:
    """False for a store of an earlier version that is only read."""
    return source.connection.execute("SELECT 1 FROM sqlite_master WHERE name='rewound'").fetchone() is not None


def _replaced(source: Archive, number: int) -> Iterator[tuple[int, int]]:
    """(seq, seq of the newer version) of the entries of a session that have one."""
    yield from _rows(source, number, "seq_of_row, replaced_by", "replaced_by>=0")


def _rows(source: Archive, number: int, columns: str, where: str) -> Iterator[Any]:
    named = columns.replace("seq_of_row", f"no & {_LAST}")
    return source.connection.execute(
        f"SELECT {named} FROM entries WHERE no BETWEEN ? AND ? AND {where} ORDER BY no",
        (row_number(number, 0), row_number(number, _LAST)),
    )
