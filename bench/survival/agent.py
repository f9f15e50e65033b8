"""A rule in the place of an agent: it asks ``search`` with the words of the question, and recalls what it finds.

Invariant: neither the answer nor its parts stand in a query; what a call gives counts up to CALL_TOKENS.
"""

from __future__ import annotations

from bench.survival.facts import Fact, without
from bench.survival.judge import Text, cut_to
from bench.survival.memory import Memory

CALL_TOKENS = 2_000
HITS = 10


def question(fact: Fact) -> str:
    """What is asked, in words from which the answer was taken."""
    if fact.kind == "demand":
        return fact.cue
    return without(fact.subject, fact.answer) if fact.kind == "identifier in file" else fact.subject


def learns(fact: Fact, memory: Memory, calls: int) -> bool:
    """True if the fact can be known from so many calls: a search, then the hits recalled, the best first."""
    words = question(fact)
    if not words or not calls:
        return False
    hits = memory.search(words, HITS)
    read = cut_to("\n".join(snippet for _, snippet in hits), CALL_TOKENS)
    for name, _ in [("", ""), *hits][:calls]:
        if name:
            read += "\n" + cut_to(memory.recall(name), CALL_TOKENS)
        if Text(read).holds(fact):
            return True
    return False


def rank(fact: Fact, memory: Memory, depth: int = 10) -> int:
    """The place (from 1) of the first hit whose entry holds the fact; 0 for none."""
    words = question(fact)
    for number, (name, snippet) in enumerate(memory.search(words, depth), 1) if words else ():
        if Text(snippet).holds(fact) or Text(memory.recall(name)).holds(fact):
            return number
    return 0
