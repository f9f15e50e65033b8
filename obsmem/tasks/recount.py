"""Reading again, from the archived bytes, what an earlier version of ours did not keep of a session's requests.

Invariants: the transcript itself is not needed; what cannot be read again stays as it was and is marked so; a reading that
another process made meanwhile keeps what it added.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

from obsmem.core.errors import StoreError
from obsmem.core.model import Entry
from obsmem.harnesses import load
from obsmem.harnesses.base import Harness, Link, Raw, Source
from obsmem.store.archive import StoredSession
from obsmem.store.archive_rows import SourceRow
from obsmem.store.measures import Placed, complete_measures, entries_after, sessions_to_complete
from obsmem.store.schema import transaction
from obsmem.tasks.store import Store

LOOKED_BACK = 64  # records in which the last words of the agent are looked for


class _Place(NamedTuple):
    """The last entry of a record, and whether another session has it, too."""

    last: int
    copied: bool


def recount(store: Store, deadline: float) -> int:
    """Complete the sessions that wait for it, the last grown first, until ``deadline`` (of time.monotonic); returns how many."""
    done = 0
    for number in sessions_to_complete(store.archive.connection):
        if time.monotonic() >= deadline:
            break
        recount_session(store, store.archive.by_number(number))
        done += 1
    return done


def recount_session(store: Store, stored: StoredSession) -> None:
    """Complete one session."""
    placed: list[Placed] = []
    whole = True
    try:
        for row in store.archive.sources(stored.no):
            if row.kind in ("file", "rows"):
                placed += _measures(store, stored, row)
    except (StoreError, OSError):
        whole = False  # bytes were removed by retention, or are damaged
    with transaction(store.archive.connection):
        complete_measures(store.archive.connection, stored.no, placed, whole=whole)


def _measures(store: Store, stored: StoredSession, row: SourceRow) -> list[Placed]:
    """The measures of one source, each placed where reading it for the first time would have placed it."""
    module = load(stored.session.harness)
    places = _places(store, stored, row)
    reader = module.reader(Source(row.path, stored.session.id if row.kind == "rows" else ""), None, _no_history)
    before: list[tuple[Entry, ...]] = []
    position, last = 0, -1
    placed: list[Placed] = []
    lines: dict[int, int] = {}  # the last entry of each
    for raw in _records(store, module, row):
        parsed = reader.read(raw)
        place = places.get(position)
        position += len(raw.data)
        last = place.last if place else last
        lines[raw.line] = last
        aside = {lines[line] for line in parsed.disowned if line in lines}
        placed = [_at_side(one) if one.seq in aside else one for one in placed] if aside else placed
        before = [parsed.entries if place else (), *before[:LOOKED_BACK]]
        measure = parsed.measure
        if measure is not None and (measure.context or measure.kind == "kept"):
            back = entries_after(measure.place, before) if measure.place != "here" else 0
            placed.append(Placed(max(last - back, 0), measure, bool(place and place.copied) or parsed.copied))
    return placed


def _at_side(placed: Placed) -> Placed:
    """The same of a request whose words turn out to be a summariser's."""
    own = placed.measure.kind == "request"
    return placed._replace(measure=placed.measure._replace(kind="side")) if own else placed


def _places(store: Store, stored: StoredSession, row: SourceRow) -> dict[int, _Place]:
    """Where a record begins in the source's bytes -> where its entries stand."""
    begins: dict[int, int] = {}
    position = 0
    for number, size in store.archive.segment_sizes(row.no):
        begins[number] = position
        position += size
    places: dict[int, _Place] = {}
    for entry in store.archive.entries(stored.no, where=f"source={row.no}"):
        at = begins.get(entry.segment, 0) + entry.start
        places[at] = _Place(entry.seq, entry.copied)
    return places


def _records(store: Store, module: Harness, row: SourceRow) -> Iterator[Raw]:
    """The records of a source, as its harness splits them."""
    with tempfile.TemporaryDirectory(prefix="recount-", dir=store.home) as folder:
        path = os.path.join(
            folder, "rows.jsonl" if row.kind == "rows" else os.path.basename(row.path).removesuffix(".zst")
        )
        with open(path, "wb") as file:
            for data in store.archive.bytes_of(row.no):
                file.write(data)
        if row.kind == "file":
            yield from module.records(Source(path), 0, 0)
            return
        with open(path, "rb") as file:
            for line in file:
                yield Raw(line, table="rows")


def _no_history() -> list[tuple[int, Link]]:
    """What was measured does not depend on the branches before it."""
    return []
