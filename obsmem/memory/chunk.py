"""Choose the stretch of a session that one observer call sees, and write it down for a model.

Invariants: the chunk is the oldest part of what was given, without holes; ``shown`` holds for each entry exactly the
words that stand in ``text``, masked and without control characters; whatever is long is cut inside an entry, never
silently: a mark says so, and the whole entry can be recalled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from obsmem.core.clean import leave_out_encoded, strip_controls
from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import entry_id
from obsmem.core.mask import mask
from obsmem.core.model import Chunk, Entry
from obsmem.core.tokens import estimate, excerpt

DEFAULT_CAP = 60_000
SMALLEST_CAP = 256
WINDOW_SHARE = 5  # a fifth of a model's window: an estimate may be off, and memory and answer need room too

# A line that begins as an entry's label does is moved in by a blank: nobody's words can pass for another entry.
_FORGED = re.compile(r"^(\[\d+\])", re.MULTILINE)

OMISSION = "\n[… the middle is left out here to save room; the whole entry is kept and can be recalled …]\n"


class _Piece(NamedTuple):
    """One entry as it would stand in the chunk. ``open_calls`` counts calls without their result after it."""

    entry: Entry
    label: str
    words: str
    cost: int


def chunk_cap(explicit: int | None, window: int | None) -> int:
    """The most tokens of a chunk: what the user says, else a fifth of the model's window, else 60,000; at least 256."""
    if explicit is not None and explicit > 0:
        return max(SMALLEST_CAP, explicit)
    if window is not None and window > 0:
        return max(SMALLEST_CAP, window // WINDOW_SHARE)
    return DEFAULT_CAP


def select(entries: Sequence[Entry], session: str, cap: int, clock: Clock = utc_minute) -> Chunk | None:
    """Take the oldest observable entries that fit into ``cap`` tokens; None where there are none.

    ``session`` is the handle, ``clock`` writes the minute of an entry as the user would read it. A first entry that is
    too big alone is sent as head and tail, and is then the only one. A chunk may have an empty ``text``: then its
    entries hold nothing to read, and can be covered without asking anyone.
    """
    waiting = [entry for entry in entries if entry.observable]
    answered = {entry.call_id for entry in waiting if entry.kind == "tool_result" and entry.call_id}
    pieces: list[_Piece] = []
    open_calls: set[str] = set()
    used = spoken = 0
    last_whole = 0  # how many pieces end where every call has its result, past half of the cap
    day = ""
    for entry in waiting:
        minute = clock(entry.at)
        label = _label(entry, spoken + 1, minute if minute[:10] != day else minute[11:] or minute)
        piece = _piece(entry, label, cap, alone=not used)
        if used + piece.cost > cap:
            if used:
                pieces = pieces[: last_whole or len(pieces)]
            break
        used += piece.cost
        day = minute[:10] if piece.words else day
        pieces.append(piece)
        spoken += bool(piece.words)
        if entry.kind == "tool_call" and entry.call_id in answered:
            open_calls.add(entry.call_id)
        elif entry.kind == "tool_result":
            open_calls.discard(entry.call_id)
        if not open_calls and used * 2 > cap:
            last_whole = len(pieces)
    return _chunk(pieces, session, cap) if pieces else None


def readable(text: str) -> str:
    """An entry's words as a model may see them: masked, no control characters, no encoded bulk, no forged label."""
    return _FORGED.sub(r" \1", leave_out_encoded(mask(strip_controls(text))).strip("\n"))


def _piece(entry: Entry, label: str, cap: int, *, alone: bool) -> _Piece:
    words = readable(entry.text)
    if not words.strip():
        return _Piece(entry, label, "", 0)
    label_cost = estimate(label + "\n\n")
    cost = entry.tokens if entry.tokens > 0 and words == entry.text else estimate(words)
    room = cap - label_cost
    if alone and cost > room:
        words = excerpt(words, room, OMISSION)
        # Nothing else may join it; it fills the cap whatever the halves came to.
        return _Piece(entry, label, words, cap if words else cap + 1)
    share = cap * 2 // 5
    if entry.kind == "tool_result" and cost > share:
        words = excerpt(words, share, OMISSION) or words
        cost = estimate(words)
    return _Piece(entry, label, words, cost + label_cost)


def _label(entry: Entry, number: int, minute: str) -> str:
    who = {"human": "user", "tool": "tool"}.get(entry.speaker, "agent")
    if entry.kind == "tool_call":
        who = f"{who} calls {entry.tool or 'a tool'}"
    elif entry.tool:
        who = f"{who} {entry.tool}"
    outcome = ""
    if entry.exit_code:
        outcome = f" (exit {entry.exit_code})"
    elif entry.ok is False:
        outcome = " (failed)"
    return f"[{number}] {who} {minute}{outcome}: "


def _chunk(pieces: Sequence[_Piece], session: str, cap: int) -> Chunk:
    spoken = [piece for piece in pieces if piece.words]
    text = "\n\n".join(piece.label + piece.words for piece in spoken)
    return Chunk(
        session=session,
        first_seq=pieces[0].entry.seq,
        last_seq=pieces[-1].entry.seq,
        entries=tuple(piece.entry for piece in pieces),
        text=text,
        shown={entry_id(session, piece.entry.seq): piece.words for piece in spoken},
        tokens=min(sum(piece.cost for piece in pieces), estimate(text)) if text else 0,
        cap=cap,
    )
