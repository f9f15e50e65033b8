"""Which of several texts that hold words of a question stands first: one score, made of signals that are each 0..1.

Invariants: pure; a signal of an only candidate is worth as much as the same among many (nothing is spread between the
worst and the best); equal scores stand in the order of time and row, so that an answer is the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from obsmem.core.tuples import NamedTuple

# How much each signal counts. They add up to 1, but for a quoted phrase that a text really holds.
WEIGHTS: Mapping[str, float] = {
    "coverage": 0.37, "words": 0.35, "kind": 0.11, "recency": 0.10, "path": 0.07, "phrase": 0.35,
}  # fmt: skip
# Human words > notes > what the agent says > calls > their output > the harness's own words.
KIND_WORTH: Mapping[str, float] = {
    "user": 1.0, "note": 0.9, "assistant": 0.7, "tool_call": 0.55, "thinking": 0.45, "tool_result": 0.4,
    "summary": 0.3, "notice": 0.15, "boundary": 0.1,
}  # fmt: skip
DROPPED_WORTH = 0.35  # of a note that the block no longer shows
STRANGER_WORTH = 0.2  # of words that stand as a user's, but which no human spoke
HALF_LIFE = 14 * 86_400_000  # milliseconds after which something counts half as new
RRF_DEPTH = 60  # added to each rank before it is turned round: how little the first ranks differ
VECTORS_COUNT = 0.2  # as much as words: what only vectors name stands behind what words name first


class Candidate(NamedTuple):
    """A text that may answer. ``key`` tells candidates apart and orders equals (larger first); ``bm25`` is relative to
    the best of its table (0..1); ``held`` are the terms (by position in the question) that stand in it; ``phrases`` the
    share of quoted phrases that it really holds, -1 where the question has none."""

    key: tuple[int, int]
    id: str
    at: int
    kind: str
    speaker: str
    held: frozenset[int]
    bm25: float = 0.0
    paths: tuple[str, ...] = ()
    phrases: float = -1.0
    dropped: bool = False
    copies: int = 1


class Ranked(NamedTuple):
    """A candidate with its score and what that is made of, not rounded."""

    candidate: Candidate
    score: float
    signals: Mapping[str, float]


def rarity(count: int, total: int) -> float:
    """What a term is worth that ``count`` of ``total`` texts hold; never 0, so that frequent words still count a little."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5)) + 0.05


def rank(
    candidates: Iterable[Candidate], weights: Sequence[float], wanted_paths: Sequence[str], now: int
) -> list[Ranked]:
    """Best first. ``weights`` are those of the question's terms; ``wanted_paths`` the paths that it names; ``now`` in
    milliseconds."""
    found = list(candidates)
    wanted = [folders for path in wanted_paths if (folders := _folders(path))]
    covered: dict[frozenset[int], float] = {}
    # What stands nowhere tells nobody apart: it must not make the other signals weigh more.
    whole = sum(weights[index] for index in frozenset().union(*(one.held for one in found))) or 1.0
    scored = []
    for one in found:
        if one.held not in covered:
            covered[one.held] = sum(weights[index] for index in one.held) / whole
        signals = {
            "coverage": covered[one.held],
            "words": min(1.0, max(0.0, one.bm25)),
            "kind": _kind(one),
            "recency": 0.5 ** (max(0, now - one.at) / HALF_LIFE) if one.at > 0 else 0.0,
            "path": _path(one.paths, wanted) if wanted and one.paths else 0.0,
        }
        if one.phrases >= 0:
            signals["phrase"] = one.phrases
        score = 0.0
        for name, value in signals.items():
            score += WEIGHTS[name] * value
        scored.append(Ranked(one, round(score, 6), signals))
    return sorted(scored, key=_order)


def _order(ranked: Ranked) -> tuple[float, int, tuple[int, int]]:
    one = ranked.candidate
    return -ranked.score, -one.at, (-one.key[0], -one.key[1])


def _kind(one: Candidate) -> float:
    if one.dropped:
        return DROPPED_WORTH
    if one.kind == "user" and one.speaker != "human":
        return STRANGER_WORTH
    if one.kind != "user" and one.speaker == "human":  # a human's answer that came back as a tool's result
        return KIND_WORTH["user"]
    return KIND_WORTH.get(one.kind, 0.0)


def _path(paths: Sequence[str], wanted: Sequence[Sequence[str]]) -> float:
    """How much of the best wanted path a candidate's paths share from the end: 1 for the same, half for the file's name alone."""
    best = 0.0
    for path in paths:
        has = _folders(path)
        for asked in wanted:
            shared = 0
            while shared < min(len(asked), len(has)) and asked[-1 - shared] == has[-1 - shared]:
                shared += 1
            if shared:
                best = max(best, 0.5 + 0.5 * shared / len(asked))
    return best


def _folders(path: str) -> list[str]:
    return [part.casefold() for part in path.replace("\\", "/").split("/") if part not in ("", ".")]


def join_rankings(rankings: Iterable[tuple[Sequence[str], float]]) -> list[tuple[str, float]]:
    """Join rankings of ids, best first each, with what each counts, by reciprocal rank; equal sums in the order in which ids
    first come up."""
    sums: dict[str, float] = {}
    for ranking, weight in rankings:
        for place, name in enumerate(dict.fromkeys(ranking), 1):
            sums[name] = sums.get(name, 0.0) + weight / (RRF_DEPTH + place)
    return sorted(sums.items(), key=lambda item: -item[1])


def collapse(ranked: Iterable[Ranked], hashes: Mapping[str, int]) -> list[tuple[Ranked, int]]:
    """Keep the best of equal texts (by hash of id), each with the number of those that are not shown."""
    kept: dict[int, tuple[Ranked, int]] = {}
    for number, one in enumerate(ranked):
        key = hashes.get(one.candidate.id, -1 - number)
        if key in kept:
            first, also = kept[key]
            kept[key] = (first, also + one.candidate.copies)
        else:
            kept[key] = (one, one.candidate.copies - 1)
    return list(kept.values())
