"""Reflections by rule: orders that stand, files and commands as they are now, work that is finished.

Invariant: a reflection cites all and only notes whose lasting words it keeps, and says nothing that an existing
reflection says.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from obsmem.core.fold import fold
from obsmem.core.model import Note, Request
from obsmem.workers.extractive_lines import (
    NOTE_LIMIT,
    clip,
    code,
    one_line,
    quote,
    read_command_line,
    read_commit_line,
    read_file_line,
)

NAMES_KEPT = 14
COMMITS_TOGETHER = 5


def reflect(request: Request) -> list[dict[str, Any]]:
    """Proposals {text, note_ids}; each adds at least one note to what reflections already hold."""
    memory = request.memory
    notes = [note for note in memory.notes if note.id not in memory.dropped]
    covered = {note_id for reflection in memory.reflections for note_id in reflection.note_ids}
    texts = [reflection.text for reflection in memory.reflections]
    proposals = [
        *_orders(request, notes, texts),
        *_files(notes, covered),
        *_commands(notes, covered),
        *_commits(notes, covered),
    ]
    return [proposal for proposal in proposals if proposal["text"] not in texts]


def _proposal(text: str, notes: Iterable[Note]) -> dict[str, Any]:
    return {"text": text, "note_ids": [note.id for note in notes]}


def _orders(request: Request, notes: list[Note], texts: list[str]) -> list[dict[str, Any]]:
    """One reflection a standing order, in the user's words, where a note holds those words."""
    proposals = []
    said: set[str] = set()
    for instruction in fold([*request.state, *request.cards]).instructions:
        for order in instruction.orders:
            words = one_line(order.words)
            if not order.standing or order.superseded_by is not None or words in said:
                continue
            said.add(words)
            bearing = [note for note in notes if words in note.text]
            # All and only: a note that says more than the order is not preserved by it.
            whole = [note for note in bearing if len(note.text) <= len(words) + 40]
            if bearing and not any(words in text for text in texts):
                proposals.append(
                    _proposal(f"Standing order of the user: {quote(words, NOTE_LIMIT)}", whole or bearing[:1])
                )
    return proposals


def _files(notes: list[Note], covered: set[str]) -> list[dict[str, Any]]:
    """One reflection a file that several notes tell of: the names that its changes brought."""
    by_path: dict[str, list[tuple[Note, tuple[str, ...]]]] = {}
    for note in notes:
        file = read_file_line(note.text)
        if file is not None and file.names:
            by_path.setdefault(file.path, []).append((note, file.names))
    proposals = []
    for path, told in by_path.items():
        if sum(note.id not in covered for note, _ in told) < 2:
            continue
        kept = list(dict.fromkeys(name for _, listed in reversed(told) for name in listed))[:NAMES_KEPT]
        whole = [note for note, listed in told if set(listed) <= set(kept)]
        if len(whole) >= 2:
            proposals.append(_proposal(clip(f"{path} was changed several times and holds {', '.join(kept)}"), whole))
    return proposals


def _commands(notes: list[Note], covered: set[str]) -> list[dict[str, Any]]:
    """One reflection a command that was run again: how it ended the last time, and the notes that say the same."""
    by_command: dict[str, list[tuple[Note, bool, str]]] = {}
    for note in notes:
        read = read_command_line(note.text)
        if read is not None:
            by_command.setdefault(read.command, []).append((note, read.failed, read.rest))
    proposals = []
    for command, told in by_command.items():
        last, failed, rest = told[-1]
        if len(told) < 2 or last.id in covered:
            continue
        same = [note for note, _, other in told if other == rest and note.text == last.text]
        state = "fails" if failed else "passes"
        proposals.append(_proposal(clip(f"{code(command)} {state} as of its last run{rest}"), same))
    return proposals


def _commits(notes: list[Note], covered: set[str]) -> list[dict[str, Any]]:
    """Finished work: commits that no reflection holds yet, a few together."""
    made = [
        (note, commit)
        for note in notes
        if note.id not in covered and (commit := read_commit_line(note.text)) is not None
    ]
    proposals = []
    for start in range(0, len(made), COMMITS_TOGETHER):
        some = made[start : start + COMMITS_TOGETHER]
        if len(some) < 2:
            continue
        listed = "; ".join(f"{name} {message}" for _, (name, message) in some)
        proposals.append(_proposal(f"Finished and committed: {listed}", [note for note, _ in some]))
    return proposals
