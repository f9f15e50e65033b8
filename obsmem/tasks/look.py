"""Looking at the record itself: one entry by characters, what stands around it, a tool's call and what it gave, and what
happened in order.

Invariant: what is shown of an entry is its archived text with secrets masked, and its characters are counted in that text,
so that pieces that follow each other join without a gap.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from obsmem.core.clean import strip_controls
from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import entry_id, is_raw_id
from obsmem.core.mask import mask
from obsmem.core.model import Entry
from obsmem.core.tokens import clip
from obsmem.memory.recall import Source, with_context
from obsmem.memory.timeline import Line, fixed_line, lines_of, with_fixed
from obsmem.store.archive import StoredSession
from obsmem.store.archive_scan import Wanted
from obsmem.store.memory_pins import StoredPin
from obsmem.store.memory_search import notes_of_worker
from obsmem.tasks.cards import cards_of
from obsmem.tasks.entries import find_entry, read_entries
from obsmem.tasks.resolve import neighbours
from obsmem.tasks.scan import Scan, Stretch
from obsmem.tasks.store import Store
from obsmem.tasks.whole_outputs import entry_of, find_whole, find_whole_of_call

PIECE = 6_000  # characters of an entry that are shown unless more is asked for
PIECE_TOKENS = 1_900  # and what these may cost: hexadecimal and wide letters cost more than words
LOOKING_SECONDS = 8.0  # the longest look for a call id
WORKSPACE_SESSIONS = 60  # sessions whose lines a workspace's timeline is made of


class Piece(NamedTuple):
    """Characters ``start`` up to ``end`` of an entry that has ``total``. ``at`` is in milliseconds."""

    id: str
    text: str
    start: int
    end: int
    total: int
    speaker: str
    kind: str
    at: int
    tool: str


class Page(NamedTuple):
    """Lines of a timeline; ``more`` fetches those that follow, '' where there are none."""

    lines: tuple[Line, ...]
    more: str = ""


def read_range(
    store: Store, name: str, start: int = 0, count: int | None = None, *, tokens: int = PIECE_TOKENS
) -> Piece:
    """``count`` characters of an entry from ``start`` on; by default PIECE, or as many of them as cost ``tokens``. Raises
    NotFound, StoreError, or UsageError where the entry has no character ``start``."""
    entry, name = _named(store, name)
    text = mask(strip_controls(store.mask(entry.text)))
    if start < 0 or (start >= len(text) and start > 0):
        raise UsageError(f"Entry {name} has {len(text)} characters (0 to {len(text)}), so none at {start}.")
    length = len(clip(text[start : start + PIECE], tokens)) if count is None else max(0, count)
    end = min(len(text), start + length)
    return Piece(name, text[start:end], start, end, len(text), entry.speaker, entry.kind, entry.at, entry.tool)


def _named(store: Store, name: str) -> tuple[Entry, str]:
    """An entry and its id, by its own id or by that of its whole output; what still waits goes by the latter."""
    if is_raw_id(name):
        whole = find_whole(store, name)
        if not whole.entry:
            return entry_of(whole), name
        name = whole.entry
    stored, row = find_entry(store, name)
    return read_entries(store, stored, [row])[0], name


def around(store: Store, name: str, count: int = 3) -> list[Source]:
    """The entry and up to ``count`` entries on each side of it, in the order of its session: those of the live path, where
    it stands on that. Raises NotFound."""
    stored, row = find_entry(store, name)
    (entry,) = read_entries(store, stored, [row], places=True)
    handle, entries = neighbours(store, name, count, live=row.active)
    if all(one.seq != row.seq for one in entries):  # a version that was replaced has its successor's neighbours
        entries = sorted([*entries, entry], key=lambda one: one.seq)
    found = with_context([Source(name, entry)], handle, entries, count)
    return [one._replace(entry=_masked(store, one.entry) if one.entry else None) for one in found]


def _masked(store: Store, entry: Entry) -> Entry:
    return entry._replace(text=store.mask(entry.text))


def find_tool_call(store: Store, call_id: str, workspace: str = "") -> list[str]:
    """The ids of the call and of its results with a harness's call id; those of one session, or that of the whole output
    which waits to be archived. The workspace's sessions
    are looked through first, then all others, the newest first. Raises NotFound, and UsageError for part of an id that
    several calls have."""
    needle = call_id.strip()
    if len(needle) < 4:
        raise UsageError(f"{call_id!r} is too short for a call id: give at least four characters of it.")
    deadline = time.monotonic() + LOOKING_SECONDS
    sessions = store.archive.sessions()
    own = [one for one in sessions if workspace and one.session.workspace == workspace]
    rest = [one for one in sessions if not (workspace and one.session.workspace == workspace)]
    partly: dict[str, list[str]] = {}
    for group in (own, rest):
        found = _calls(store, group, needle, deadline)
        if needle in found:
            return _of_newest(found[needle])
        partly = partly or found  # a whole id elsewhere is meant rather than part of one here
    if len(partly) > 1:
        raise UsageError(f"{needle!r} is part of {len(partly)} call ids: {', '.join(sorted(partly)[:6])}. Give more.")
    if partly:
        return _of_newest(next(iter(partly.values())))
    waiting = find_whole_of_call(store, needle)
    if waiting is not None:
        return [waiting.id]
    late = "" if time.monotonic() < deadline else f" in the {LOOKING_SECONDS:.0f} s that were looked for it"
    raise NotFound(f"No tool call has the id {needle!r}{late}. 'observational-memory timeline' lists what was done.")


def _of_newest(ids: list[str]) -> list[str]:
    """Those of the first one's session, in order."""
    newest = ids[0].partition(".")[0]
    return sorted((one for one in ids if one.startswith(newest + ".")), key=lambda id_: int(id_.split(".")[1]))


