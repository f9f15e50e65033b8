"""A note and a reflection as one line of text: what every budget counts and what prompts show.

Invariant: the same note gives the same line, whatever is around it; only the length of its id may differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import SHORT_LENGTH
from obsmem.core.model import Note, Reflection
from obsmem.core.tokens import estimate


def line(note: Note, short_id: str = "", clock: Clock = utc_minute) -> str:
    """``[id] YYYY-MM-DD HH:MM [relevance] text``. Without ``short_id`` the id's first seven digits stand."""
    return f"[{short_id or note.id[:SHORT_LENGTH]}] {clock(note.at)} [{note.relevance}] {note.text}"


def reflection_line(reflection: Reflection, short_id: str = "") -> str:
    """``[id] text``."""
    return f"[{short_id or reflection.id[:SHORT_LENGTH]}] {reflection.text}"


def pool(notes: Iterable[Note]) -> int:
    """Tokens of all notes as lines: what the dropper holds against its target."""
    return sum(estimate(line(note)) for note in notes)
