"""The observer's pass: ask for notes about a chunk, and keep only what holds.

Invariants: one invented citation rejects its note and no other; ids, order, time, evidence and token count are computed
here, never taken from a model; a note is one masked line; a note that is known is not made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from obsmem.core.answers import SCHEMAS, parse_answer
from obsmem.core.clean import one_line
from obsmem.core.clock import Clock, read_minute, utc_minute
from obsmem.core.ids import content_id, entry_id
from obsmem.core.mask import mask
from obsmem.core.model import RELEVANCES, Card, Chunk, Entry, Memory, Note, Relevance, Reply, Request
from obsmem.core.tokens import clip_characters, estimate
from obsmem.memory import check
from obsmem.memory.lines import find_notes, line
from obsmem.memory.prompt import assemble, frame, instructions, memory_section, prior_memory

LONGEST_TEXT = 10_000  # characters

DAY = 24 * 3600 * 1000


class Accepted(NamedTuple):
    """What came of an answer: notes to keep, proposals refused with the reason, how many were known already, and which
    earlier notes it shows to be wrong (id -> id of the note that does)."""

    notes: tuple[Note, ...]
    rejected: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    duplicates: int = 0
    refuted: Mapping[str, str] = {}


def build(
    chunk: Chunk,
    cards: Sequence[Card],
    state: Sequence[Card],
    memory: Memory,
    now: str,
    memory_cap: int,
    clock: Clock = utc_minute,
) -> Request:
    """Make the request for one chunk. ``now`` is the local time as text, ``memory_cap`` tokens for prior memory."""
    words = instructions("observe")
    prompt = assemble(
        words.rules,
        f"It is {now} now.\nWhat is known already:",
        memory_section(prior_memory(memory, memory_cap, clock)),
        "What is new:",
        frame("transcript", chunk.text),
        words.answer,
    )
    return Request(
        task="observe",
        session=chunk.session,
        memory=memory,
        chunk=chunk,
        cards=tuple(cards),
        state=tuple(state),
        prompt=prompt,
        schema=SCHEMAS["observe"],
        version=words.version,
    )


def parse(text: str) -> list[dict[str, Any]]:
    """Read a model's answer as proposals. Raises WorkerError where it is blank, cut off or no JSON."""
    return parse_answer(text, "observe")


def accept(
    reply: Reply,
    chunk: Chunk,
    existing: Sequence[Note],
    now_ms: int,
    clock: Clock = utc_minute,
    *,
    only_grounded: bool = False,
) -> Accepted:
    """Turn proposals into notes, each judged alone. ``now_ms`` bounds the times that a model may give. With
    ``only_grounded`` a note is refused if the cited entries do not have all of its names and numbers."""
    entries = {entry_id(chunk.session, entry.seq): entry for entry in chunk.entries}
    existing_ids = {note.id for note in existing}
    refuted: dict[str, str] = {}
    notes: dict[str, Note] = {}
    rejected: list[tuple[str, Mapping[str, Any]]] = []
    duplicates = 0
    for proposal in reply.items:
        text = note_text(proposal.get("text"))
        cited, unknown = check.citations(proposal.get("entry_ids") or (), chunk)
        reason = _objection(text, cited, unknown)
        if reason:
            rejected.append((reason, proposal))
            continue
        note = _note(text, cited, proposal, chunk, entries, now_ms, clock)
        if only_grounded and note.missing:
            rejected.append((f"has {note.missing[0][:40]}, which the cited entries do not have", proposal))
            continue
        if note.id in notes or note.id in existing_ids:
            duplicates += 1
        else:
            notes[note.id] = note
            refuted.update(dict.fromkeys(_refuted(proposal.get("refutes"), note, existing), note.id))
    return Accepted(tuple(notes.values()), tuple(rejected), duplicates, refuted)


def _refuted(ids: Any, by: Note, existing: Sequence[Note]) -> Iterator[str]:
    """The earlier notes that a new one refutes: only what an agent claimed, and only by what a tool showed or a user
    said, word for word. Each id counts alone; what users said and tools showed is never taken back by a model."""
    if by.grounding != "verified" or by.evidence == "agent" or not isinstance(ids, (list, tuple)):
        return
    for name in ids:
        for note in find_notes([name], existing):
            if note.evidence == "agent":
                yield note.id


def note_text(value: Any) -> str:
    """A proposal's text as it is kept: one line, masked, at most 10,000 characters; '' for what is no text."""
    if not isinstance(value, str):
        return ""
    return clip_characters(mask(one_line(value)), LONGEST_TEXT)


def _objection(text: str, cited: Sequence[str], unknown: Sequence[str]) -> str:
    if not text:
        return "has no text"
    if unknown:
        return f"cites {unknown[0][:40]}, which was not shown"
    return "" if cited else "cites no entry"


def _note(
    text: str,
    cited: tuple[str, ...],
    proposal: Mapping[str, Any],
    chunk: Chunk,
    entries: Mapping[str, Entry],
    now_ms: int,
    clock: Clock,
) -> Note:
    sources = [entries[name] for name in cited]
    labels = " ".join(clock(entry.at) for entry in chunk.entries)
    grounding, missing = check.ground(text, [chunk.shown[name] for name in cited], labels)
    note = Note(
        id=content_id(text, cited),
        text=text,
        at=_time(proposal.get("at"), sources, chunk, now_ms, clock),
        relevance=_relevance(proposal.get("relevance")),
        entry_ids=cited,
        evidence=check.evidence(sources),
        grounding=grounding,
        tokens=0,
        missing=missing,
    )
    return note._replace(tokens=estimate(line(note)))


def _relevance(value: Any) -> Relevance:
    name = str(value).strip().lower()
    return next((relevance for relevance in RELEVANCES if relevance == name), "medium")


def _time(value: Any, sources: Sequence[Entry], chunk: Chunk, now_ms: int, clock: Clock) -> int:
    """The time that a model gives if it lies between the chunk's first day and now, else that of the newest source."""
    newest = max(entry.at for entry in sources)
    given = read_minute(value, clock) if isinstance(value, str) else 0
    first = min((entry.at for entry in chunk.entries if entry.at), default=0)
    return given if given and first - DAY <= given <= now_ms else newest
