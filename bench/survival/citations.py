"""Whether notes cite what they tell, and whether the way back gives the very bytes.

Invariant: what stands in a cited line is read from the transcript that was given, not asked of the memory.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from bench.survival.facts import Fact
from bench.survival.falsehoods import claims, source_of, stands
from bench.survival.judge import mean
from bench.survival.memory import Memory

CONTAINED = 0.6  # of a note's rare tokens

_ENTRY = re.compile(r"\b([0-9a-z]{4,8}\.\d+)\b")


class Citations(NamedTuple):
    """Counts: ``notes``; of them with every cited entry among those that their observer was shown (``shown``); those that have rare
    tokens (``telling``), and of these with enough of them in the cited lines (``contained``). ``reached``: class -> share of facts
    of which a line that they come from is cited by a note, and by a note or the block. ``recalled``: entries whose bytes were
    asked for, ``same`` of them equal to the transcript's."""

    notes: int
    shown: int
    telling: int
    contained: int
    reached: dict[str, tuple[float, float]]
    recalled: int
    same: int


def judge_citations(memory: Memory, lines: Sequence[bytes], block: str, known: Sequence[Fact]) -> Citations:
    """Check every note of a memory that was given these lines. The transcript is lost to the memory afterwards."""
    notes = memory.notes()
    named = {name for note in notes for name in note.cited}
    told = {name for name in _ENTRY.findall(block) if memory.line(name) >= 0} | named
    places = {name: memory.line(name) for name in told}
    shown = sum(
        all(0 <= places[name] < len(lines) and note.first <= _number(name) <= note.last for name in note.cited)
        for note in notes
    )
    rates = [
        mean([float(stands(one, source)) for one in found])
        for note in notes
        if (found := claims(note.text))
        for source in [source_of(lines[place] for place in sorted({places[name] for name in note.cited}) if place >= 0)]
    ]
    memory.lose_transcript()
    same = sum(_hash(memory.raw(name)) == _hash(lines[place] + b"\n") for name, place in places.items())
    return Citations(
        len(notes), shown, len(rates), sum(rate >= CONTAINED for rate in rates),
        _reached(known, {places[name] for name in named}, set(places.values())), len(places), same,
    )  # fmt: skip


def _reached(known: Sequence[Fact], by_notes: set[int], by_all: set[int]) -> dict[str, tuple[float, float]]:
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for fact in known:
        found[fact.kind].append((fact.line in by_notes, fact.line in by_all))
    return {
        kind: (mean([float(a) for a, _ in ones]), mean([float(b) for _, b in ones])) for kind, ones in found.items()
    }


def _number(name: str) -> int:
    return int(name.rpartition(".")[2])


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
