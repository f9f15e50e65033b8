"""Filling the full-text index from the archive, in the background, a batch at a time."""

from __future__ import annotations

import time

from obsmem.store.archive import StoredSession
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store

BATCH = 1000  # entries in one transaction, about 100 ms


def index_words(store: Store, stored: StoredSession, deadline: float = float("inf")) -> int:
    """Index what of a session is not yet; returns how many entries were added. Stops at ``deadline`` (monotonic)."""
    return store.with_index(lambda: _index(store, stored, deadline))


def _index(store: Store, stored: StoredSession, deadline: float) -> int:
    added = 0
    while time.monotonic() < deadline:
        reach, _ = store.index.reach(stored.no, "words")
        if reach >= stored.last_seq:
            break
        last = min(reach + BATCH, stored.last_seq)
        rows = list(store.archive.entries(stored.no, reach + 1, last, "copied=0 AND replaced_by IS NULL"))
        entries = read_entries(store, stored, rows, lost=True)
        if not store.index.add_words(stored.no, ((entry.seq, entry.text) for entry in entries), last, reach):
            break
        added += len(entries)
    return added
