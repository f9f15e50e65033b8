"""The tools that read the record by id and in order: recall, get, around, tool, timeline, notes, status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from obsmem.core.errors import NotFound, UsageError
from obsmem.core.ids import is_raw_id, parse_entry_id, shorten
from obsmem.core.model import Entry, Note
from obsmem.core.tokens import clip, estimate
from obsmem.interfaces import mcp_frame as frame
from obsmem.interfaces.commands_look import line_text
from obsmem.interfaces.mcp_frame import DEFAULT_TOKENS, INTRODUCTION, WHO, Piece
from obsmem.interfaces.mcp_scope import Scope
from obsmem.memory.recall import VOICES, Found, Source, with_context
from obsmem.store.archive import StoredSession
from obsmem.system.local_time import local_clock
from obsmem.tasks import look
from obsmem.tasks.pins import pins
from obsmem.tasks.remember import remember
from obsmem.tasks.resolve import neighbours, sources_of
from obsmem.tasks.rotation import chains

Given = Mapping[str, Any]
MARGIN = 12  # tokens: texts joined may cost a little more than each by itself
MOST_LISTED_SESSIONS = 12
MOST_CHAINS = 5  # of windows that go on from each other, the last grown
LONGEST_LINE = 300  # characters of a line of a timeline


def recall(scope: Scope, given: Given) -> str:
    """A note with what it cites, or an entry."""
    found = scope.find(str(given["id"]))
    if count := int(given.get("context", 0)):
        for one in found.sources:
            if one.entry is not None and not one.around:
                handle, entries = neighbours(scope.store, one.id, count)
                found = found._replace(sources=with_context(found.sources, handle, entries, count))
    room = _room(given)
    head = _records(scope, found, room // 2 if any(one.entry for one in found.sources) else room)
    missing = [f"{one.id}: {one.missing or 'not available'}" for one in found.sources if one.entry is None]
    if missing:
        head.append(clip("Not available: " + "; ".join(missing), 120))
    return _answer(scope, head, [_piece(scope, one, one.entry) for one in found.sources if one.entry], room)


def _records(scope: Scope, found: Found, room: int) -> list[str]:
    """The notes and reflections of what was found, in a fence; notes are a model's words, or made of others'."""
    short = shorten([*(one.id for one in found.notes), *(one.id for one in found.reflections)])
    lines = [
        f"[{short[one.id]}] reflection{_dropped(found, one.id)}: {_line(scope, one.text)}" for one in found.reflections
    ]
    for note in found.notes:
        doubt = "" if note.grounding == "verified" else f", {note.grounding} of it found in the entries"
        voice = f"{VOICES[note.evidence]}{doubt}{_dropped(found, note.id)}"
        lines.append(f"{_note_line(scope, note, short[note.id])} ({voice})")
    lines += [f"{one.id}: {_line(scope, one.later)}" for one in found.sources if one.later]
    if not lines:
        return []
    fenced, shown = frame.lines(scope.store.key(), lines, room, who="observer", about="notes")
    return [fenced] + ([f"({len(lines) - shown} more records: recall them one by one)"] if shown < len(lines) else [])


def _dropped(found: Found, id_: str) -> str:
    return ", no longer in the block" if id_ in found.dropped else ""


def _line(scope: Scope, text: str) -> str:
    return frame.inside(frame.words_of(scope.store, text)).strip()


def _note_line(scope: Scope, note: Note, short: str) -> str:
    cited = f" ← {' '.join(note.entry_ids[:6])}" if note.entry_ids else ""
    return f"[{short}] {local_clock(note.at)} {note.relevance} {note.evidence}: {_line(scope, note.text)}{cited}"


def _piece(scope: Scope, source: Source, entry: Entry) -> Piece:
    remarks = [
        word
        for word, is_so in (
            ("failed", entry.ok is False),
            ("off the live path", not entry.active),
            ("stands beside it", source.around),
        )
        if is_so
    ]
    text = frame.words_of(scope.store, entry.text)
    return Piece(
        source.id, WHO.get(entry.speaker, entry.speaker), local_clock(entry.at) if entry.at else "", text,
        tool=entry.tool, note=" / ".join([entry.kind, *remarks]),
    )  # fmt: skip


def _answer(scope: Scope, head: list[str], found: list[Piece], room: int) -> str:
    """The introduction, what is ours to say, and the entries in what room is left."""
    top = "\n".join([INTRODUCTION, *head])
    if not found:
        return top
    return f"{top}\n{frame.pieces(scope.store.key(), found, room - estimate(top) - MARGIN)}"


def _room(given: Given) -> int:
    return int(given.get("max_tokens") or DEFAULT_TOKENS) - MARGIN


def get(scope: Scope, given: Given) -> str:
    """One entry from a character on."""
    name = scope.entry(str(given["id"]))
    found = look.read_range(scope.store, name, int(given.get("start", 0)), int(given.get("count", 40_000)))
    piece = Piece(
        found.id, WHO.get(found.speaker, found.speaker), local_clock(found.at) if found.at else "", found.text,
        tool=found.tool, note=found.kind, start=found.start, total=found.total,
    )  # fmt: skip
    return _answer(scope, [], [piece], _room(given))


def around(scope: Scope, given: Given) -> str:
    """An entry and its neighbours."""
    found = look.around(scope.store, scope.entry(str(given["id"])), int(given.get("count", 3)))
    return _entries(scope, found, given)


def tool(scope: Scope, given: Given) -> str:
    """A call and its results by the harness's id of it."""
    call_id = str(given["call_id"])
    try:
        ids = look.find_tool_call(scope.store, call_id, scope.here.workspace)
    except NotFound as error:
        raise NotFound(f"No tool call has the id {call_id!r} here. The tool 'timeline' lists what was done.") from error
    except UsageError as error:  # it names ids, which may be of another workspace
        raise UsageError(f"{call_id!r} does not name one tool call: give the whole id.") from error
    if is_raw_id(ids[0]):  # it waits to be archived
        return _entries(scope, scope.find(ids[0]).sources, given)
    allowed = [one for one in ids if scope.allows_handle(parse_entry_id(one)[0])]
    if not allowed:
        raise NotFound(f"No tool call has the id {call_id!r} here. The tool 'timeline' lists what was done.")
    return _entries(scope, sources_of(scope.store, allowed), given)


