"""Signals are worth the same whatever else was found, and the order of equals never changes."""

from __future__ import annotations

import random

from obsmem.memory.ranking import HALF_LIFE, Candidate, collapse, join_rankings, rank, rarity

NOW = 1_770_000_000_000


def candidate(number: int, **fields: object) -> Candidate:
    """Something that was found."""
    plain = Candidate((NOW, number), f"abcd.{number}", NOW, "assistant", "agent", frozenset((0,)), 1.0)
    return plain._replace(**fields)  # type: ignore[arg-type]


def order(*candidates: Candidate, weights: tuple[float, ...] = (1.0, 1.0), paths: tuple[str, ...] = ()) -> list[str]:
    """The ids, best first."""
    return [one.candidate.id for one in rank(candidates, weights, paths, NOW)]


def test_an_only_hit_is_worth_as_much_as_among_others() -> None:
    (alone,) = rank([candidate(1)], (1.0,), (), NOW)
    among = rank([candidate(1), candidate(2, bm25=0.2)], (1.0,), (), NOW)
    assert alone.signals["words"] == 1.0 and alone.score == among[0].score
    assert among[1].signals["words"] == 0.2, "the worst is not nothing"


def test_more_of_the_words_beat_one_of_them_often() -> None:
    both = candidate(1, held=frozenset((0, 1)), bm25=0.5)
    assert order(candidate(2, bm25=1.0), both) == ["abcd.1", "abcd.2"]
    assert order(candidate(1, held=frozenset((1,))), candidate(2), weights=(9.0, 0.1)) == ["abcd.2", "abcd.1"]
    assert rarity(3, 1000) > rarity(300, 1000) > rarity(1000, 1000) > 0


def test_who_spoke_when_and_about_which_file_counts() -> None:
    human, output = candidate(1, kind="user", speaker="human"), candidate(2, kind="tool_result", speaker="tool")
    note, dropped = candidate(3, kind="note"), candidate(4, kind="note", dropped=True)
    quoted = candidate(5, kind="user", speaker="harness")
    assert order(quoted, output, dropped, note, human) == ["abcd.1", "abcd.3", "abcd.2", "abcd.4", "abcd.5"]
    assert order(candidate(1, at=NOW - HALF_LIFE), candidate(2)) == ["abcd.2", "abcd.1"]
    (half,) = rank([candidate(1, at=NOW - HALF_LIFE)], (1.0,), (), NOW)
    assert half.signals["recency"] == 0.5
    near, far = candidate(1, paths=("src/a/config.py",)), candidate(2, paths=("other/config.py",))
    assert order(far, near, paths=("a/config.py",)) == ["abcd.1", "abcd.2"]


def test_equals_stand_in_one_order_whatever_came_first() -> None:
    same = [candidate(number, at=NOW - number % 3) for number in range(20)]
    first = order(*same)
    for seed in range(5):
        random.Random(seed).shuffle(same)
        assert order(*same) == first
    assert first[0] == "abcd.18", "the newest, then the last taken in"


def test_equal_texts_are_shown_once_with_their_number() -> None:
    ranked = rank([candidate(1, copies=2), candidate(2), candidate(3)], (1.0,), (), NOW)
    kept = collapse(ranked, {"abcd.1": 7, "abcd.2": 7, "abcd.3": 8})
    assert [(one.candidate.id, also) for one, also in kept] == [("abcd.3", 0), ("abcd.2", 2)]


def test_rankings_are_joined_by_reciprocal_rank() -> None:
    joined = join_rankings([(["a", "b", "c"], 1), (["c", "a", "d"], 1)])
    assert [name for name, _ in joined] == ["a", "c", "b", "d"]
    assert join_rankings([(["a", "a"], 1)])[0][1] == join_rankings([(["a"], 1)])[0][1]
    assert [name for name, _ in join_rankings([(["a", "b"], 1), (["c", "b"], 0.2)])] == ["b", "a", "c"]
