"""The estimate weighs classes of characters; whatever is cut to a budget stays within it."""

import pytest

from obsmem.core.tokens import clip, clip_characters, clip_tail, estimate, excerpt


def test_nothing_costs_nothing() -> None:
    assert estimate("") == 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("a", 1), ("word " * 100, 99), ("1234567890", 8), ("\n" * 10, 26), ("日本語", 4), ("привет", 4), ("A" * 100, 31)],
)
def test_each_class_of_characters_has_its_weight(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_a_lone_surrogate_is_counted_and_does_not_fail() -> None:
    assert estimate("a\ud800b") > 0


TEXT = "Edited src/a.py:31 – 12 Fälle, 日本語.\n" * 50


@pytest.mark.parametrize("budget", [0, 1, 7, 100, 10_000])
def test_a_clip_fits_and_is_the_longest_that_does(budget: int) -> None:
    head, tail = clip(TEXT, budget), clip_tail(TEXT, budget)
    assert TEXT.startswith(head) and estimate(head) <= budget
    assert TEXT.endswith(tail) and estimate(tail) <= budget
    assert head == TEXT or estimate(TEXT[: len(head) + 1]) > budget


def test_an_excerpt_keeps_head_and_tail_around_its_mark() -> None:
    cut = excerpt(TEXT, 60, "[cut]")
    head, tail = cut.split("[cut]")
    assert estimate(cut) <= 60
    assert TEXT.startswith(head) and TEXT.endswith(tail) and head and tail
    assert excerpt(TEXT, 10_000, "[cut]") == TEXT
    assert excerpt(TEXT, 2, "[a mark that does not fit]") == ""


def test_a_text_cut_by_characters_says_how_many_are_gone() -> None:
    cut = clip_characters("x" * 10_050, 10_000)
    kept, mark = cut.split(" […")
    assert len(cut) <= 10_000 and set(kept) == {"x"}
    assert mark == f"{10_050 - len(kept)} more characters]"
    assert clip_characters("short", 10_000) == "short"
