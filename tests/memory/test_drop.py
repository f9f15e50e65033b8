"""How many notes may go, which, and when the dropper runs at all."""

import pytest

from obsmem.core.ids import content_id
from obsmem.core.model import Memory, Note
from obsmem.core.tokens import estimate
from obsmem.harnesses.written import WORKER_MARK
from obsmem.memory import drop
from tests.memory.make import NOON, note, reflection


@pytest.mark.parametrize(
    ("n", "pool", "target", "most"),
    [
        (10, 100, 100, 0),
        (10, 100, 90, 1),
        (10, 100, 50, 5),
        (10, 100, 0, 10),
        (4, 40, 20, 2),
        (3, 150, 100, 1),
        (2, 25, 0, 2),
        (3, 56, 20, 2),
        (3, 56, 40, 1),
        (5, 50, 80, 0),
        (0, 0, 0, 0),
    ],
)
def test_the_limit_is_the_excess_in_average_notes(n: int, pool: int, target: int, most: int) -> None:
    """The vectors of upstream's formula; it depends on sums alone, not on how tokens are estimated."""
    assert drop.limit(n, pool, target) == most


def test_a_line_has_the_shape_that_is_counted() -> None:
    """Upstream vector: an id of 12, a minute, ``high`` and 31 characters make 70 characters. Upstream then counts
    70 / 4 = 18 tokens; our estimate weighs character classes, so only the shape of the line is held here."""
    text = "x" * 31
    made = Note(content_id(text, []), text, NOON, "high", ("abcd.1",), "user", "verified", 0)
    line = drop.line(made, made.id)
    assert line == f"[{made.id}] 2026-05-02 12:00 [high] {text}"
    assert len(line) == 70
    assert drop.pool([made, made]) == 2 * estimate(drop.line(made))


LOW1, LOW2 = note("low one", 1, relevance="low"), note("low two", 2, relevance="low")
MEDIUM, HIGH, HIGH2 = note("medium", 3), note("high", 4, relevance="high"), note("high two", 5, relevance="high")
CRITICAL = note("critical", 6, relevance="critical")
ALL = (LOW1, LOW2, MEDIUM, HIGH, HIGH2, CRITICAL)


def test_the_least_relevant_go_first() -> None:
    """Upstream vector: high, unknown, critical, low1, medium, low1 again, low2, high2 with cap 3: low1, low2, medium."""
    proposed = [HIGH.id, "ffffffffffff", CRITICAL.id, LOW1.id, MEDIUM.id, LOW1.id, LOW2.id, HIGH2.id]
    assert drop.select(proposed, ALL, {}, 3) == (LOW1.id, LOW2.id, MEDIUM.id)


def test_coverage_outranks_relevance() -> None:
    """Upstream vector: strong critical, partial low, none low with cap 2: the strong one and the partial one."""
    tier = {CRITICAL.id: 2, LOW1.id: 1, LOW2.id: 0}
    assert drop.select([LOW2.id, LOW1.id, CRITICAL.id], ALL, tier, 2) == (CRITICAL.id, LOW1.id)


def test_older_goes_first_then_the_order_proposed() -> None:
    old, new, unknown = note("a", 1, at=NOON - 1), note("b", 2, at=NOON), note("c", 3, at=0)
    assert drop.select([unknown.id, new.id, old.id], (new, old, unknown), {}, 3) == (old.id, new.id, unknown.id)
    same = note("d", 4, at=NOON)
    assert drop.select([same.id, new.id], (new, same), {}, 2) == (same.id, new.id)


def test_short_ids_are_understood_and_no_limit_is_no_drop() -> None:
    assert drop.select([LOW1.id[:7], f"[{LOW2.id[:7]}]"], ALL, {}, 5) == (LOW1.id, LOW2.id)
    assert drop.select([LOW1.id], ALL, {}, 0) == ()


@pytest.mark.parametrize(
    ("pool", "target", "reflections", "runs"),
    [(101, 100, 1, True), (100, 100, 1, False), (101, 100, 0, False), (150, 100, 0, False), (151, 100, 0, True)],
)
def test_it_runs_after_reflections_or_far_over_target(pool: int, target: int, reflections: int, runs: bool) -> None:
    assert drop.should_run(pool, target, reflections) is runs


def test_without_new_reflections_critical_and_uncovered_notes_are_safe() -> None:
    tier = {CRITICAL.id: 2, LOW1.id: 1, HIGH.id: 2}
    assert drop.droppable(ALL, tier, strict=True) == (LOW1, HIGH)
    assert drop.droppable(ALL, tier, strict=False) == ALL
    safe = drop.droppable(ALL, tier, strict=True)
    assert drop.select([CRITICAL.id, LOW2.id, HIGH.id], safe, tier, 5) == (HIGH.id,)


def test_the_prompt_gives_figures_and_the_oldest_notes() -> None:
    notes = tuple(note(f"fact number {n} about the parser", n, at=NOON + n) for n in range(1, 300))
    request = drop.build(Memory(notes, (reflection("rule", notes[0]),)), "abcd", 7, 1000, 600)
    assert request.prompt.startswith(WORKER_MARK) and request.limit == 7 and request.task == "drop"
    assert "at most 7 notes" in request.prompt and str(drop.pool(notes)) in request.prompt
    assert notes[0].text in request.prompt and notes[-1].text not in request.prompt


def test_answers_are_read() -> None:
    assert drop.accept(drop.parse('```json\n{"ids": ["a", "b"]}\n```')) == ["a", "b"]
    assert drop.accept(drop.parse('{"ids": []}')) == []
    assert drop.accept([{"note_id": "a"}, {}, {"note_id": ""}]) == ["a"]
