"""Whole outputs of tools whose results stand shortened, found by their id or their call.

Invariant: what waits to be archived is found as well as what is archived, and gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from obsmem.core.errors import NotFound
from obsmem.core.ids import entry_id
from obsmem.core.model import Entry
from obsmem.core.tuples import NamedTuple
from obsmem.store.archive_raw import find_raw_source, raw_bytes
from obsmem.system.raw_files import RawFile, find_raw, find_raw_of_call
from obsmem.tasks.store import Store


class Whole(NamedTuple):
    """A whole output: the entry that it belongs to ('' while it waits), its bytes, and whose it is."""

    id: str
    entry: str
    data: bytes
    call_id: str
    at: int
    cwd: str


def find_whole(store: Store, id_: str) -> Whole:
    """The whole output with an id, archived or waiting. Raises NotFound, or StoreError where its bytes cannot be had."""
    found = find_raw_source(store.archive, id_)
    if found is not None and found[1] is not None:
        source, (session, seq) = found[0], found[1]
        handle = store.archive.by_number(session).session.handle
        call_id = source.path.split("/", 2)[2]
        return Whole(id_, entry_id(handle, seq), raw_bytes(store.archive, source), call_id, source.read_at, "")
    waiting = find_raw(store.home, id_)
    if waiting is None:
        raise NotFound(f"No output has the id {id_!r}: it was forgotten on request, or is another machine's.")
    return _of_file(waiting)


def find_whole_of_call(store: Store, call_id: str) -> Whole | None:
    """The whole output of a call that waits to be archived; None where none does."""
    waiting = find_raw_of_call(store.home, call_id)
    return None if waiting is None else _of_file(waiting)


def _of_file(raw: RawFile) -> Whole:
    return Whole(raw.id, "", raw.data, raw.call_id, number_of(raw.about, "at"), str(raw.about.get("cwd", "")))


def entry_of(whole: Whole) -> Entry:
    """A whole output that waits, as an entry."""
    text = whole.data.decode("utf-8", "replace")
    return Entry(-1, "", "tool_result", "tool", text, call_id=whole.call_id, at=whole.at)


def is_here(whole: Whole, workspace: str) -> bool:
    """True if an output that waits was printed in a workspace."""
    from obsmem.system.workspace import workspace_of  # whoever recalls for a person needs it not

    return bool(whole.cwd) and workspace_of(whole.cwd) == workspace


def number_of(about: Mapping[str, Any], name: str) -> int:
    """A number of what is said about an output; 0 where there is none."""
    value = about.get(name)
    return value if isinstance(value, int) else 0
