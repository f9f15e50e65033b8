"""A note before it is proposed, and what of a chunk a note may lean on.

Invariant: a draft cites at least one entry, and only entries whose words the chunk shows.
"""

from __future__ import annotations

from typing import NamedTuple

from obsmem.core.ids import entry_id
from obsmem.core.model import Chunk, Fact, Relevance
from obsmem.workers.extractive_lines import one_line

CITED_LIMIT = 24


class Draft(NamedTuple):
    """One note to be: ``seqs`` in order, ``at`` in milliseconds."""

    text: str
    relevance: Relevance
    seqs: tuple[int, ...]
    at: int


class Sight:
    """The entries of a chunk and the words that it shows of them."""

    def __init__(self, chunk: Chunk) -> None:
        self._shown = {
            entry.seq: chunk.shown[name]
            for entry in chunk.entries
            if (name := entry_id(chunk.session, entry.seq)) in chunk.shown
        }
        self._lines: dict[int, str] = {}

    def cites(self, *facts: Fact) -> tuple[int, ...]:
        """The seqs of these facts that the chunk shows, in order, once each."""
        seqs = sorted({seq for fact in facts for seq in fact.seqs if seq in self._shown})
        return tuple(seqs[:CITED_LIMIT])

    def sees(self, fact: Fact, words: str) -> bool:
        """True if the chunk shows these words, white space aside, in an entry that the fact cites."""
        wanted = one_line(words)
        return any(wanted in self._line(seq) for seq in fact.seqs if seq in self._shown)

    def _line(self, seq: int) -> str:
        if seq not in self._lines:
            self._lines[seq] = one_line(self._shown[seq])
        return self._lines[seq]