def _calls(store: Store, sessions: Iterable[StoredSession], needle: str, deadline: float) -> dict[str, list[str]]:
    """Call id -> entries, of all ids that hold ``needle``."""
    data = needle.encode("utf-8", "surrogatepass")
    scan = Scan(
        store,
        [Stretch(one, 0, one.last_seq) for one in sessions if one.last_seq >= 0],
        Wanted(kinds=("tool_call", "tool_result")),
        deadline,
    )
    found: dict[str, list[str]] = {}
    for stored, entry in scan.entries(lambda record: data in record or b'"hex":' in record):
        if needle in entry.call_id:
            found.setdefault(entry.call_id, []).append(entry_id(stored.session.handle, entry.seq))
    return found


def timeline(store: Store, stored: StoredSession, after: str = "", count: int = 20) -> Page:
    """What happened in a session, in order; ``after`` is the ``more`` of the page before. Raises UsageError."""
    seq = _position(after)[1] if after else -1
    lines = [line for line in session_lines(store, stored) if line.seq > seq]
    shown = _whole_places(lines, count)
    more = f"{shown[-1].session}.{shown[-1].seq}" if len(shown) < len(lines) else ""
    return Page(tuple(shown), more)


def _whole_places(lines: list[Line], count: int) -> list[Line]:
    """The first ``count`` lines and those that stand at the last one's place besides: a page ends between two entries."""
    end = min(max(1, count), len(lines))
    while 0 < end < len(lines) and _newest(lines[end])[1:] == _newest(lines[end - 1])[1:]:
        end += 1
    return lines[:end]


def timeline_here(store: Store, workspace: str, after: str = "", count: int = 20) -> Page:
    """What happened in all sessions of a workspace, the newest first."""
    sessions = [
        one for one in store.archive.sessions() if one.session.workspace == workspace and one.session.role == "main"
    ]
    lines = [line for one in sessions[:WORKSPACE_SESSIONS] for line in session_lines(store, one)]
    lines += [_pinned(store, one) for one in store.memory.all_pins() if not one.session and one.workspace == workspace]
    lines.sort(key=_newest)
    if after:
        handle, seq, at = _position(after)
        key = (-at, handle, -seq)
        lines = [line for line in lines if _newest(line) > key]
    shown = _whole_places(lines, count)
    more = f"{shown[-1].session}.{shown[-1].seq}@{shown[-1].at}" if len(shown) < len(lines) else ""
    return Page(tuple(shown), more)


def _newest(line: Line) -> tuple[int, str, int]:
    return -line.at, line.session, -line.seq


def _position(after: str) -> tuple[str, int, int]:
    """(handle, seq, time) of a page's end. The time is part of it: the entry may be forgotten meanwhile."""
    id_, _, at = after.partition("@")
    handle, _, seq = id_.rpartition(".")
    if not seq.isdigit() or (at and not at.isdigit()):
        raise UsageError(f"{after!r} does not name the end of a page: give it as the page before did.")
    return handle, int(seq), int(at or 0)


def session_lines(store: Store, stored: StoredSession) -> list[Line]:
    """All lines of a session's timeline, in order; notes by hand and pins that were made in it too, at their time."""
    from obsmem.tasks.pins import HAND  # which brings much that no other look at the record takes

    boundaries = store.archive.boundaries(stored.no)
    times = {seq: row.at for seq in boundaries if (row := store.archive.entry(stored.no, seq))}
    lines = lines_of(cards_of(store, stored), boundaries, times)
    handle = stored.session.handle
    fixed = [
        fixed_line(one.note.id, handle, one.recorded_at, "user", "noted", store.mask(one.note.text), one.last_seq)
        for one in notes_of_worker(store.memory, handle, HAND)
    ]
    fixed += [_pinned(store, one) for one in store.memory.all_pins() if one.session == handle]
    return with_fixed(lines, fixed)


def _pinned(store: Store, one: StoredPin) -> Line:
    who = "agent" if one.pin.evidence == "agent" and not one.pin.source else "user"
    return fixed_line(one.pin.id, one.session, one.pin.at, who, "pinned", store.mask(one.pin.text))
