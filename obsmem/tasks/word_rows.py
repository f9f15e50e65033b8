"""Entries as they are indexed: their words, the column of whoever said them, and what they are filtered by.

Invariants: no secret gets into a row; what a row has to know of the ones before it (which tool a result answers) is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from obsmem.core import late
from obsmem.core.identifiers import indexable, split, whole_names
from obsmem.core.model import Entry
from obsmem.memory.own import is_own_call, is_own_text
from obsmem.store.archive_rows import StoredSession
from obsmem.store.archive_schema import row_number
from obsmem.store.search import OWN, PARTIAL, WordRow
from obsmem.tasks.store import Store

MOST_PATHS = 20  # that are kept of one entry

_COLUMNS = {"assistant": "agent", "thinking": "agent", "tool_call": "call", "tool_result": "output"}
_PATH = late.pattern(
    r"(?<![\w./\\-])(?:[\w.~-]*[/\\])+[\w.-]*\w|(?<![\w./\\-])[\w-]+\.(?:[a-z]{1,4}|json|yaml|toml)\b(?![\w/(])"
)

Calls = dict[str, list[Any]]  # call id -> [tool, our own, paths]


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
    return int.from_bytes(late.blake2b(joined, 8), "big") >> 1


def open_calls(state: Mapping[str, Any]) -> Calls:
    """The tool calls without a result that a reach's state holds."""
    return dict(state.get("calls", {}))
