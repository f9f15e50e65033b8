"""Short ways to make entries, chunks and notes for the tests of the passes."""

from __future__ import annotations

from typing import Any

from obsmem.core.clock import read_minute
from obsmem.core.ids import content_id
from obsmem.core.model import Chunk, Entry, Note, Reflection
from obsmem.core.tokens import estimate
from obsmem.memory.chunk import select
from obsmem.memory.lines import line

SESSION = "abcd"
NOON = read_minute("2026-05-02 12:00")
MINUTE = 60_000


def user(seq: int, text: str, **fields: Any) -> Entry:
    return Entry(seq, f"u{seq}", "user", "human", text, at=NOON + seq * MINUTE, **fields)


def agent(seq: int, text: str, **fields: Any) -> Entry:
    return Entry(seq, f"a{seq}", "assistant", "agent", text, at=NOON + seq * MINUTE, **fields)


def call(seq: int, text: str, call_id: str, tool: str = "Bash") -> Entry:
    return Entry(seq, f"c{seq}", "tool_call", "agent", text, tool=tool, call_id=call_id, at=NOON + seq * MINUTE)


def result(seq: int, text: str, call_id: str = "", tool: str = "Bash", **fields: Any) -> Entry:
    return Entry(
        seq, f"r{seq}", "tool_result", "tool", text, tool=tool, call_id=call_id, at=NOON + seq * MINUTE, **fields
    )


def chunk_of(*entries: Entry, cap: int = 60_000) -> Chunk:
    chunk = select(entries, SESSION, cap)
    assert chunk is not None
    return chunk


def note(text: str, *seqs: int, relevance: Any = "medium", at: int = NOON, **fields: Any) -> Note:
    entry_ids = tuple(f"{SESSION}.{seq}" for seq in seqs or (1,))
    made = Note(content_id(text, entry_ids), text, at, relevance, entry_ids, "user", "verified", 0)._replace(**fields)
    return made._replace(tokens=estimate(line(made)))


def reflection(text: str, *notes: Note) -> Reflection:
    note_ids = tuple(item.id for item in notes)
    return Reflection(content_id(text, note_ids), text, note_ids, estimate(text))
