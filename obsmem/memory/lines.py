"""A note and a reflection as one line of text: what every budget counts and what prompts show.

Invariant: the same note gives the same line, whatever is around it; only the length of its id may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import SHORT_LENGTH
from obsmem.core.model import Note, Reflection
from obsmem.core.tokens import estimate

R = TypeVar("R", Note, Reflection)


def line(note: Note, short_id: str = "", clock: Clock = utc_minute) -> str:
    """``[id] YYYY-MM-DD HH:MM [relevance] text``. Without ``short_id`` the id's first seven digits stand."""
    return f"[{short_id or note.id[:SHORT_LENGTH]}] {clock(note.at)} [{note.relevance}] {note.text}"


def reflection_line(reflection: Reflection, short_id: str = "") -> str:
    """``[id] text``."""
    return f"[{short_id or reflection.id[:SHORT_LENGTH]}] {reflection.text}"


def pool(notes: Iterable[Note]) -> int:
    """Tokens of all notes as lines: what the dropper holds against its target."""
    return sum(estimate(line(note)) for note in notes)


def find_notes(ids: Any, notes: Sequence[Note]) -> tuple[Note, ...]:
    """The notes that ids (whole, or an unambiguous beginning of at least 4 digits) name, in the notes' order.

    Nothing if a single id names none, or more than one.
    """
    return _named(ids, notes)


def find_reflections(ids: Any, reflections: Sequence[Reflection]) -> tuple[Reflection, ...]:
    """The reflections that ids name, as ``find_notes`` finds notes."""
    return _named(ids, reflections)


def _named(ids: Any, records: Sequence[R]) -> tuple[R, ...]:
    asked = ids if isinstance(ids, (list, tuple)) else str(ids).split(",") if isinstance(ids, (str, int)) else ()
    found: set[str] = set()
    for item in asked:
        prefix = str(item).strip().strip("[]").lower()
        matches = {one.id for one in records if one.id.startswith(prefix)} if len(prefix) >= 4 else set()
        if len(matches) != 1:
            return ()
        found |= matches
    return tuple(one for one in records if one.id in found)
