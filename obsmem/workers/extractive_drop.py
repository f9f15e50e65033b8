"""Which notes may be retired, by rule: kept whole by a reflection, overtaken by a later note, or cheap to see again.

Invariant: never a critical note, and never words of the user that no reflection quotes.
"""

from __future__ import annotations

import re
from typing import Any

from obsmem.core.model import Note, Reflection, Request
from obsmem.workers.extractive_lines import read_command_line, read_file_line

# What must be in a reflection for it to keep a note whole: quotes, code, paths, names, numbers.
_TELLING = re.compile(r"\"[^\"]+\"|“[^”]+”|`[^`]+`|[\w.@-]*[/_.\d][\w./@-]*\w|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*")
_CHEAP = ("Read ", "Ran ", "Looked up ", "User interrupted ")


def drop(request: Request) -> list[dict[str, Any]]:
    """Proposals {note_id, why}, the safest first, at most ``request.limit``."""
    memory = request.memory
    notes = [note for note in memory.notes if note.id not in memory.dropped]
    reasons: dict[str, str] = {}
    for note in notes:
        if note.relevance != "critical" and _kept(note, memory.reflections):
            reasons[note.id] = "kept by a reflection"
    free = [note for note in notes if note.relevance != "critical" and note.evidence != "user"]
    for note in _overtaken(free):
        reasons.setdefault(note.id, "overtaken by a later note")
    for note in free:
        if note.relevance == "low" and note.text.startswith(_CHEAP):
            reasons.setdefault(note.id, "cheap to see again")
    return [{"note_id": note_id, "why": why} for note_id, why in list(reasons.items())[: request.limit]]


def _kept(note: Note, reflections: tuple[Reflection, ...]) -> bool:
    """True if a reflection that cites the note holds every telling piece of it."""
    pieces = _TELLING.findall(note.text)
    return any(
        note.id in reflection.note_ids and all(piece.strip('"“”`') in reflection.text for piece in pieces)
        for reflection in reflections
    )


def _overtaken(notes: list[Note]) -> list[Note]:
    """Notes whose command ended anew, or whose file's names a later note lists all, in a later note."""
    old: list[Note] = []
    commands: set[str] = set()
    files: dict[str, set[str]] = {}
    for note in reversed(notes):
        command, file = read_command_line(note.text), read_file_line(note.text)
        if command is not None:
            if command.command in commands:
                old.append(note)
            commands.add(command.command)
        elif file is not None:
            if file.path in files and set(file.names) <= files[file.path]:
                old.append(note)
            files.setdefault(file.path, set()).update(file.names)
    return old[::-1]