def _entries(scope: Scope, found: Iterable[Source], given: Given) -> str:
    known = list(found)
    missing = [f"{one.id}: {one.missing or 'not available'}" for one in known if one.entry is None]
    head = [clip("Not available: " + "; ".join(missing), 120)] if missing else []
    return _answer(scope, head, [_piece(scope, one, one.entry) for one in known if one.entry], _room(given))


def timeline(scope: Scope, given: Given) -> str:
    """What happened in a session, page by page."""
    stored = scope.session(str(given.get("session", "")))
    after = str(given.get("more", ""))
    if after.partition(".")[0] not in ("", stored.session.handle):
        raise UsageError("'more' is of another session: give that session with it.")
    key, room, count = scope.store.key(), _room(given), int(given.get("count", 30))

    def make(number: int) -> str:
        page = look.timeline(scope.store, stored, after, number)
        lines = [_line(scope, line_text(one))[:LONGEST_LINE] for one in page.lines]
        about = f"session {stored.session.handle} of {stored.session.harness}"
        if not lines:
            return f"{INTRODUCTION}\nNothing more happened in {about}."
        body = frame.fence(key, "\n".join(lines), who="record", about=about)
        return f"{INTRODUCTION}\n{body}" + (f"\nmore: {page.more}" if page.more else "")

    return frame.fit(make, [max(1, count >> step) for step in range(count.bit_length())], room)


def notes(scope: Scope, given: Given) -> str:
    """Pins, reflections and notes of a session, oldest first."""
    stored = scope.session(str(given.get("session", "")))
    memory = remember(scope.store, stored)
    short = shorten([*(one.id for one in memory.notes), *(one.id for one in memory.reflections)])
    lines = [f"[{one.id[:7]}] pin ({one.scope}): {_line(scope, one.text)}" for one in memory.pins]
    lines += [f"[{short[one.id]}] reflection: {_line(scope, one.text)}" for one in memory.reflections]
    lines += [_note_line(scope, one, short[one.id]) for one in memory.notes]
    ids = [*(one.id for one in memory.pins), *(one.id for one in memory.reflections), *(one.id for one in memory.notes)]
    start = _start(str(given.get("more", "")), ids)
    about = f"session {stored.session.handle} of {stored.session.harness}"
    if start >= len(lines):
        return f"{'Nothing more is' if start else 'Nothing is'} noted of {about}."
    shown = lines[start:]
    fenced, count = frame.lines(
        scope.store.key(), shown, _room(given) - estimate(INTRODUCTION) - 40, who="observer", about=about
    )
    more = f"\nmore: {ids[start + count - 1]}" if start + count < len(lines) else ""
    return f"{INTRODUCTION}\n{fenced}{more}"


def _start(more: str, ids: list[str]) -> int:
    """Where the page behind an id begins. Raises UsageError where it is none of them (it may have been dropped)."""
    if not more:
        return 0
    if more not in ids:
        raise UsageError("That 'more' is no longer in these notes: begin again without it.")
    return ids.index(more) + 1


def status(scope: Scope, given: Given) -> str:
    """What there is of this workspace."""
    store, here = scope.store, scope.here
    known = scope.sessions()
    counts: dict[str, int] = {}
    for one in known:
        counts[one.session.harness] = counts.get(one.session.harness, 0) + 1
    held = "everywhere, as the user configured" if scope.everywhere else "this workspace only"
    lines = [
        f"{len(known)} sessions ({held}): " + ", ".join(f"{count} of {name}" for name, count in counts.items()),
        f"{sum(one.last_seq + 1 for one in known)} entries, "
        f"{sum(len(store.memory.notes(one.session.handle)) for one in known)} notes, {len(pins(store, here))} pins here",
        f"asking session: {here.session.session.handle if here.session else 'not known to the record yet'}",
    ]
    handles = {one.session.handle for one in known}
    lines += [f"session {one.words()}" for one in chains(store) if handles >= {one.session, *one.continues}][
        :MOST_CHAINS
    ]
    lines += [_session_line(scope, one) for one in known[:MOST_LISTED_SESSIONS]]
    if len(known) > MOST_LISTED_SESSIONS:
        lines.append(f"and {len(known) - MOST_LISTED_SESSIONS} older ones")
    return clip("\n".join(lines), _room(given))


def _session_line(scope: Scope, one: StoredSession) -> str:
    covered = scope.store.memory.covered_to(one.session.handle)
    role = "" if one.session.role == "main" else f" {one.session.role}"
    return (
        f"- {one.session.handle} {one.session.harness}{role}, last grown {local_clock(one.updated_at)}: {one.last_seq + 1} "
        f"entries, observed up to {covered}"
    )
