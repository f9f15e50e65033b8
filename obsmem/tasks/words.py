"""Filling the full-text index from the archive, in the background, a batch at a time.

Invariants: no secret gets into the index (``word_rows``); what a batch needs to know of the one before it (which tool a result answers)
is kept beside the reach, so that the index is the same whatever the batches were.
"""

from __future__ import annotations

import time

from obsmem.store.archive import StoredSession
from obsmem.store.search import OPEN_CALLS
from obsmem.tasks.cards import update_cards
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store
from obsmem.tasks.word_rows import open_calls, word_rows

BATCH = 1000  # entries in one transaction, about 100 ms


def index_words(store: Store, stored: StoredSession, deadline: float = float("inf")) -> int:
    """Index what of a session is not yet; returns how many entries were added. Stops at ``deadline`` (monotonic)."""
    return store.with_index(lambda: _index(store, stored, deadline))


def index_all(store: Store, deadline: float) -> int:
    """Index what is not yet of every session, the last grown first; returns how many entries were added. Cards that went
    with a lost index are made anew, too: what is told of files and times stands on those of all sessions."""
    added = 0
    for stored in store.archive.sessions():
        if time.monotonic() >= deadline:
            break
        update_cards(store, stored)
        added += index_words(store, stored, deadline)
    return added


def _index(store: Store, stored: StoredSession, deadline: float) -> int:
    added = 0
    _hide_replaced(store, stored)
    while time.monotonic() < deadline:
        reach, state = store.index.reach(stored.no, "words")
        if reach >= stored.last_seq:
            break
        last = min(reach + BATCH, stored.last_seq)
        rows = list(store.archive.entries(stored.no, reach + 1, last, "copied=0 AND replaced_by IS NULL"))
        calls = open_calls(state)
        entries = word_rows(store, stored, read_entries(store, stored, rows, lost=True), calls)
        kept = dict(list(calls.items())[-OPEN_CALLS:])
        if not store.index.add_words(stored.no, entries, last, reach, {"calls": kept} if kept else {}):
            break
        added += len(entries)
    return added


def _hide_replaced(store: Store, stored: StoredSession) -> None:
    """Take indexed entries that have newer versions by now out of the answers."""
    if store.index.reach(stored.no, "replaced")[0] == stored.rewinds:
        return
    rows = store.archive.entries(stored.no, 0, None, "replaced_by IS NOT NULL")
    store.index.hide([row.no for row in rows])
    store.index.move_reach(stored.no, "replaced", stored.rewinds)
