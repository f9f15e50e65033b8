"""Cues in human sentences, the objects they name, and what they take back."""

from __future__ import annotations

import pytest

from obsmem.memory import cards_words as words


@pytest.mark.parametrize(
    ("sentence", "cue", "standing"),
    [
        ("Never touch the public API.", "forbid", True),
        ("don't add new dependencies", "forbid", True),
        ("Please do not commit yet.", "forbid", False),
        ("Don't rename it", "forbid", False),
        ("Use uv, not pip.", "prefer", True),
        ("I prefer small functions.", "prefer", True),
        ("From now on, run the linter first.", "prefer", True),
        ("I'd prefer a map here", "prefer", False),
        ("don't fix anything, but just validate it works", "forbid", False),
        ("Only explain it, do not change any code", "forbid", False),
        ("never change code in reviews, only explain", "forbid", True),
        ("no, that's the wrong file", "correct", False),
        ("Actually the port is 9090.", "correct", False),
        ("please revert that", "correct", False),
        ("let's go with option 2", "decide", False),
        ("yes do it", "decide", False),
        ("why does it fail?", "ask", False),
        ("Add a test for the parser", "do", False),
        ("can you fix the build?", "do", False),
        ("不要修改 config.py", "forbid", True),
        ("Bitte nicht ändern", "forbid", True),
        ("Utilise toujours uv", "prefer", True),
        ("絶対にmigrations/を変更しないでください。", "forbid", True),
        ("必ずポート8123を使ってください。", "prefer", True),
        ("それは違います。", "correct", False),
        ("テストを実行してください。", "do", False),
        ("항상 uv를 사용해 주세요.", "prefer", True),
    ],
)
def test_a_sentence_has_its_cue(sentence: str, cue: str, standing: bool) -> None:
    cues = words.cues_in(sentence)
    assert cue in cues
    assert words.is_standing(sentence, cues) is standing


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know what that is.",
        "This causes the counter to always return 0.",
        "UTC would be more consistent and avoid timezone issues.",
        "No initial_attribution in metadata",
        "why don't we use a map?",
        "Other languages, so that the patterns don't cause false alarms",
        "no problem",
    ],
)
def test_a_statement_forbids_and_prefers_nothing(sentence: str) -> None:
    cues = words.cues_in(sentence)
    assert not words.is_standing(sentence, cues)
    assert "forbid" not in cues


def test_only_own_sentences_count_not_fences_logs_or_the_tail_of_a_paste() -> None:
    text = "Look at this:\n```\nnever do that\n```\n2024-01-01 12:00:00 never log\n" + "line\n" * 60 + "never read\n"
    assert [order.words for order in words.orders_in(text)] == ["Look at this:"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('set `limit` to "ten items"', ("limit", "ten items")),
        ("edit src/a/b.py and README.md", ("src/a/b.py", "README.md")),
        ("pass --no-cache to it", ("--no-cache",)),
        ("call parse_config in ConfigLoader with MAX_SIZE", ("parse_config", "ConfigLoader", "MAX_SIZE")),
        ("use port 8080", ("port 8080",)),
        ("please be quick", ()),
    ],
)
def test_objects_are_quotes_paths_flags_identifiers_and_settings(text: str, expected: tuple[str, ...]) -> None:
    assert words.objects_in(text) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("use `uv` instead of `pip`", ("pip",)),
        ("Actually, use port 9090.", ("port 9090",)),
        ("forget what I said about src/api.py", ("src/api.py",)),
        ("don't use --fast any more", ("--fast",)),
        ("revert the change to `load_all`", ("load_all",)),
        ("Actually, src/api.py needs a test, too.", ()),
        ("Add src/api.py to the list", ()),
        ("should we use `uv` instead of `pip`?", ()),
        ("port 9090 is open on the server", ()),
    ],
)
def test_only_plain_words_take_something_back(sentence: str, expected: tuple[str, ...]) -> None:
    assert words.revoked_in(sentence, words.cues_in(sentence)) == expected


def test_reasons_next_steps_and_questions_of_an_agent() -> None:
    text = (
        "I'll use a set instead of a list to avoid duplicates.\n\n```\nbecause code\n```\n"
        "The sky is blue.\n- Remaining: the docs and the changelog.\n\nShall I push?"
    )
    assert words.decisions_in(text) == ["I'll use a set instead of a list to avoid duplicates."]
    assert words.next_steps_in(text) == ["Remaining: the docs and the changelog."]
    assert words.question_in(text) == "Shall I push?"
    assert words.question_in("Ready to merge.\n\nMove on?") == "Move on?"
    assert words.question_in("Done.") == ""


@pytest.mark.parametrize(
    "text", ["Let me check the tests.", "Now I'll run it:", "Good point. Let me look at the caller."]
)
def test_announcements_are_no_conclusions(text: str) -> None:
    assert words.is_preamble(text)


@pytest.mark.parametrize("text", ["", "\x00", "🤯" * 500, "«»“”", "\ud800", "- " * 3000, "`" * 999])
def test_odd_words_never_crash(text: str) -> None:
    words.orders_in(text)
    words.decisions_in(text)
    words.question_in(text)
    words.objects_in(text)
