"""Reading the archive from its end: which segments hold the entries of a range, and entries by their row numbers.

Invariant: rows come in descending order, group by group; no entry of a later group has a higher number than one of an
earlier group, so that whoever stops in between knows where to go on.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from obsmem.core.model import EntryKind
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive import Archive
from obsmem.store.archive_rows import EntryRow, entry_row
from obsmem.store.archive_schema import KIND_CODES, row_number

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

AHEAD = 3  # segments that are decompressed before they are asked for
_WHOLE = "e.copied=0 AND e.replaced_by IS NULL"  # no copies of a parent's entries, only the newest version of each


class Group(NamedTuple):
    """Segments whose entries of a range lie between ``low`` and ``high`` (row numbers); ``size`` in bytes of records."""

    segments: tuple[int, ...]
    low: int
    high: int
    size: int


class Wanted(NamedTuple):
    """What entries are looked at. ``since`` and ``until`` in milliseconds, 0 for no bound; ``below`` a row number, 0 for
    none; ``hidden`` are row numbers from..to (inclusive) that are passed over."""

    kinds: tuple[EntryKind, ...] = ()
    since: int = 0
    until: int = 0
    hidden: tuple[int, int] | None = None
    below: int = 0

    def condition(self) -> str:
        """The same as SQL over ``e``, a row of entries."""
        pieces = [_WHOLE]
        if self.kinds:
            pieces.append(f"e.kind IN ({','.join(str(KIND_CODES[kind]) for kind in self.kinds)})")
        if self.since:
            pieces.append(f"e.at>={int(self.since)}")
        if self.until:
            pieces.append(f"e.at<{int(self.until)}")
        if self.hidden is not None:
            pieces.append(f"e.no NOT BETWEEN {self.hidden[0]} AND {self.hidden[1]}")
        if self.below:
            pieces.append(f"e.no<{self.below}")
        return " AND ".join(pieces)


def groups(archive: Archive, session: int, first: int, last: int, wanted: Wanted) -> list[Group]:
    """The segments with entries ``first``..``last`` (inclusive) of a session, the last entries first. Segments whose
    entries lie among each other's (a file that was rewritten) are one group."""
    rows = archive.connection.execute(
        "SELECT s.segment, s.low, s.high, g.size FROM (SELECT e.segment, min(e.no) AS low, max(e.no) AS high FROM entries e"
        f" WHERE e.no BETWEEN ? AND ? AND {wanted.condition()} GROUP BY e.segment) s JOIN segments g ON g.no=s.segment"
        " ORDER BY s.high DESC",
        (row_number(session, first), row_number(session, last)),
    )
    found: list[Group] = []
    for segment, low, high, size in rows:
        if found and high > found[-1].low:
            before = found[-1]
            found[-1] = Group((*before.segments, segment), min(before.low, low), before.high, before.size + size)
        else:
            found.append(Group((segment,), low, high, size))
    return found


def segments_ahead(archive: Archive, numbers: Sequence[int]) -> Iterator[bytes | None]:
    """The bytes of segments in this order, while others decompress the next ones; None where they are missing, damaged or
    were removed by retention. Each is held by the archive until the next one is asked for."""
    from concurrent.futures import ThreadPoolExecutor  # only who looks through many segments waits for it

    pool = ThreadPoolExecutor(1)
    waiting: deque[tuple[int, Future[bytes] | None]] = deque()
    left = iter(numbers)
    try:
        while True:
            for number in left:
                waiting.append((number, _decompressing(archive, number, pool)))
                if len(waiting) > AHEAD:
                    break
            if not waiting:
                return
            number, future = waiting.popleft()
            data = _result(future)
            if data is not None:
                archive.held = (number, data)
            yield data
    finally:
        pool.shutdown(cancel_futures=True)


def _decompressing(archive: Archive, number: int, pool: ThreadPoolExecutor) -> Future[bytes] | None:
    row = archive.connection.execute("SELECT data FROM segments WHERE no=?", (number,)).fetchone()
    return pool.submit(zlib.decompress, row[0]) if row is not None and row[0] else None


def _result(future: Future[bytes] | None) -> bytes | None:
    try:
        return None if future is None else future.result()
    except zlib.error:
        return None


def rows_in(archive: Archive, segment: int, low: int, high: int, wanted: Wanted) -> list[EntryRow]:
    """The entries of one segment between two row numbers (inclusive), the last first."""
    rows = archive.connection.execute(
        f"SELECT e.* FROM entries e WHERE e.no BETWEEN ? AND ? AND e.segment=? AND {wanted.condition()} ORDER BY e.no DESC",
        (low, high, segment),
    )
    return [entry_row(row) for row in rows]


def rows_by_number(archive: Archive, numbers: Sequence[int]) -> dict[int, EntryRow]:
    """Row number -> entry, for those that are there."""
    rows = archive.connection.execute(
        "SELECT e.* FROM json_each(?) j CROSS JOIN entries e ON e.no=j.value", (json.dumps(list(numbers)),)
    )
    return {row[0]: entry_row(row) for row in rows}


def beyond_bytes(archive: Archive, session: int) -> frozenset[int]:
    """Row numbers of a session's entries whose texts hold more than their records' bytes: whole output in a file of its own,
    words that a reader puts around the numbers of a boundary."""
    low, high = row_number(session, 0), row_number(session + 1, 0) - 1
    rows = archive.connection.execute(
        "SELECT entry FROM sides WHERE entry BETWEEN ? AND ? UNION SELECT no FROM entries WHERE no BETWEEN ? AND ? AND kind=?",
        (low, high, low, high, KIND_CODES["boundary"]),
    )
    return frozenset(row[0] for row in rows)


def calls_before(archive: Archive, session: int, seq: int, count: int) -> list[EntryRow]:
    """The last ``count`` tool calls before an entry, the last first."""
    rows = archive.connection.execute(
        "SELECT e.* FROM entries e WHERE e.no BETWEEN ? AND ? AND e.kind=? ORDER BY e.no DESC LIMIT ?",
        (row_number(session, 0), row_number(session, seq) - 1, KIND_CODES["tool_call"], count),
    )
    return [entry_row(row) for row in rows]
