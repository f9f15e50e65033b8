"""Notes from the cards of a chunk, turn by turn: what was asked, changed, run, committed, said, left open.

Invariant: a note cites every entry that bears it and that the chunk shows, and quotes only what is shown there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from obsmem.core.fold import Fold
from obsmem.core.ids import entry_id
from obsmem.core.model import RELEVANCES, Card, Fact, Request
from obsmem.workers.extractive_deeds import deed_notes
from obsmem.workers.extractive_draft import Draft, Sight
from obsmem.workers.extractive_words import Heard, word_notes

NOTES_PER_TOKENS = 40 / 10_000
FEWEST_ALLOWED = 15


def observe(request: Request) -> list[dict[str, Any]]:
    """Proposals {text, relevance, entry_ids, at} for the chunk, in the order of its entries."""
    if request.chunk is None:
        return []
    sight = Sight(request.chunk)
    past = Fold().add(request.state)
    drafts: list[Draft] = []
    turns = _turns(request.cards)
    heard = Heard([fact for facts in turns for fact in facts])
    for facts in turns:
        drafts += word_notes(facts, sight, heard)
        drafts += deed_notes(facts, sight, past)
        for fact in facts:
            past.take(fact)
    drafts.sort(key=lambda draft: draft.seqs[0])
    known = {note.text for note in request.memory.notes}
    kept = _within_limit(_without_repeats(drafts, known), request.chunk.tokens)
    session = request.chunk.session
    return [
        {
            "text": draft.text,
            "relevance": draft.relevance,
            "entry_ids": [entry_id(session, seq) for seq in draft.seqs],
            "at": draft.at,
        }
        for draft in kept
    ]


def _turns(cards: Iterable[Card]) -> list[list[Fact]]:
    """The facts of each turn; the pieces of one turn joined."""
    turns: dict[int, list[Fact]] = {}
    for card in cards:
        turns.setdefault(card.turn, []).extend(card.facts)
    return list(turns.values())


def _without_repeats(drafts: list[Draft], known: set[str]) -> list[Draft]:
    """One draft a text, and no low one that memory holds in the same words already."""
    seen: set[str] = set()
    kept = []
    for draft in drafts:
        if draft.text in seen or (draft.relevance == "low" and draft.text in known):
            continue
        seen.add(draft.text)
        kept.append(draft)
    return kept


def _within_limit(drafts: list[Draft], tokens: int) -> list[Draft]:
    """The weightiest drafts, in their order, as many as a chunk of that size may give."""
    limit = max(FEWEST_ALLOWED, int(tokens * NOTES_PER_TOKENS))
    if len(drafts) <= limit:
        return drafts
    ranked = sorted(range(len(drafts)), key=lambda index: (-RELEVANCES.index(drafts[index].relevance), -index))
    keep = set(ranked[:limit])
    return [draft for index, draft in enumerate(drafts) if index in keep or draft.relevance == "critical"]
