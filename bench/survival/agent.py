"""A rule in the place of an agent: it asks ``search`` with the words of the question, and recalls what it finds.

Invariant: neither the answer nor its parts stand in a query; what a call gives counts up to CALL_TOKENS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.survival.entries import RECORD, Kinds
from bench.survival.facts import Fact, without
from bench.survival.judge import Text, cut_to
from bench.survival.memory import Memory

CALL_TOKENS = 2_000
HITS = 10

_RECORD = re.compile(r"(?m)^\[[\w.]+\] [^\n]*:\n[^\n]*(?:\n[^\n]*)?")


def question(fact: Fact) -> str:
    """What is asked, in words from which the answer was taken."""
    if fact.kind == "demand":
        return fact.cue
    return without(fact.subject, fact.answer) if fact.kind == "identifier in file" else fact.subject


def calls_needed(fact: Fact, memory: Memory, most: int, kinds: Kinds) -> int:
    """How many calls it takes until the fact can be known: a search, then the hits recalled, the best first. ``most`` + 1 where
    that many do not suffice."""
    words = question(fact)
    if not words or not most:
        return most + 1
    hits = memory.search(words, HITS)
    if Text(_snippets(hits), kinds).holds(fact):
        return 1
    for count, (name, _) in enumerate(hits[: most - 1], 2):
        if Text(read(memory, name), kinds).holds(fact):
            return count
    return most + 1


def told(noun: str, memory: Memory, calls: int) -> str:
    """What so many calls tell of a name: a search for it, then the hits recalled, the best first."""
    hits = memory.search(noun, HITS) if calls else []
    return "\n".join([_snippets(hits), *(read(memory, name) for name, _ in hits[: max(0, calls - 1)])])


def rank(fact: Fact, memory: Memory, kinds: Kinds, depth: int = 10) -> int:
    """The place (from 1) of the first hit whose entry holds the fact; 0 for none."""
    words = question(fact)
    for number, (name, snippet) in enumerate(memory.search(words, depth), 1) if words else ():
        if Text(snippet, kinds).holds(fact) or Text(read(memory, name), kinds).holds(fact):
            return number
    return 0


def _snippets(hits: Sequence[tuple[str, str]]) -> str:
    return cut_to("\n".join(snippet for _, snippet in hits), CALL_TOKENS)


def read(memory: Memory, name: str) -> str:
    """What a call of ``recall`` gives, as records: the lines that name an entry, its tool and its file are the first line of one."""
    told = cut_to(memory.recall(name), CALL_TOKENS)
    return _RECORD.sub(lambda match: RECORD + " ".join(match.group(0).split("\n")), told)
