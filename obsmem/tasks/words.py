"""Filling the full-text index from the archive, in the background, a batch at a time.

Invariants: no secret gets into the index; what a batch needs to know of the one before it (which tool a result answers)
is kept beside the reach, so that the index is the same whatever the batches were.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from obsmem.core.identifiers import indexable, split, whole_names
from obsmem.core.model import Entry
from obsmem.memory.own import is_own_call, is_own_text
from obsmem.store.archive import StoredSession
from obsmem.store.archive_schema import row_number
from obsmem.store.search import OPEN_CALLS, OWN, PARTIAL, WordRow
from obsmem.tasks.cards import update_cards
from obsmem.tasks.entries import read_entries
from obsmem.tasks.store import Store

BATCH = 1000  # entries in one transaction, about 100 ms
MOST_PATHS = 20  # that are kept of one entry

_COLUMNS = {"assistant": "agent", "thinking": "agent", "tool_call": "call", "tool_result": "output"}
_PATH = re.compile(
    r"(?<![\w./\\-])(?:[\w.~-]*[/\\])+[\w.-]*\w|(?<![\w./\\-])[\w-]+\.(?:[a-z]{1,4}|json|yaml|toml)\b(?![\w/(])"
)

Calls = dict[str, list[Any]]  # call id -> [tool, our own, paths]


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


def word_rows(store: Store, stored: StoredSession, entries: Iterable[Entry], calls: Calls) -> list[WordRow]:
    """Entries of one session, in order, as they are indexed. ``calls`` are the tool calls without a result, and is kept."""
    return [_word_row(store, stored, entry, calls) for entry in entries]


def _word_row(store: Store, stored: StoredSession, entry: Entry, calls: Calls) -> WordRow:
    tool, own, paths = entry.tool, is_own_text(entry), list(paths_of(entry))
    if entry.kind == "tool_call":
        own = own or is_own_call(entry)
        paths = [store.mask(path) for path in paths]
        if entry.call_id:
            calls[entry.call_id] = [tool, own, paths]
    elif entry.kind == "tool_result" and entry.call_id in calls:
        called, ours, named = calls.pop(entry.call_id)
        tool, own, paths = tool or called, own or ours, list(named)
    masked = store.mask(entry.text)
    text, whole = indexable(masked)
    return WordRow(
        no=row_number(stored.no, entry.seq),
        column="human" if entry.speaker == "human" else _COLUMNS.get(entry.kind, "other"),
        text=split(text),
        names=" ".join(whole_names(text)),
        at=entry.at,
        kind=entry.kind,
        tool=tool,
        flags=OWN * own | PARTIAL * (not whole or masked != entry.text),
        hash=text_hash(entry.text),
        paths=tuple(paths),
    )


def paths_of(entry: Entry) -> tuple[str, ...]:
    """The files that a tool call works on, or that its command names; ``/`` between folders."""
    found: dict[str, None] = {}
    for action in entry.actions:
        named = [action.path] if action.path else _PATH.findall(action.command)
        for path in named:
            found[path.replace("\\", "/").removeprefix("./")] = None
    return tuple(list(found)[:MOST_PATHS])


def text_hash(text: str) -> int:
    """A number that equal texts share, however their blanks differ."""
    joined = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big") >> 1


def open_calls(state: Mapping[str, Any]) -> Calls:
    """The tool calls without a result that a reach's state holds."""
    return dict(state.get("calls", {}))
