"""The reflector's pass: lasting statements distilled from notes, and how well they cover them.

Invariants: every support of a reflection is an active note; a reflection is one line, shorter than what it stands on,
and never changed afterwards; the same statement is not made twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from obsmem.core.answers import SCHEMAS, parse_answer
from obsmem.core.clean import strip_controls
from obsmem.core.clock import Clock, utc_minute
from obsmem.core.ids import content_id
from obsmem.core.mask import mask
from obsmem.core.model import Card, Memory, Note, Reflection, Reply, Request
from obsmem.core.tokens import clip_characters, estimate
from obsmem.memory.lines import find_notes, find_reflections
from obsmem.memory.observe import LONGEST_TEXT
from obsmem.memory.prompt import assemble, instructions, memory_section, prior_memory

STRONG = 2


def build(memory: Memory, state: Sequence[Card], session: str, memory_cap: int, clock: Clock = utc_minute) -> Request:
    """Make the request; ``memory_cap`` is in tokens. ``state`` are the cards, for workers that read values."""
    prior = prior_memory(memory, memory_cap, clock, tiers(memory.notes, memory.reflections))
    words = instructions("reflect")
    prompt = assemble(words.rules, memory_section(prior), words.answer)
    return Request(
        task="reflect",
        session=session,
        memory=memory,
        state=tuple(state),
        prompt=prompt,
        schema=SCHEMAS["reflect"],
        version=words.version,
    )


def parse(text: str) -> list[dict[str, Any]]:
    """Read a model's answer as proposals. Raises WorkerError where it is blank, cut off or no JSON."""
    return parse_answer(text, "reflect")


class Accepted(NamedTuple):
    """What came of an answer: reflections to keep, and which earlier ones they replace (id -> id of the new one)."""

    reflections: tuple[Reflection, ...]
    replaced: Mapping[str, str] = {}


def accept(reply: Reply, active_notes: Sequence[Note], existing: Sequence[Reflection]) -> Accepted:
    """Turn proposals into reflections, each judged alone; what breaks a rule or is known already is left out."""
    taken_ids = {reflection.id for reflection in existing}
    taken_texts = {reflection.text for reflection in existing}
    accepted: list[Reflection] = []
    replaced: dict[str, str] = {}
    for proposal in reply.items:
        text = _reflection_text(proposal.get("text"))
        supports = find_notes(proposal.get("note_ids"), active_notes)
        if not text or not supports or text in taken_texts:
            continue
        tokens = estimate(text)
        if tokens > sum(estimate(note.text) for note in supports):
            continue  # longer than what it stands on: nothing was distilled
        note_ids = tuple(note.id for note in supports)
        reflection = Reflection(content_id(text, note_ids), text, note_ids, tokens)
        if reflection.id not in taken_ids:
            taken_ids.add(reflection.id)
            taken_texts.add(text)
            accepted.append(reflection)
            old = proposal.get("replaces")
            for one in find_reflections(old, existing):
                replaced[one.id] = reflection.id
    return Accepted(tuple(accepted), replaced)


def _reflection_text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    text = strip_controls(value).strip()
    # Two lines are two statements, or a list: neither is what was asked for.
    return "" if "\n" in text else clip_characters(mask(text), LONGEST_TEXT)


def tiers(notes: Iterable[Note], reflections: Iterable[Reflection]) -> dict[str, int]:
    """How well reflections cover each note: 0 none, 1 partial (one reflection), 2 strong (two or more)."""
    cited: Mapping[str, int] = Counter(name for reflection in reflections for name in set(reflection.note_ids))
    return {note.id: min(STRONG, cited.get(note.id, 0)) for note in notes}
