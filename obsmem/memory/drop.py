"""The dropper's pass: which notes may leave the block, and how many at most. Nothing is ever deleted by it.

Invariant: a model only proposes; code orders the proposals (best covered, least relevant, oldest first) and takes no
more than the excess over the target asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from obsmem.core.answers import SCHEMAS, parse_answer
from obsmem.core.clock import Clock, utc_minute
from obsmem.core.model import RELEVANCES, Memory, Note, Request
from obsmem.memory.lines import find_notes, line, pool
from obsmem.memory.prompt import assemble, instructions, memory_section, prior_memory
from obsmem.memory.reflect import tiers

__all__ = ["accept", "build", "droppable", "limit", "line", "parse", "pool", "select", "should_run"]

FAR_OVER = 1.5  # times the target: from here on the dropper may run although no reflection is new


def limit(n: int, pool_tokens: int, target: int) -> int:
    """The most notes to drop: the excess over the target divided by a note's average size, rounded up, at least one.

    ``n`` notes cost ``pool_tokens`` together. 0 where the pool is not over its target.
    """
    if n <= 0 or pool_tokens <= target:
        return 0
    excess = pool_tokens - target
    return min(n, max(1, -(-excess * n // pool_tokens)))


def should_run(pool_tokens: int, target: int, new_reflections: int) -> bool:
    """True over target after a productive reflector, or far over it anyway: else a pool that yields no reflections
    would grow for ever. Without new reflections give ``droppable(…, strict=True)`` to the other functions."""
    if new_reflections > 0:
        return pool_tokens > target
    return pool_tokens > target * FAR_OVER


def droppable(notes: Iterable[Note], tier: Mapping[str, int], *, strict: bool) -> tuple[Note, ...]:
    """The notes that may be proposed. Strict: no critical ones, and none that no reflection covers."""
    if not strict:
        return tuple(notes)
    return tuple(note for note in notes if note.relevance != "critical" and tier.get(note.id, 0) > 0)


def build(memory: Memory, session: str, most: int, target: int, memory_cap: int, clock: Clock = utc_minute) -> Request:
    """Make the request to propose at most ``most`` notes of ``memory`` (whose notes are the droppable ones)."""
    prior = prior_memory(memory, memory_cap, clock, tiers(memory.notes, memory.reflections), oldest=True)
    size = pool(memory.notes)
    figures = (
        f"The notes cost {size} tokens; {target} are wanted, so {max(0, size - target)} are too many.\n"
        f"Propose at most {most} notes. That is a limit, not a goal."
    )
    words = instructions("drop")
    prompt = assemble(words.rules, figures, memory_section(prior), words.answer)
    return Request(
        task="drop",
        session=session,
        memory=memory,
        prompt=prompt,
        limit=most,
        schema=SCHEMAS["drop"],
        version=words.version,
    )


def parse(text: str) -> list[dict[str, Any]]:
    """Read a model's answer as proposals. Raises WorkerError where it is blank, cut off or no JSON."""
    return parse_answer(text, "drop")


def accept(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids that an answer proposes, in its order."""
    return [str(item["note_id"]) for item in items if item.get("note_id")]


def select(proposals: Iterable[str], notes: Sequence[Note], tier: Mapping[str, int], most: int) -> tuple[str, ...]:
    """Choose at most ``most`` of the proposed notes: covered best first, then least relevant, oldest, first proposed.

    Ids may be shortened; unknown ones and repetitions are passed over.
    """
    candidates: dict[str, Note] = {}
    for proposal in proposals:
        for note in find_notes([proposal], notes):
            candidates.setdefault(note.id, note)
    ordered = sorted(
        candidates.values(),
        key=lambda note: (-tier.get(note.id, 0), RELEVANCES.index(note.relevance), note.at or float("inf")),
    )
    return tuple(note.id for note in ordered[: max(0, most)])
